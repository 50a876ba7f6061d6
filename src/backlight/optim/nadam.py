"""NAdam: Adam with Nesterov's momentum."""

import math

import numpy as np

from backlight.kernels.nn.optimizer_steps import nadam_step
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
    scalar,
)
from backlight.tensor.tensor import Tensor

__all__ = ["NAdam"]

LAST = "maximize foreach capturable differentiable"  # in `defaults`


class NAdam(Optimizer):
    """Step as Adam does, looking one step ahead along the momentum.

        μₜ = beta1 · (1 − ½ · 0.96^(t · momentum_decay))           Πₜ = μ₁ · … · μₜ
        m ← beta1 · m + (1 − beta1) · g                            v ← beta2 · v + (1 − beta2) · g²
        p ← p − lr · ((1 − μₜ) / (1 − Πₜ) · g + μₜ₊₁ / (1 − Πₜ₊₁) · m) / (√(v / (1 − beta2ᵗ)) + eps)

    Args:
        lr: the learning rate.
        betas: beta1 and beta2.
        weight_decay: this times the parameter is added to the gradient.
        momentum_decay: how fast the momentum rises to beta1.
        decoupled_weight_decay: shrink the parameter by lr · weight_decay and leave the gradient alone.
        foreach: accepted; there is one way here, and it gives the same numbers.
        maximize: step along the gradient instead.
        capturable: accepted, as `foreach`.

    Source: Timothy Dozat: Incorporating Nesterov Momentum into Adam, 2016
    """

    _captured = "params, mu_products and state_steps"
    _added_options = {
        **{"maximize": False, "foreach": None, "capturable": False, "differentiable": False},
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, checked(locals(), "eps", "weight_decay", "momentum_decay", last=LAST))

    def updater(self, group: dict) -> Update:
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        sign, decay = direction(group)
        shrink, momentum_decay = decay_factor(group), group["momentum_decay"]

        def momentum(count: float) -> float:
            return beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_avg_sq", mu_product=scalar(1))
            count, product = count_step(state), state["mu_product"]
            now, ahead = momentum(count), momentum(count + 1)
            product._data = product._data * product._data.dtype.type(now)
            so_far = float(product._data)
            of_grad, of_mean = rate * (1.0 - now) / (1.0 - so_far), rate * ahead / (1.0 - so_far * ahead)
            mean, square = parts(state["exp_avg"]), parts(state["exp_avg_sq"])
            scale = 1 / math.sqrt(1 - beta2**count)
            nadam_step(values, grad, mean, square, of_grad, of_mean, 1 - beta1, beta2, eps, scale, shrink, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]

        def momentum(count: float) -> float:
            return beta1 * (1.0 - 0.5 * 0.96 ** (count * group["momentum_decay"]))

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_avg_sq", mu_product=scalar(1))
            count, grad = count_step(state), differentiable_gradient(param, grad, group)
            now, ahead = momentum(count), momentum(count + 1)
            product = state["mu_product"] = state["mu_product"] * now
            mean = state["exp_avg"] = state["exp_avg"].lerp(grad, 1 - beta1)
            square = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
            root = (square / (1 - beta2**count)).sqrt() + eps
            param.add_(grad * (-rate * (1.0 - now) / (1.0 - product)) / root)
            param.add_(mean * (-rate * ahead / (1.0 - product * ahead)) / root)

        return update
