"""Recurrent layers on top of each other, in one direction or both: what modules run, and `torch.lstm` and its kin.

The functions at the end have PyTorch's positional signatures, each in two forms: of padded batches, and of packed rows
with the number of rows of each step.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import float32
from backlight.engine.node import Node, rename_node
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.ops.nn.linear import linear
from backlight.ops.nn.recurrent import gru_steps, lstm_steps, rnn_steps
from backlight.ops.random.dropout import dropout as drop
from backlight.ops.shape.joining import cat, stack

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    input: TensorState
    hidden: TensorState
    input_bias: TensorState | None = None
    hidden_bias: TensorState | None = None
    projection: TensorState | None = None

    @property
    def bias(self) -> TensorState | None:
        """Both biases in one."""
        if self.input_bias is None or self.hidden_bias is None:
            return self.hidden_bias if self.input_bias is None else self.input_bias
        return self.input_bias + self.hidden_bias


def through_tanh(rows: TensorState, states: Sequence[TensorState], weights: Weights, sizes: tuple, reverse: bool):
    """Return the outputs and the last state of h_t = tanh(W · x_t + b + U · h_(t−1) + d)."""
    return rnn_steps(linear(rows, weights.input, weights.bias), *states, weights.hidden, sizes, reverse, False)


def through_relu(rows: TensorState, states: Sequence[TensorState], weights: Weights, sizes: tuple, reverse: bool):
    """Return the outputs and the last state of h_t = max(W · x_t + b + U · h_(t−1) + d, 0)."""
    return rnn_steps(linear(rows, weights.input, weights.bias), *states, weights.hidden, sizes, reverse, True)


def through_lstm(rows: TensorState, states: Sequence[TensorState], weights: Weights, sizes: tuple, reverse: bool):
    """Return the outputs and the last hidden and cell states of an LSTM."""
    sums = linear(rows, weights.input, weights.bias)
    return lstm_steps(sums, *states, weights.hidden, weights.projection, sizes, reverse)


def through_gru(rows: TensorState, states: Sequence[TensorState], weights: Weights, sizes: tuple, reverse: bool):
    """Return the outputs and the last state of a GRU."""
    sums = linear(rows, weights.input, weights.input_bias)
    return gru_steps(sums, *states, weights.hidden, weights.hidden_bias, sizes, reverse)


THROUGH = {"LSTM": through_lstm, "GRU": through_gru, "RNN_TANH": through_tanh, "RNN_RELU": through_relu}


def through_layers(through, rows, sizes: tuple, states, weights: list[Weights], directions: int, p: float) -> tuple:
    """Run all layers over packed rows: return the outputs of the last one, and the last states of each.

    Args:
        through: one of `THROUGH`.
        sizes: how many rows each step has.
        states: the first states, (layers · directions, batch, size) each.
        weights: those of each layer and direction.
        p: the share of each layer's output, but the last's, that is dropped.
    """
    found = []
    for layer in range(len(weights) // directions):
        outs = []
        for place in range(layer * directions, (layer + 1) * directions):
            first = [state[place] for state in states]
            out, *last = through(rows, first, weights[place], sizes, place % directions == 1)
            outs.append(out)
            found.append(last)
        rows = outs[0] if len(outs) == 1 else cat(outs, 1)
        if p and (layer + 1) * directions < len(weights):
            rows = drop(rows, p)
    return rows, [stack(each) for each in zip(*found)]


def in_steps(
    rows: TensorState, steps: int, batch: int, mode: str, directions: int, projected: bool, batch_first: bool
) -> TensorState:
    """Return the outputs of padded batches step by step, under the names that PyTorch prints for them.

    Shapes: rows (steps · batch, size) -> (steps, batch, size), or (batch, steps, size) with `batch_first`
    """
    out = rows.reshape((steps, batch, rows.shape[1]))
    node = out._edge
    if isinstance(node, Node):
        fused = mode == "LSTM" and not projected and rows.dtype is float32  # one op for all steps, in PyTorch
        alone = "MkldnnRnnLayerBackward0" if fused else "StackBackward0"
        rename_node(node, "CatBackward0" if directions == 2 else alone)
    if not batch_first:
        return out
    out = out.transpose(0, 1)
    if isinstance(node, Node) and mode != "LSTM":
        rename_node(out._edge, "TransposeBackward1")
    return out


_END = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", "hx", *_END, "batch_first")
_PACKED = ("data", "batch_sizes", "hx", *_END)


def _arguments(name: str, args: tuple, named: dict) -> dict:
    """Return the arguments of either form by name."""
    packed = "batch_sizes" in named or (len(args) > 3 and isinstance(args[3], (list, tuple)))
    names = _PACKED if packed else _PADDED
    found = dict(zip(names, args)) | named
    if len(args) > len(names) or set(found) != set(names):
        raise ArgumentError(
            f"{name}() received an invalid combination of arguments; it takes ({', '.join(_PADDED)}) or "
            f"({', '.join(_PACKED)})"
        )
    return found


def _weights(params: Sequence[TensorState], has_biases: bool, projected: bool) -> list[Weights]:
    """Return the flat list of parameters by layer and direction."""
    size = 2 + 2 * has_biases + projected
    if len(params) % size:
        raise ShapeError("got an incorrect number of RNN parameters")
    groups = [list(params[start : start + size]) for start in range(0, len(params), size)]
    without = [None] * (2 * (not has_biases))
    return [Weights(*group[:2], *without, *group[2:]) for group in groups]


def _run(mode: str, given: dict, states: list, projected: bool = False) -> tuple:
    weights = _weights(given["params"], given["has_biases"], projected)
    directions = 2 if given["bidirectional"] else 1
    if len(weights) != given["num_layers"] * directions:
        raise ShapeError(f"{mode}: Expected {given['num_layers'] * directions} sets of weights, got {len(weights)}")
    p = given["dropout"] if given["train"] else 0
    if "data" in given:
        sizes = tuple(given["batch_sizes"].tolist())
        return through_layers(THROUGH[mode], given["data"], sizes, states, weights, directions, p)
    by_time = given["input"].transpose(0, 1) if given["batch_first"] else given["input"]
    steps, batch, size = by_time.shape
    rows = by_time.reshape((steps * batch, size))
    rows, last = through_layers(THROUGH[mode], rows, (batch,) * steps, states, weights, directions, p)
    return in_steps(rows, steps, batch, mode, directions, projected, given["batch_first"]), last


def lstm(*args, **named):
    """Run an LSTM: return the outputs of all steps, the last hidden states and the last cell states.

    Args:
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first: for a padded batch; or
        data, batch_sizes, hx, params, …, bidirectional: for packed rows. `hx` holds two tensors, `params` all weights
        in a row.
    """
    given = _arguments("lstm", args, named)
    states = list(given["hx"])
    if len(states) != 2:
        raise ShapeError("lstm expects two hidden states")
    out, (hidden, cells) = _run("LSTM", given, states, states[0].shape[-1] != states[1].shape[-1])
    return out, hidden, cells


def gru(*args, **named):
    """Run a GRU: return the outputs of all steps and the last hidden states; arguments as `lstm`, `hx` one tensor."""
    return _with_one_state("gru", "GRU", args, named)


def rnn_tanh(*args, **named):
    """Run a recurrent layer with tanh: return outputs and last states; arguments as `lstm`, `hx` one tensor."""
    return _with_one_state("rnn_tanh", "RNN_TANH", args, named)


def rnn_relu(*args, **named):
    """Run a recurrent layer with relu: return outputs and last states; arguments as `lstm`, `hx` one tensor."""
    return _with_one_state("rnn_relu", "RNN_RELU", args, named)


def _with_one_state(name: str, mode: str, args: tuple, named: dict) -> tuple:
    given = _arguments(name, args, named)
    out, (last,) = _run(mode, given, [given["hx"]])
    return out, last


def _check_cell(
    gates: int, input: TensorState, states: Sequence[TensorState], w_ih: TensorState, w_hh: TensorState
) -> None:
    """Raise PyTorch's error for sizes that do not fit.

    Raises:
        RuntimeError: they do not.
        IndexError: an argument has no second dim.
    """
    size = w_hh.size(1)
    if gates > 1:
        _check_input(input, w_ih)
    if w_ih.size(0) != gates * size:
        raise ShapeError(f"weight_ih first dim must be {gates} * hidden_size = {gates * size}, but got {w_ih.size(0)}")
    _check_input(input, w_ih)
    for place, state in enumerate(states):
        if input.size(0) != state.size(0):
            raise ShapeError(f"Input batch size {input.size(0)} doesn't match hidden{place} batch size {state.size(0)}")
        if state.size(1) != size:
            raise ShapeError(f"hidden{place} has inconsistent hidden_size: got {state.size(1)}, expected {size}")
    if w_hh.size(0) != gates * size:
        raise ShapeError(f"weight_hh first dim must be {gates} * hidden_size = {gates * size}, but got {w_hh.size(0)}")


def _check_input(input: TensorState, w_ih: TensorState) -> None:
    if input.size(1) != w_ih.size(1):
        raise ShapeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")


def _check_floats(input: TensorState) -> None:
    if not input.is_floating_point():
        raise ShapeError(
            f"result type Float can't be cast to the desired output type {input.dtype.old_name}; convert with .float()"
        )


@public_function
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return the next hidden state and the next cell state of an LSTM."""
    if len(hx) != 2:
        raise ShapeError("lstm_cell expects two hidden states")
    _check_cell(4, input, hx, w_ih, w_hh)
    _check_floats(input)
    _, hidden, cells = through_lstm(input, hx, Weights(w_ih, w_hh, b_ih, b_hh), (len(input),), False)
    return hidden, cells


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return the next hidden state of a GRU."""
    _check_cell(3, input, (hx,), w_ih, w_hh)
    _check_floats(input)
    return through_gru(input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh), (len(input),), False)[1]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return the next hidden state of a recurrent layer with tanh."""
    _check_cell(1, input, (hx,), w_ih, w_hh)
    return through_tanh(input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh), (len(input),), False)[1]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Return the next hidden state of a recurrent layer with relu."""
    _check_cell(1, input, (hx,), w_ih, w_hh)
    return through_relu(input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh), (len(input),), False)[1]
