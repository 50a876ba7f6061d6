"""PyTorch's `torch.utils.hooks`: marks on hooks, and the handles that remove them."""

from backlight.engine.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f):
    """Mark a tensor hook as one that pickling may drop without a warning."""
    f.__torch_unserializable__ = True
    return f
