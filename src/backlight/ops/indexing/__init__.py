"""Reading and writing elements that are named by numbers, masks or indices."""
