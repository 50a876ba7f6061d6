"""Adam and AdamW: steps scaled by running averages of the gradient and of its square."""

import math

import numpy as np

from backlight.dtypes import get_default_dtype
from backlight.errors import ValueProblem
from backlight.graph.state import TensorState, wrap, writable
from backlight.optim.optimizer import Optimizer, check_options, number

__all__ = ["Adam", "AdamW"]


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

    def __init__(
        self,
        params,
        lr=1e-3,
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
        check_options(
            lr=lr,
            foreach=foreach,
            fused=fused,
            differentiable=differentiable,
            epsilon=eps,
            weight_decay=weight_decay,
        )
        for place, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueProblem(f"Invalid beta parameter at index {place}: {beta}; it must be in [0, 1)")
        if isinstance(betas[0], TensorState) != isinstance(betas[1], TensorState):
            raise ValueProblem("betas must be either both floats or both Tensors")
        defaults = {
            "lr": lr,
            "betas": tuple(number(beta) for beta in betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        decay, decoupled = number(group["weight_decay"]), group["decoupled_weight_decay"]
        maximize, amsgrad = group["maximize"], group["amsgrad"]

        def update(param, values, grad):
            state = self._state_of(param, amsgrad)
            step = state["step"]
            step._data = step._data + step._data.dtype.type(1)
            count = float(step._data)
            if maximize:
                grad = -grad
            if decay and decoupled:
                values *= 1 - rate * decay
            elif decay:
                grad = grad + decay * values
            mean, square = writable(state["exp_avg"]), writable(state["exp_avg_sq"])
            mean += (1 - beta1) * (grad - mean)
            square *= beta2
            square += (1 - beta2) * grad * grad
            if amsgrad:
                largest = writable(state["max_exp_avg_sq"])
                square = np.maximum(largest, square, out=largest)
            root = np.sqrt(square, out=np.empty_like(square))
            root /= math.sqrt(1 - beta2**count)
            root += eps
            np.divide(mean, root, out=root)
            root *= rate / (1 - beta1**count)
            values -= root

        return update

    def _state_of(self, param, amsgrad: bool) -> dict:
        """Return a parameter's state, all zeros at its first step."""
        state = self.state[param]
        if not state:
            kind = np.float64 if get_default_dtype().numpy == np.float64 else np.float32
            state["step"] = wrap(kind(0))
            for name in ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if amsgrad else ())):
                state[name] = wrap(np.zeros_like(writable(param)))
        return state


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter and leaves the gradient alone.

    Source: Ilya Loshchilov, Frank Hutter: Decoupled Weight Decay Regularization, 2017, arXiv:1711.05101
    """

    def __init__(
        self,
        params,
        lr=1e-3,
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
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
