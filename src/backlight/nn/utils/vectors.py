"""All parameters as one vector, and back."""

from collections.abc import Iterable

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.ops.shape.joining import cat
from backlight.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters, one after the other; gradients reach the parameters through it."""
    parameters = list(parameters)
    for place, one in enumerate(parameters):
        if not isinstance(one, TensorState):
            raise ArgumentError(f"expected Tensor as element {place} in argument 0, but got {type(one).__name__}")
    return cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let each parameter share the memory of its part of the vector.

    Raises:
        TypeError: `vec` is not a tensor.
        RuntimeError: the vector has fewer elements than the parameters.
    """
    if not isinstance(vec, TensorState):
        raise ArgumentError(f"expected torch.Tensor, but got: {type(vec).__qualname__}; pass a tensor of one dim")
    offset = 0
    for parameter in parameters:
        part = vec[offset : offset + parameter.numel()]
        if part.numel() != parameter.numel():
            raise ShapeError(
                f"shape '{list(parameter.shape)}' is invalid for input of size {part.numel()}; the vector has "
                f"{vec.numel()} elements, and the parameters have more"
            )
        parameter.data = part.view_as(parameter).data
        offset += parameter.numel()
