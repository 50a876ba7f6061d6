"""PyTorch's `torch.utils.hooks`: marks on hooks."""

__all__ = ["unserializable_hook"]


def unserializable_hook(f):
    """Mark a tensor hook as one that a pickle may leave out without a warning."""
    f.__torch_unserializable__ = True
    return f
