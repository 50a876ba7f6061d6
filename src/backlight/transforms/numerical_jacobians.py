"""Jacobians by finite differences, and by the recorded backward; also under the names of older PyTorch scripts."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import BacklightError, ValueProblem
from backlight.tensor.tensor import Tensor


class GradcheckError(BacklightError, RuntimeError):
    """A derivative is wrong, or could not be checked."""


def side_by_side(measured: np.ndarray, found: np.ndarray) -> str:
    """Return PyTorch's lines with the numerical and the analytical Jacobian."""
    return f"numerical:{wrap(measured)}\nanalytical:{wrap(found)}\n"


def as_tuple(values: object) -> tuple:
    """Return a tensor, list or tuple as a tuple."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def differentiable(values: object) -> list:
    """Return the tensors that require grad, in order."""
    return [value for value in as_tuple(values) if isinstance(value, TensorState) and value._edge is not None]


def unit_direction(rng: "np.random.Generator", tensor: TensorState) -> np.ndarray:
    """Return a random vector of length 1 in the shape of a tensor, not negative in any element."""
    values = np.asarray(rng.random(tensor._data.shape))
    length = np.sqrt(np.sum(values * values))
    return values / length if length else values


def vector_jacobian(output: Tensor, inputs: Sequence, weight: np.ndarray) -> list[np.ndarray | None]:
    """Return weightᵀ · ∂output/∂input for each input, by a backward pass that keeps the graph."""
    found = gradients_of([output], list(inputs), [wrap(weight)], True, False, True, False)
    return [None if grad is None else np.asarray(grad._data) for grad in found]


def analytical_jacobians(output: Tensor, inputs: Sequence) -> list[np.ndarray]:
    """Return ∂output/∂input for each input, row by row by backward passes.

    Shapes: one array (elements of output, elements of input) an input; complex for complex inputs.
    """
    made = [np.zeros((output._data.size, one._data.size), _wide(one._data.dtype)) for one in inputs]
    for row in range(output._data.size):
        weight = np.zeros(output._data.shape, output._data.dtype)
        weight.reshape(-1)[row] = 1
        for jacobian, grad in zip(made, vector_jacobian(output, inputs, weight)):
            if grad is not None:
                jacobian[row] = grad.reshape(-1)
    return made


def numerical_jacobians(func: Callable, inputs: Sequence, varied: Tensor, eps: float) -> list[np.ndarray]:
    """Return ∂output/∂varied for each output of `func(*inputs)`, column by column.

    The memory of `varied` is changed and restored, so that a function that closes over it sees the change.

        column k = (f(x + ε eₖ) − f(x − ε eₖ)) / 2ε

    For a complex x it is ∂f/∂Re x + i · ∂f/∂Im x, which is the gradient of a real f.
    """
    memory = writable(varied)
    columns = []
    for index in np.ndindex(memory.shape):
        step = np.zeros(memory.shape, memory.dtype)
        step[index] = eps
        column = _difference(func, inputs, memory, step, f"on index {index} ")
        if memory.dtype.kind in "cW":
            across = _difference(func, inputs, memory, step * 1j, f"on index {index} ")
            column = [along + 1j * turned for along, turned in zip(column, across)]
        columns.append(column)
    if not columns:
        return [np.zeros((value.size, 0)) for value in _values(func, inputs)]
    return [np.stack([column[number] for column in columns], 1) / (2 * eps) for number in range(len(columns[0]))]


def numerical_jvp(
    func: Callable, inputs: Sequence, varied: Tensor, direction: np.ndarray, eps: float
) -> list[np.ndarray]:
    """Return the derivative of each output of `func(*inputs)` when `varied` moves along `direction`."""
    difference = _difference(func, inputs, writable(varied), eps * direction, "")
    return [change / (2 * eps) for change in difference]


def _difference(func: Callable, inputs: Sequence, memory: np.ndarray, step: np.ndarray, place: str) -> list[np.ndarray]:
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
    changes = [a - b if a.dtype.kind != "b" else a ^ b for a, b in zip(above, below)]
    return [np.asarray(change, _wide(change.dtype)).reshape(-1) for change in changes]


def _wide(kind: np.dtype) -> np.dtype:
    """Return the dtype of Jacobians: float64, or complex128 for complex numbers."""
    return np.dtype(np.complex128 if kind.kind in "cW" else np.float64)


def _values(func: Callable, inputs: Sequence) -> list[np.ndarray]:
    """Call the function and copy what it returns: its outputs may be views of the inputs."""
    return [np.array(out._data) for out in as_tuple(func(*inputs)) if isinstance(out, TensorState)]


DEPRECATED = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
    "in a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable "
    "API, please file us an issue at https://github.com/pytorch/pytorch/issues/new"
)


def get_numerical_jacobian(
    fn: Callable, inputs: Sequence, target: Sequence | None = None, eps: float = 0.001, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Return ∂fn(inputs)/∂target by finite differences, a row for each element of the target.

    Args:
        fn: takes the inputs as one tuple; of several outputs the first counts.
        inputs: what it is called with.
        target: the tensors that are varied, those among them that require grad; the inputs by default.
        eps: the step of the finite differences.
        grad_out: must be 1.

    Shapes: one matrix (elements of the target, elements of the output) for each target.
    """
    _warn("get_numerical_jacobian")
    _must_be_one(grad_out, "get_numerical_jacobian")
    wanted = differentiable(inputs if target is None else target)
    return tuple(_measured(lambda *values: fn(values), as_tuple(inputs), one, eps)[0] for one in wanted)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: Sequence,
    outputs: Sequence | None,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """Return the Jacobian of each output of `fn(*inputs)` for one input, by finite differences.

    Args:
        fn: takes the inputs.
        input_idx: which input is varied.
        inputs: what it is called with.
        outputs: what it returned; not needed here.
        eps: the step of the finite differences.
        input: the tensor that is varied, in place of the one that `input_idx` names.
        is_forward_ad: chooses an error for complex numbers, of which there are none here.

    Shapes: one matrix (elements of the input, elements of the output) for each output.
    """
    return _measured(fn, as_tuple(inputs), inputs[input_idx] if input is None else input, eps)


def get_analytical_jacobian(
    inputs: Tensor | Sequence[Tensor], output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Return ∂output/∂input for each input that requires grad, by two rounds of backward passes.

    Args:
        inputs: what the output was computed of.
        output: what is differentiated.
        nondet_tol: how far the two rounds may differ.
        grad_out: must be 1.

    Returns:
        The Jacobians, shaped (elements of the input, elements of the output); whether both rounds gave the same;
        whether all gradients have their input's shape; and its dtype. The last two hold for every gradient here.
    """
    _warn("get_analytical_jacobian")
    _must_be_one(grad_out, "get_analytical_jacobian")
    wanted = differentiable(inputs)
    first, second = (analytical_jacobians(output, wanted) for _ in range(2))
    same = all(np.abs(one - other).max(initial=0) <= nondet_tol for one, other in zip(first, second))
    return tuple(_transposed(one, tensor) for one, tensor in zip(first, wanted)), same, True, True


def _measured(fn: Callable, inputs: tuple, varied: TensorState, eps: float) -> tuple:
    return tuple(_transposed(one, varied) for one in numerical_jacobians(fn, inputs, varied, eps))


def _transposed(jacobian: np.ndarray, like: TensorState) -> Tensor:
    return wrap(np.ascontiguousarray(jacobian.T, like._data.dtype))


def _must_be_one(grad_out: float, name: str) -> None:
    if grad_out != 1.0:
        raise ValueProblem(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _warn(name: str) -> None:
    warnings.warn(DEPRECATED.format(name), FutureWarning, stacklevel=3)
