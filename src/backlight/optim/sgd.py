"""Stochastic gradient descent."""

import numpy as np

from backlight.errors import ValueProblem
from backlight.graph.state import wrap, writable
from backlight.optim.optimizer import Optimizer, check_options, number

__all__ = ["SGD"]


class SGD(Optimizer):
    """Step against the gradient, with momentum if asked for.

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

    def __init__(
        self,
        params,
        lr=1e-3,
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
        check_options(
            lr=lr,
            foreach=foreach,
            fused=fused,
            differentiable=differentiable,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueProblem(
                "Nesterov momentum requires a momentum and zero dampening; got "
                f"momentum={momentum}, dampening={dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, momentum, decay = number(group["lr"]), group["momentum"], number(group["weight_decay"])
        maximize, nesterov, share = group["maximize"], group["nesterov"], 1 - group["dampening"]
        if not (momentum or decay or maximize):
            return lambda param, values, grad: np.subtract(values, rate * grad, out=values)

        def update(param, values, grad):
            if maximize:
                grad = -grad
            if decay:
                grad = grad + decay * values
            if momentum:
                velocity = self._velocity(param, grad, momentum, share)
                grad = grad + momentum * velocity if nesterov else velocity
            np.subtract(values, rate * grad, out=values)

        return update

    def _velocity(self, param, grad, momentum: float, share: float) -> np.ndarray:
        """Return momentum · b + share · grad, written into the parameter's state; `grad` itself at the first step."""
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            velocity = np.array(grad)
            state["momentum_buffer"] = wrap(velocity)
            return velocity
        velocity = writable(buffer)
        velocity *= momentum
        velocity += grad if share == 1 else share * grad
        return velocity
