"""Complex numbers from parts, their parts, conjugates (NOTE [Conjugates] in ops/conjugate_views.py) and views."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import complex_dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import ShapeError
from backlight.kernels.elementwise.complex_parts import imaginary_parts, joined, parts_of, real_parts
from backlight.ops.conjugate_views import CONJUGATE, NEGATIVE, MirrorStorage, mirror_of, mirrored
from backlight.ops.elementwise.copying import clone, copy_into
from backlight.ops.elementwise.rounding import neg
from backlight.ops.inplace import count_unchanged, inplace
from backlight.ops.number_operands import no_kernel
from backlight.ops.type_promotion import holds_complex

__all__ = [
    "_neg_view",
    "complex",
    "conj",
    "conj_physical",
    "conj_physical_",
    "imag",
    "is_conj",
    "is_neg",
    "polar",
    "real",
    "resolve_conj",
    "resolve_neg",
    "view_as_complex",
    "view_as_complex_copy",
    "view_as_real",
    "view_as_real_copy",
]


def _refuse_parts(one: np.dtype, other: np.dtype) -> str | None:
    """Return what PyTorch says unless both parts are floats of one dtype."""
    kinds = [from_numpy_dtype(kind) for kind in (one, other)]
    if not all(kind.name in ("float16", "float32", "float64") for kind in kinds):
        names = " and ".join(kind.old_name for kind in kinds)
        return f"Expected both inputs to be Half, Float or Double tensors but got {names}"
    if one != other:
        first, second = (kind.old_name for kind in kinds)
        return f"Expected object of scalar type {first} but got scalar type {second} for second argument"
    return None


@op(name="complex", promote="same", dtype_error=_refuse_parts, complex="own")
def complex_of(xp, real: Array, imag: Array):
    """Complex numbers of their real and imaginary parts, float32 or float64."""
    return joined(real, imag)


complex_of.derivative("real", formula="Re grad")(lambda grad, ops: ops.real(grad))
complex_of.derivative("imag", formula="Im grad")(lambda grad, ops: ops.imag(grad))

complex = complex_of


@op(promote="same", dtype_error=_refuse_parts, zero_derivative={"abs": ("abs",)}, complex="own")
def polar(xp, abs: Array, angle: Array):
    """Complex numbers of their sizes and angles: abs · (cos angle + i · sin angle)."""
    if abs.dtype.itemsize == 2:
        raise no_kernel("polar_cpu", abs.dtype, "convert both with .float()")
    return joined(abs * xp.cos(angle), abs * xp.sin(angle))


polar.derivative("abs", formula="Re(grad̄ · e^(i·angle))")(
    lambda grad, angle, ops: ops.real(grad) * ops.cos(angle) + ops.imag(grad) * ops.sin(angle)
)
polar.derivative("angle", formula="Re(grad̄ · i · out)")(
    lambda grad, out, ops: ops.imag(grad) * ops.real(out) - ops.real(grad) * ops.imag(out)
)


@op(node="ConjBackward0", name="conj_physical", tangent="linear", complex="own")
def conjugated(xp, input: Array):
    """The complex conjugate, in new memory."""
    return xp.conjugate(input) if input.dtype.kind in "cW" else input.copy()


conjugated.derivative("input", formula="conj(grad)")(lambda grad, ops: ops.conj_physical(grad))


def conj(input: TensorState):
    """Return the complex conjugate, a view: NOTE [Conjugates]; a real tensor is its own."""
    if not holds_complex(input):
        return input
    return mirrored(input, conjugated, None if is_conj(input) else CONJUGATE)


def _neg_view(input: TensorState):
    """Return the numbers with the other sign, a view: NOTE [Conjugates]."""
    return mirrored(input, neg, None if is_neg(input) else NEGATIVE)


def is_conj(input: TensorState) -> bool:
    """Tell whether a tensor was made by `conj()`, or is a complex view of one that was."""
    mirror = mirror_of(input)
    return mirror is not None and mirror.pending == CONJUGATE and holds_complex(input)


def resolve_conj(input: TensorState):
    """Return the tensor itself; of one that `conj()` made a copy."""
    return clone(input) if is_conj(input) else input


def conj_physical(input: TensorState):
    """Return the complex conjugate in new memory; a real tensor is its own."""
    return conjugated(input) if holds_complex(input) else input


def set_real(input: TensorState, value: TensorState | float) -> None:
    """Write a tensor or a number into the real parts."""
    _write(real(input), value)


def set_imag(input: TensorState, value: TensorState | float) -> None:
    """Write a tensor or a number into the imaginary parts."""
    _write(imag(input), value)


def _write(part: TensorState, value: TensorState | float) -> None:
    copy_into(part, value if isinstance(value, TensorState) else wrap(np.asarray(value, part._data.dtype)))


def is_neg(input: TensorState) -> bool:
    """Tell whether a change of sign is pending: for the imaginary parts of what `conj()` made."""
    mirror = mirror_of(input)
    if mirror is None or mirror.pending is None:
        return False
    return mirror.pending == NEGATIVE or (not holds_complex(input) and _shows_imaginary_parts(input, mirror))


def _shows_imaginary_parts(input: TensorState, mirror: MirrorStorage) -> bool:
    """Tell whether a view of real numbers shows the imaginary parts of a mirror of complex ones."""
    start, first = (array.__array_interface__["data"][0] for array in (writable(input), mirror.values))
    return (start - first) % mirror.values.itemsize != 0


def resolve_neg(input: TensorState):
    """Return the tensor itself; of one with a pending change of sign a copy."""
    return clone(input) if is_neg(input) else input


_write_conjugate = inplace(conjugated, "conj_physical_")


def conj_physical_(input: TensorState):
    """Conjugate the tensor in place and return it; a real one counts as written to."""
    if holds_complex(input):
        return _write_conjugate(input)
    count_unchanged(input, "conj_physical_")
    return input


# --- views of the parts -----------------------------------------------------------------------------------------------


@op(name="real", node="SelectBackward0", view=True, tangent="linear", complex="own")
def real_part(xp, input: Array):
    """The real parts of complex numbers, a view."""
    return real_parts(input)


real_part.derivative("input", formula="grad, as a complex number")(lambda grad, ops: ops.with_zeros(grad))


@op(name="imag", node="SelectBackward0", view=True, tangent="linear", complex="own")
def imaginary_part(xp, input: Array):
    """The imaginary parts of complex numbers, a view."""
    return imaginary_parts(input)


imaginary_part.derivative("input", formula="i · grad")(lambda grad, ops: ops.with_zeros(grad) * 1j)


@op(tangent="linear", complex="own")
def with_zeros(xp, input: Array):
    """The input as complex numbers."""
    return input.astype(complex_dtype(input.dtype))


with_zeros.derivative("input", formula="Re grad")(lambda grad, ops: ops.real(grad))


@op(name="view_as_real", view=True, tangent="linear", complex="own")
def real_view(xp, input: Array):
    """The parts of complex numbers along a new last dim of size 2, a view."""
    return parts_of(input)


real_view.derivative("input", formula="grad[…, 0] + i · grad[…, 1]")(lambda grad, ops: ops.of_pairs(grad))


@op(name="view_as_complex", view=True, tangent="linear", complex="own")
def complex_view(xp, input: Array):
    """The pairs along the last dim as complex numbers, a view."""
    if input.size and input.strides[-1] != input.itemsize:  # a slice of a batch (vmap): no view shows it
        input = xp.ascontiguousarray(input)
    return input.view(complex_dtype(input.dtype))[..., 0]


complex_view.derivative("input", formula="(Re grad, Im grad)")(lambda grad, ops: ops.to_pairs(grad))


@op(tangent="linear", complex="own")
def of_pairs(xp, input: Array):
    """The pairs along the last dim as complex numbers, in new memory; for derivatives."""
    return joined(input[..., 0], input[..., 1])


of_pairs.derivative("input", formula="(Re grad, Im grad)")(lambda grad, ops: ops.to_pairs(grad))


@op(tangent="linear", complex="own")
def to_pairs(xp, input: Array):
    """The parts of complex numbers along a new last dim, in new memory; for derivatives."""
    return xp.stack([real_parts(input), imaginary_parts(input)], -1)


to_pairs.derivative("input", formula="grad[…, 0] + i · grad[…, 1]")(lambda grad, ops: ops.of_pairs(grad))


def real(input: TensorState):
    """Return the real parts, a view; a real tensor is returned as it is."""
    return real_part(input) if holds_complex(input) else input


def imag(input: TensorState):
    """Return the imaginary parts, a view.

    Raises:
        RuntimeError: the tensor is real.
    """
    if not holds_complex(input):
        raise ShapeError("imag is not implemented for tensors with non-complex dtypes.")
    return imaginary_part(input)


def view_as_real(input: TensorState):
    """Return the real and imaginary parts along a new last dim of size 2, a view.

    Raises:
        RuntimeError: the tensor is real, or made by `conj()`.
    """
    if not holds_complex(input):
        raise ShapeError("view_as_real is only supported for complex tensors")
    if is_conj(input):
        raise ShapeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return real_view(input)


def view_as_complex(input: TensorState):
    """Return the pairs along the last dim as complex numbers, a view.

    Raises:
        RuntimeError: the dtype is not float32 or float64, or the last dim is not one of adjacent pairs.
    """
    data = input._data
    name = from_numpy_dtype(data.dtype)
    if name.name not in ("float16", "float32", "float64"):
        raise ShapeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{name.old_name}"
        )
    if not data.ndim:
        raise ShapeError("Input tensor must have one or more dimensions")
    if data.shape[-1] != 2:
        raise ShapeError("Tensor must have a last dimension of size 2")
    if data.strides[-1] != data.itemsize:
        raise ShapeError("Tensor must have a last dimension with stride 1")
    if any(step % (2 * data.itemsize) for step in data.strides[:-1]):
        raise ShapeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return complex_view(input)


def view_as_real_copy(input: TensorState):
    """Return a copy of what `view_as_real` shows."""
    return clone(view_as_real(input))


def view_as_complex_copy(input: TensorState):
    """Return a copy of what `view_as_complex` shows."""
    return clone(view_as_complex(input))
