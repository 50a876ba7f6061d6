"""One value for all elements of a tensor: fill, and its forms in place."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.ops.inplace import store, will_record, write_over
from backlight.ops.memory_overlap import refuse_expanded
from backlight.ops.scalars import element, is_plain
from backlight.ops.shape.expanding import repeated_view
from backlight.ops.type_promotion import FLOAT32
from backlight.sizes import Shape

__all__ = ["fill"]


@op(node="FillBackward0", tangent="symmetric", complex="linear")
def fill_number(xp, input: Array, value: float):
    """A tensor like `input`, filled with a number."""
    return xp.full_like(input, element(value, input.dtype))


@op(node="FillBackward1", tangent="linear", complex="linear")
def fill_tensor(xp, input: Array, value: Array):
    """A tensor like `input`, filled with the value of a 0-d tensor."""
    _check_single(value)
    return xp.full(input.shape, value.astype(input.dtype))


@op(node="FillBackward2", tangent="symmetric", complex="linear")
def filling_number(xp, input: Array, value: float):
    """One number in the shape of `input`, not yet copied: `fill_into` writes it."""
    return repeated_view(xp, np.asarray(element(value, input.dtype)), input.shape)


@op(node="FillBackward3", tangent="linear", complex="linear")
def filling_tensor(xp, input: Array, value: Array):
    """The value of a 0-d tensor in the shape of `input`, not yet copied: `fill_into` writes it."""
    _check_single(value)
    return repeated_view(xp, xp.asarray(value.astype(input.dtype)), input.shape)


@op(node="ZeroBackward0", tangent="symmetric", complex="linear")
def filling_zeros(xp, input: Array):
    """Zeros in the shape of `input`, not yet copied: `zero_into` writes them."""
    return repeated_view(xp, xp.zeros((), input.dtype), input.shape)


@filling_zeros.derivative("input", formula="0")
@filling_tensor.derivative("input", formula="0")
@filling_number.derivative("input", formula="0")
@fill_tensor.derivative("input", formula="0")
@fill_number.derivative("input", formula="0")
def filled_input(grad: Array, input_shape: Shape, ops):
    return ops.new_zeros(grad, input_shape)


@filling_tensor.derivative("value", formula="Σ grad")
@fill_tensor.derivative("value", formula="Σ grad")
def filled_value(grad: Array, value_dtype: np.dtype, ops):
    return ops.to_copy(grad.sum(), value_dtype)


def _check_single(value: Array) -> None:
    if value.ndim:
        raise ShapeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.; see copy_"
        )


def fill(input: TensorState, value: TensorState | float):
    """Return a tensor like `input`, filled with a number or the value of a 0-d tensor."""
    return fill_tensor(input, value) if isinstance(value, TensorState) else fill_number(input, value)


@composite_function
def fill_into(self, value: TensorState | float):
    """Write one value, a number or a 0-d tensor, to all elements of this tensor, and return it."""
    if isinstance(value, TensorState):
        _check_single(value._data)
        recorded = will_record(self, value)
        refuse_expanded(self)
        if recorded:
            write_over(self, filling_tensor, (value,), "fill_")
        else:
            store(self, value._data, "fill_")
    elif will_record(self):
        write_over(self, filling_number, (value,), "fill_")
    else:
        data = self._data
        kind = data.dtype
        if value.__class__ is complex or not (
            (kind is FLOAT32 and -65504.0 <= value <= 65504.0) or is_plain(value, kind)
        ):
            value = element(value, kind, checks_halves=data.size != 1)  # PyTorch checks several halves only
        store(self, value, "fill_")
    return self


@composite_function
def zero_into(self):
    """Write zeros to all elements of this tensor, and return it."""
    if will_record(self):
        write_over(self, filling_zeros, (), "zero_")
    else:
        store(self, 0, "zero_")
    return self
