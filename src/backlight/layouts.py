"""Layouts and memory formats: names that PyTorch's functions take; kernels/memory_order.py makes them strides."""

from backlight.errors import GraphError

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_coo",
    "strided",
]


class layout:  # noqa: N801 - PyTorch's name
    """How elements lie in memory: `strided`, or `sparse_coo`."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class memory_format(layout):  # noqa: N801 - PyTorch's name
    """The order of dims in memory that a copy is to have."""

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def require_strided(wanted: layout | None) -> None:
    """Raise unless the layout of a new dense tensor is `strided`."""
    if wanted is not None and wanted is not strided:
        raise GraphError(f"layout must be torch.strided, got {wanted!r}: make the tensor dense, and call .to_sparse()")
