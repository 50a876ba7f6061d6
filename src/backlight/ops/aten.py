"""PyTorch's names of ops, `torch.ops.aten.mm.default`: what a `TorchDispatchMode` sees, what checkpoint policies name.

An op of ours is called after PyTorch's op, with the overload that its arguments choose and with PyTorch's arguments
(`aten_call`). One that PyTorch lacks has the namespace `backlight`: `backlight.kept.default`. An overload can be
called; it calls the function, the method or the op of its name.
"""

import importlib
import sys
from collections.abc import Callable
from functools import cache

from backlight.codegen.declaration import OPTION, TABLE, Op
from backlight.dispatch.profile_names import event_name
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.tensor_state import TensorState, the_tensor_class
from backlight.engine.threads import anywhere
from backlight.errors import UnsupportedError
from backlight.ops.nn.pooling_sizes import Windows

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
NAMED_REDUCTIONS = tuple(REDUCTIONS)
END = sys.maxsize

_NAMES = {
    "clamp_min_number": "clamp_min",
    "clamp_max_number": "clamp_max",
    "clamp_min_tensor": "clamp_min",
    "clamp_max_tensor": "clamp_max",
    "clamp_to_numbers": "clamp",
    "clamp_to_tensors": "clamp",
    "layer_norm": "native_layer_norm",
    "log_softmax": "_log_softmax",
    "nll_loss": "nll_loss_forward",
    "pow_of_number": "pow",
    "reshape_alias": "view",
    "softmax": "_softmax",
    "spread": "expand",
    "squeeze_dims": "squeeze",
    "true_divide": "div",
    "view_of_rows": "view",
}
_OVERLOADS = {
    "Tensor": "add sub mul true_divide remainder floor_divide fmod bitwise_and bitwise_or bitwise_xor index "
    "slice split lerp isin clamp_min_tensor clamp_max_tensor clamp_to_tensors",
    "Tensor_Scalar": "pow_number",
    "Tensor_Tensor": "pow",
    "Tensor_mode": "div_rounded",
    "Scalar": "rsub_number pow_of_number fmod_number remainder_number masked_fill lerp_number",
    "dim_IntList": "sum",
    "dim": "mean max_dim min_dim median_dim squeeze",
    "dims": "squeeze_dims",
    "dim_int": "prod",
    "int": "select transpose unbind",
    "correction": "var std var_mean std_mean",
    "self": "where",
    "src": "scatter_tensor",
    "value": "scatter_number",
}
OVERLOADS = {op: overload for overload, ops in _OVERLOADS.items() for op in ops.split()}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


class OpOverload:
    """One overload of an op: `aten.add.Tensor`, equal to every other object of that name."""

    __slots__ = ("_name", "_overloadname", "_run", "namespace")

    def __init__(self, name: str, overload: str = "default", namespace: str = "aten", run: Callable | None = None):
        self._name, self._overloadname, self.namespace, self._run = name, overload, namespace, run

    def __call__(self, *args, **kwargs):
        """Call the op of this name, below the mode or class that is handling a call."""
        out = (self._run or function_of(self._name, self._overloadname))(*args, **kwargs)
        return tuple(out) if isinstance(out, tuple) else out  # without the names of torch.return_types

    @property
    def __name__(self) -> str:
        return f"{self._name}.{self._overloadname}"

    @property
    def overloadpacket(self) -> "OpOverloadPacket":
        """All overloads of the op."""
        return OpOverloadPacket(self._name, self.namespace)

    @property
    def _schema(self) -> "OpSchemaName":
        return OpSchemaName(self)

    def name(self) -> str:
        """Return `aten::mm`, `aten::add.Tensor`."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._name}{suffix}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._name}', overload='{self._overloadname}')>"


class OpSchemaName:
    """The part of PyTorch's schema of an overload that is known here: its names, and whether it writes."""

    __slots__ = ("is_mutable", "name", "overload_name")

    def __init__(self, func: OpOverload):
        self.name = f"{func.namespace}::{func._name}"
        self.overload_name = "" if func._overloadname == "default" else func._overloadname
        self.is_mutable = func._name.endswith("_") and not func._name.endswith("__")


class OpOverloadPacket:
    """All overloads of an op: `.default`, `.Tensor` and so on."""

    __slots__ = ("_name", "namespace")

    def __init__(self, name: str, namespace: str = "aten"):
        self._name, self.namespace = name, namespace

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return OpOverload(self._name, overload, self.namespace)

    def __call__(self, *args, **kwargs):
        """Call the op with the overload that its arguments choose."""
        return function_of(self._name, "default")(*args, **kwargs)

    @property
    def __name__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverloadPacket) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


# --- the name and the arguments of a call -----------------------------------------------------------------------------


def aten_call(op: Op, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple, dict]:
    """Return PyTorch's op for a call of one of ours, and the arguments that PyTorch would give it."""
    values = bound(op, args, kwargs)
    func = overload_of(op, values)
    form = FORMS.get(op.name)
    if form is not None:
        args, kwargs = form(*values.values())  # in the order of the op's parameters
        return func, tuple(_plain(one) for one in args), kwargs
    positional = [param for param in op.params if not param.keyword_only]
    while positional and _is_default(positional[-1], values[positional[-1].name]):
        del positional[-1]
    named = {p.name: values[p.name] for p in op.params if p.keyword_only and not _is_default(p, values[p.name])}
    if func._name == "t":
        del positional[1:]
    return func, tuple(_plain(values[param.name]) for param in positional), named


def bound(op: Op, args: tuple, kwargs: dict) -> dict:
    """Return the values of all parameters of an op in a call."""
    values = {param.name: param.default for param in op.params}
    return values | dict(zip(values, args)) | kwargs


def _is_default(param, value: object) -> bool:
    plain = param.kind == OPTION or value is None
    return plain and param.has_default and value is not NotImplemented and bool(value == param.default)


def _plain(value: object):
    """Return sizes as lists."""
    return list(value) if isinstance(value, tuple) else value


def overload_of(op: Op, values: dict | None = None) -> OpOverload:
    """Return the overload of a declared op that the values of its parameters choose."""
    space, _, name = event_name(op.name).partition("::")
    if op.name in _NAMES:
        space, name = "aten", _NAMES[op.name]
    if op.name == "permute" and values is not None and tuple(values["dims"]) == (1, 0) and _in_backward():
        return OpOverload("t", run=lambda input, *dims: op.public(input, (1, 0)))
    overload = OVERLOADS.get(op.name, "default")
    if op.name in COMPARISONS:
        other = (values or {}).get("other")
        overload = "Tensor" if other is None or isinstance(other, TensorState) else "Scalar"
    return OpOverload(name, overload, space, None if op.name in FORMS else op.public)


def _dims(dim: object) -> list:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def _reduced(input: TensorState, dim: object, keepdim: bool = False) -> tuple:
    return (input, _dims(dim), True) if keepdim else (input, _dims(dim)), {}


def _spread_out(input: TensorState, dim: object, correction: float = 1, keepdim: bool = False) -> tuple:
    named = {"correction": correction} if dim is not None or correction != 1 else {}
    return (input, *([_dims(dim)] if dim is not None else [])), named | ({"keepdim": True} if keepdim else {})


def _in_backward() -> bool:
    return anywhere.backwards > 0 and not modes.grad_enabled


def _number(value: object):
    """Return the number that a node saved as a tensor; integral ones as ints, which they mostly were."""
    if not _in_backward() or type(value) is not the_tensor_class() or value._data.ndim or value._storage is not None:
        return value
    number = value._data.item()
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _with_number(input: TensorState, other: object) -> tuple:
    return (input, _number(other)), {}


def _transposed(input: TensorState, dim0: int, dim1: int) -> tuple:
    count = input._data.ndim if _in_backward() else 0
    return (input, *(dim % count if count else dim for dim in (dim0, dim1))), {}


def _sliced(input: TensorState, dim: int, start: int, end: int, step: int = 1) -> tuple:
    end = END if end == input._data.shape[dim] and start and not _in_backward() else end
    return (input, dim, start, end) if step == 1 else (input, dim, start, end, step), {}


def _clamped(input: TensorState, min: object = None, max: object = None) -> tuple:
    return (input, min) if max is None else (input, min, max), {}


def _pooled(input: TensorState, window: tuple) -> tuple:
    size, stride, padding, dilation, ceil = window
    usual = [tuple(stride) == tuple(size), not any(padding), all(one == 1 for one in dilation), not ceil]
    last = max((place for place, one in enumerate(usual) if not one), default=-1)
    kept = [list(stride), list(padding), list(dilation), ceil][: last + 1]
    return (input, list(size), *kept), {}


def _compared(input: TensorState, target: TensorState, reduction: str) -> tuple:
    return (input, target) if reduction == "mean" else (input, target, REDUCTIONS[reduction]), {}


def _nll(input: TensorState, target: TensorState, weight: object, reduction: str, ignore_index: int) -> tuple:
    return (input, target, weight, REDUCTIONS[reduction], ignore_index), {}


def _indexed(input: TensorState, indices: list, dims: tuple) -> tuple:
    places = dict(zip(dims, indices))
    return (input, [places.get(dim) for dim in range(max(dims) + 1)]), {}


def _likelihoods(input, target, weight=None, pos_weight=None, reduction="mean") -> tuple:
    given = [weight, pos_weight, REDUCTIONS[reduction]]
    usual = [weight is None, pos_weight is None, reduction == "mean"]
    last = max((at for at, one in enumerate(usual) if not one), default=-1)
    return (input, target, *given[: last + 1]), {}


def _spread(input: TensorState, shape: tuple, dims: object = None) -> tuple:
    return (input, list(shape)), {}


# What PyTorch's op gets, from the parameters of ours
FORMS: dict[str, Callable] = {
    "sum": _reduced,
    "mean": _reduced,
    "amax": _reduced,
    "amin": _reduced,
    "var": _spread_out,
    "std": _spread_out,
    "slice": _sliced,
    "clamp_to_numbers": _clamped,
    "clamp_to_tensors": _clamped,
    "max_pool2d_with_indices": _pooled,
    "mse_loss": _compared,
    "mul": _with_number,
    "true_divide": _with_number,
    "transpose": _transposed,
    "binary_cross_entropy_with_logits": _likelihoods,
    "_softmax_backward_data": lambda grad, out, dim, *_: ((grad, out, dim, from_numpy_dtype(out._data.dtype)), {}),
    "_log_softmax_backward_data": lambda grad, out, dim, *_: ((grad, out, dim, from_numpy_dtype(out._data.dtype)), {}),
    "slice_backward": lambda grad, sizes, dim, start, end, step: (
        (grad, list(sizes), dim, start, END if end == sizes[dim] else end, step),
        {},
    ),
    "leaky_relu_backward": lambda grad, input, negative_slope: ((grad, input, negative_slope, False), {}),
    "nll_loss": _nll,
    "index": _indexed,
    "spread": _spread,
    "softmax": lambda input, dim: ((input, dim, False), {}),
    "log_softmax": lambda input, dim: ((input, dim, False), {}),
    "rsub_number": lambda input, other, alpha=1: ((input, other) if alpha == 1 else (input, other, alpha), {}),
    "cat": lambda tensors, dim=0: ((list(tensors), dim) if dim else (list(tensors),), {}),
    "stack": lambda tensors, dim=0: ((list(tensors), dim) if dim else (list(tensors),), {}),
    "to_copy": lambda input, dtype, *_: ((input,), {"dtype": from_numpy_dtype(dtype)}),
    "layer_norm": lambda input, weight, bias, normalized_shape, eps: (
        (input, list(normalized_shape), weight, bias, eps),
        {},
    ),
    "gelu": lambda input, approximate="none": (
        (input,),
        {} if approximate == "none" else {"approximate": approximate},
    ),
    "gelu_backward": lambda grad, input, approximate="none": (
        (grad, input),
        {} if approximate == "none" else {"approximate": approximate},
    ),
    "leaky_relu": lambda input, negative_slope=0.01: (
        (input,) if negative_slope == 0.01 else (input, negative_slope),
        {},
    ),
    "relu_backward": lambda grad, out: ((grad, out, 0), {}),
}


# --- what an overload calls -------------------------------------------------------------------------------------------


def _with_total(losses: TensorState, weight: TensorState | None, target: TensorState, ignore_index: int) -> tuple:
    kept = target != ignore_index
    total = kept.sum() if weight is None else weight[target[kept]].sum()
    return losses, total.to(losses.dtype)


def _nll_loss_forward(input, target, weight=None, reduction=1, ignore_index=-100):
    losses = TABLE["nll_loss"].public(input, target, weight, NAMED_REDUCTIONS[reduction], ignore_index)
    return _with_total(losses, weight, target, ignore_index)


def _native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = tuple(range(-len(normalized_shape), 0))
    out = TABLE["layer_norm"].public(input, weight, bias, tuple(normalized_shape), eps)
    spread = input.var(dims, unbiased=False, keepdim=True)
    return out, input.mean(dims, keepdim=True), (spread + eps).rsqrt()


def _max_pool2d_with_indices(input, kernel_size, stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False):
    window = kernel_size, stride or kernel_size, padding, dilation
    return TABLE["max_pool2d_with_indices"].public(input, Windows(*map(tuple, window), ceil_mode))


def _index(input, indices):
    return input[tuple(slice(None) if one is None else one for one in indices)]


def _slice(input, dim=0, start=None, end=None, step=1):
    whole = [slice(None)] * input.dim()
    whole[dim] = slice(start, None if end is None or end >= END else end, step)
    return input[tuple(whole)]


# Of names that are no function or method here, or that take other arguments
CALLS: dict[str, Callable] = {
    "_local_scalar_dense": lambda input: input.item(),
    "_log_softmax": lambda input, dim, half_to_float: TABLE["log_softmax"].public(input, dim),
    "_softmax": lambda input, dim, half_to_float: TABLE["softmax"].public(input, dim),
    "_to_copy": lambda input, *, dtype=None, **options: input.to(input.dtype if dtype is None else dtype, copy=True),
    "_unsafe_view": lambda input, size: input.view(size),
    "_log_softmax_backward_data": lambda grad, out, dim, dtype: TABLE["_log_softmax_backward_data"].public(
        grad, out, dim
    ),
    "_softmax_backward_data": lambda grad, out, dim, dtype: TABLE["_softmax_backward_data"].public(grad, out, dim),
    "binary_cross_entropy_with_logits": lambda input, target, weight=None, pos_weight=None, reduction=1: TABLE[
        "binary_cross_entropy_with_logits"
    ].public(input, target, weight, pos_weight, NAMED_REDUCTIONS[reduction]),
    "gelu_backward": lambda grad, input, *, approximate="none": TABLE["gelu_backward"].public(grad, input, approximate),
    "leaky_relu_backward": lambda grad, input, slope, of_result: TABLE["leaky_relu_backward"].public(
        grad, input, slope
    ),
    "slice_backward": lambda grad, sizes, dim, start, end, step: TABLE["slice_backward"].public(
        grad, tuple(sizes), dim, start, min(end, sizes[dim]), step
    ),
    "embedding": lambda weight, indices, *options: TABLE["embedding"].public(weight, indices, *options),
    "index": _index,
    "lift_fresh": lambda input: input,
    "max_pool2d_with_indices": _max_pool2d_with_indices,
    "mse_loss": lambda input, target, reduction=1: TABLE["mse_loss"].public(input, target, NAMED_REDUCTIONS[reduction]),
    "native_layer_norm": _native_layer_norm,
    "nll_loss_forward": _nll_loss_forward,
    "slice": _slice,
    "squeeze": lambda input, *dim: input.squeeze(*(tuple(one) if isinstance(one, list) else one for one in dim)),
    "sum": lambda input, dim=None, keepdim=False, **options: (
        input.sum(**options) if dim is None else input.sum(dim, keepdim, **options)
    ),
    "threshold_backward": lambda grad, out, threshold: (
        TABLE["relu_backward"].public(grad, out - threshold) if threshold else TABLE["relu_backward"].public(grad, out)
    ),
}


@cache
def function_of(name: str, overload: str) -> Callable:
    """Return what an overload calls.

    Raises:
        NotImplementedError: backlight has no function of this name.
    """
    if name in CALLS:
        return CALLS[name]
    package = importlib.import_module("backlight")  # the top package is in no layer
    family, _, rest = name.partition("_")
    places = [(package, name), (the_tensor_class(), name), (package.nn.functional, name)]
    places += [(getattr(package, family), rest)] if family in ("linalg", "special", "fft") else []
    for place, own in places:
        found = getattr(place, own, None)
        if callable(found):
            return found
    if name in TABLE:
        return TABLE[name].public
    raise UnsupportedError(f"no function here is called aten::{name}.{overload}, so it cannot be called")


def __getattr__(name: str) -> OpOverloadPacket:
    if name.startswith("__") or not _is_known(name):
        raise AttributeError(f"no op here is called aten::{name}")
    return OpOverloadPacket(name)


@cache
def _is_known(name: str) -> bool:
    if name in {*CALLS, *_NAMES.values()} or any(overload_of(op)._name == name for op in TABLE.values()):
        return True
    try:
        function_of(name, "default")
    except UnsupportedError:
        return False
    return True
