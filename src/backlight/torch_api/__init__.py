"""Floor 4: PyTorch's long tail: old constructors, kernel names, removed functions, names of modules and files."""
