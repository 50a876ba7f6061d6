"""`Size`, the tuple of ints that a tensor's shape is."""

from math import prod


class Size(tuple):
    """A tensor's shape: a tuple of ints with `numel()`, printed as PyTorch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        """Return how many elements a tensor of this shape has."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))
