"""Calls of public names with hostile arguments: what is called, with what, in which process, and how it is judged."""
