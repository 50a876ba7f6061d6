"""Adagrad: steps scaled by the sum of all squared gradients so far."""

import numpy as np

from backlight.engine.tensor_state import wrap, writable
from backlight.kernels.nn.optimizer_steps import adagrad_step
from backlight.optim.optimizer import Optimizer
from backlight.optim.options import checked, direction, number
from backlight.optim.running import count_step, init_state

__all__ = ["Adagrad"]


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
        params,
        lr=1e-2,
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
        options = checked(
            "lr_decay",
            "weight_decay",
            "initial_accumulator_value",
            "eps",
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, options)
        for group in self.param_groups:
            for param in group["params"]:
                self._state_of(param)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, rate_decay, eps = number(group["lr"]), group["lr_decay"], group["eps"]
        sign, decay = direction(group)

        def update(param, values, grad):
            state = self._state_of(param)
            size = rate / (1 + (count_step(state) - 1) * rate_decay)
            adagrad_step(values, grad, writable(state["sum"]), size, eps, sign, decay)

        return update

    def _state_of(self, param) -> dict:
        """Return a parameter's state, which PyTorch initialises before the first step."""
        state = self.state[param]
        if not state:
            initial = self.defaults["initial_accumulator_value"]
            init_state(state, param, sum=wrap(np.full_like(writable(param), initial)))
        return state
