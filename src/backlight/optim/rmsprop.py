"""RMSprop: steps scaled by a running average of squared gradients."""

import numpy as np

from backlight.graph.state import writable
from backlight.optim.optimizer import Optimizer, check_options, number
from backlight.optim.running import count_step, scalar, to_average, to_average_of_squares, zeros_like

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Step by the gradient over the root of the running average of its square.

        v ← alpha · v + (1 − alpha) · g²
        m ← alpha · m + (1 − alpha) · g                   (centered; otherwise m is 0)
        b ← momentum · b + g / (√(v − m²) + eps)
        p ← p − lr · b

    Args:
        lr: the learning rate.
        alpha: how much of the averages is kept.
        weight_decay: this times the parameter is added to the gradient.
        momentum: how much of the last step is kept.
        centered: divide by an estimate of the gradient's standard deviation.
        maximize: step along the gradient instead.
        capturable: accepted; there is one way here, and it gives the same numbers.
        foreach: accepted, as `capturable`.

    Source: Geoffrey Hinton: Neural Networks for Machine Learning, lecture 6e, 2012; centered: Alex Graves: Generating
        Sequences With Recurrent Neural Networks, 2013, arXiv:1308.0850
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(
            lr=lr,
            foreach=foreach,
            fused=None,
            differentiable=differentiable,
            epsilon=eps,
            momentum=momentum,
            weight_decay=weight_decay,
            alpha=alpha,
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, alpha, eps = number(group["lr"]), group["alpha"], group["eps"]
        decay, momentum = number(group["weight_decay"]), group["momentum"]
        maximize, centered = group["maximize"], group["centered"]

        def update(param, values, grad):
            state = self._state_of(param, momentum > 0, centered)
            count_step(state)
            if maximize:
                grad = -grad
            if decay:
                grad = grad + decay * values
            square = writable(state["square_avg"])
            to_average_of_squares(square, grad, alpha)
            if centered:
                mean = writable(state["grad_avg"])
                to_average(mean, grad, 1 - alpha)
                square = square - mean * mean
            change = grad / (np.sqrt(square) + eps)
            if momentum > 0:
                velocity = writable(state["momentum_buffer"])
                velocity *= momentum
                velocity += change
                change = velocity
            values -= rate * change

        return update

    def _state_of(self, param, momentum: bool, centered: bool) -> dict:
        """Return a parameter's state, all zeros at its first step."""
        state = self.state[param]
        if not state:
            state["step"] = scalar(0)
            state["square_avg"] = zeros_like(param)
            if momentum:
                state["momentum_buffer"] = zeros_like(param)
            if centered:
                state["grad_avg"] = zeros_like(param)
        return state
