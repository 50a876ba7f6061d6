"""Adam for parameters whose gradients are sparse."""

import numpy as np

from backlight.errors import GraphError, ValueProblem
from backlight.kernels.sparse_array import SparseArray, is_sparse
from backlight.optim.optimizer import Optimizer, Parameters, SparseUpdate, Update
from backlight.optim.options import checked, number, zeros_like
from backlight.tensor.tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that only changes the elements that the gradient has entries for: their averages, and the parameter there.

        m ← m + (1 − β₁)(g − m)          v ← v + (1 − β₂)(g² − v)
        p ← p − lr · √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + eps)

    Args:
        lr: the learning rate.
        betas: β₁ and β₂, how much of the averages of the gradient and of its square is kept.
        eps: added to the denominator.
        maximize: step along the gradient instead.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse or complex.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        options = checked(locals())
        if not lr > 0.0:
            raise ValueProblem(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueProblem(f"Invalid epsilon value: {eps}")
        super().__init__(params, options)
        self._refuse("Sparse", "requires dense parameter tensors", is_sparse)
        self._refuse("Complex", "does not support complex parameters", Tensor.is_complex)

    def _refuse(self, kind: str, rule: str, has_kind) -> None:
        groups = enumerate(group["params"] for group in self.param_groups)
        found = [[number, place] for number, group in groups for place, one in enumerate(group) if has_kind(one)]
        if found:
            raise ValueProblem(f"{kind} params at indices {found}: SparseAdam {rule}")

    def updater(self, group: dict) -> Update:
        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            raise GraphError("SparseAdam does not support dense gradients, please consider Adam instead")

        return update

    def sparse_updater(self, group: dict) -> SparseUpdate:
        rate, (beta1, beta2), eps = number(group["lr"]), group["betas"], group["eps"]
        sign = -1 if group["maximize"] else 1

        def update(param: Tensor, values: np.ndarray, grad: SparseArray) -> None:
            state = self.state[param]
            if not state:
                state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
            state["step"] += 1
            grad = (grad if sign == 1 else -grad).coalesce()
            if not grad.values.size:
                return
            at, size = tuple(grad.indices), rate * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
            average, squares = state["exp_avg"]._data, state["exp_avg_sq"]._data
            average[at] += (grad.values - average[at]) * (1 - beta1)
            squares[at] += (grad.values * grad.values - squares[at]) * (1 - beta2)
            values[at] += -size * (average[at] / (np.sqrt(squares[at]) + eps))

        return update
