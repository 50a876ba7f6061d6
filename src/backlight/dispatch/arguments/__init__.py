"""What PyTorch's functions take, and which of its errors a call gets whose arguments are of the wrong kind."""
