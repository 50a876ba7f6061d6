"""PyTorch's `torch.utils`."""
