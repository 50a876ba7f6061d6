"""NAdam: Adam with Nesterov's momentum."""

import numpy as np

from backlight.graph.state import writable
from backlight.optim.optimizer import Optimizer, check_options, number
from backlight.optim.running import check_betas, count_step, scalar, to_average, to_average_of_squares, zeros_like

__all__ = ["NAdam"]


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

    def __init__(
        self,
        params,
        lr=2e-3,
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
        check_options(
            lr=lr,
            foreach=foreach,
            fused=None,
            differentiable=differentiable,
            epsilon=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
        )
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def updater(self, group: dict):
        """Return the update of one parameter under this group's options."""
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        decay, decoupled = number(group["weight_decay"]), group["decoupled_weight_decay"]
        maximize, momentum_decay = group["maximize"], group["momentum_decay"]

        def momentum(count: float) -> float:
            return beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))

        def update(param, values, grad):
            state = self._state_of(param)
            count = count_step(state)
            if maximize:
                grad = -grad
            if decay and decoupled:
                values *= 1 - rate * decay
            elif decay:
                grad = grad + decay * values
            now, ahead, product = momentum(count), momentum(count + 1), state["mu_product"]
            product._data = product._data * product._data.dtype.type(now)
            so_far = float(product._data)
            mean, square = writable(state["exp_avg"]), writable(state["exp_avg_sq"])
            to_average(mean, grad, 1 - beta1)
            to_average_of_squares(square, grad, beta2)
            root = np.sqrt(square / (1 - beta2**count)) + eps
            values -= rate * (1.0 - now) / (1.0 - so_far) * (grad / root)
            values -= rate * ahead / (1.0 - so_far * ahead) * (mean / root)

        return update

    def _state_of(self, param) -> dict:
        """Return a parameter's state as it is before its first step."""
        state = self.state[param]
        if not state:
            state.update(step=scalar(0), mu_product=scalar(1))
            state.update(exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        return state
