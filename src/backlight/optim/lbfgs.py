"""L-BFGS: Newton's method with a Hessian estimated from the last steps, and its line search (strong Wolfe)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.grad_mode import enable_grad
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import wrap, writable
from backlight.errors import GraphError, ValueProblem
from backlight.kernels.state_blocks import silent_floats
from backlight.optim.optimizer import Optimizer, Parameters
from backlight.optim.options import checked, number, parts
from backlight.tensor.tensor import Tensor

__all__ = ["LBFGS"]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
IN_ORDER = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")  # PyTorch writes them so


@dataclass(frozen=True, eq=False)
class Point:
    """The evaluation at one step length: loss, gradient, and directional derivative."""

    length: float
    loss: float
    gradient: np.ndarray
    derivative: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, length: float, direction: np.ndarray, tolerance: float, limit: int
) -> tuple[Point, int]:
    """Find a step length along a direction by cubic interpolation.

        f(t) ≤ f(0) + 1e-4 · t · f'(0)          |f'(t)| ≤ 0.9 · |f'(0)|

    Args:
        evaluate: computes the point at a step length.
        start: the point at length 0.
        length: the first length to try.
        tolerance: the search ends when the bracket moves no element of the parameters by more than this.
        limit: how many more lengths may be tried after the first.

    Returns:
        The point, and how often `evaluate` was called.

    Source: Jorge Nocedal, Stephen J. Wright: Numerical Optimization, 2006, algorithms 3.5 and 3.6
    """
    bracket, evaluations = _bracket(evaluate, start, length, limit)
    if len(bracket) == 1:
        return bracket[0], evaluations + 1
    return _zoom(evaluate, start, bracket, float(np.abs(direction).max()), tolerance, evaluations, limit)


def _insufficient_decrease(point: Point, start: Point) -> bool:
    return point.loss > start.loss + SUFFICIENT_DECREASE * point.length * start.derivative


def _small_derivative(point: Point, start: Point) -> bool:
    return abs(point.derivative) <= -CURVATURE * start.derivative


def _bracket(evaluate, start: Point, length: float, limit: int) -> tuple[list[Point], int]:
    """Return an acceptable point, or a bracket of two around one; and the evaluations after the first."""
    before, point, evaluations = start, evaluate(length), 0
    while evaluations < limit:
        if _insufficient_decrease(point, start) or (evaluations > 1 and point.loss >= before.loss):
            return [before, point], evaluations
        if _small_derivative(point, start):
            return [point], evaluations
        if point.derivative >= 0:
            return [before, point], evaluations
        nearest = point.length + 0.01 * (point.length - before.length)
        length = _cubic_minimum(before, point, nearest, point.length * 10)
        before, point, evaluations = point, evaluate(length), evaluations + 1
    return [start, point], evaluations


def _zoom(evaluate, start: Point, bracket: list[Point], size: float, tolerance: float, evaluations: int, limit: int):
    """Narrow a bracket down to an acceptable point; return its lower end at the limit of evaluations or length."""
    low = _lower_end(bracket)
    stuck = False
    while evaluations < limit and not abs(bracket[1].length - bracket[0].length) * size < tolerance:
        length, stuck = _trial_length(*bracket, stuck)
        point, evaluations = evaluate(length), evaluations + 1
        if _insufficient_decrease(point, start) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = _lower_end(bracket)
            continue
        if _small_derivative(point, start):
            return point, evaluations + 1
        if point.derivative * (bracket[1 - low].length - bracket[low].length) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], evaluations + 1


def _lower_end(bracket: list[Point]) -> int:
    """Return the index of the end of a bracket with the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _trial_length(first: Point, second: Point, stuck: bool) -> tuple[float, bool]:
    """Return the next length to try, away from the ends of the bracket, and whether it was close to one."""
    lowest, highest = sorted((first.length, second.length))
    length = _cubic_minimum(first, second, lowest, highest)
    margin = 0.1 * (highest - lowest)
    if not min(highest - length, length - lowest) < margin:
        return length, False
    if not (stuck or length >= highest or length <= lowest):
        return length, True
    return (highest - margin if abs(length - highest) < abs(length - lowest) else lowest + margin), False


def _cubic_minimum(one: Point, other: Point, lowest: float, highest: float) -> float:
    """Return the minimiser, between two lengths, of the cubic through two points and their derivatives."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    mixed = one.derivative + other.derivative - 3 * (one.loss - other.loss) / (one.length - other.length)
    inside = mixed**2 - one.derivative * other.derivative
    if not inside >= 0:
        return (lowest + highest) / 2.0
    root = np.sqrt(inside)
    share = (right.derivative + root - mixed) / (right.derivative - left.derivative + 2 * root)
    return min(max(right.length - (right.length - left.length) * share, lowest), highest)


class LBFGS(Optimizer):
    """Step along −H · g, where H is built from the last `history_size` changes of parameters and gradient.

    One call of `step` makes up to `max_iter` iterations; the closure is called at each, and at each length that the
    line search tries. All parameters are one vector; there is one group.

    Args:
        lr: the length of a step; with a line search, the first length that it tries.
        max_iter: how many iterations a call of `step` makes at most.
        max_eval: how often it may call the closure (by default, 1.25 · max_iter).
        tolerance_grad: it ends when no element of the gradient is larger than this.
        tolerance_change: it ends when neither loss nor any parameter changes by more than this.
        history_size: how many changes are kept; each takes as much memory as two copies of the parameters.
        line_search_fn: "strong_wolfe" or None.

    Source: Dong C. Liu, Jorge Nocedal: On the limited memory BFGS method for large scale optimization, 1989
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, checked(locals()))
        if len(self.param_groups) != 1:
            raise ValueProblem("LBFGS doesn't support per-parameter options (parameter groups); give it one list")
        self._params = self.param_groups[0]["params"]  # programs look for the state under the first of these

    def step(self, closure: Callable) -> Tensor | float:
        """Make up to `max_iter` iterations.

        Args:
            closure: clears the gradients, computes the loss, calls backward and returns the loss.

        Returns:
            The first loss, as `closure` returned it.
        """
        return super().step(closure)

    def _step(self, closure: Callable) -> Tensor | float:
        with silent_floats():
            return self._iterate(closure, user_place())

    def _iterate(self, closure: Callable, place: tuple) -> Tensor | float:
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss, gradient = self._evaluate(closure)
        loss, calls = number(first_loss), 1
        state["func_evals"] += 1
        if np.abs(gradient).max() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, gradient, group["history_size"])
            first = state["n_iter"] == 1
            length = number(group["lr"]) * (min(1.0, 1.0 / float(np.abs(gradient).sum())) if first else 1)
            state.update(d=wrap(direction), t=length, prev_flat_grad=wrap(gradient.copy()), prev_loss=loss)
            start = Point(0.0, loss, gradient, np.float64(gradient.dot(direction)))
            if start.derivative > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            end, evaluations = self._take_step(
                closure, start, direction, length, group["max_eval"] - calls, last, place
            )
            state["t"], loss, gradient = end.length, end.loss, end.gradient
            calls += evaluations
            state["func_evals"] += evaluations
            if last or calls >= group["max_eval"] or self._is_done(start, end, direction, group):
                break
        for name in IN_ORDER:
            state[name] = state.pop(name)
        return first_loss

    def _is_done(self, start: Point, end: Point, direction: np.ndarray, group: dict) -> bool:
        """Return whether the gradient, the step or the change of the loss is below its tolerance."""
        return (
            np.abs(end.gradient).max() <= group["tolerance_grad"]
            or np.abs(direction * end.length).max() <= group["tolerance_change"]
            or abs(end.loss - start.loss) < group["tolerance_change"]
        )

    def _direction(self, state: dict, gradient: np.ndarray, size: int) -> np.ndarray:
        """Return −H · g by the two-loop recursion, after adding the last step to the history."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        _update_history(state, gradient, size)
        changes, steps, weights = [[each._data for each in state[name]] for name in ("old_dirs", "old_stps", "ro")]
        shares = state.setdefault("al", [None] * size)
        rest = -gradient
        for i in reversed(range(len(steps))):
            share = steps[i].dot(rest) * weights[i]
            shares[i] = wrap(share)
            rest -= share * changes[i]
        scale = state["H_diag"]
        rest *= scale if scale == 1 else scale._data
        for i in range(len(steps)):
            rest += (shares[i]._data - changes[i].dot(rest) * weights[i]) * steps[i]
        return rest

    def _take_step(
        self,
        closure: Callable,
        start: Point,
        direction: np.ndarray,
        length: float,
        limit: int,
        last: bool,
        place: tuple,
    ) -> tuple[Point, int]:
        """Update the parameters, by a line search if there is one; return the new point, and the closure's calls."""
        search = self.param_groups[0]["line_search_fn"]
        if search is None:
            self._add(length, direction, place)
            if last:
                return Point(length, start.loss, start.gradient, start.derivative), 0
            loss, gradient = self._evaluate(closure)
            return Point(length, number(loss), gradient, start.derivative), 1
        if search != "strong_wolfe":
            raise GraphError(f"only 'strong_wolfe' is supported; got line_search_fn={search!r}")
        before = [writable(param).copy() for param in self.param_groups[0]["params"]]

        def evaluate(length: float) -> Point:
            self._add(length, direction, place)
            loss, gradient = self._evaluate(closure)
            for param, values in zip(self.param_groups[0]["params"], before):
                np.copyto(writable(param), values)
            return Point(length, number(loss), gradient, np.float64(gradient.dot(direction)))

        tolerance = self.param_groups[0]["tolerance_change"]
        end, evaluations = strong_wolfe(evaluate, start, length, direction, tolerance, limit)
        self._add(end.length, direction, place)
        return end, evaluations

    def _evaluate(self, closure: Callable) -> tuple[Tensor | float, np.ndarray]:
        """Return the closure's loss, and the gradients of all parameters as one vector."""
        with enable_grad():
            loss = closure()
        found = [
            np.zeros(parts(param).size, parts(param).dtype)
            if param._grad is None
            else np.ravel(parts(param._grad.to_dense()))
            for param in self.param_groups[0]["params"]
        ]
        return loss, np.concatenate(found)

    def _add(self, length: float, direction: np.ndarray, place: tuple) -> None:
        """Move the parameters by length · direction."""
        offset = 0
        for param in self.param_groups[0]["params"]:
            values = parts(param)
            part = direction[offset : offset + values.size].reshape(values.shape)
            begin_write(param, "LBFGS.step", place)
            values += (length * part).astype(values.dtype, copy=False)
            end_write(param)
            offset += values.size


def _update_history(state: dict, gradient: np.ndarray, size: int) -> None:
    """Add the last step, and the change of the gradient, to the history."""
    change = gradient - state["prev_flat_grad"]._data
    step = (state["d"]._data * state["t"]).astype(gradient.dtype, copy=False)
    curvature = change.dot(step)
    if not curvature > 1e-10:
        return
    if len(state["old_dirs"]) == size:
        for name in ("old_dirs", "old_stps", "ro"):
            state[name].pop(0)
    state["old_dirs"].append(wrap(change))
    state["old_stps"].append(wrap(step))
    state["ro"].append(wrap(1 / curvature))
    state["H_diag"] = wrap(curvature / change.dot(change))
