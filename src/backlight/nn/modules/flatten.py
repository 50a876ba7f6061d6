"""Layers that merge and split dims."""

from collections.abc import Sequence

from backlight.errors import ArgumentError
from backlight.nn.modules.module import Layer
from backlight.tensor.tensor import Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Layer):
    """Merge dims into one; by default all but the first, the batch."""

    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """Split one dim into several.

    Args:
        unflattened_size: the new sizes; one of them may be -1.
    """

    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Sequence[int]):
        super().__init__()
        _check_sizes(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


def _check_sizes(sizes: Sequence[int]) -> None:
    """Raise PyTorch's error unless sizes are a tuple or list of ints."""
    if not isinstance(sizes, (tuple, list)):
        raise ArgumentError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
    for place, size in enumerate(sizes):
        if not isinstance(size, int):
            found = f"element of type {type(size).__name__} at pos {place}"
            raise ArgumentError(f"unflattened_size must be tuple of ints, but found {found}")
