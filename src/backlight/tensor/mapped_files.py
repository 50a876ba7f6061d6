"""Files that are mapped into memory, as bytes and as tensors."""

import os

import numpy as np

from backlight.devices import require_cpu
from backlight.dtypes import dtype, get_default_dtype, to_numpy_dtype
from backlight.errors import GraphError
from backlight.layouts import layout, require_strided
from backlight.tensor.creation import from_numpy
from backlight.types import Device

__all__ = ["from_file"]


def mapped_file(filename: str, shared: bool | None, nbytes: int) -> np.ndarray:
    """Return the first bytes of a file, mapped into memory.

    Args:
        shared: whether writes go to the file, which is made, or made longer, where it is too short; else they stay in
            memory.

    Raises:
        RuntimeError: the file cannot be opened, or is too short.
    """
    mode = "read-write" if shared else "read-only"
    try:
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(file.tell(), nbytes))
        size = os.stat(filename).st_size
        if size < nbytes:
            raise GraphError(
                f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>; "
                "backlight maps what is there: give a size that fits"
            )
        return (
            np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8)
        )
    except OSError as problem:
        raise GraphError(
            f"unable to open file <{filename}> in {mode} mode: {problem.strerror} ({problem.errno})"
        ) from problem


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
):
    """Make a tensor of the first `size` elements of a file, mapped into memory.

    Args:
        shared: whether writes go to the file, which is made, or made longer, where it is too short; else they stay in
            memory.

    Raises:
        RuntimeError: the file cannot be opened, or is too short.
    """
    kind = to_numpy_dtype(dtype) or get_default_dtype().numpy
    require_cpu(device)
    require_strided(layout)
    memory = mapped_file(filename, shared, (size or 0) * kind.itemsize)
    return from_numpy(memory.view(kind)).requires_grad_(requires_grad)
