"""Memory shared between libraries without a copy: DLPack, and `asarray`.

NOTE [bfloat16 in DLPack]
NumPy reads and writes DLPack's capsules, but refuses bfloat16 and complex32, which are none of its dtypes. A capsule
points to a description of the tensor, in which one byte is the kind of the elements: it is set to unsigned integers of
as many bits while NumPy reads it, and to its own kind after NumPy has written it.
"""

import ctypes

import ml_dtypes
import numpy as np

from backlight.devices import require_cpu
from backlight.dtypes import from_numpy_dtype, get_default_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable
from backlight.errors import ArgumentError, ExportError, GraphError, ValueProblem
from backlight.system.user_warnings import warn_once
from backlight.tensor.creation import check_array, copied, from_numpy, frombuffer, leaf
from backlight.types import Device

__all__ = ["asarray", "from_dlpack"]

CPU_DEVICE = (1, 0)  # DLPack's number for the CPU, and which one
UNSIGNED, BFLOAT, COMPLEX = 1, 4, 5  # DLPack's numbers for kinds of elements
BFLOAT16, COMPLEX32 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.complex32)
UNKNOWN = {BFLOAT16: BFLOAT, COMPLEX32: COMPLEX}  # dtypes that NumPy cannot exchange -> DLPack's kind
# Offset of the elements' kind by the name of the capsule: in DLManagedTensor and DLManagedTensorVersioned.
KIND_AT = {b"dltensor": 20, b"dltensor_versioned": 32 + 20}
ALREADY_USED = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have "
    "already constructed a tensor from it once."
)


def from_dlpack(ext_tensor: object, *, device: Device = None, copy: bool | None = None):
    """Return a tensor that shares the memory of another library's tensor.

    Args:
        ext_tensor: an object with `__dlpack__`, or a capsule that `to_dlpack` returned, which can be used once.
        copy: True copies the memory, False never does; None copies where it must.

    Raises:
        RuntimeError: it is neither, or a capsule that was used before.
        BufferError: the other library does not export it: a tensor that requires grad, say.
        TypeError: backlight has no dtype for its elements.
    """
    require_cpu(device)
    if not hasattr(ext_tensor, "__dlpack__"):
        return _read(ext_tensor)
    kind, _ = ext_tensor.__dlpack_device__()
    if kind != CPU_DEVICE[0]:
        raise ExportError(f"from_dlpack takes memory of the CPU, got device {int(kind)}: move it to the CPU first")
    options = {} if copy is None else {"copy": copy}
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a library of before DLPack 1.0
        found = _read(ext_tensor.__dlpack__())
        return found.clone() if copy else found
    return _read(capsule)


class _Writable:
    """Memory that NumPy takes for read-only, since capsules before DLPack 1.0 have no flag for that."""

    def __init__(self, array: np.ndarray):
        self.array = array
        pointer, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (pointer, False)}


class _Exported:
    """An object with the methods by which NumPy gets a capsule."""

    def __init__(self, capsule: object):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_DEVICE


def _read(capsule: object):
    kind = _kind_of_elements(capsule)
    if kind is None:
        raise GraphError(f"{ALREADY_USED} Got {type(capsule).__name__}: give an object with __dlpack__")
    is_old = _capsule_name(capsule) == b"dltensor"
    bits = ctypes.c_uint8.from_address(ctypes.addressof(kind) + 1).value
    unknown = next((one for one, code in UNKNOWN.items() if (code, 8 * one.itemsize) == (kind.value, bits)), None)
    if unknown is not None:
        kind.value = UNSIGNED
    array = np.from_dlpack(_Exported(capsule))
    if is_old:
        array = np.asarray(_Writable(array))
    if unknown is not None:
        array = array.view(unknown)
    check_array(array)
    made = wrap(array)
    storage_of(made)
    return made


def _kind_of_elements(capsule: object) -> ctypes.c_uint8 | None:
    """Return the byte of a capsule that is the kind of its elements; None if it cannot be read."""
    if type(capsule).__name__ != "PyCapsule":
        return None
    name = _capsule_name(capsule)
    if name not in KIND_AT:
        return None
    return ctypes.c_uint8.from_address(_capsule_pointer(capsule, name) + KIND_AT[name])


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def export(tensor: TensorState, stream: int | None = None, max_version=None, dl_device=None, copy: bool | None = None):
    """Return a capsule over a tensor's memory."""
    if tensor.requires_grad:
        raise ExportError("Can't export tensors that require gradient, use tensor.detach()")
    if stream not in (None, -1):
        raise ArgumentError(f"stream should be None on cpu. Got {stream!r}: leave it out")
    storage_of(tensor)
    array = writable(tensor)
    code = UNKNOWN.get(array.dtype)
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    capsule = (array if code is None else array.view(f"u{array.itemsize}")).__dlpack__(**options)
    if code is not None:
        _kind_of_elements(capsule).value = code
    return capsule


def asarray(obj: object, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool | None = None):
    """Return `obj` as a tensor.

    Args:
        obj: a tensor, a NumPy array, an object with DLPack or the buffer protocol, a number or nested lists.
        copy: True always copies; False never does; None copies where it must.
        requires_grad: whether the result requires grad; by default as `obj` does.

    Raises:
        ValueError: `copy` is False, and the dtype or the kind of `obj` requires a copy.
    """
    require_cpu(device)
    kind = to_numpy_dtype(dtype)
    shared = _shared(obj, kind)
    same_kind = shared is not None and (kind is None or kind == shared._data.dtype)
    if copy is False and not same_kind:
        if shared is None:
            raise ValueProblem(f"can't alias arbitrary sequence into a tensor of {dtype}: leave copy=False out")
        names = [from_numpy_dtype(one).old_name for one in (shared._data.dtype, kind)]
        raise ValueProblem(f"can't alias tensor with dtype '{names[0]}' into dtype '{names[1]}'.")
    if requires_grad is None and isinstance(obj, TensorState) and obj.requires_grad:
        warn_once(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
            "requires_grad=False explicitly to get the old behavior and silence this warning.",
            stacklevel=3,
        )
    if shared is None:
        found = leaf(copied(obj, kind))
    elif same_kind:
        found = shared.clone() if copy else shared
    else:
        found = shared.to(from_numpy_dtype(kind))
    if requires_grad is None or requires_grad == found.requires_grad:
        return found
    return found.detach().requires_grad_(requires_grad)


def _shared(obj: object, kind: np.dtype | None):
    """Return a tensor over the memory of an object, or None if it exposes none."""
    if isinstance(obj, TensorState):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer(obj, dtype=from_numpy_dtype(kind or get_default_dtype().numpy))
    return None
