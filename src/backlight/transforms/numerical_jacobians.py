"""Numerical Jacobians by finite differences, and analytical ones by the recorded backward."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import BacklightError


class GradcheckError(BacklightError, RuntimeError):
    """A derivative is wrong, or could not be checked."""


def side_by_side(measured: np.ndarray, found: np.ndarray) -> str:
    """Return PyTorch's lines with the numerical and the analytical Jacobian."""
    return f"numerical:{wrap(measured)}\nanalytical:{wrap(found)}\n"


def as_tuple(values) -> tuple:
    """Return a tensor, list or tuple as a tuple."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def differentiable(values) -> list:
    """Return the tensors that require grad, in order."""
    return [value for value in as_tuple(values) if isinstance(value, TensorState) and value._edge is not None]


def unit_direction(rng: "np.random.Generator", tensor: TensorState) -> np.ndarray:
    """Return a random vector of length 1 in the shape of a tensor, not negative in any element."""
    values = np.asarray(rng.random(tensor._data.shape))
    length = np.sqrt(np.sum(values * values))
    return values / length if length else values


def vector_jacobian(output, inputs: Sequence, weight: np.ndarray) -> list[np.ndarray | None]:
    """Return weightᵀ · ∂output/∂input for each input, by a backward pass that keeps the graph."""
    found = gradients_of([output], list(inputs), [wrap(weight)], True, False, True, False)
    return [None if grad is None else np.asarray(grad._data) for grad in found]


def analytical_jacobians(output, inputs: Sequence) -> list[np.ndarray]:
    """Return ∂output/∂input for each input, row by row by backward passes.

    Shapes: one array (elements of output, elements of input) an input.
    """
    made = [np.zeros((output._data.size, one._data.size)) for one in inputs]
    for row in range(output._data.size):
        weight = np.zeros(output._data.shape, output._data.dtype)
        weight.reshape(-1)[row] = 1
        for jacobian, grad in zip(made, vector_jacobian(output, inputs, weight)):
            if grad is not None:
                jacobian[row] = grad.reshape(-1)
    return made


def numerical_jacobians(func: Callable, inputs: Sequence, varied, eps: float) -> list[np.ndarray]:
    """Return ∂output/∂varied for each output of `func(*inputs)`, column by column.

    The memory of `varied` is changed and restored, so that a function that closes over it sees the change.

        column k = (f(x + ε eₖ) − f(x − ε eₖ)) / 2ε
    """
    memory = writable(varied)
    columns = []
    for index in np.ndindex(memory.shape):
        step = np.zeros(memory.shape)
        step[index] = eps
        columns.append(_difference(func, inputs, memory, step, f"on index {index} "))
    if not columns:
        return [np.zeros((value.size, 0)) for value in _values(func, inputs)]
    return [np.stack([column[number] for column in columns], 1) / (2 * eps) for number in range(len(columns[0]))]


def numerical_jvp(func: Callable, inputs: Sequence, varied, direction: np.ndarray, eps: float) -> list[np.ndarray]:
    """Return the derivative of each output of `func(*inputs)` when `varied` moves along `direction`."""
    difference = _difference(func, inputs, writable(varied), eps * direction, "")
    return [change / (2 * eps) for change in difference]


def _difference(func, inputs, memory, step, place) -> list[np.ndarray]:
    """Return f(x + step) − f(x − step), flat, for each output."""
    kept = memory.copy()
    try:
        memory[...] = kept + step
        above = _values(func, inputs)
        memory[...] = kept - step
        below = _values(func, inputs)
    finally:
        memory[...] = kept
    for one, other in zip(above, below):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise GradcheckError(
                f"Expected `func` to return outputs with the same shape and dtype when inputs are perturbed {place}by "
                f"±{np.abs(step).max():g}, but got: shapes {one.shape} and {other.shape}, dtypes {one.dtype} and "
                f"{other.dtype}"
            )
    return [np.asarray(a - b if a.dtype.kind != "b" else a ^ b, np.float64).reshape(-1) for a, b in zip(above, below)]


def _values(func, inputs) -> list[np.ndarray]:
    """Call the function and copy what it returns: its outputs may be views of the inputs."""
    return [np.array(out._data) for out in as_tuple(func(*inputs)) if isinstance(out, TensorState)]
