"""Sums and products, with broadcasting."""

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.elementwise.binary import minus, plus, times
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.linalg.matrix_products import small_name
from backlight.ops.number_operands import like, no_bools, no_integers, promoted_with
from backlight.ops.scalars import element_like
from backlight.ops.type_promotion import BOOL, category

__all__ = ["add", "addcdiv", "addcmul", "lerp", "mul", "multiply", "rsub", "sub", "subtract"]

ONE = 1  # the int itself: True and 1.0 are equal to it, and are not options that integers take


@op(node="MulBackward0", tangent="symmetric", complex="holomorphic")
def scale(xp, input: Array, factor: float):
    """The input times a Python number, in the input's dtype."""
    return rounded(widened(input) * factor, input.dtype)


scale.derivative("input", formula="factor · grad")(lambda grad, factor, ops: ops.scale(grad, factor))


def _scaled(array: Array, factor: float):
    """Return `array` times an option such as alpha; integers take whole numbers only."""
    if factor is ONE:
        return array
    if factor.__class__ is complex and array.dtype.kind not in "cW":
        raise ShapeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if factor.__class__ is bool or array.dtype.kind != "f":
        if isinstance(factor, bool) and array.dtype.kind != "b":
            raise ShapeError("Boolean alpha only supported for Boolean results.; write 1")
        if isinstance(factor, float) and category(array.dtype) < 2:
            raise ShapeError(
                "For integral input tensors, argument alpha must not be a floating point number. "
                "Convert the tensors with .float() first"
            )
    return array * element_like(array, factor)


@op(promote="same", symbol="+", tangent="symmetric", complex="holomorphic")
def add(xp, input: Array, other: Array, *, alpha: float = 1):
    """Add `other`, scaled by `alpha`, to `input`."""
    return plus(input, other if alpha is ONE else _scaled(other, alpha))


add.derivative("input", formula="grad")(lambda grad: grad)
add.derivative("other", formula="alpha · grad")(lambda grad, alpha, ops: grad if alpha == 1 else ops.scale(grad, alpha))


def _refuse_bools(*kinds) -> str | None:
    count = sum(kind.kind == "b" for kind in kinds)
    if count == 2:
        return (
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if count:
        return (
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    return None


@op(promote="same", symbol="-", dtype_error=_refuse_bools, tangent="symmetric", complex="holomorphic")
def sub(xp, input: Array, other: Array, *, alpha: float = 1):
    """Subtract `other`, scaled by `alpha`, from `input`."""
    return minus(input, other if alpha is ONE else _scaled(other, alpha))


sub.derivative("input", formula="grad")(lambda grad: grad)
sub.derivative("other", formula="−alpha · grad")(
    lambda grad, alpha, ops: -grad if alpha == 1 else ops.scale(grad, -alpha)
)


subtract = sub


@op(name="rsub", promote="same", dtype_error=_refuse_bools, tangent="symmetric", complex="holomorphic")
def rsub_tensor(xp, input: Array, other: Array, *, alpha: float = 1):
    """Subtract `input`, scaled by `alpha`, from `other`."""
    return other - _scaled(input, alpha)


rsub_tensor.derivative("input", formula="−alpha · grad")(lambda grad, alpha, ops: ops.scale(grad, -alpha))
rsub_tensor.derivative("other", formula="grad")(lambda grad: grad)


@op(node="RsubBackward1", tangent="symmetric", complex="holomorphic", layout="reordered")
def rsub_number(xp, input: Array, other: float, alpha: float = 1):
    """Subtract `input`, scaled by `alpha`, from a number."""
    return like(input, other) - _scaled(input, alpha)


rsub_number.derivative("input", formula="−alpha · grad")(
    lambda grad, alpha, ops: -grad if alpha == 1 else ops.scale(grad, -alpha)
)


def rsub(input: TensorState, other: TensorState | float, *, alpha: float = 1):
    """Return other − alpha · input.

    Raises:
        RuntimeError: `input` is a tensor of bools.
    """
    if isinstance(other, TensorState):
        return rsub_tensor(input, other, alpha=alpha)
    kinds = (input._data.dtype, BOOL) if isinstance(other, bool) else (input._data.dtype,)
    problem = _refuse_bools(*kinds)
    if problem is not None:
        raise ShapeError(problem)
    return rsub_number(promoted_with(input, other), other, alpha)


@op(promote="same", symbol="*", tangent="symmetric", complex="holomorphic")
def mul(xp, input: Array, other: Array):
    """Multiply element by element."""
    return times(input, other)


mul.derivative("input", formula="grad · other")(lambda grad, other: times(grad, other))
mul.derivative("other", formula="grad · input")(lambda grad, input: times(grad, input))


multiply = mul


@op(promote="same", tangent="symmetric", dtype_error=no_bools("addcmul_cpu_out"), complex="holomorphic")
def addcmul(xp, input: Array, tensor1: Array, tensor2: Array, *, value: float = 1):
    """input + value · tensor1 · tensor2."""
    product = widened(tensor1) * widened(tensor2)
    return rounded(widened(input) + (product if value == 1 else product * element_like(product, value)), input.dtype)


addcmul.derivative("input", formula="grad")(lambda grad: grad)
addcmul.derivative("tensor1", formula="value · grad · tensor2")(
    lambda grad, tensor2, value, ops: ops.scale(grad * tensor2, value)
)
addcmul.derivative("tensor2", formula="value · grad · tensor1")(
    lambda grad, tensor1, value, ops: ops.scale(grad * tensor1, value)
)


def _refuse_integer_quotient(*kinds) -> str | None:
    if all(category(kind) < 2 for kind in kinds):
        return (
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    return None


@op(promote="float", dtype_error=_refuse_integer_quotient, tangent="symmetric", complex="holomorphic")
def addcdiv(xp, input: Array, tensor1: Array, tensor2: Array, *, value: float = 1):
    """input + value · tensor1 / tensor2."""
    quotient = widened(tensor1) / widened(tensor2)
    return rounded(widened(input) + quotient * like(quotient, value), input.dtype)


addcdiv.derivative("input", formula="grad")(lambda grad: grad)
addcdiv.derivative("tensor1", formula="value · grad / tensor2")(
    lambda grad, tensor2, value, ops: ops.scale(grad / tensor2, value)
)
addcdiv.derivative("tensor2", formula="−value · grad · tensor1 / tensor2²")(
    lambda grad, tensor1, tensor2, value, ops: ops.scale(grad * (tensor1 / tensor2 / tensor2), -value)
)


@op(
    name="lerp",
    promote="float",
    node="LerpBackward1",
    dtype_error=no_integers("lerp_kernel_tensor"),
    tangent="symmetric",
    complex="holomorphic",
)
def lerp_tensor(xp, input: Array, end: Array, weight: Array):
    """input + weight · (end − input), exact at both ends."""
    start, stop, share = widened(input), widened(end), widened(weight)
    change = stop - start
    found = xp.where(xp.absolute(share) < 0.5, start + share * change, stop - change * (1 - share))[()]
    return rounded(found, input.dtype)


lerp_tensor.derivative("input", formula="grad · (1 − weight)")(lambda grad, weight: grad * (1 - weight))
lerp_tensor.derivative("end", formula="grad · weight")(lambda grad, weight: grad * weight)
lerp_tensor.derivative("weight", formula="grad · (end − input)")(lambda grad, input, end: grad * (end - input))


@op(
    promote="float",
    node="LerpBackward0",
    dtype_error=no_integers("lerp_kernel_scalar"),
    tangent="symmetric",
    complex="holomorphic",
)
def lerp_number(xp, input: Array, end: Array, weight: float):
    """input + weight · (end − input), exact at both ends."""
    start, stop = widened(input), widened(end)
    change = stop - start
    found = start + like(change, weight) * change if abs(weight) < 0.5 else stop - change * like(change, 1 - weight)
    return rounded(found, input.dtype)


lerp_number.derivative("input", formula="(1 − weight) · grad")(lambda grad, weight, ops: ops.scale(grad, 1 - weight))
lerp_number.derivative("end", formula="weight · grad")(lambda grad, weight, ops: ops.scale(grad, weight))


def lerp(input: TensorState, end: TensorState, weight: TensorState | float):
    """Return input + weight · (end − input); the weight is a tensor or a number.

    Raises:
        RuntimeError: the tensors have different dtypes; only that of a 0-d weight may be another.
    """
    _require_dtype_of(input, end, "end")
    if isinstance(weight, TensorState):
        if weight._data.ndim:
            _require_dtype_of(input, weight, "weight")
        return lerp_tensor(input, end, weight)
    return lerp_number(input, end, weight)


def _require_dtype_of(input: TensorState, other: TensorState, name: str) -> None:
    wanted, found = [getattr(tensor, "_data", tensor) for tensor in (input, other)]
    if hasattr(found, "dtype") and hasattr(wanted, "dtype") and found.dtype != wanted.dtype:
        names = [small_name(array.dtype) for array in (wanted, found)]
        raise ShapeError(f"expected dtype {names[0]} for `{name}` but got dtype {names[1]}; convert it with .to(dtype)")
