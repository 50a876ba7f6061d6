"""PyTorch's `torch._foreach_*`: one op on each tensor of a list, and its in-place form.

They are private, but scripts use them, for optimizers and averages of weights. Here each is a loop over the op's own
method: nothing is fused, and every derivative is the op's.
"""

from collections.abc import Callable, Sequence

from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.ops.elementwise.where_clamp import maximum, minimum
from backlight.ops.inplace import inplace
from backlight.ops.reduction.norms import vector_norm
from backlight.tensor.tensor import Tensor

PREFIX = "_foreach_"

# Unary ops; then those with further lists (or one number or tensor for all).
_PLAIN = """
abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt
sigmoid sign sin sinh sqrt tan tanh trunc
"""
_BESIDE = "add addcdiv addcmul clamp_max clamp_min div lerp maximum minimum mul pow sub"
_OUT_OF_PLACE = "clone max mm norm powsum"
_IN_PLACE = "copy zero"
NAMES = frozenset(
    [PREFIX + name for name in f"{_PLAIN} {_BESIDE} {_OUT_OF_PLACE}".split()]
    + [f"{PREFIX}{name}_" for name in f"{_PLAIN} {_BESIDE} {_IN_PLACE}".split()]
)


def foreach(name: str) -> Callable:
    """Return the function of a name such as `_foreach_add_`."""
    op = name.removeprefix(PREFIX)
    method = _OWN.get(op) or getattr(Tensor, op)
    scalars = "value" if op.removesuffix("_") in ("addcmul", "addcdiv") else None

    def on_each(self, *args, **kwargs):
        if op == "pow" and not isinstance(self, (tuple, list)):
            return tuple([self**exponent for exponent in args[0]])
        if scalars and len(args) == 3:
            *args, kwargs[scalars] = args
        calls = _calls(self, args, kwargs)
        if not op.endswith("_"):
            return tuple([method(*own, **options) for own, options in calls])
        for own, options in calls:
            method(*own, **options)
        return list(self)

    on_each.__name__ = on_each.__qualname__ = name
    on_each.__doc__ = f"Call `{op}` on each tensor of a list."
    return on_each


def _powsum(input: TensorState, ord: float = 2, dtype: dtype | None = None):
    return (input if dtype is None else input.to(dtype)).abs().pow(ord).sum()


def _norm(input: TensorState, ord: float = 2, dtype: dtype | None = None):
    return vector_norm(input, ord, dtype=dtype)


def _greater(input: TensorState, other: TensorState | float):
    return maximum(input, other) if isinstance(other, TensorState) else input.clamp_min(other)


def _lesser(input: TensorState, other: TensorState | float):
    return minimum(input, other) if isinstance(other, TensorState) else input.clamp_max(other)


_OWN = {"norm": _norm, "powsum": _powsum, "maximum": _greater, "minimum": _lesser}
_OWN |= {"maximum_": inplace(_greater, "maximum_"), "minimum_": inplace(_lesser, "minimum_")}


def _calls(tensors: Sequence[TensorState], args: Sequence, kwargs: dict) -> list[tuple[list, dict]]:
    """Return the arguments of each call: its elements of lists, and other arguments unchanged."""
    tensors = list(tensors)
    if not tensors:
        raise GraphError("Tensor list must have at least one tensor.")
    for value in (*args, *kwargs.values()):
        if isinstance(value, (tuple, list)) and len(value) != len(tensors):
            raise GraphError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(value)}"
                if value and isinstance(value[0], TensorState)
                else "Tensor list must have same number of elements as scalar list."
            )
    found = []
    for number, tensor in enumerate(tensors):
        own = [_own(value, number) for value in args]
        found.append(([tensor, *own], {key: _own(value, number, True) for key, value in kwargs.items()}))
    return found


def _own(value, number: int, scalar: bool = False):
    """Return one call's value of an argument: its element of a list, or of a vector of numbers (`value`)."""
    if isinstance(value, (tuple, list)):
        return value[number]
    if scalar and isinstance(value, TensorState):
        return value.reshape((-1,))[number].item()
    return value
