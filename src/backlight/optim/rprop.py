"""Rprop: a step size for each element, adapted by the gradient's sign alone."""

import numpy as np

from backlight.errors import ValueProblem
from backlight.kernels.nn.optimizer_steps import rprop_step
from backlight.ops.elementwise.where_clamp import where
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import checked, count_step, differentiable_gradient, filled_like, init_state, number, parts
from backlight.tensor.factories import full_like
from backlight.tensor.tensor import Tensor

__all__ = ["Rprop"]

LAST = "foreach maximize differentiable capturable"  # in `defaults`


class Rprop(Optimizer):
    """Step by the gradient's sign times a size that grows while the sign stays and shrinks when it changes.

    Args:
        lr: the first step size.
        etas: the factors of a size when the sign changed, and when it stayed.
        step_sizes: the smallest and the largest size.
        capturable: accepted; there is one way here, and it gives the same numbers.
        foreach: accepted, as `capturable`.
        maximize: step along the gradient instead.

    Source: Martin Riedmiller, Heinrich Braun: A Direct Adaptive Method for Faster Backpropagation Learning, 1993
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueProblem(
                f"Invalid eta values: {etas[0]}, {etas[1]}; the first must be in (0, 1), the other over 1"
            )
        super().__init__(params, checked(locals(), last=LAST))

    def updater(self, group: dict) -> Update:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        sign = -1 if group["maximize"] else 1

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "prev", step_size=filled_like(param, number(group["lr"])))
            count_step(state)
            before, sizes = parts(state["prev"]), parts(state["step_size"])
            rprop_step(values, grad, before, sizes, shrink, grow, smallest, largest, sign)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        (shrink, grow), sizes = group["etas"], group["step_sizes"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "prev", step_size=full_like(param.detach(), number(group["lr"])))
            count_step(state)
            grad = differentiable_gradient(param, grad, group)
            agreement = (grad * state["prev"]).sign()
            factor = where(agreement > 0, grow, where(agreement < 0, shrink, 1.0)).to(grad.dtype)
            size = state["step_size"] = (state["step_size"] * factor).clamp(*sizes)
            grad = state["prev"] = where(agreement < 0, 0.0, grad)
            param.add_(-grad.sign() * size)

        return update
