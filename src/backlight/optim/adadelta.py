"""Adadelta: steps scaled by how large earlier steps and gradients were."""

import numpy as np

from backlight.errors import ValueProblem
from backlight.kernels.nn.optimizer_steps import adadelta_step
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import checked, count_step, differentiable_gradient, direction, init_state, number, parts
from backlight.tensor.tensor import Tensor

__all__ = ["Adadelta"]

LAST = "maximize capturable foreach differentiable"  # in `defaults`


class Adadelta(Optimizer):
    """Step by the gradient times the root of the ratio of two running averages: of squared steps, of squared gradients.

        v ← rho · v + (1 − rho) · g²        d = √(u + eps) / √(v + eps) · g
        u ← rho · u + (1 − rho) · d²        p ← p − lr · d

    Args:
        lr: the factor of the steps.
        rho: the decay rate of the averages.
        weight_decay: this times the parameter is added to the gradient.
        foreach: accepted; there is one way here, and it gives the same numbers.
        capturable: accepted, as `foreach`.
        maximize: step along the gradient instead.

    Source: Matthew D. Zeiler: ADADELTA: An Adaptive Learning Rate Method, 2012, arXiv:1212.5701
    """

    _captured_also = ""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        if not 0.0 <= rho <= 1.0:
            raise ValueProblem(f"Invalid rho value: {rho}; it must be in [0, 1]")
        super().__init__(params, checked(locals(), "eps", "weight_decay", last=LAST))

    def updater(self, group: dict) -> Update:
        rate, rho, eps = number(group["lr"]), group["rho"], group["eps"]
        sign, decay = direction(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "square_avg", "acc_delta")
            count_step(state)
            square, steps = parts(state["square_avg"]), parts(state["acc_delta"])
            adadelta_step(values, grad, square, steps, rate, rho, eps, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, rho, eps = group["lr"], group["rho"], group["eps"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "square_avg", "acc_delta")
            count_step(state)
            grad = differentiable_gradient(param, grad, group)
            square = state["square_avg"] = rho * state["square_avg"] + (1 - rho) * grad * grad
            delta = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * grad
            state["acc_delta"] = rho * state["acc_delta"] + (1 - rho) * delta * delta
            param.add_(-rate * delta)

        return update
