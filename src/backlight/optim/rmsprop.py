"""RMSprop: steps scaled by a running average of squared gradients."""

import numpy as np

from backlight.kernels.nn.optimizer_steps import rmsprop_step
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import checked, count_step, differentiable_gradient, direction, init_state, number, parts
from backlight.tensor.tensor import Tensor

__all__ = ["RMSprop"]

LAST = "momentum alpha eps centered weight_decay capturable foreach maximize differentiable"  # in `defaults`


class RMSprop(Optimizer):
    """Step by the gradient over the root of the running average of its square.

        v ← alpha · v + (1 − alpha) · g²
        m ← alpha · m + (1 − alpha) · g                   (centered; otherwise m is 0)
        b ← momentum · b + g / (√(v − m²) + eps)
        p ← p − lr · b

    Args:
        lr: the learning rate.
        alpha: the decay rate of the averages.
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
        params: Parameters,
        lr: float | Tensor = 1e-2,
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
        super().__init__(params, checked(locals(), "eps", "momentum", "weight_decay", "alpha", last=LAST))

    def updater(self, group: dict) -> Update:
        rate, alpha, eps = number(group["lr"]), group["alpha"], group["eps"]
        momentum, centered = group["momentum"], group["centered"]
        sign, decay = direction(group)
        names = ["square_avg", *(["momentum_buffer"] if momentum > 0 else []), *(["grad_avg"] if centered else [])]

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, *names)
            count_step(state)
            velocity = parts(state["momentum_buffer"]) if momentum > 0 else None
            mean = parts(state["grad_avg"]) if centered else None
            square = parts(state["square_avg"])
            rmsprop_step(values, grad, square, velocity, mean, rate, alpha, eps, momentum, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, alpha, eps = group["lr"], group["alpha"], group["eps"]
        momentum, centered = group["momentum"], group["centered"]
        names = ["square_avg", *(["momentum_buffer"] if momentum > 0 else []), *(["grad_avg"] if centered else [])]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, *names)
            count_step(state)
            grad = differentiable_gradient(param, grad, group)
            square = state["square_avg"] = alpha * state["square_avg"] + (1 - alpha) * grad * grad
            if centered:
                mean = state["grad_avg"] = state["grad_avg"].lerp(grad, 1 - alpha)
                square = square - mean * mean
            step = grad / (square.sqrt() + eps)
            if momentum > 0:
                step = state["momentum_buffer"] = momentum * state["momentum_buffer"] + step
            param.add_(-rate * step)

        return update
