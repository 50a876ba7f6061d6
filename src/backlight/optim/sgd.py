"""Stochastic gradient descent."""

import numpy as np

from backlight.engine.tensor_state import wrap
from backlight.errors import GraphError, ValueProblem
from backlight.kernels.nn.optimizer_steps import sgd_step
from backlight.kernels.sparse_array import ADD_DENSE, SparseArray, merged
from backlight.optim.optimizer import DifferentiableUpdate, Optimizer, Parameters, SparseUpdate, Update
from backlight.optim.options import checked, differentiable_gradient, direction, number, parts, zeros_like
from backlight.tensor.tensor import Tensor

__all__ = ["SGD"]


class SGD(Optimizer):
    """Step against the gradient, optionally with momentum.

        g ← gradient + weight_decay · p
        b ← momentum · b + (1 − dampening) · g      (b = g at the first step)
        p ← p − lr · (g + momentum · b if nesterov else b)

    Args:
        lr: the learning rate.
        maximize: step along the gradient instead.
        foreach: accepted; there is one way here, and it gives the same numbers.
        fused: accepted, as `foreach`.

    Source: Ilya Sutskever et al.: On the importance of initialization and momentum in deep learning, 2013
    """

    _differentiable_foreach = True
    _added_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueProblem(
                "Nesterov momentum requires a momentum and zero dampening; got "
                f"momentum={momentum}, dampening={dampening}"
            )
        super().__init__(params, checked(locals(), "momentum", "weight_decay"))

    def updater(self, group: dict) -> Update:
        rate, momentum, nesterov = number(group["lr"]), group["momentum"], group["nesterov"]
        share = 1 - group["dampening"]
        sign, decay = direction(group)

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            velocity, kept = None, share
            if momentum:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer, kept = state.setdefault("momentum_buffer", zeros_like(param)), 1
                velocity = parts(buffer)
            sgd_step(values, grad, velocity, rate, momentum, kept, nesterov, sign, decay)

        return update

    def sparse_updater(self, group: dict) -> SparseUpdate:
        rate, momentum, nesterov = number(group["lr"]), group["momentum"], group["nesterov"]
        sign, decay = direction(group)
        if group.get("fused"):
            raise GraphError("`_fused_sgd` does not support sparse gradients")
        if decay:
            raise GraphError(f"{ADD_DENSE} Set weight_decay=0 for parameters with sparse gradients")

        def update(param: Tensor, values: np.ndarray, grad: SparseArray) -> None:
            step = grad if sign == 1 else -grad
            if momentum:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    state["momentum_buffer"] = buffer = wrap(step.copy())
                else:
                    kept = buffer._data * step.dtype.type(momentum)
                    buffer._data = merged(kept, step, 1 - group["dampening"])
                step = merged(step, buffer._data, momentum) if nesterov else buffer._data
            (step * step.dtype.type(-rate)).add_to(values)

        return update

    def differentiable_updater(self, group: dict) -> DifferentiableUpdate:
        rate, momentum, nesterov = group["lr"], group["momentum"], group["nesterov"]

        def update(param: Tensor, grad: Tensor) -> None:
            grad = differentiable_gradient(param, grad, group)
            if momentum:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = grad.detach().clone()
                else:
                    buffer = momentum * buffer + (1 - group["dampening"]) * grad
                state["momentum_buffer"] = buffer
                grad = grad + momentum * buffer if nesterov else buffer
            param.add_(-rate * grad)

        return update
