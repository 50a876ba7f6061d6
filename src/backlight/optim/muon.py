"""Muon: momentum, orthogonalised before each step."""

import math

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import wrap
from backlight.errors import GraphError, ValueProblem
from backlight.ops.linalg.addmm_family import addmm
from backlight.optim.optimizer import Optimizer, Parameters, Update
from backlight.optim.options import given_options, number, require_single, zeros_like
from backlight.tensor.tensor import Tensor

__all__ = ["Muon"]

ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """Step along the orthogonalised momentum, whose singular values are all near 1. For matrices only.

        B ← momentum · B + (1 − momentum) · g        p ← (1 − lr · weight_decay) · p − lr′ · orthogonal(B)

    Args:
        nesterov: look ahead: make momentum · B + (1 − momentum) · g orthogonal, instead of B.
        ns_coefficients: a, b, c of the steps X ← a · X + (b · X·Xᵀ + c · (X·Xᵀ)²) · X, taken in bfloat16.
        ns_steps: how many of them.
        adjust_lr_fn: lr′ = lr · √max(1, rows / columns) ("original", the default), or 0.2 · lr · √max(rows, columns)
            ("match_rms_adamw").

    Raises:
        ValueError: an option is out of its range, or a parameter is no matrix.

    Source: Keller Jordan and others: Muon: An optimizer for hidden layers in neural networks, 2024; Jingyuan Liu and
    others: Muon is Scalable for LLM Training, 2025, arXiv:2502.16982
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        options = given_options(locals())
        require_single(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueProblem(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ADJUSTMENTS:
            raise ValueProblem(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, options)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueProblem(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}"
                    )

    def updater(self, group: dict) -> Update:
        rate, decay, momentum = number(group["lr"]), number(group["weight_decay"]), group["momentum"]

        @no_grad()
        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            if param.is_complex():
                raise GraphError("Muon does not support complex parameters")
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = zeros_like(param)
            grad, buffer = wrap(grad), state["momentum_buffer"]
            buffer.lerp_(grad, 1 - momentum)
            ahead = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            step = _orthogonal(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
            target = wrap(values)
            target.mul_(1 - rate * decay)
            target.add_(step, alpha=-_adjusted(rate, group["adjust_lr_fn"], *param.shape))

        return update


def _orthogonal(matrix: Tensor, coefficients: tuple, steps: int, eps: float) -> Tensor:
    """Orthogonalise a matrix by the Newton–Schulz iteration: its singular values become nearly 1."""
    if steps >= 100:
        raise ValueProblem("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueProblem("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.bfloat16()
    found = found.T if tall else found
    found = found / found.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.T
        found = addmm(found, addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if tall else found


def _adjusted(rate: float, how: str | None, rows: int, columns: int) -> float:
    if how == "match_rms_adamw":
        return rate * 0.2 * math.sqrt(max(rows, columns))
    return rate * math.sqrt(max(1, rows / columns))
