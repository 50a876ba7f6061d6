"""RAdam: Adam that waits with its division until the mean square can be trusted."""

import math

import numpy as np

from backlight.graph.state import writable
from backlight.optim.optimizer import Optimizer, check_options, number
from backlight.optim.running import check_betas, count_step, scalar, to_average, to_average_of_squares, zeros_like

__all__ = ["RAdam"]


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
        params,
        lr=1e-3,
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
        check_options(
            lr=lr,
            foreach=foreach,
            fused=None,
            differentiable=differentiable,
            epsilon=eps,
            weight_decay=weight_decay,
        )
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        decay, decoupled = number(group["weight_decay"]), group["decoupled_weight_decay"]
        maximize = group["maximize"]

        def update(param, values, grad):
            state = self.state[param]
            if not state:
                state.update(step=scalar(0), exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
            count = count_step(state)
            if maximize:
                grad = -grad
            if decay and decoupled:
                values *= 1 - rate * decay
            elif decay:
                grad = grad + decay * values
            mean, square = writable(state["exp_avg"]), writable(state["exp_avg_sq"])
            to_average(mean, grad, 1 - beta1)
            to_average_of_squares(square, grad, beta2)
            change = mean / (1 - beta1**count) * rate
            rectified = rectification(beta2, count)
            if rectified is not None:
                change *= rectified * math.sqrt(1 - beta2**count) / (np.sqrt(square) + eps)
            values -= change

        return update


def rectification(beta2: float, count: float) -> float | None:
    """Return the factor for the variance after `count` steps; None while the average is of too few."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * count * beta2**count / (1 - beta2**count)
    if length <= 5.0:
        return None
    return math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
