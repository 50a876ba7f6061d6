"""Adam and AdamW: steps scaled by running averages of the gradient and of its square."""

import math

import numpy as np

from backlight.kernels.nn.optimizer_steps import adam_step
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, Update
from backlight.optim.options import (
    checked,
    count_step,
    decay_factor,
    differentiable_gradient,
    direction,
    given_options,
    init_state,
    number,
    parts,
)
from backlight.tensor.tensor import Tensor

__all__ = ["Adam", "AdamW"]

AVERAGES = ("exp_avg", "exp_avg_sq")
AMSGRAD = (*AVERAGES, "max_exp_avg_sq")
LAST = "maximize foreach capturable differentiable fused decoupled_weight_decay"  # in `defaults`


class Adam(Optimizer):
    """Step by the running mean of the gradient over the root of the running mean of its square.

        m ← beta1 · m + (1 − beta1) · g           v ← beta2 · v + (1 − beta2) · g²
        p ← p − lr · m / (1 − beta1ᵗ) / (√(v / (1 − beta2ᵗ)) + eps)

    Args:
        lr: the learning rate.
        betas: beta1 and beta2.
        weight_decay: this times the parameter is added to the gradient.
        amsgrad: divide by the largest v so far.
        maximize: step along the gradient instead.
        decoupled_weight_decay: shrink the parameter by lr · weight_decay and leave the gradient alone, as AdamW does.
        foreach: accepted; there is one way here, and it gives the same numbers.
        capturable: accepted, as `foreach`.
        fused: accepted, as `foreach`.

    Source: Diederik P. Kingma, Jimmy Ba: Adam: A Method for Stochastic Optimization, 2014, arXiv:1412.6980
    """

    _added_options = {
        **{"amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False},
        **{"decoupled_weight_decay": False, "fused": None},
    }
    _instead_of_sparse = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        super().__init__(params, checked(locals(), "eps", "weight_decay", last=LAST))

    def updater(self, group: dict) -> Update:
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        sign, decay = direction(group)
        shrink, names = decay_factor(group), AMSGRAD if group["amsgrad"] else AVERAGES

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, *names)
            count = count_step(state)
            mean, square = parts(state["exp_avg"]), parts(state["exp_avg_sq"])
            largest = parts(state["max_exp_avg_sq"]) if names is AMSGRAD else None
            size, scale = rate / (1 - beta1**count), 1 / math.sqrt(1 - beta2**count)
            adam_step(values, grad, mean, square, largest, size, 1 - beta1, beta2, eps, scale, shrink, sign, decay)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        names = AMSGRAD if group["amsgrad"] else AVERAGES

        def update(param: Tensor, grad: Tensor) -> None:
            state = self.state[param]
            if not state:
                init_state(state, param, *names)
            count_step(state)
            count, grad = state["step"], differentiable_gradient(param, grad, group)  # a tensor, of float32
            mean = state["exp_avg"] = state["exp_avg"].lerp(grad, 1 - beta1)
            square = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * grad * grad
            if names is AMSGRAD:
                square = state["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(square)
            size = -rate / (1 - beta1**count)
            param.add_(mean / (square.sqrt() / ((1 - beta2**count).sqrt() * size) + eps / size))

        return update


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter and leaves the gradient alone.

    Source: Ilya Loshchilov, Frank Hutter: Decoupled Weight Decay Regularization, 2017, arXiv:1711.05101
    """

    _added_options = Adam._added_options | {"decoupled_weight_decay": True}

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, **given_options(locals()), decoupled_weight_decay=True)
