"""ASGD: gradient descent with an average of the iterates."""

import numpy as np

from backlight.kernels.nn.optimizer_steps import asgd_step
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import (
    checked,
    count_step,
    differentiable_gradient,
    direction,
    init_state,
    number,
    parts,
    scalar,
)
from backlight.tensor.tensor import Tensor

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Step against the gradient with a falling rate, and average the parameters (state "ax").

        p ← (1 − lambd · η) · p − η · g          ax ← ax + μ · (p − ax)
        η ← lr / (1 + lambd · lr · t)^alpha      μ ← 1 / max(1, t − t0)

    Args:
        lr: the learning rate.
        lambd: how fast parameters and rate decay.
        alpha: the power by which the rate falls.
        t0: the step after which averaging begins.
        weight_decay: this times the parameter is added to the gradient.
        foreach: accepted; there is one way here, and it gives the same numbers.
        maximize: step along the gradient instead.
        capturable: accepted, as `foreach`.

    Source: Boris T. Polyak, Anatoli B. Juditsky: Acceleration of Stochastic Approximation by Averaging, 1992
    """

    _captured = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, checked(locals(), "weight_decay"))

    def updater(self, group: dict) -> Update:
        rate, lambd, alpha, start = number(group["lr"]), group["lambd"], group["alpha"], group["t0"]
        sign, decay = direction(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "ax", eta=scalar(rate), mu=scalar(1))
            count = count_step(state)
            eta, share = float(state["eta"]._data), float(state["mu"]._data)
            asgd_step(values, grad, parts(state["ax"]), eta, 1 - lambd * eta, share, sign, decay)
            _set(state["eta"], rate / (1 + lambd * rate * count) ** alpha)
            _set(state["mu"], 1 / max(1, count - start))

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, lambd, alpha, start = number(group["lr"]), group["lambd"], group["alpha"], group["t0"]

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, "ax", eta=scalar(rate), mu=scalar(1))
            count, grad = count_step(state), differentiable_gradient(param, grad, group)
            eta, share = float(state["eta"]._data), float(state["mu"]._data)
            param.mul_(1 - lambd * eta)
            param.add_(-eta * grad)
            state["ax"] = param.clone() if share == 1 else state["ax"] + share * (param - state["ax"])
            _set(state["eta"], rate / (1 + lambd * rate * count) ** alpha)
            _set(state["mu"], 1 / max(1, count - start))

        return update


def _set(tensor: Tensor, value: float) -> None:
    """Set a number of the state, in its dtype."""
    tensor._data = tensor._data.dtype.type(value)
