"""Adamax: Adam with the largest gradient in place of the mean square."""

import numpy as np

from backlight.kernels.nn.optimizer_steps import adamax_step
from backlight.ops.shape.joining import stack
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import checked, count_step, differentiable_gradient, direction, init_state, number, parts
from backlight.tensor.tensor import Tensor

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Step by the running mean of the gradient over a decaying maximum of its size.

        m ← beta1 · m + (1 − beta1) · g      u ← max(beta2 · u, |g| + eps)
        p ← p − lr / (1 − beta1ᵗ) · m / u

    Args:
        lr: the learning rate.
        betas: beta1 and beta2.
        weight_decay: this times the parameter is added to the gradient.
        foreach: accepted; there is one way here, and it gives the same numbers.
        maximize: step along the gradient instead.
        capturable: accepted, as `foreach`.

    Source: Diederik P. Kingma, Jimmy Ba: Adam: A Method for Stochastic Optimization, 2014, arXiv:1412.6980
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, checked(locals(), "eps", "weight_decay"))

    def updater(self, group: dict) -> Update:
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        sign, decay = direction(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_inf")
            size = rate / (1 - beta1 ** count_step(state))
            mean, largest = parts(state["exp_avg"]), parts(state["exp_inf"])
            adamax_step(values, grad, mean, largest, size, 1 - beta1, beta2, eps, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "exp_avg", "exp_inf")
            size = rate / (1 - beta1 ** count_step(state))
            grad = differentiable_gradient(param, grad, group)
            mean = state["exp_avg"] = state["exp_avg"].lerp(grad, 1 - beta1)
            largest = state["exp_inf"] = stack([beta2 * state["exp_inf"], grad.abs() + eps]).amax(0)
            param.add_(-size * mean / largest)

        return update
