"""PyTorch's random numbers, bit for bit."""
