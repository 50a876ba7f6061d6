"""Recurrent layers, step by step over rows packed by time.

NOTE [Packed rows]
The rows of all steps lie one step behind the other: `sizes[t]` rows belong to step t, and the first rows of a step
continue those of the step before. A padded batch has equal sizes; in a packed one they fall. Walking back through
time, a sequence joins at its own last step, with its own first state.

NOTE [Gates by tanh]
sigmoid(x) = tanh(x / 2) / 2 + ½, which cannot overflow, and NumPy has a fast tanh.

NOTE [Steps of rows]
What a step does besides the product with the weight is one native pass; the references here are that in NumPy. All
arrays have a row for each sequence of the step, and a row of gates has them side by side.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from backlight.kernels.linalg.matrix_products import matmul
from backlight.kernels.native import native


def time_steps(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Return (first row, number of rows) of each step, in the order of time or reversed (see NOTE [Packed rows])."""
    steps = list(zip(accumulate(sizes, initial=0), sizes))
    return steps[::-1] if reverse else steps


def _sigmoid(x: np.ndarray) -> None:
    """Overwrite with the sigmoid (see NOTE [Gates by tanh])."""
    x *= 0.5
    np.tanh(x, x)
    x *= 0.5
    x += 0.5


def plain(
    rows: np.ndarray, hidden: np.ndarray, weight: np.ndarray, sizes: Sequence[int], reverse: bool, rectified: bool
):
    """Return the outputs h = tanh(rows + weight · h), the last h, and h before each step; or with max(x, 0)."""
    out, before, last = rows.copy(), np.empty_like(rows), hidden.copy()
    turned = np.ascontiguousarray(weight.T)
    for start, count in time_steps(sizes, reverse):
        here, state = out[start : start + count], last[:count]
        before[start : start + count] = state
        here += matmul(state, turned)
        if rectified:
            np.maximum(here, 0, out=here)
        else:
            np.tanh(here, here)
        state[...] = here
    return out, last, before


def plain_gradient(grad_out, grad_last, out, weight, sizes, reverse: bool, rectified: bool):
    """Return the gradients of the rows and of the first h; `plain` says of what."""
    derivatives = (out > 0).astype(out.dtype) if rectified else 1 - out * out
    arriving = grad_last.copy()
    for start, count in reversed(time_steps(sizes, reverse)):
        here, state = derivatives[start : start + count], arriving[:count]
        here *= state if grad_out is None else state + grad_out[start : start + count]
        state[...] = matmul(here, weight)
    return derivatives, arriving


@native
def lstm_step(gates: np.ndarray, sums: np.ndarray, cells: np.ndarray, bent: np.ndarray, out: np.ndarray) -> None:
    """Write the gates of gates + sums in their place, c = f · c + i · g into `cells`, tanh(c), and o · tanh(c).

    Shapes: gates, sums (rows, 4 · size), cells, bent, out (rows, size)
    """
    size = cells.shape[1]
    gates += sums
    i, f, g, o = (gates[:, n * size : (n + 1) * size] for n in range(4))
    _sigmoid(gates[:, : 2 * size])
    np.tanh(g, g)
    _sigmoid(o)
    cells *= f
    cells += i * g
    np.tanh(cells, bent)
    np.multiply(o, bent, out)


@native
def lstm_step_gradient(
    grad_h: np.ndarray, grad_c: np.ndarray, gates: np.ndarray, before: np.ndarray, bent: np.ndarray, found: np.ndarray
) -> None:
    """Write the gradient of the sums into `found`, and that of the cells before the step into `grad_c`.

    `grad_h` is the gradient of o · tanh(c), `grad_c` on entry that of c from later steps, `before` c before the
    step.

    Shapes: grad_h, grad_c, before, bent (rows, size), gates, found (rows, 4 · size)
    """
    size = bent.shape[1]
    i, f, g, o = (gates[:, n * size : (n + 1) * size] for n in range(4))
    grad_c += grad_h * o * (1 - bent * bent)
    found[:, :size] = grad_c * g * i * (1 - i)
    found[:, size : 2 * size] = grad_c * before * f * (1 - f)
    found[:, 2 * size : 3 * size] = grad_c * i * (1 - g * g)
    found[:, 3 * size :] = grad_h * bent * o * (1 - o)
    grad_c *= f


def lstm(rows, hidden, cells, weight, projection, sizes, reverse: bool):
    """Return outputs, last h, last c, and what the gradient needs: gates, h and c before each step, and tanh(c).

    The gates stand in each row in the order input, forget, cell, output.
    """
    size, kind = cells.shape[1], rows.dtype
    gates, turned = rows.copy(), np.ascontiguousarray(weight.T)
    h, c = hidden.copy(), cells.copy()
    out = np.empty((len(rows), h.shape[1]), kind)
    h_before = np.empty_like(out)
    c_before, bent = np.empty((len(rows), size), kind), np.empty((len(rows), size), kind)
    found = np.empty((len(c), size), kind)
    for start, count in time_steps(sizes, reverse):
        here = slice(start, start + count)
        state, cell = h[:count], c[:count]
        h_before[here], c_before[here] = state, cell
        given = found[:count]
        lstm_step(gates[here], matmul(state, turned), cell, bent[here], given)
        out[here] = state[...] = given if projection is None else matmul(given, projection.T)
    return out, h, c, gates, h_before, c_before, bent


def lstm_gradient(grads, weight, projection, gates, c_before, bent, sizes, reverse: bool):
    """Return the gradients of rows, first h and first c, and that of each output with all that came from later."""
    grad_out, grad_h, grad_c = grads
    rows = np.empty_like(gates)
    arrived = np.empty((len(bent), grad_h.shape[1]), bent.dtype)
    h, c = grad_h.copy(), grad_c.copy()
    for start, count in reversed(time_steps(sizes, reverse)):
        here = slice(start, start + count)
        state, grad_h = h[:count], arrived[here]
        grad_h[...] = state if grad_out is None else state + grad_out[here]
        if projection is not None:
            grad_h = matmul(grad_h, projection)
        lstm_step_gradient(grad_h, c[:count], gates[here], c_before[here], bent[here], rows[here])
        state[...] = matmul(rows[here], weight)
    return rows, h, c, arrived


@native
def gru_step(gates: np.ndarray, sums: np.ndarray, state: np.ndarray, inner: np.ndarray, out: np.ndarray) -> None:
    """Write the gates of gates and sums in place of `gates`, h into `state` and `out`, and the sums of the new gate.

        r = σ(…), z = σ(…), n = tanh(gates_n + r · sums_n), h = n + z · (h − n)

    Shapes: gates, sums (rows, 3 · size), state, inner, out (rows, size)
    """
    size = state.shape[1]
    switches, new = gates[:, : 2 * size], gates[:, 2 * size :]
    np.copyto(inner, sums[:, 2 * size :])
    switches += sums[:, : 2 * size]
    _sigmoid(switches)
    new += switches[:, :size] * inner
    np.tanh(new, new)
    state -= new
    state *= switches[:, size:]
    state += new
    np.copyto(out, state)


@native
def gru_step_gradient(grad_h, gates, before, inner, rows, sums, passed) -> None:
    """Write the gradients of the step's rows, of its sums, and of h before as far as it passes the update gate.

    Shapes: grad_h, before, inner, passed (rows, size), gates, rows, sums (rows, 3 · size)
    """
    size = before.shape[1]
    r, z, n = (gates[:, k * size : (k + 1) * size] for k in range(3))
    to_new = grad_h * (1 - z) * (1 - n * n)
    rows[:, :size] = to_new * inner * r * (1 - r)
    rows[:, size : 2 * size] = grad_h * (before - n) * z * (1 - z)
    rows[:, 2 * size :] = to_new
    sums[:, : 2 * size] = rows[:, : 2 * size]
    sums[:, 2 * size :] = to_new * r
    np.multiply(grad_h, z, passed)


def gru(rows, hidden, weight, bias, sizes, reverse: bool):
    """Return outputs, last h, and what the gradient needs: gates, h before each step, and the hidden part of the new.

    The gates stand in each row in the order reset, update, new; the hidden part is weight_n · h + bias_n.
    """
    size = hidden.shape[1]
    gates, h = rows.copy(), hidden.copy()
    turned = np.ascontiguousarray(weight.T)
    out = np.empty((len(rows), size), rows.dtype)
    before, inner = np.empty_like(out), np.empty_like(out)
    for start, count in time_steps(sizes, reverse):
        here, state = slice(start, start + count), h[:count]
        before[here] = state
        sums = matmul(state, turned)
        if bias is not None:
            sums += bias
        gru_step(gates[here], sums, state, inner[here], out[here])
    return out, h, gates, before, inner


def gru_gradient(grad_out, grad_last, weight, gates, before, inner, sizes, reverse: bool):
    """Return the gradients of the rows, of the sums weight · h + bias, and of the first h; `gru` says of what."""
    rows, sums, passed = np.empty_like(gates), np.empty_like(gates), np.empty_like(before)
    h = grad_last.copy()
    for start, count in reversed(time_steps(sizes, reverse)):
        here, state = slice(start, start + count), h[:count]
        grad_h = state if grad_out is None else state + grad_out[here]
        gru_step_gradient(grad_h, gates[here], before[here], inner[here], rows[here], sums[here], passed[here])
        np.add(matmul(sums[here], weight), passed[here], out=state)
    return rows, sums, h
