"""Adadelta: steps scaled by how large earlier steps and gradients were."""

import numpy as np

from backlight.errors import ValueProblem
from backlight.graph.state import writable
from backlight.optim.optimizer import Optimizer, check_options, number
from backlight.optim.running import count_step, scalar, to_average_of_squares, zeros_like

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Step by the gradient times the root of the ratio of two running averages: of squared steps, of squared gradients.

        v ← rho · v + (1 − rho) · g²        d = √(u + eps) / √(v + eps) · g
        u ← rho · u + (1 − rho) · d²        p ← p − lr · d

    Args:
        lr: what the steps are multiplied with.
        rho: how much of the averages is kept.
        weight_decay: this times the parameter is added to the gradient.
        foreach: accepted; there is one way here, and it gives the same numbers.
        capturable: accepted, as `foreach`.
        maximize: step along the gradient instead.

    Source: Matthew D. Zeiler: ADADELTA: An Adaptive Learning Rate Method, 2012, arXiv:1212.5701
    """

    def __init__(
        self,
        params,
        lr=1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
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
        if not 0.0 <= rho <= 1.0:
            raise ValueProblem(f"Invalid rho value: {rho}; it must be in [0, 1]")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, rho, eps = number(group["lr"]), group["rho"], group["eps"]
        decay, maximize = number(group["weight_decay"]), group["maximize"]

        def update(param, values, grad):
            state = self.state[param]
            if not state:
                state.update(step=scalar(0), square_avg=zeros_like(param), acc_delta=zeros_like(param))
            count_step(state)
            if maximize:
                grad = -grad
            if decay:
                grad = grad + decay * values
            square, steps = writable(state["square_avg"]), writable(state["acc_delta"])
            to_average_of_squares(square, grad, rho)
            change = np.sqrt(steps + eps) / np.sqrt(square + eps) * grad
            to_average_of_squares(steps, change, rho)
            values -= rate * change

        return update
