"""Recurrent cells: one step of a recurrent layer."""

import math
from collections.abc import Iterable

from backlight.dtypes import dtype
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module, changed_options
from backlight.nn.parameter import empty_parameter
from backlight.ops.nn.recurrent import gru_steps, rnn_steps
from backlight.ops.nn.recurrent_layers import lstm_cell
from backlight.tensor.factories import zeros
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """Base class of recurrent cells: weights and biases, initialised uniformly in ±1/√hidden_size."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter((rows, input_size), device, dtype)
        self.weight_hh = empty_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter(rows, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        changed = changed_options(self, bias=True)
        changed += changed_options(self, nonlinearity="tanh") if hasattr(self, "nonlinearity") else []
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])

    def _checked(self, input: Tensor, states: tuple | None, names: tuple[str, ...]) -> tuple[Tensor, list[Tensor]]:
        """Return input and states with a batch dim; states that are missing are zeros."""
        kind = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueProblem(f"{kind}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for name, state in zip(names, states or ()):
            if state.ndim not in (1, 2):
                raise ValueProblem(f"{kind}: Expected {name} to be 1D or 2D, got {state.ndim}D instead")
        batched = input.ndim == 2
        input = input if batched else input.unsqueeze(0)
        if input.shape[1] != self.input_size:
            raise ShapeError(f"input has inconsistent input_size: got {input.shape[1]} expected {self.input_size}")
        if states is None:
            return input, [
                zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device) for _ in names
            ]
        states = [state if batched else state.unsqueeze(0) for state in states]
        for number, state in enumerate(states):
            if state.shape[1] != self.hidden_size:
                raise ShapeError(
                    f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {self.hidden_size}"
                )
            if state.shape[0] != input.shape[0]:
                raise ShapeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
                )
        return input, states


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih · x + b_ih + W_hh · h + b_hh), or max(…, 0).

    Shapes: input (batch, input_size), hx (batch, hidden_size) -> (batch, hidden_size); all without batch, too

    Args:
        nonlinearity: "tanh" or "relu".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise ShapeError(f"Unknown nonlinearity: {self.nonlinearity}")
        rows, (hidden,) = self._checked(input, None if hx is None else (hx,), ("hidden",))
        biases = None if self.bias_ih is None else self.bias_ih + self.bias_hh
        sums = F.linear(rows, self.weight_ih, biases)
        _, last = rnn_steps(sums, hidden, self.weight_hh, (len(rows),), False, self.nonlinearity == "relu")
        return last if input.ndim == 2 else last.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM; `LSTM` has the formulas.

    Shapes: input (batch, input_size), hx two of (batch, hidden_size) -> as hx; all without batch, too
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: dtype | None = None
    ):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if hx is not None:
            hx = _both_states(hx)
        rows, (hidden, cells) = self._checked(input, hx, ("hx[0]", "hx[1]"))
        last = lstm_cell(rows, (hidden, cells), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return tuple(last if input.ndim == 2 else [state.squeeze(0) for state in last])


def _both_states(hx: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    if not hasattr(type(hx), "__iter__"):
        raise ArgumentError(f"'{type(hx).__name__}' object is not iterable: hx is a hidden and a cell state")
    states = tuple(hx)
    if len(states) != 2:
        raise ShapeError(f"lstm_cell expects two hidden states, got {len(states)}")
    return states


class GRUCell(RNNCellBase):
    """One step of a GRU; `GRU` has the formulas.

    Shapes: input (batch, input_size), hx (batch, hidden_size) -> (batch, hidden_size); all without batch, too
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: dtype | None = None
    ):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        rows, (hidden,) = self._checked(input, None if hx is None else (hx,), ("hidden",))
        sums = F.linear(rows, self.weight_ih, self.bias_ih)
        _, last = gru_steps(sums, hidden, self.weight_hh, self.bias_hh, (len(rows),), False)
        return last if input.ndim == 2 else last.squeeze(0)
