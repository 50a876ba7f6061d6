"""Checks that derivatives are right, by finite differences: `gradcheck`, and `gradgradcheck` for second derivatives."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
from backlight.ops.elementwise.complex_numbers import imag, real
from backlight.system.lazy_import import function_later
from backlight.transforms.gradcheck_cases import check_batches, check_missing_gradients, check_zero_gradients
from backlight.transforms.numerical_jacobians import (
    GradcheckError,
    analytical_jacobians,
    as_tuple,
    differentiable,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
    numerical_jacobians,
    numerical_jvp,
    side_by_side,
    unit_direction,
    vector_jacobian,
)

check_forward = function_later("backlight.transforms.forward_gradcheck", "check_forward")
check_forward_batches = function_later("backlight.transforms.forward_gradcheck", "check_forward_batches")

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]

FAST_FAILED_ALONE = (
    "Fast gradcheck failed but element-wise differences are small. This means that the test might've passed in "
    "slow_mode! Call gradcheck with `fast_mode=False`."
)

make_tensor = function_later("backlight.testing", "make_tensor")


class _Check(NamedTuple):
    """The function, its inputs and the tolerances of a check."""

    func: Callable
    inputs: tuple
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    check_undefined_grad: bool

    @property
    def wanted(self) -> list:
        """The inputs that require grad."""
        return differentiable(self.inputs)


def gradcheck(
    func: Callable,
    inputs: TensorState | Sequence,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the derivatives of `func` at `inputs` against finite differences.

        |analytical − numerical| ≤ atol + rtol · |numerical|      for each element of each Jacobian

    Of complex outputs the real and imaginary parts are checked one after the other; the gradient for a complex input
    is ∂f/∂Re x + i · ∂f/∂Im x.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: those that require grad should be float64 or complex128; the others are passed as they are.
        eps: the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise where a derivative is wrong, rather than return False.
        nondet_tol: how far two backward passes over the same graph may differ.
        check_undefined_grad: check that a missing gradient of an output counts as zeros.
        check_grad_dtypes: check that each gradient has the dtype of its input.
        check_batched_grad: check that `is_grads_batched` agrees with one backward a row.
        check_batched_forward_grad: check that vmap over tangents agrees with a loop over them.
        check_forward_ad: check forward mode too.
        check_backward_ad: check reverse mode.
        fast_mode: compare one random combination of rows and columns instead of full Jacobians; for complex inputs
            full Jacobians are compared all the same.

    Raises:
        GradcheckError: a derivative is wrong; the message names the output, the input and the element.
        ValueError: no input requires grad, or neither mode is to be checked.
    """
    if not (check_forward_ad or check_backward_ad):
        raise ValueProblem("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueProblem("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    check = _Check(func, as_tuple(inputs), eps, atol, rtol, nondet_tol, check_grad_dtypes, check_undefined_grad)
    _check_inputs(check.inputs)
    try:
        for part in _real_parts(check):
            _check_derivatives(part, fast_mode, check_backward_ad, check_forward_ad)
        if check_batched_forward_grad:
            check_forward_batches(check)
        if not check_backward_ad:
            return True
        check_zero_gradients(check)
        if check_batched_grad:
            check_batches(check)
        if check_undefined_grad:
            check_missing_gradients(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: TensorState | Sequence,
    grad_outputs: TensorState | Sequence | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the derivatives of the gradients of `func`, with respect to its inputs and to `grad_outputs`.

    Args:
        grad_outputs: the gradients of the outputs; random ones in [-1, 1) by default.
        gen_non_contig_grad_outputs: let the random ones be non-contiguous.
        check_fwd_over_rev: check the gradients' tangents.
        check_rev_over_rev: check the gradients' gradients.

    The other arguments, and what is raised, are those of `gradcheck`.
    """
    inputs = as_tuple(inputs)
    if grad_outputs is None:
        outputs = differentiable(func(*inputs))
        grad_outputs = [
            make_tensor(
                out.shape,
                dtype=out.dtype,
                low=-1,
                high=1,
                requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for out in outputs
        ]
    weights = as_tuple(grad_outputs)

    wanted = [isinstance(one, TensorState) and one._edge is not None for one in inputs]

    def gradients(*arguments):
        own = [one.requires_grad_() if required else one for one, required in zip(arguments, wanted)]
        outputs = differentiable(func(*own))
        found = gradients_of(outputs, differentiable(own), list(arguments[len(inputs) :]), None, True, True, False)
        return tuple(grad for grad in found if grad is not None)

    return gradcheck(
        gradients,
        (*inputs, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _check_inputs(inputs: tuple) -> None:
    for place, tensor in enumerate(inputs):
        if not isinstance(tensor, TensorState) or tensor._edge is None:
            continue
        data = np.asarray(tensor._data)
        if data.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{place} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                UserWarning,
                stacklevel=3,
            )
        if data.size and any(stride == 0 and size > 1 for stride, size in zip(data.strides, data.shape)):
            raise GraphError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not differentiable(inputs):
        raise ValueProblem(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


# --- derivatives -----------------------------------------------------------------------------------------------------


def _real_parts(check: _Check) -> list[_Check]:
    """Return checks of the imaginary and the real parts of complex outputs; the check itself if there are none."""
    if not any(isinstance(out, TensorState) and out._data.dtype.kind in "cW" for out in _outputs(check)):
        return [check]
    return [check._replace(func=_part_of(check.func, part)) for part in (imag, real)]


def _outputs(check: _Check) -> tuple:
    return as_tuple(check.func(*check.inputs))


def _part_of(func: Callable, part: Callable) -> Callable:
    """Return a function that gives one part of the complex outputs of another."""

    def parts(*inputs):
        found = as_tuple(func(*inputs))
        complex = [isinstance(out, TensorState) and out._data.dtype.kind in "cW" for out in found]
        return tuple(part(out) if split else out for out, split in zip(found, complex))

    return parts


def _check_derivatives(check: _Check, fast: bool, backward: bool, forward: bool) -> None:
    everything = list(as_tuple(check.func(*check.inputs)))
    for out in everything:
        if not isinstance(out, TensorState):
            kind = type(out).__name__
            raise AttributeError(f"'{kind}' object has no attribute 'requires_grad'; the function must return tensors")
    fast = fast and not any(one._data.dtype.kind in "cW" for one in check.wanted)
    compare = _compare_products if fast else _compare_jacobians
    if not any(out._edge is not None for out in everything):
        for tensor in check.wanted:
            if any(np.any(one) for one in numerical_jacobians(check.func, check.inputs, tensor, check.eps)):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if backward:
        compare(check, everything)
    if forward:
        check_forward(check, everything, fast)


def _compare_jacobians(check: _Check, everything: list) -> None:
    """Compare every element of every Jacobian."""
    numerical = [numerical_jacobians(check.func, check.inputs, tensor, check.eps) for tensor in check.wanted]
    places = [place for place, out in enumerate(everything) if out._edge is not None]
    for number, place in enumerate(places):
        out = everything[place]
        _check_attributes(check, out)
        analytical = analytical_jacobians(out, check.wanted)
        for i, (found, measured) in enumerate(zip(analytical, (one[place] for one in numerical))):
            _compare(check, out, number, i, found, measured)
        _check_repeatable(check, analytical, analytical_jacobians(out, check.wanted))


def _compare(check: _Check, out: TensorState, number: int, i: int, found: np.ndarray, measured: np.ndarray) -> None:
    """Raise if two Jacobians differ; the message says where."""
    wrong = ~np.isclose(found, measured, rtol=check.rtol, atol=check.atol)
    if wrong.any():
        raise GradcheckError(
            f"Jacobian mismatch for output {number} with respect to input {i},\n{side_by_side(measured, found)}\n"
            f"{_element(check, out, i, wrong, found, measured)}"
        )


def _element(
    check: _Check, out: TensorState, i: int, wrong: np.ndarray, found: np.ndarray, measured: np.ndarray
) -> str:
    """Describe the worst wrong element of a Jacobian."""
    distance = np.where(wrong, np.nan_to_num(np.abs(found - measured), nan=np.inf), -1)
    row, column = np.unravel_index(np.argmax(distance), distance.shape)
    varied = check.wanted[i]
    argument = next(place for place, one in enumerate(check.inputs) if one is varied)
    made = f", made by {out.grad_fn.name()} at {out.grad_fn.where}" if out.grad_fn is not None else ""
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong, the worst is ∂output{_index(out, row)}/"
        f"∂input{_index(varied, column)}: finite differences give {measured[row, column]:.8g}, backward gives "
        f"{found[row, column]:.8g} (input {i} is argument {argument}, of shape {list(varied._data.shape)}; the output "
        f"has shape {list(out._data.shape)}{made})"
    )


def _index(tensor: TensorState, flat: int) -> str:
    return (
        "".join(f"[{int(place)}]" for place in np.unravel_index(flat, tensor._data.shape)) if tensor._data.ndim else ""
    )


def _check_attributes(check: _Check, out: TensorState) -> None:
    """Raise if the shape or dtype of a gradient differs from its input's."""
    weight = np.ones(out._data.shape, out._data.dtype)
    for i, (tensor, grad) in enumerate(zip(check.wanted, vector_jacobian(out, check.wanted, weight))):
        if grad is None:
            continue
        if grad.shape != tensor._data.shape:
            raise GradcheckError(
                f"Analytical gradient has incorrect size: {list(grad.shape)} for input {i} of shape "
                f"{list(tensor._data.shape)}"
            )
        if check.check_grad_dtypes and grad.dtype != tensor._data.dtype:
            raise GradcheckError(
                f"Gradient has dtype mismatch: {grad.dtype} for input {i}, which is {tensor._data.dtype}"
            )


def _check_repeatable(check: _Check, first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> None:
    for i, (one, other) in enumerate(zip(first, second)):
        apart = np.abs(one - other).max(initial=0)
        if apart > check.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient.The tolerance for "
                f"nondeterminism was {check.nondet_tol}.\nThe gradients of input {i} are up to {apart:g} apart"
            )


def _compare_products(check: _Check, everything: list) -> None:
    """Compare vᵀ J u, for one random v and u per Jacobian, instead of all of J."""
    rng = np.random.default_rng(0)
    columns = [unit_direction(rng, tensor) for tensor in check.wanted]
    numerical = [numerical_jvp(check.func, check.inputs, t, u, check.eps) for t, u in zip(check.wanted, columns)]
    places = [place for place, out in enumerate(everything) if out._edge is not None]
    for number, place in enumerate(places):
        out = everything[place]
        _check_attributes(check, out)
        v = unit_direction(rng, out)
        pulled, again = (_present(vector_jacobian(out, check.wanted, v.astype(out._data.dtype))) for _ in range(2))
        for i, u in enumerate(columns):
            measured, found = np.sum(v.reshape(-1) * numerical[i][place]), np.sum(u * pulled[i])
            tolerance = check.atol * u.sum() * v.sum() + check.rtol * abs(measured)
            if not abs(found - measured) <= tolerance:
                _explain_fast_mismatch(check, out, number, place, i, found, measured)
        _check_repeatable(check, pulled, again)


def _present(grads: Sequence) -> list:
    return [np.zeros(()) if grad is None else grad for grad in grads]


def _explain_fast_mismatch(check, out, number, place, i, found, measured):
    """Raise for a failed fast check, after computing the full Jacobian."""
    full = analytical_jacobians(out, check.wanted)[i]
    finite = numerical_jacobians(check.func, check.inputs, check.wanted[i], check.eps)[place]
    head = (
        f"Jacobian mismatch for output {number} with respect to input {i},\n{side_by_side(measured, found)}"
        "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode.\n"
    )
    wrong = ~np.isclose(full, finite, rtol=check.rtol, atol=check.atol)
    raise GradcheckError(head + (_element(check, out, i, wrong, full, finite) if wrong.any() else FAST_FAILED_ALONE))
