"""Checks of `strict=True`: each output, and each derivative, must depend on each input."""

from collections.abc import Sequence

from backlight.errors import GraphError
from backlight.tensor.factories import zeros_like
from backlight.tensor.tensor import Tensor

ONE_OUTPUT = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
)
ONE_INPUT = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)
CONSTANT_OUTPUT = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
INDEPENDENT_OUTPUT = (
    "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
INDEPENDENT_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not "
    "allowed in strict mode."
)
INDEPENDENT_ENTRY = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode."
)
INDEPENDENT_SLOPE = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)
INDEPENDENT_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
INDEPENDENT_HESSIAN = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD."
)


def require_grad(tensors: Sequence[Tensor | None], strict: bool, message: str) -> None:
    """Raise in strict mode if a tensor is missing or has no history; the message counts them."""
    for place, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise GraphError(INDEPENDENT_OUTPUT.format(place))
        if tensor._edge is None:
            raise GraphError(message.format(place))


def filled(
    grads: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create_graph: bool, message: str
) -> tuple:
    """Return zeros where a gradient is missing, or raise in strict mode."""
    for place, grad in enumerate(grads if strict else ()):
        if grad is None:
            raise GraphError(message.format(place))
        if create_graph and grad._edge is None:
            derivative = "hessian" if message in (INDEPENDENT_JACOBIAN, INDEPENDENT_HESSIAN) else "jacobian"
            raise GraphError(
                f"The {derivative} of the user-provided function is independent of input {place}. This is not allowed "
                "in strict mode when create_graph=True."
            )
    return tuple(zeros_like(other) if grad is None else grad for grad, other in zip(grads, like))


def check_row(found: Sequence[Tensor | None], number: int, create_graph: bool) -> None:
    """Raise if one row of the Jacobian of output `number` misses an input."""
    for place, grad in enumerate(found):
        if grad is None:
            raise GraphError(
                f"Output {number} of the user-provided function is independent of input {place}. This is not allowed "
                "in strict mode."
            )
        if create_graph and grad._edge is None:
            raise GraphError(
                f"The jacobian of the user-provided function is independent of input {number}. This is not allowed in "
                "strict mode when create_graph=True."
            )
