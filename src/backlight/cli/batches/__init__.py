"""Shared parts of the batch commands, and the commands for many workers."""
