"""Parameters and buffers without memory, of `module.to("meta")`: they have a shape and a dtype, and no values."""

from math import prod

from backlight.devices import device
from backlight.dtypes import dtype
from backlight.engine.tensor_state import LEAF, TensorState, new
from backlight.errors import UnsupportedError
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
            f"Cannot copy out of meta tensor; no data! This one, of shape {list(self.shape)}, belongs to a module that "
            "was moved to 'meta': such a module is for torch.func.functional_call, which brings values, and for "
            "to_empty(device='cpu') or load_state_dict(…, assign=True). No op runs on the meta device here"
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

    def __repr__(self) -> str:
        more = ", requires_grad=True" if self.requires_grad else ""
        return f"{type(self).shown}(..., device='meta', size={tuple(self._shape)}, dtype={self._kind}{more})"

    def __deepcopy__(self, memo: dict):
        return memo.setdefault(id(self), _made(type(self), self._shape, self._kind, self.requires_grad))

    def __reduce_ex__(self, protocol: int):
        return _made, (type(self), self._shape, self._kind, self.requires_grad)


class MetaParameter(MetaTensorMixin, Parameter):
    """A parameter without memory."""

    __slots__ = ()

    shown = "Parameter"


class MetaBuffer(MetaTensorMixin, Tensor):
    """A buffer without memory."""

    __slots__ = ()

    shown = "tensor"


def _made(cls: type, shape: Size, kind: dtype, requires_grad: bool) -> TensorState:
    made = new(cls)
    made._edge = LEAF if requires_grad else None
    made._storage = made._view = None
    made._shape, made._kind = shape, kind
    return made


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
