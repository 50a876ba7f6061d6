"""Jacobians by forward mode, a column for each element of the inputs; and the checks of `strict=True`."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.autograd.forward_ad import dual_at, unpacked_at
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import GraphError, MissingMethodError
from backlight.tensor.factories import zeros_like
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_jvp import directions

STRICT = (
    'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
    'Please either set `strict=False` or `strategy="reverse-mode"`.'
)
CREATE_GRAPH = (
    'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together '
    '(yet). Please either set `create_graph=False` or `strategy="reverse-mode"`. func.jacfwd gives a Jacobian that can '
    "be differentiated"
)
ONE_BY_ONE = (
    "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`. Add "
    "vectorize=True, which pushes all columns at once"
)


def jacobians_by_columns(func: Callable, inputs: tuple) -> list[list]:
    """Return, for each output of `func`, a tuple, the Jacobian for each input, of both their shapes.

    All columns are pushed through one call of `func`.

    Args:
        func: takes the inputs and returns a tuple of tensors.
        inputs: float tensors.
    """
    sizes = [one._data.size for one in inputs]
    with directions(sum(sizes)) as level:
        rows = unit_rows(inputs)
        outs = func(*[dual_at(level, one, level.direction(row)) for one, row in zip(inputs, rows)])
        found = [unpacked_at(level, out) for out in outs]
        columns = [
            level.columns(TENSOR_OPS.filling_zeros(primal) if tangent is None else tangent) for primal, tangent in found
        ]
    return [
        [
            TENSOR_OPS.permute(part, (*range(1, part.ndim), 0)).reshape((*primal.shape, *one._data.shape))
            for part, one in zip(column.split(sizes), inputs)
        ]
        for column, (primal, _) in zip(columns, found)
    ]


def unit_rows(tensors: Sequence[TensorState], start: int = 0, stop: int | None = None) -> list:
    """Return rows of the identity matrix over all elements of the tensors, each split into the tensors' shapes."""
    made, offset = [], 0
    stop = sum(one._data.size for one in tensors) if stop is None else stop
    for one in tensors:
        unit = np.eye(stop - start, one._data.size, start - offset, one._data.dtype)
        made.append(wrap(unit.reshape((stop - start, *one._data.shape))))
        offset += one._data.size
    return made


def refuse(strict: bool, create_graph: bool, vectorize: bool) -> None:
    """Raise PyTorch's error for options that forward mode does not support."""
    if create_graph:
        raise MissingMethodError(CREATE_GRAPH)
    if strict:
        raise GraphError(STRICT)
    if not vectorize:
        raise MissingMethodError(ONE_BY_ONE)


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
