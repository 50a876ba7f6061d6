"""NumPy's names of parameters, which PyTorch's functions take for their own."""

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
