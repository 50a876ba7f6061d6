"""PyTorch's `torch.utils`."""

from backlight.utils import averaging, checkpoint, dlpack

__all__ = ["averaging", "checkpoint", "dlpack"]
