"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned as attributes.

NOTE [Uninitialized tensors]
The parameters of a lazy module have a dtype and no shape until the module sees its first input. Such a tensor has no
`_data`: reading it (every op does) raises. `materialize` makes the same object an ordinary tensor, so that all
references to it see it initialized.
"""

from collections.abc import Sequence

import numpy as np

from backlight.devices import device as device_kind
from backlight.devices import require_cpu
from backlight.dispatch.torch_function import implements_torch_function
from backlight.dtypes import bfloat16, dtype, float16, float32, float64, get_default_dtype
from backlight.engine.tensor_state import LEAF, TensorState, new, storage_for_alias, wrap, writable
from backlight.errors import ArgumentError, GraphError, ShapeError, ValueProblem
from backlight.ops.type_promotion import has_gradient
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


def check_is_bool(requires_grad: bool) -> None:
    """Raise PyTorch's error for a `requires_grad` that is not a bool."""
    if not isinstance(requires_grad, bool):
        raise ArgumentError(
            "_make_subclass(): argument 'require_grad' (position 3) must be bool, not "
            f"{type(requires_grad).__name__}; got requires_grad={requires_grad!r}"
        )


class _ParameterKind(type):
    """The metaclass of Parameter, so that `isinstance` can accept others: see `answer_as_parameters`."""


class Parameter(Tensor, metaclass=_ParameterKind):
    """A trainable tensor of a module: a leaf that shares the memory of `data` and requires grad by default.

    >>> import backlight as torch
    >>> torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()

    _printed_as = "tensor"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = wrap(np.empty(0, np.float32))
        if not isinstance(data, TensorState):
            raise ArgumentError(
                f"Parameter data has to be a tensor, but got {type(data).__name__}: wrap it with torch.tensor(…) first"
            )
        check_is_bool(requires_grad)
        if data.is_meta:
            return data.as_parameter(requires_grad)
        if implements_torch_function(type(data)):
            return _of_own_class(data, requires_grad)
        made = new(cls)
        made._data = writable(data)
        made._edge = None
        made._storage = storage_for_alias(data)
        made._view = None
        if requires_grad and not has_gradient(data._data.dtype):
            raise GraphError(
                f"Only Tensors of floating point and complex dtype can require gradients; this one is {data.dtype}: "
                "convert it with .float(), or say requires_grad=False"
            )
        made.requires_grad = requires_grad
        return made

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        """All is done in `__new__`, where the memory is known."""

    def __deepcopy__(self, memo: dict):
        if id(self) not in memo:
            memo[id(self)] = type(self)(wrap(np.array(self._data)), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def empty_parameter(shape: int | Sequence[int], device: Device = None, dtype: dtype | None = None) -> Parameter:
    """Return an uninitialised parameter."""
    return Parameter(empty(shape, device=device, dtype=dtype))


def _of_own_class(data: Tensor, requires_grad: bool) -> Tensor:
    """Return a parameter of a user's tensor class: an instance of it, which `isinstance` takes for a Parameter."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise GraphError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    made._is_param = True
    return made


def answer_as_parameters() -> None:
    """Make `isinstance` accept parameters of users' tensor classes as Parameter from now on."""
    _ParameterKind.__instancecheck__ = _is_parameter


def _is_parameter(cls: type, instance: object) -> bool:
    if type.__instancecheck__(cls, instance):
        return True
    return cls is Parameter and isinstance(instance, TensorState) and "_is_param" in vars(instance)


class Buffer(Tensor):
    """A tensor of a module's state that is not a parameter; assigning it to a module registers it.

    Args:
        persistent: whether it is part of `state_dict()`.
    """

    __slots__ = ()

    _printed_as = "tensor"

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        if data is None:
            data = wrap(np.empty(0, np.float32))
        made = new(cls)
        made._data = writable(data)
        made._edge = None
        made._storage = storage_for_alias(data)
        made._view = None
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        """All is done in `__new__`, where the memory is known."""


# --- not initialized yet ----------------------------------------------------------------------------------------------


class UninitializedTensorMixin:
    """Base of parameters and buffers without a shape (see NOTE [Uninitialized tensors])."""

    __slots__ = ()

    cls_to_become: type

    @classmethod
    def _without_data(cls, kind: dtype | None, edge: object, device: Device):
        if kind is not None and not isinstance(kind, dtype):
            raise ArgumentError(f"empty(): argument 'dtype' must be torch.dtype, not {type(kind).__name__}")
        made = new(cls)
        made._edge = edge
        made._storage = None
        made._view = None
        made._kind = get_default_dtype() if kind is None else kind
        require_cpu(device)
        return made

    def materialize(self, shape: tuple[int, ...], device: Device = None, dtype: dtype | None = None) -> None:
        """Become an ordinary, uninitialised tensor of a shape.

        Args:
            dtype: the new dtype; by default unchanged.
        """
        data = empty(shape, device=device, dtype=self._kind if dtype is None else dtype)._data
        del self._kind
        self.__class__ = self.cls_to_become
        self._data = data

    @property
    def _data(self):
        raise ValueProblem(
            "Attempted to use an uninitialized parameter in an op. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @property
    def shape(self):
        """Raise: there is no shape yet."""
        raise ShapeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> dtype:
        """The dtype that the tensor will have."""
        return self._kind

    @property
    def device(self) -> device_kind:
        """The device that the tensor will have."""
        return device_kind("cpu")

    @property
    def data(self) -> Tensor:
        """An empty tensor of the dtype; assigning one sets the dtype."""
        return empty(0, dtype=self._kind)

    @data.setter
    def data(self, value: Tensor) -> None:
        self._kind = value.dtype

    def is_floating_point(self) -> bool:
        """Return whether the dtype is floating point."""
        return self._kind.is_floating_point

    def to(self, *args, **kwargs):
        """Return an uninitialized tensor of the requested dtype: itself, if it has that dtype."""
        kind = self.data.to(*args, **kwargs).dtype
        return self if kind == self._kind else type(self)(self.requires_grad, dtype=kind)

    def float(self):
        """Return an uninitialized float32 tensor."""
        return self.to(float32)

    def double(self):
        """Return an uninitialized float64 tensor."""
        return self.to(float64)

    def half(self):
        """Return an uninitialized float16 tensor."""
        return self.to(float16)

    def bfloat16(self):
        """Return an uninitialized bfloat16 tensor."""
        return self.to(bfloat16)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, dtype=self._kind)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int):
        return (type(self), (self.requires_grad, None, self._kind))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is set by the first input of its module.

    Only its dtype may change before; everything else raises.
    """

    __slots__ = ()

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Device = None, dtype: dtype | None = None):
        check_is_bool(requires_grad)
        return cls._without_data(dtype, LEAF if requires_grad else None, device)

    def __init__(self, requires_grad: bool = True, device: Device = None, dtype: dtype | None = None):
        """All is done in `__new__`."""


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is set by the first input of its module.

    Args:
        persistent: whether it is part of `state_dict()`.
    """

    __slots__ = ()

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Device = None, dtype: dtype | None = None, persistent: bool = True
    ):
        check_is_bool(requires_grad)
        made = cls._without_data(dtype, LEAF if requires_grad else None, device)
        made.persistent = persistent
        return made


def is_lazy(param: object) -> bool:
    """Tell whether `param` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)
