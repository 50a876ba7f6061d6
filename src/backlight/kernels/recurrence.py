"""Recurrent layers, step by step over rows packed by time.

NOTE [Packed rows]
The rows of all steps lie one step behind the other: `sizes[t]` rows belong to step t, and the first rows of a step
continue those of the step before. A padded batch has equal sizes; in a packed one they fall. Walking back through
time, a sequence joins at its own last step, with its own first state.

NOTE [Gates by tanh]
sigmoid(x) = tanh(x / 2) / 2 + ½, so one call of tanh serves all gates of an LSTM: those that are sigmoids are halved
before (in the weights, once) and after.
"""

from itertools import accumulate

import numpy as np


def walk(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Return (first row, number of rows) of each step, in the order of the walk (see NOTE [Packed rows])."""
    steps = list(zip(accumulate(sizes, initial=0), sizes))
    return steps[::-1] if reverse else steps


# --- plain ------------------------------------------------------------------------------------------------------------


def plain(rows, hidden, weight, sizes, reverse: bool, rectified: bool):
    """Return the outputs h = tanh(rows + weight · h), the last h, and h before each step; or with max(x, 0)."""
    out, before, last = rows.copy(), np.empty_like(rows), hidden.copy()
    turned = np.ascontiguousarray(weight.T)
    for start, count in walk(sizes, reverse):
        here, state = out[start : start + count], last[:count]
        before[start : start + count] = state
        here += state @ turned
        if rectified:
            np.maximum(here, 0, out=here)
        else:
            np.tanh(here, here)
        state[...] = here
    return out, last, before


def plain_gradient(grad_out, grad_last, out, weight, sizes, reverse: bool, rectified: bool):
    """Return the gradients of the rows and of the first h; `plain` says of what."""
    slopes = (out > 0).astype(out.dtype) if rectified else 1 - out * out
    arriving = grad_last.copy()
    for start, count in reversed(walk(sizes, reverse)):
        here, state = slopes[start : start + count], arriving[:count]
        here *= state if grad_out is None else state + grad_out[start : start + count]
        np.matmul(here, weight, out=state)
    return slopes, arriving


# --- LSTM -------------------------------------------------------------------------------------------------------------


def lstm(rows, hidden, cells, weight, projection, sizes, reverse: bool):
    """Return outputs, last h, last c, and what the gradient needs: gates, h and c before each step, and tanh(c).

    The gates stand in each row in the order input, forget, cell, output (see NOTE [Gates by tanh]).
    """
    size, kind = cells.shape[1], rows.dtype
    scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], kind), size)
    shift = np.repeat(np.array([0.5, 0.5, 0, 0.5], kind), size)
    gates = rows * scale
    turned = np.ascontiguousarray((weight * scale[:, None]).T)
    h, c = hidden.copy(), cells.copy()
    out = np.empty((len(rows), h.shape[1]), kind)
    h_before = np.empty_like(out)
    c_before, bent = np.empty((len(rows), size), kind), np.empty((len(rows), size), kind)
    for start, count in walk(sizes, reverse):
        here = slice(start, start + count)
        gate, state, cell = gates[here], h[:count], c[:count]
        h_before[here], c_before[here] = state, cell
        gate += state @ turned
        np.tanh(gate, gate)
        gate *= scale
        gate += shift
        cell *= gate[:, size : 2 * size]
        cell += gate[:, :size] * gate[:, 2 * size : 3 * size]
        np.tanh(cell, bent[here])
        found = gate[:, 3 * size :] * bent[here]
        out[here] = state[...] = found if projection is None else found @ projection.T
    return out, h, c, gates, h_before, c_before, bent


def lstm_gradient(grads, weight, projection, gates, c_before, bent, sizes, reverse: bool):
    """Return the gradients of rows, first h and first c, and that of each output with all that came from later."""
    grad_out, grad_h, grad_c = grads
    count_of_rows, size = bent.shape
    i, f, g, o = (gates[:, n * size : (n + 1) * size] for n in range(4))
    to_cell = o * (1 - bent * bent)  # from h to c
    to_gates = np.empty((count_of_rows, 3, size), bent.dtype)  # from c to the sums in its three gates
    to_gates[:, 0] = g * i * (1 - i)
    to_gates[:, 1] = c_before * f * (1 - f)
    to_gates[:, 2] = i * (1 - g * g)
    to_output = bent * o * (1 - o)
    rows = np.empty_like(gates)
    arrived = np.empty((count_of_rows, grad_h.shape[1]), bent.dtype)
    h, c = grad_h.copy(), grad_c.copy()
    for start, count in reversed(walk(sizes, reverse)):
        here = slice(start, start + count)
        state, cell = h[:count], c[:count]
        arrived[here] = state if grad_out is None else state + grad_out[here]
        slope = arrived[here] if projection is None else arrived[here] @ projection
        cell += slope * to_cell[here]
        row = rows[here]
        np.multiply(to_gates[here], cell[:, None], row[:, : 3 * size].reshape(count, 3, size))
        np.multiply(to_output[here], slope, row[:, 3 * size :])
        cell *= f[here]
        np.matmul(row, weight, out=state)
    return rows, h, c, arrived


# --- GRU --------------------------------------------------------------------------------------------------------------


def gru(rows, hidden, weight, bias, sizes, reverse: bool):
    """Return outputs, last h, and what the gradient needs: gates, h before each step, and the hidden part of the new.

    The gates stand in each row in the order reset, update, new:

        r = σ(…), z = σ(…), n = tanh(rows_n + r · (weight_n · h + bias_n)), h = n + z · (h − n)
    """
    size = hidden.shape[1]
    gates, h = rows.copy(), hidden.copy()
    turned = np.ascontiguousarray(weight.T)
    out = np.empty((len(rows), size), rows.dtype)
    before, inner = np.empty_like(out), np.empty_like(out)
    for start, count in walk(sizes, reverse):
        here = slice(start, start + count)
        state, switches, new = h[:count], gates[here, : 2 * size], gates[here, 2 * size :]
        before[here] = state
        sums = state @ turned
        if bias is not None:
            sums += bias
        inner[here] = sums[:, 2 * size :]
        switches += sums[:, : 2 * size]
        switches *= 0.5
        np.tanh(switches, switches)
        switches *= 0.5
        switches += 0.5
        new += switches[:, :size] * inner[here]
        np.tanh(new, new)
        state -= new
        state *= switches[:, size:]
        state += new
        out[here] = state
    return out, h, gates, before, inner


def gru_gradient(grad_out, grad_last, weight, gates, before, inner, sizes, reverse: bool):
    """Return the gradients of the rows, of the sums weight · h + bias, and of the first h; `gru` says of what.

    Each is the gradient of h times a factor that all steps can compute at once.
    """
    count_of_rows, size = before.shape
    r, z, n = (gates[:, k * size : (k + 1) * size] for k in range(3))
    to_new = (1 - z) * (1 - n * n)
    factors = np.empty((count_of_rows, 3, size), before.dtype)
    factors[:, 0] = to_new * inner * r * (1 - r)
    factors[:, 1] = (before - n) * z * (1 - z)
    factors[:, 2] = to_new * r
    sums, arrived = np.empty_like(gates), np.empty_like(before)
    h = grad_last.copy()
    for start, count in reversed(walk(sizes, reverse)):
        here, state = slice(start, start + count), h[:count]
        slope = arrived[here]
        slope[...] = state if grad_out is None else state + grad_out[here]
        np.multiply(factors[here], slope[:, None], sums[here].reshape(count, 3, size))
        np.matmul(sums[here], weight, out=state)
        state += slope * z[here]
    rows = sums.copy()
    np.multiply(arrived, to_new, rows[:, 2 * size :])
    return rows, sums, h
