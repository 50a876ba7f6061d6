"""RAdam: Adam without its division until the variance estimate is reliable."""

import math

import numpy as np

from backlight.kernels.nn.optimizer_steps import radam_step
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import (
    checked,
    count_step,
    decay_factor,
    differentiable_gradient,
    direction,
    init_state,
    number,
    parts,
)
from backlight.tensor.tensor import Tensor

__all__ = ["RAdam"]

LAST = "maximize foreach capturable decoupled_weight_decay differentiable"  # in `defaults`


class RAdam(Optimizer):
    """Step as Adam does, with the variance of its division rectified.

        m ← beta1 · m + (1 − beta1) · g                     v ← beta2 · v + (1 − beta2) · g²
        ρ∞ = 2 / (1 − beta2) − 1                            ρ = ρ∞ − 2t · beta2ᵗ / (1 − beta2ᵗ)
        r = √((ρ − 4)(ρ − 2)ρ∞ / ((ρ∞ − 4)(ρ∞ − 2)ρ)) · √(1 − beta2ᵗ) / (√v + eps), or 1 while ρ ≤ 5
        p ← p − lr · m / (1 − beta1ᵗ) · r

    Args:
        lr: the learning rate.
        betas: beta1 and beta2.
        weight_decay: this times the parameter is added to the gradient.
        decoupled_weight_decay: shrink the parameter by lr · weight_decay and leave the gradient alone.
        foreach: accepted; there is one way here, and it gives the same numbers.
        maximize: step along the gradient instead.
        capturable: accepted, as `foreach`.

    Source: Liyuan Liu et al.: On the Variance of the Adaptive Learning Rate and Beyond, 2019, arXiv:1908.03265
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, checked(locals(), "eps", "weight_decay", last=LAST))

    def updater(self, group: dict) -> Update:
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        sign, decay = direction(group)
        shrink = decay_factor(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_avg_sq")
            count = count_step(state)
            size, rectified = rate / (1 - beta1**count), rectification(beta2, count)
            mean, square = parts(state["exp_avg"]), parts(state["exp_avg_sq"])
            radam_step(values, grad, mean, square, size, 1 - beta1, beta2, eps, rectified, shrink, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_avg_sq")
            count, grad = count_step(state), differentiable_gradient(param, grad, group)
            mean = state["exp_avg"] = state["exp_avg"].lerp(grad, 1 - beta1)
            square = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
            rectified = rectification(beta2, count)
            step = -rate / (1 - beta1**count) * mean
            param.add_(step * (rectified / (square.sqrt() + eps)) if rectified else step)

        return update


def rectification(beta2: float, count: float) -> float:
    """Return the rectification factor after `count` steps; 0 while there are too few."""
    limit = 2 / (1 - beta2) - 1
    unbiased = 1 - beta2**count
    length = limit - 2 * count * beta2**count / unbiased
    if length <= 5.0:
        return 0.0
    factor = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return math.sqrt(factor) * math.sqrt(unbiased)
