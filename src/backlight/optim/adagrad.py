"""Adagrad: steps scaled by the sum of all squared gradients so far."""

import numpy as np

from backlight.errors import GraphError
from backlight.kernels.nn.optimizer_steps import adagrad_step
from backlight.kernels.sparse_array import SparseArray
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, SparseUpdate, Update
from backlight.optim.options import (
    checked,
    count_step,
    differentiable_gradient,
    direction,
    filled_like,
    init_state,
    number,
    parts,
)
from backlight.tensor.tensor import Tensor

__all__ = ["Adagrad"]

LAST = "weight_decay initial_accumulator_value foreach maximize differentiable fused"  # in `defaults`


class Adagrad(Optimizer):
    """Step by the gradient over the root of the sum of its squares.

        s ← s + g²          p ← p − lr / (1 + (t − 1) · lr_decay) · g / (√s + eps)

    Args:
        lr: the learning rate.
        lr_decay: how fast it falls.
        weight_decay: this times the parameter is added to the gradient.
        initial_accumulator_value: s before the first step.
        maximize: step along the gradient instead.
        foreach: accepted; there is one way here, and it gives the same numbers.
        fused: accepted, as `foreach`.

    Source: John Duchi, Elad Hazan, Yoram Singer: Adaptive Subgradient Methods for Online Learning and Stochastic
        Optimization, 2011
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params, checked(locals(), "lr_decay", "weight_decay", "initial_accumulator_value", "eps", last=LAST)
        )
        for group in self.param_groups:
            for param in group["params"]:
                self._state_of(param)

    def share_memory(self) -> None:
        """Move the sums of squares to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def updater(self, group: dict) -> Update:
        rate, rate_decay, eps = number(group["lr"]), group["lr_decay"], group["eps"]
        sign, decay = direction(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self._state_of(param)
            size = rate / (1 + (count_step(state) - 1) * rate_decay)
            adagrad_step(values, grad, parts(state["sum"]), size, eps, sign, decay)

        return update

    def sparse_updater(self, group: dict) -> SparseUpdate:
        rate, rate_decay, eps = number(group["lr"]), group["lr_decay"], group["eps"]
        sign, decay = direction(group)
        if group.get("fused"):
            raise GraphError("`fused` does not support sparse grad or complex param")
        if decay:
            raise GraphError("weight_decay option is not compatible with sparse gradients")

        def update(param: Tensor, values: np.ndarray, grad: SparseArray) -> None:
            state = self._state_of(param)
            size = rate / (1 + (count_step(state) - 1) * rate_decay)
            grad = (grad if sign == 1 else -grad).coalesce()
            at, squares = tuple(grad.indices), parts(state["sum"])
            squares[at] += grad.values * grad.values
            values[at] += -size * (grad.values / (np.sqrt(squares[at]) + eps))

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, rate_decay, eps = group["lr"], group["lr_decay"], group["eps"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self._state_of(param)
            size = rate / (1 + (count_step(state) - 1) * rate_decay)
            grad = differentiable_gradient(param, grad, group)
            squares = state["sum"] = state["sum"] + grad * grad
            param.add_(-size * grad / (squares.sqrt() + eps))

        return update

    def _state_of(self, param: Tensor) -> dict:
        """Return a parameter's state, which PyTorch initialises before the first step."""
        state = self.state[param]
        if not state:
            initial = self.defaults["initial_accumulator_value"]
            init_state(state, param, sum=filled_like(param, initial))
        return state
