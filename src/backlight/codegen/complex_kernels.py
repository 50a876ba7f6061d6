"""PyTorch's errors for complex tensors, by op."""

REFUSALS: dict[str, str] = {}
