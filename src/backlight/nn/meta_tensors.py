"""Tensors without memory, on the meta device: they have a shape and a dtype, and no values.

A module on the meta device has such parameters and buffers: one that was made there (`nn.Linear(2, 3, device="meta")`,
`with torch.device("meta")`), or moved (`module.to("meta")`). What fills them in place has no effect.
"""

from math import prod

import numpy as np

from backlight.devices import device
from backlight.dtypes import bool as bool_
from backlight.dtypes import dtype, from_numpy_dtype, get_default_dtype, int64
from backlight.engine.tensor_state import LEAF, TensorState, new
from backlight.errors import GraphError, UnsupportedError
from backlight.nn.parameter import Parameter
from backlight.sizes import Size
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor

META = device("meta")


class MetaTensorMixin:
    """Base of parameters and buffers without memory. Reading values, as every op does, raises."""

    __slots__ = ()

    is_meta = True

    @property
    def _data(self):
        raise UnsupportedError(
            f"Cannot copy out of meta tensor; no data! This one has the shape {list(self.shape)}. A module of such "
            "tensors is for torch.func.functional_call, which brings values, and for to_empty(device='cpu') or "
            "load_state_dict(…, assign=True). No op runs on the meta device here"
        )

    @property
    def shape(self) -> Size:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> dtype:
        """The dtype."""
        return self._kind

    @property
    def device(self) -> device:
        """The meta device."""
        return META

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self._shape)

    def dim(self) -> int:
        """Return the number of dims."""
        return len(self._shape)

    def size(self, dim: int | None = None):
        """Return the shape, or one size."""
        return self._shape if dim is None else self._shape[dim]

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self._shape)

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a floating point one."""
        return self._kind.is_floating_point

    def detach(self):
        """Return a tensor of the same shape, without memory as this one."""
        return _made(MetaBuffer, self._shape, self._kind, False)

    data = property(detach, doc="A tensor of the same shape, without memory.")

    def as_parameter(self, requires_grad: bool) -> "MetaParameter":
        """Return a parameter of the same shape."""
        return _made(MetaParameter, self._shape, self._kind, requires_grad)

    def _unchanged(self, *args, **kwargs):
        """Return the tensor itself: there are no values to change."""
        return self

    uniform_ = normal_ = trunc_normal_ = random_ = bernoulli_ = exponential_ = _unchanged
    fill_ = zero_ = copy_ = add_ = sub_ = mul_ = div_ = clamp_ = erfinv_ = _unchanged

    def __repr__(self) -> str:
        more = "" if self._kind in (get_default_dtype(), int64, bool_) else f", dtype={self._kind}"
        more += ", requires_grad=True" if self.requires_grad else ""
        return f"tensor(..., device='meta', size={tuple(self._shape)}{more})"

    def __deepcopy__(self, memo: dict):
        return memo.setdefault(id(self), _made(type(self), self._shape, self._kind, self.requires_grad))

    def __reduce_ex__(self, protocol: int):
        return _made, (type(self), self._shape, self._kind, self.requires_grad)


class MetaParameter(MetaTensorMixin, Parameter):
    """A parameter without memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{MetaTensorMixin.__repr__(self)}"


class MetaBuffer(MetaTensorMixin, Tensor):
    """A tensor, for example a buffer, without memory."""

    __slots__ = ()


def _made(cls: type, shape: Size, kind: dtype, requires_grad: bool) -> TensorState:
    made = new(cls)
    made._edge = LEAF if requires_grad else None
    made._storage = made._view = None
    made._shape, made._kind = shape, kind
    return made


def meta_tensor(shape: tuple[int, ...], kind: np.dtype, requires_grad: bool) -> MetaBuffer:
    """Return a tensor without memory.

    Raises:
        RuntimeError: it is to require grad, and is not of a floating point dtype.
    """
    found = from_numpy_dtype(kind)
    if requires_grad and not found.is_floating_point:
        raise GraphError("Only Tensors of floating point and complex dtype can require gradients")
    return _made(MetaBuffer, Size(shape), found, requires_grad)


def is_meta(tensor: TensorState) -> bool:
    """Tell whether a parameter or buffer has no memory."""
    return isinstance(tensor, MetaTensorMixin)


def meta_like(tensor: TensorState, kind: dtype | None = None) -> TensorState:
    """Return a parameter, or buffer, of the same shape without memory.

    Args:
        kind: another dtype, for those of a floating point one.
    """
    cls = MetaParameter if isinstance(tensor, Parameter) else MetaBuffer
    kind = kind if kind is not None and tensor.is_floating_point() else tensor.dtype
    return _made(cls, Size(tensor.shape), kind, tensor.requires_grad)


def materialised(tensor: TensorState) -> TensorState:
    """Return an uninitialised parameter, or buffer, of the same shape."""
    values = empty(tuple(tensor.shape), dtype=tensor.dtype)
    return Parameter(values, tensor.requires_grad) if isinstance(tensor, Parameter) else values
