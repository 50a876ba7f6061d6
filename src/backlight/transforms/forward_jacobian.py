"""Jacobians by forward mode: a column for each element of the inputs."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.autograd.forward_ad import dual_at, unpacked_at
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import GraphError, MissingMethodError
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
