"""Jacobians by forward mode: a column for each element of the inputs."""

from collections.abc import Callable

import numpy as np

from backlight.autograd.forward_ad import dual_at, unpacked_at
from backlight.batching.vmapping import vmap
from backlight.errors import GraphError
from backlight.graph.state import wrap
from backlight.ops.tables import TENSOR_OPS
from backlight.ops.tangents import level

STRICT = (
    'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
    'Please either set `strict=False` or `strategy="reverse-mode"`.'
)


def jacobians_by_columns(func: Callable, inputs: tuple, vectorize: bool) -> list[list]:
    """Return, for each output of `func`, a tuple, the Jacobian for each input, of both their shapes.

    Args:
        func: takes the inputs and returns a tuple of tensors.
        inputs: float tensors.
        vectorize: push all columns at once, with vmap.
    """
    sizes = [one._data.size for one in inputs]
    seen = []

    def push(*directions):
        with level() as at:
            outs = func(*(dual_at(at, one, direction) for one, direction in zip(inputs, directions)))
            found = [unpacked_at(at, out) for out in outs]
        seen[:] = [tuple(primal.shape) for primal, _ in found]
        return tuple(TENSOR_OPS.filling_zeros(primal) if tangent is None else tangent for primal, tangent in found)

    directions = [_unit_vectors(one, sum(sizes[:place]), sum(sizes)) for place, one in enumerate(inputs)]
    if vectorize:
        columns = vmap(push)(*directions)
    else:
        columns = [TENSOR_OPS.stack(parts, 0) for parts in zip(*map(push, *directions))]
    return [
        [
            TENSOR_OPS.permute(part, (*range(1, part.ndim), 0)).reshape((*shape, *one._data.shape))
            for part, one in zip(column.split(sizes), inputs)
        ]
        for column, shape in zip(columns, seen)
    ]


def _unit_vectors(tensor, before: int, count: int):
    """Return the direction of one input in each column: ones in its own columns, which follow `before` others."""
    rows = np.zeros((count, tensor._data.size), tensor._data.dtype)
    own = np.arange(tensor._data.size)
    rows[before + own, own] = 1
    return wrap(rows.reshape((count, *tensor._data.shape)))


def refuse_strict(strict: bool) -> None:
    """Raise PyTorch's error: forward mode cannot tell whether an output depends on an input."""
    if strict:
        raise GraphError(STRICT)
