"""Recurrent layers: RNN, LSTM, GRU.

One product for the inputs of all steps and one a step for the hidden state; what happens between is one op for a layer
and direction (see ops/nn/recurrent.py).
"""

import math
import numbers
import warnings
from collections.abc import Sequence

from backlight.dispatch import torch_function
from backlight.dtypes import dtype
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.nn import init
from backlight.nn.meta_tensors import meta_call
from backlight.nn.modules.module import Module, changed_options
from backlight.nn.packing import PackedSequence
from backlight.nn.parameter import Parameter, empty_parameter
from backlight.ops.indexing.index_selection import index_select
from backlight.ops.nn.recurrent_layers import THROUGH, Weights, in_steps, through_layers
from backlight.tensor.factories import zeros
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

CHUNKS = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Base class of recurrent layers.

    Shapes: input (time, batch, input_size), or (batch, time, input_size) with `batch_first`, or (time, input_size), or
    a PackedSequence; states (layers · directions, batch, hidden_size), or without batch -> outputs as input, with
    directions · hidden_size; last states as states

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        num_layers: the number of stacked layers.
        bias: whether there are biases.
        batch_first: whether the batch is the first dim of input and output.
        dropout: the dropout probability of each layer's output except the last's, in training.
        bidirectional: whether there is a second pass backward in time.
        proj_size: the size that an LSTM's hidden state is projected to; 0 for no projection.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        _check_options(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            size = input_size if layer == 0 else self._output_size * self._directions
            for reverse in range(self._directions):
                for name, shape in self._shapes(size):
                    values = empty_parameter(shape, device, dtype)
                    self.register_parameter(_full_name(name, layer, reverse), values)
        self.reset_parameters()

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _shapes(self, size: int) -> list[tuple[str, tuple[int, ...]]]:
        """Return names and shapes of the parameters of a layer with inputs of this size, in PyTorch's order."""
        rows = CHUNKS[self.mode] * self.hidden_size
        shapes = [("weight_ih", (rows, size)), ("weight_hh", (rows, self._output_size))]
        shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))] * self.bias
        return shapes + [("weight_hr", (self.proj_size, self.hidden_size))] * (self.proj_size > 0)

    def reset_parameters(self) -> None:
        """Draw new values, uniform over ±1/√hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: weights need no particular memory layout here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list for each layer and direction."""
        names = [name for name, _ in self._shapes(self.input_size)]
        return [
            [getattr(self, _full_name(name, layer, reverse)) for name in names]
            for layer in range(self.num_layers)
            for reverse in range(self._directions)
        ]

    def extra_repr(self) -> str:
        options = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        changed = changed_options(self, **options, bidirectional=False)
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])

    # --- running ------------------------------------------------------------------------------------------------------

    def _state_sizes(self) -> tuple[int, ...]:
        """Return the size of each state that a step passes to the next."""
        return (self.hidden_size,)

    def _run(self, input: Tensor | PackedSequence, states: Sequence[Tensor] | None) -> tuple:
        """Return outputs and last states of any kind of input."""
        if isinstance(input, PackedSequence):
            self._check_input(input.data, 2)
            if states is not None and input.sorted_indices is not None:
                states = [index_select(state, 1, input.sorted_indices) for state in states]
            rows, last = self._run_rows(input.data, tuple(input.batch_sizes.tolist()), states)
            if input.unsorted_indices is not None:
                last = [index_select(state, 1, input.unsorted_indices) for state in last]
            return PackedSequence(rows, *input[1:]), last
        self._check_dims(input, states)
        if input.ndim == 2:
            batch = 0 if self.batch_first else 1
            states = None if states is None else [state.unsqueeze(1) for state in states]
            out, last = self._run_padded(input.unsqueeze(batch), states)
            return out.squeeze(batch), [state.squeeze(1) for state in last]
        return self._run_padded(input, states)

    def _run_padded(self, input: Tensor, states: Sequence[Tensor] | None) -> tuple:
        self._check_input(input, 3)
        by_time = input.transpose(0, 1) if self.batch_first else input
        steps, batch, size = by_time.shape
        if steps == 0:
            raise ShapeError("Expected sequence length to be larger than 0 in RNN")
        rows, last = self._run_rows(by_time.reshape((steps * batch, size)), (batch,) * steps, states)
        out = in_steps(rows, steps, batch, self.mode, self._directions, self.proj_size > 0, self.batch_first)
        return out, last

    def _run_rows(
        self, rows: Tensor, sizes: tuple[int, ...], states: Sequence[Tensor] | None
    ) -> tuple[Tensor, list[Tensor]]:
        """Run all layers over packed rows: return the outputs of the last one, and the last states of each."""
        states = self._checked_states(rows, sizes[0], states)
        places = [(layer, reverse) for layer in range(self.num_layers) for reverse in range(self._directions)]
        weights = [self._weights(*place) for place in places]
        p = self.dropout if self.training else 0
        layers = (THROUGH[self.mode], rows, sizes, states, weights, self._directions, p)
        return meta_call(through_layers, *layers) if rows.is_meta else through_layers(*layers)

    def _weights(self, layer: int, reverse: int) -> Weights:
        def named(name: str) -> Parameter | None:
            # a pruned or parametrized weight is an attribute
            full = _full_name(name, layer, reverse)
            return self._parameters.get(full) if full in self._parameters else getattr(self, full, None)

        return Weights(*map(named, ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")))

    def _check_dims(self, input: Tensor, states: Sequence[Tensor] | None) -> None:
        kind = "RNN" if self.mode.startswith("RNN") else self.mode
        if input.ndim not in (2, 3):
            noun = " tensor" if kind == "RNN" else ""
            raise ValueProblem(f"{kind}: Expected input to be 2D or 3D, got {input.ndim}D{noun} instead")
        if states is None or all(state.ndim == input.ndim for state in states):
            return
        what = "For batched 3-D input" if input.ndim == 3 else "For unbatched 2-D input"
        found = [f"{state.ndim}-D" for state in states]
        if len(found) == 1:
            raise ShapeError(f"{what}, hx should also be {input.ndim}-D but got {found[0]} tensor")
        raise ShapeError(f"{what}, hx and cx should also be {input.ndim}-D but got ({', '.join(found[:2])}) tensors")

    def _check_input(self, input: Tensor, dims: int) -> None:
        kind = self.weight_ih_l0.dtype
        if input.dtype != kind and torch_function.local.casts is None:  # autocast casts both
            raise ValueProblem(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert input: "
                f"input.to({kind}), or convert model: model.to({input.dtype})"
            )
        if input.ndim != dims:
            raise ShapeError(f"input must have {dims} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _checked_states(self, rows: Tensor, batch: int, states: Sequence[Tensor] | None) -> list[Tensor]:
        """Return the first states, zeros where none were given."""
        places = self.num_layers * self._directions
        shapes = [(places, batch, size) for size in self._state_sizes()]
        if states is None:
            return [zeros(shape, dtype=rows.dtype, device=rows.device) for shape in shapes]
        for number, (state, shape) in enumerate(zip(states, shapes, strict=True)):
            if tuple(state.shape) != shape:
                name = "hidden" if len(shapes) == 1 else f"hidden[{number}]"
                raise ShapeError(f"Expected {name} size {shape}, got {list(state.shape)}")
        return list(states)


def _full_name(name: str, layer: int, reverse: int) -> str:
    return f"{name}_l{layer}{'_reverse' if reverse else ''}"


def _refuse_projection(proj_size: int | None) -> None:
    if proj_size is not None:
        raise ValueProblem("proj_size argument is only supported for LSTM, not RNN or GRU")


def _check_options(
    mode: str,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bias: bool,
    batch_first: bool,
    dropout: float,
    proj_size: int,
) -> None:
    if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueProblem(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    given = {"bias": (bias, bool), "batch_first": (batch_first, bool)}
    given |= {"input_size": (input_size, int), "hidden_size": (hidden_size, int)}
    for name, (value, kind) in given.items():
        if not isinstance(value, kind):
            raise ArgumentError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueProblem(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueProblem("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueProblem("proj_size has to be smaller than hidden_size")
    if mode not in CHUNKS:
        raise ValueProblem(f"Unrecognized RNN mode: {mode}")


class RNN(RNNBase):
    """h_t = tanh(W_ih · x_t + b_ih + W_hh · h_(t−1) + b_hh), or max(…, 0); `RNNBase` has shapes and options.

    Args:
        nonlinearity: "tanh" or "relu".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
        *,
        proj_size: int | None = None,
    ):
        _refuse_projection(proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueProblem(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, *options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple:
        """Return the outputs of all steps and the last hidden states; without `hx` the first ones are zeros."""
        out, (last,) = self._run(input, None if hx is None else (hx,))
        return out, last


class LSTM(RNNBase):
    """A long short-term memory; `RNNBase` has shapes and options.

        i, f, o = σ(W · x_t + b + U · h_(t−1) + d), each with its own weights;  g = tanh(the same)
        c_t = f · c_(t−1) + i · g
        h_t = o · tanh(c_t), projected if `proj_size` is not 0

    Source: Sepp Hochreiter, Jürgen Schmidhuber: Long Short-Term Memory, 1997; projection: Haşim Sak et al., 2014,
    arXiv:1402.1128
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        options = (num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *options)

    def forward(self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None) -> tuple:
        """Return the outputs of all steps, and the last hidden and cell states; `hx` are the first ones."""
        out, last = self._run(input, hx)
        return out, tuple(last)

    def _state_sizes(self) -> tuple[int, ...]:
        return (self._output_size, self.hidden_size)


class GRU(RNNBase):
    """A gated recurrent unit; `RNNBase` has shapes and options.

        r, z = σ(W · x_t + b + U · h_(t−1) + d), each with its own weights
        n = tanh(W · x_t + b + r · (U · h_(t−1) + d))
        h_t = (1 − z) · n + z · h_(t−1)

    Source: Kyunghyun Cho et al.: Learning Phrase Representations using RNN Encoder-Decoder, 2014, arXiv:1406.1078
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
        *,
        proj_size: int | None = None,
    ):
        _refuse_projection(proj_size)
        options = (num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *options)

    forward = RNN.forward
