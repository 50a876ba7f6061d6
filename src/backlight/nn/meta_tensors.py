"""Tensors without memory, on the meta device: they have a shape and a dtype, and no values.

A module on the meta device has such parameters and buffers: one that was made there (`nn.Linear(2, 3, device="meta")`,
`with torch.device("meta")`), or moved (`module.to("meta")`). What fills them in place has no effect.

NOTE [Ops on the meta device]
A call with a meta tensor is handled by `MetaTensorMixin.__torch_function__`: it is made with the stand-ins of its meta
tensors, ordinary tensors of zeros, and the tensors that it returns become the stand-ins of new meta tensors. So shapes,
strides, dtypes, gradients and errors are those of the ops. A stand-in is made when it is first needed; the zeros take
no memory before they are written to, but what an op returns does: the price is that of the op on the CPU. Reading
values is refused. The handler is installed only while a meta tensor lives.
"""

import weakref
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from backlight.devices import device
from backlight.dispatch.torch_function import DisableTorchFunctionSubclass, flat, overrides_state
from backlight.dtypes import bool as bool_
from backlight.dtypes import dtype, from_numpy_dtype, get_default_dtype
from backlight.engine.tensor_state import LEAF, TensorState, new, wrap
from backlight.errors import ArgumentError, GraphError, UnsupportedError
from backlight.nn.parameter import Parameter
from backlight.sizes import Size
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor

META = device("meta")


READING = {  # functions that read values -> what makes PyTorch's error for a meta tensor
    **dict.fromkeys(
        ("item", "__float__", "__int__", "__bool__", "__index__", "__complex__", "is_nonzero", "allclose"),
        partial(GraphError, "Tensor.item() cannot be called on meta tensors: they have no values"),
    ),
    **dict.fromkeys(
        ("numpy", "__array__"),
        partial(
            ArgumentError,
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        ),
    ),
    **dict.fromkeys(
        ("nonzero", "argwhere", "masked_select"),
        partial(
            UnsupportedError,
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct "
            "data-independent implementation does not exist. The number of results depends on the values",
        ),
    ),
    **{
        name: partial(
            UnsupportedError,
            f"aten::{kernel}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
            "kernel registered. What it returns depends on the values",
        )
        for name, kernel in (
            ("equal", "equal"),
            ("unique", "_unique2"),
            ("unique_consecutive", "unique_consecutive"),
            ("bincount", "bincount"),
            ("to_sparse", "_to_sparse"),
            ("histc", "histc"),
        )
    },
}
LEAVING = {"cpu", "tolist"}  # functions that would bring values to the CPU
MIXING = {"get_item", "index_select", "gather", "embedding", "take", "is_same_size", "empty_like", "result_type"}
PLAIN_RESULTS = {"is_same_size", "register_hook"}
MOVING = {"to", "type_as", "copy_"}  # functions that may


class MetaTensorMixin:
    """Base of parameters and buffers without memory: NOTE [Ops on the meta device]."""

    __slots__ = ()

    is_meta = True

    @property
    def _data(self):
        raise no_data(self)

    @property
    def stand_in(self) -> Tensor:
        """An ordinary tensor of zeros of this shape and dtype, with this one's place in the graph."""
        if self._stand_in is None:
            zeros = wrap(np.zeros(tuple(self._shape), self._kind.numpy), self._edge)
            self._stand_in = zeros
        return self._stand_in

    @staticmethod
    def _answer(func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None):
        """Call a function with the stand-ins of meta tensors; return meta tensors."""
        name, kwargs = func.__name__, kwargs or {}
        metas = [one for one in flat((*args, *kwargs.values())) if isinstance(one, MetaTensorMixin)]
        _refuse_reading(name, metas, args, kwargs)
        of_stand_ins = {id(one.stand_in): one for one in metas}
        with DisableTorchFunctionSubclass():
            out = func(*_with_stand_ins(args), **{key: _with_stand_ins(value) for key, value in kwargs.items()})
        where = kwargs.get("device")
        plain = name in PLAIN_RESULTS or (where is not None and device(where).type != "meta")
        return out if plain else _meta_results(out, of_stand_ins)

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

    def as_parameter(self, requires_grad: bool) -> "MetaParameter":
        """Return a parameter of the same shape."""
        return _made(MetaParameter, self._shape, self._kind, requires_grad)

    def data_ptr(self) -> int:
        """Return 0: there is no memory."""
        return 0

    def _unchanged(self, *args, **kwargs):
        """Return the tensor itself: there are no values to change."""
        return self

    uniform_ = normal_ = trunc_normal_ = random_ = bernoulli_ = exponential_ = _unchanged
    fill_ = zero_ = erfinv_ = _unchanged

    def __repr__(self) -> str:
        more = "" if self._kind is get_default_dtype() else f", dtype={self._kind}"
        node = self.grad_fn
        if node is not None:
            more += f", grad_fn=<{node.name()}>"
        elif self.requires_grad:
            more += ", requires_grad=True"
        return f"tensor(..., device='meta', size={tuple(self._shape)}{more})"

    __str__ = __repr__

    def __iter__(self):
        return iter(self.unbind(0))

    def type(self, dtype: object = None, *args, **kwargs):
        """Return the tensor's old name; with a dtype, a tensor of that."""
        return f"torch.meta.{self._kind.old_name}Tensor" if dtype is None else self.to(dtype, *args, **kwargs)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict):
        return memo.setdefault(id(self), _made(type(self), self._shape, self._kind, self.requires_grad))

    def __reduce_ex__(self, protocol: int):
        return _made, (type(self), self._shape, self._kind, self.requires_grad)


class MetaParameter(MetaTensorMixin, Parameter):
    """A parameter without memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{MetaTensorMixin.__repr__(self)}"

    __str__ = __repr__


class MetaBuffer(MetaTensorMixin, Tensor):
    """A tensor, for example a buffer, without memory."""

    __slots__ = ()


def _made(cls: type, shape: Size, kind: dtype, requires_grad: bool) -> TensorState:
    made = new(cls)
    made._edge = LEAF if requires_grad else None
    made._storage = made._view = None
    made._shape, made._kind, made._stand_in = shape, kind, None
    made._living = _handled()
    return made


class _Living:
    """Shared by the meta tensors that live: public functions call their handler as long as it exists."""


_living = weakref.ref(_Living())  # to none yet


def _handled() -> _Living:
    """Let public functions call the handler of meta tensors while what is returned is alive."""
    global _living
    found = _living()
    if found is None:
        found = _Living()
        _living = weakref.ref(found)
        for cls in (MetaBuffer, MetaParameter):
            cls.__torch_function__ = staticmethod(MetaTensorMixin._answer)
        overrides_state.install_for(found)
    return found


def no_data(tensor: "MetaTensorMixin") -> UnsupportedError:
    """Return PyTorch's error for reading the values of a meta tensor."""
    return UnsupportedError(
        f"Cannot copy out of meta tensor; no data! This one has the shape {list(tensor.shape)}. A module of such "
        "tensors is for torch.func.functional_call, which brings values, and for to_empty(device='cpu') or "
        "load_state_dict(…, assign=True)"
    )


def _refuse_reading(name: str, metas: list, args: tuple, kwargs: dict) -> None:
    """Raise if a function reads values of a meta tensor, or mixes it with tensors that have some."""
    first = metas[0]
    if name in READING and not (name == "item" and first.numel() != 1):
        raise READING[name]()
    if name == "item":
        raise GraphError(f"a Tensor with {first.numel()} elements cannot be converted to Scalar")
    if name in LEAVING or (name in MOVING and _leaves(name, args, kwargs)):
        raise no_data(first)
    if name in MOVING:
        return
    if name in ("__getitem__", "get_item") and any(one.dtype is bool_ for one in metas[1:]):
        raise READING["nonzero"]()
    if name in MIXING or name.startswith("__set") or (name.endswith("_") and isinstance(args[0], MetaTensorMixin)):
        return
    tensors = [one for one in flat((*args, *kwargs.values())) if isinstance(one, TensorState)]
    for one in tensors:
        if one.is_meta != tensors[0].is_meta and one.ndim:
            if name == "gradient":
                raise GraphError(
                    "torch.gradient expected each tensor to be on the same device, but got devices "
                    f"{tensors[0].device} and {one.device}!"
                )
            raise GraphError(
                f"Tensor on device {one.device} is not on the expected device {tensors[0].device}! Move one of them"
            )


def _leaves(name: str, args: tuple, kwargs: dict) -> bool:
    """Tell whether `to`, `type_as` or `copy_` would bring values from the meta device."""
    if not isinstance(args[0], MetaTensorMixin):
        return name == "copy_"
    if name == "copy_":
        return False
    for one in (*args[1:], *kwargs.values()):
        if isinstance(one, TensorState) and not isinstance(one, MetaTensorMixin):
            return True
        if isinstance(one, device | str) and device(one).type != "meta":
            return True
    return False


def _with_stand_ins(value: object):
    """Return a value with the stand-ins of the meta tensors in it; the meta device becomes the CPU."""
    if isinstance(value, MetaTensorMixin):
        return value.stand_in
    if isinstance(value, device) and value.type == "meta":
        return device("cpu")
    if isinstance(value, (list, tuple)) and not isinstance(value, Size):
        parts = [_with_stand_ins(one) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _with_stand_ins(one) for key, one in value.items()}
    return "cpu" if value.__class__ is str and value == "meta" else value


def _meta_results(out: object, of_stand_ins: dict):
    """Return what a call returned, with meta tensors in the place of tensors."""
    if isinstance(out, TensorState):
        known = of_stand_ins.get(id(out))
        if known is not None:
            known._shape, known._kind, known._edge = Size(out.shape), out.dtype, out._edge
            return known
        made = _made(MetaBuffer, Size(out.shape), out.dtype, False)
        made._stand_in, made._edge = out, out._edge
        return made
    if isinstance(out, (list, tuple)) and not isinstance(out, Size):
        parts = [_meta_results(one, of_stand_ins) for one in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return out


def meta_call(function: Callable, *args):
    """Return what a function gives that is not dispatched, of meta tensors: NOTE [Ops on the meta device]."""
    return MetaTensorMixin._answer(function, (), args)


def meta_tensor(shape: tuple[int, ...], kind: np.dtype, requires_grad: bool) -> MetaBuffer:
    """Return a tensor without memory.

    Raises:
        RuntimeError: requires_grad is set for a dtype that is not floating point.
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
        kind: a new dtype for floating point tensors.
    """
    cls = MetaParameter if isinstance(tensor, Parameter) else MetaBuffer
    kind = kind if kind is not None and tensor.is_floating_point() else tensor.dtype
    return _made(cls, Size(tensor.shape), kind, tensor.requires_grad)


def materialised(tensor: TensorState) -> TensorState:
    """Return an uninitialised parameter, or buffer, of the same shape."""
    values = empty(tuple(tensor.shape), dtype=tensor.dtype)
    return Parameter(values, tensor.requires_grad) if isinstance(tensor, Parameter) else values
