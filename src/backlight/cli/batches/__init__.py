"""What the commands of batches share, and those for many workers."""
