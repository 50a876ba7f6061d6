"""Adafactor: Adam whose running averages of squares are kept as one column and one row for each matrix."""

import numpy as np

from backlight.engine.tensor_state import wrap, writable
from backlight.errors import GraphError, ValueProblem
from backlight.optim.optimizer import Optimizer, Parameters, Update
from backlight.optim.options import count_step, given_options, init_state, number, require_single
from backlight.tensor.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Step by gradients divided by the root of their mean squares, which are stored as row and column means.

    Args:
        lr: the largest relative step; a step is at most this times the root mean square of the parameter.
        beta2_decay: the power of the step's number that new squares count with.
        eps: (eps1, eps2): a lower bound of squares, the dtype's smallest by default, and of the parameter's size.
        d: how large the root mean square of an update may be before it is scaled down.
        weight_decay: this times lr shrinks the parameter at each step.
        foreach: accepted; there is one way here, and it gives the same numbers.
        maximize: step along the gradient instead.

    Source: Noam Shazeer, Mitchell Stern: Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018,
    arXiv:1804.04235
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        options = given_options(locals())
        require_single(lr)
        if not lr >= 0.0:
            raise ValueProblem(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueProblem(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        for wrong, problem in (
            (eps[0] is not None and not eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (not eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (not d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (not weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if wrong:
                raise ValueProblem(problem)
        super().__init__(params, options)

    def updater(self, group: dict) -> Update:
        rate, decay, (eps1, eps2) = number(group["lr"]), group["weight_decay"], group["eps"]

        def update(param: Tensor, values: np.ndarray, grad: np.ndarray) -> None:
            if param.is_complex():
                raise GraphError("Adafactor does not support complex parameters")
            state = self.state[param]
            if not state:
                if param.ndim > 1:
                    shape, kind = param.shape, writable(param).dtype
                    rows = wrap(np.zeros((*shape[:-1], 1), kind))
                    init_state(state, param, row_var=rows, col_var=wrap(np.zeros((*shape[:-2], 1, shape[-1]), kind)))
                else:
                    init_state(state, param, "variance")
            step = count_step(state)
            least = np.finfo(values.dtype).eps if eps1 is None else eps1
            grad = -grad if group["maximize"] else grad
            size = max(eps2, float(np.linalg.norm(values)) / values.size**0.5) * min(rate, step**-0.5)
            if decay:
                values *= values.dtype.type(1 - rate * decay)
            squares = _squares(state, grad, step ** group["beta2_decay"], least)
            change = grad / np.sqrt(np.maximum(squares, values.dtype.type(least * least)))
            too_large = max(1.0, float(np.linalg.norm(change)) / (change.size**0.5 * group["d"]))
            values -= change * values.dtype.type(size / too_large)

        return update


def _squares(state: dict, grad: np.ndarray, share: float, least: float) -> np.ndarray:
    """Update the running averages with this gradient's squares; return the mean squares reconstructed from them."""
    share = grad.dtype.type(share)
    if grad.ndim < 2:
        average = writable(state["variance"])
        average += share * (grad * grad - average)
        return average
    rows, columns = writable(state["row_var"]), writable(state["col_var"])
    for average, dim in ((rows, -1), (columns, -2)):
        average += share * ((grad * grad).mean(dim, keepdims=True) - average)
    return rows @ columns / np.maximum(rows.mean(-2, keepdims=True), grad.dtype.type(least))
