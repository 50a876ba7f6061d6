"""Tensors in memory that processes share.

NOTE [Shared memory]
The memory is a file without a name, mapped into the process: in memory where the system has `memfd_create`, else in the
folder for temporary files. A forked process has the mapping already; to another one multiprocessing passes the file's
descriptor. The kernel frees the file with its last descriptor and mapping, however the processes end.
"""

import os
import tempfile
from multiprocessing import reduction

import numpy as np

from backlight.engine.tensor_state import LEAF, TensorState, replace_memory, writable
from backlight.errors import UnsupportedError
from backlight.torch_api.legacy_constructors import instance


class SharedArray(np.memmap):
    """An array over a file that processes share; `descriptor` is the file's, as long as the array lives."""

    file: "SharedFile | None" = None

    def __array_finalize__(self, source: np.ndarray | None) -> None:
        super().__array_finalize__(source)
        self.file = getattr(source, "file", None)


class SharedFile:
    """A file without a name, closed when nothing refers to it."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def shared_array(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array in memory that processes share."""
    if not hasattr(reduction, "DupFd"):
        raise UnsupportedError("share_memory_() needs descriptors that processes can pass on, which Windows lacks")
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("backlight", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    shared = SharedFile(descriptor)
    os.ftruncate(descriptor, max(array.nbytes, 1))
    mapped = _mapped(shared, array.dtype, array.shape)
    np.copyto(mapped, array)
    return mapped


def _mapped(shared: SharedFile, kind: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Map a shared file, and return an array over it."""
    with os.fdopen(os.dup(shared.descriptor), "r+b") as file:
        made = SharedArray(file, np.uint8, "r+", shape=(max(kind.itemsize * int(np.prod(shape)), 1),))
    made.file = shared
    return np.ndarray(shape, kind, made)


def shared_base(array: np.ndarray) -> SharedArray | None:
    """Return the shared array whose memory an array is a part of; None if it is in the process's own memory."""
    base = array
    while isinstance(base, np.ndarray):
        if isinstance(base, SharedArray):
            return base
        base = base.base
    return None


def is_shared(tensor: TensorState) -> bool:
    """Tell whether a tensor is in memory that processes share."""
    return shared_base(writable(tensor)) is not None


def share_memory(tensor: TensorState) -> None:
    """Move a tensor into memory that processes share; views that exist keep the old memory."""
    array = writable(tensor)
    if shared_base(array) is None:
        replace_memory(tensor, shared_array(array), None)
    reduction.ForkingPickler.register(type(tensor), reduced_for_processes)


def reduced_for_processes(tensor: TensorState) -> tuple:
    """Return what multiprocessing sends for a tensor: of a shared one the file's descriptor, else the values."""
    if tensor._edge is not None and tensor._edge is not LEAF:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    array = writable(tensor)
    base = shared_base(array)
    if base is None:
        return tensor.__reduce_ex__(2)
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    handle = reduction.DupFd(base.file.descriptor)
    layout = array.dtype, array.shape, array.strides, offset, base.nbytes
    return received, (type(tensor), handle, layout, tensor._edge is LEAF)


def received(cls: type, handle: object, layout: tuple, requires_grad: bool):
    """Rebuild a shared tensor in the process that receives it."""
    kind, shape, strides, offset, size = layout
    memory = _mapped(SharedFile(handle.detach()), np.dtype(np.uint8), (size,))
    data = np.ndarray(shape, kind, memory, offset, strides)
    reduction.ForkingPickler.register(cls, reduced_for_processes)
    return instance(cls, data, requires_grad)
