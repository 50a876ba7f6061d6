"""The Jacobians that `gradcheck` compares, under the names that older PyTorch scripts import."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ValueProblem
from backlight.tensor.tensor import Tensor
from backlight.transforms.numerical_jacobians import analytical_jacobians, as_tuple, differentiable, numerical_jacobians

__all__ = ["get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input"]

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
