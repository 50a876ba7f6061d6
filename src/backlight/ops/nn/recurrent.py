"""Recurrent layers as ops: all steps of one layer in one direction.

Each takes the rows of all steps, already multiplied with the weight of the input (see NOTE [Packed rows] in
kernels/nn/recurrence.py), and returns the outputs of all steps and the last states. Backward walks the steps again; the
gradients of the weights are one product over all rows.
"""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.linalg.matrix_products import matmul
from backlight.kernels.nn import recurrence
from backlight.ops.shape.joining import cat


def _filled(grad: Array, like: Array):
    """Return a gradient in wide floats, zeros where there is none."""
    return np.zeros(like.shape, widened(like).dtype) if grad is None else widened(grad)


def _all_rounded(arrays: Sequence[Array | None], kind: np.dtype) -> tuple:
    return tuple(None if array is None else rounded(array, kind) for array in arrays)


def _over(old: TensorState, new: TensorState):
    """Return states with the first rows replaced: tensors."""
    count = new.shape[0]
    return new if count == old.shape[0] else cat([new, old.narrow(0, count, old.shape[0] - count)])


def _in_time(parts: dict):
    """Return the outputs of the steps, by their first rows, one behind the other: tensors."""
    return cat([parts[start] for start in sorted(parts)])


@op(outputs=2, residuals=("before", "states"))
def rnn_steps(xp, rows: Array, hidden: Array, weight: Array, sizes: tuple, reverse: bool, rectified: bool):
    """h = tanh(rows + weight · h) step by step, or max(…, 0): all h, and the last."""
    out, last, before = recurrence.plain(widened(rows), widened(hidden), widened(weight), sizes, reverse, rectified)
    return _all_rounded((out, last), rows.dtype), before, out


@rnn_steps.derivative(
    "rows",
    "hidden",
    "weight",
    formula="with d the gradient of h at a step and s = d · (1 − h²): s; "
    "s · weight, which is d one step before; Σ sᵀ · h before",
)
def rnn_steps_all(grad, hidden, weight, sizes, reverse, rectified, before, states, needs, xp):
    kind = weight.dtype
    g_rows, g_hidden = recurrence.plain_gradient(
        widened(grad[0]), _filled(grad[1], hidden), states, widened(weight), sizes, reverse, rectified
    )
    return _all_rounded((g_rows, g_hidden, matmul(g_rows.T, before) if needs[2] else None), kind)


@rnn_steps.decomposition
def rnn_steps_decomposition(
    rows: TensorState, hidden: TensorState, weight: TensorState, sizes: tuple, reverse: bool, rectified: bool
):
    outs = {}
    for start, count in recurrence.time_steps(sizes, reverse):
        sums = rows.narrow(0, start, count) + hidden.narrow(0, 0, count) @ weight.T
        outs[start] = sums.relu() if rectified else sums.tanh()
        hidden = _over(hidden, outs[start])
    return _in_time(outs), hidden


@op(outputs=3, residuals=("gates", "h_before", "c_before", "bent"))
def lstm_steps(
    xp, rows: Array, hidden: Array, cells: Array, weight: Array, projection: Array | None, sizes: tuple, reverse: bool
):
    """i, f, g, o = gates of rows + weight · h; c = f · c + i · g; h = o · tanh(c), projected: all h, last h, last c."""
    out, h, c, *kept = recurrence.lstm(
        widened(rows), widened(hidden), widened(cells), widened(weight), widened(projection), sizes, reverse
    )
    return _all_rounded((out, h, c), rows.dtype), *kept


@lstm_steps.derivative(
    "rows",
    "hidden",
    "cells",
    "weight",
    "projection",
    formula="with d and e the gradients of h and c at a step, e + d · o · (1 − tanh(c)²) for e: "
    "s = (e · g · i · (1 − i), e · c · f · (1 − f), e · i · (1 − g²), d · tanh(c) · o · (1 − o)); "
    "s · weight and e · f, which are d and e one step before; Σ sᵀ · h before; Σ dᵀ · o · tanh(c)",
)
def lstm_steps_all(grad, hidden, cells, weight, projection, sizes, reverse, gates, h_before, c_before, bent, needs, xp):
    size, kind = bent.shape[1], weight.dtype
    grads = widened(grad[0]), _filled(grad[1], hidden), _filled(grad[2], cells)
    g_rows, g_hidden, g_cells, arrived = recurrence.lstm_gradient(
        grads, widened(weight), widened(projection), gates, c_before, bent, sizes, reverse
    )
    g_weight = matmul(g_rows.T, h_before) if needs[3] else None
    g_projection = matmul(arrived.T, gates[:, 3 * size :] * bent) if needs[4] else None
    return _all_rounded((g_rows, g_hidden, g_cells, g_weight, g_projection), kind)


@lstm_steps.decomposition
def lstm_steps_decomposition(rows, hidden, cells, weight, projection, sizes, reverse):
    outs = {}
    for start, count in recurrence.time_steps(sizes, reverse):
        sums = rows.narrow(0, start, count) + hidden.narrow(0, 0, count) @ weight.T
        i, f, g, o = sums.chunk(4, 1)
        found = f.sigmoid() * cells.narrow(0, 0, count) + i.sigmoid() * g.tanh()
        out = o.sigmoid() * found.tanh()
        outs[start] = out if projection is None else out @ projection.T
        hidden, cells = _over(hidden, outs[start]), _over(cells, found)
    return _in_time(outs), hidden, cells


@op(outputs=2, residuals=("gates", "before", "inner"))
def gru_steps(xp, rows: Array, hidden: Array, weight: Array, bias: Array | None, sizes: tuple, reverse: bool):
    """r, z, n = gates of rows and of weight · h + bias; h = n + z · (h − n): all h, and the last."""
    out, h, *kept = recurrence.gru(widened(rows), widened(hidden), widened(weight), widened(bias), sizes, reverse)
    return _all_rounded((out, h), rows.dtype), *kept


@gru_steps.derivative(
    "rows",
    "hidden",
    "weight",
    "bias",
    formula="with d the gradient of h at a step, k = d · (1 − z) · (1 − n²), u = weight_n · h + bias_n: "
    "(k · u · r · (1 − r), d · (h − n) · z · (1 − z), k); with s the same but k · r at the end: "
    "d · z + s · weight, which is d one step before; Σ sᵀ · h before; Σ s",
)
def gru_steps_all(grad, hidden, weight, sizes, reverse, gates, before, inner, needs, xp):
    kind = weight.dtype
    g_rows, sums, g_hidden = recurrence.gru_gradient(
        widened(grad[0]), _filled(grad[1], hidden), widened(weight), gates, before, inner, sizes, reverse
    )
    g_weight = matmul(sums.T, before) if needs[2] else None
    return _all_rounded((g_rows, g_hidden, g_weight, sums.sum(0) if needs[3] else None), kind)


@gru_steps.decomposition
def gru_steps_decomposition(
    rows: TensorState, hidden: TensorState, weight: TensorState, bias: TensorState | None, sizes: tuple, reverse: bool
):
    outs = {}
    for start, count in recurrence.time_steps(sizes, reverse):
        state = hidden.narrow(0, 0, count)
        sums = state @ weight.T if bias is None else state @ weight.T + bias
        r, z, n = rows.narrow(0, start, count).chunk(3, 1)
        hr, hz, hn = sums.chunk(3, 1)
        new = (n + (r + hr).sigmoid() * hn).tanh()
        outs[start] = new + (z + hz).sigmoid() * (state - new)
        hidden = _over(hidden, outs[start])
    return _in_time(outs), hidden
