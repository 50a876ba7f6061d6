"""The old constructors: `Tensor(2, 3)`, `Tensor([1, 2])`, and one for each dtype: `FloatTensor([1, 2])`."""

import operator

import numpy as np

from backlight import dtypes
from backlight.devices import require_cpu
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.storage import new_storage
from backlight.engine.tensor_state import LEAF, TensorState, new, storage_of, the_tensor_class, writable
from backlight.engine.views import remember_view
from backlight.errors import ArgumentError
from backlight.sizes import Size, size_from, unwritten
from backlight.system.user_warnings import warn_once
from backlight.tensor.creation import copied, is_sequence
from backlight.types import Device

__all__ = [*(f"{kind.old_name}Tensor" for kind in dtypes.OLD), "set_default_tensor_type"]


def old_style(cls: type, given: tuple, device: Device = None, kind: np.dtype | None = None):
    """Return an instance of a tensor class from sizes (uninitialised), a sequence of numbers, or a tensor's memory.

    Args:
        kind: the dtype; None is the default dtype, or that of a given tensor.

    Raises:
        TypeError: the arguments are neither, or a given tensor is of another dtype.
    """
    require_cpu(device)
    wanted = kind or dtypes.get_default_dtype().numpy
    if len(given) != 1 or isinstance(given[0], Size):
        return instance(cls, unwritten(size_from("new", given) if given else (0,), wanted))
    (only,) = given
    if isinstance(only, TensorState):
        return _alias(cls, only, kind)
    if hasattr(only, "untyped"):  # a storage of numbers
        made = instance(cls, only._flat)
        storage_of(made)  # it shares the memory: writes must stay in it
        return made
    if is_sequence(only) or isinstance(only, bytes):
        return instance(cls, copied(only, wanted))
    if not _is_size(only):
        raise ArgumentError(f"new(): data must be a sequence (got {type(only).__name__}); torch.tensor takes numbers")
    return instance(cls, unwritten(size_from("new", given), wanted))


def _is_size(value) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _alias(cls: type, source: TensorState, kind: np.dtype | None):
    """Return an alias of a tensor, with the same history."""
    if kind is not None and source._data.dtype != kind:
        wanted, given = (_options(from_numpy_dtype(one).c_name) for one in (kind, source._data.dtype))
        raise ArgumentError(f"expected {wanted} (got {given}): convert the tensor with .to()")
    return recast(source if source._edge is None else source.view_as(source), cls)


def _options(c_name: str) -> str:
    """Return what PyTorch's messages call a tensor's kind."""
    return (
        f"TensorOptions(dtype={c_name}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def instance(cls: type, data: np.ndarray, requires_grad: bool = False):
    """Return an instance of a tensor class over an array, a leaf."""
    made = new(cls)
    made._data = data if data.ndim else data[()]
    made._edge = LEAF if requires_grad else None
    made._storage = new_storage() if modes.marks else None
    made._view = None
    return made


def recast(source: TensorState, cls: type):
    """Return an instance of another tensor class with the same memory and the same place in the graph."""
    made = new(cls)
    made._data = writable(source)
    made._edge = source._edge
    made._storage = storage_of(source)
    made._view = source._view
    if made._view is not None:
        remember_view(made._view[0], made)
    return made


class tensortype(type):  # noqa: N801 - PyTorch's name
    """The type of `FloatTensor` and similar: calling one makes a tensor of its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *data, device: Device = None):
        return old_style(the_tensor_class(), data, device, cls.dtype.numpy)

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, TensorState) and value._data.dtype == cls.dtype.numpy

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _constructor(kind: dtypes.dtype) -> tensortype:
    doc = f"Make a tensor of {kind.name} from sizes or a sequence. The new way: tensor(…, dtype=torch.{kind.name})."
    return tensortype(f"{kind.old_name}Tensor", (), {"dtype": kind, "__doc__": doc, "__module__": "torch"})


globals().update({f"{kind.old_name}Tensor": _constructor(kind) for kind in dtypes.OLD})


def set_default_tensor_type(t) -> None:
    """Set the default dtype by an old name: `torch.DoubleTensor` or "torch.DoubleTensor". Use `set_default_dtype`.

    Raises:
        TypeError: it names no floating point type.
    """
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=3,
    )
    name = t if isinstance(t, str) else f"torch.{getattr(t, '__name__', t)}"
    for kind in dtypes.OLD:
        if name == f"torch.{kind.old_name}Tensor":
            dtypes.set_default_dtype(kind)
            return
    raise ArgumentError(f"invalid type object: only floating-point types are supported as the default type, got {t!r}")
