"""PyTorch's `torch.utils`."""

from backlight.utils import checkpoint, dlpack

__all__ = ["checkpoint", "dlpack"]
