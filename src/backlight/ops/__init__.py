"""Floor 3, the ops: one family a file, forward and derivatives side by side."""
