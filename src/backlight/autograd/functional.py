"""Derivatives of functions as values: vjp, jvp, Jacobians, Hessians and their products with vectors.

All but Jacobians by forward mode are made of backward passes. A product J·u, which forward mode would give at once,
comes from the double backward trick: vᵀJ is linear in v, so that its own derivative for v along u is J·u.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.arguments.checked import with_checks
from backlight.engine.grad_mode import enable_grad
from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.tensor.factories import zeros_like
from backlight.tensor.tensor import Tensor
from backlight.transforms.forward_jacobian import (
    CONSTANT_OUTPUT,
    INDEPENDENT_ENTRY,
    INDEPENDENT_GRADIENT,
    INDEPENDENT_HESSIAN,
    INDEPENDENT_JACOBIAN,
    INDEPENDENT_OUTPUT,
    INDEPENDENT_SLOPE,
    ONE_INPUT,
    ONE_OUTPUT,
    check_row,
    filled,
    jacobians_by_columns,
    refuse,
    require_grad,
)
from backlight.transforms.vmap.batched_gradients import gradients_of_batch

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]


def vjp(func: Callable, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False):
    """Return (outputs of `func`, vᵀJ): the gradient of its outputs weighted by `v`, for each input.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: shaped as the outputs; may be left out for one output of one element.
        create_graph: let both results be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.
    """
    call = _call_function(func, _prepare_inputs(inputs, create_graph, "vjp"), strict, "vjp")
    weights = _vector(v, call.outputs, call.several_outputs, create_graph, "vjp", ONE_OUTPUT)
    found = _gradients(call.outputs, call.inputs, weights, create_graph)
    return call.finish(filled(found, call.inputs, strict, create_graph, INDEPENDENT_OUTPUT), call.several_inputs)


def jvp(func: Callable, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False):
    """Return (outputs of `func`, J·v): how its outputs change when the inputs move along `v`.

    The arguments are those of `vjp`; `v` is shaped as the inputs.
    """
    start = _prepare_inputs(inputs, create_graph, "jvp")
    direction = _vector(v, start.inputs, start.several, create_graph, "jvp", ONE_INPUT)
    call = _call_function(func, start, strict, "jvp")
    moved = _double_backward(call.outputs, call.inputs, call.outputs, direction, create_graph, strict)
    return call.finish(filled(moved, call.outputs, strict, create_graph, INDEPENDENT_ENTRY), call.several_outputs)


def jacobian(
    func: Callable,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
):
    """Return ∂output/∂input, of the output's shape followed by the input's.

    For several inputs the result is a tuple with one Jacobian each; for several outputs a tuple of these.

    Args:
        vectorize: compute all rows, or columns, at once by vmap, instead of one after another.
        strategy: "reverse-mode" runs backward for each element of the outputs, "forward-mode" computes a jvp for each
            element of the inputs, all at once: less work where these are fewer. It needs `vectorize`, and knows neither
            `strict` nor `create_graph`.

    The other arguments are those of `vjp`.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            f'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode". Got '
            f"{strategy!r}"
        )
    if strategy == "forward-mode":
        refuse(strict, create_graph, vectorize)
        return _by_columns(func, inputs)
    if strict and vectorize:
        raise GraphError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    call = _call_function(func, _prepare_inputs(inputs, create_graph, "jacobian"), strict, "jacobian")
    if vectorize:
        rows = [_jacobian_at_once(out, call.inputs, create_graph) for out in call.outputs]
    else:
        rows = [_jacobian_of(out, number, call.inputs, create_graph, strict) for number, out in enumerate(call.outputs)]
    parts = [_unwrap_single(_detach_unless_recorded(row, create_graph), call.several_inputs) for row in rows]
    return _unwrap_single(tuple(parts), call.several_outputs)


def _by_columns(func: Callable, inputs: Tensors):
    several, inputs = _listed(inputs, "inputs", "jacobian")
    several_outputs = []

    def outputs(*values):
        several, outs = _listed(func(*values), "outputs of the user-provided function", "jacobian")
        several_outputs[:] = [several]
        return outs

    rows = [
        list(_detach_unless_recorded(tuple(row), False))
        for row in jacobians_by_columns(outputs, _own(inputs, False, False))
    ]
    found = rows if several else tuple([row[0] for row in rows])  # lists and tuples as in PyTorch
    return _unwrap_single(found, *several_outputs)


def hessian(
    func: Callable,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):
    """Return the second derivatives of a function of one element: for inputs i and j, ∂²f/∂iₐ∂j_b.

    For several inputs the result is a tuple of tuples. The arguments are those of `jacobian`.
    """
    several, inputs = _listed(inputs, "inputs", "hessian")

    def gradients(*values):
        if outer_jacobian_strategy == "forward-mode":  # or else they would be detached, and lose their tangents
            values = tuple(value.requires_grad_() for value in values)
        found = jacobian(
            lambda *args: _one_element(func(*args), "hessian", strict).squeeze(), values, create_graph=True
        )
        require_grad(found, strict, INDEPENDENT_SLOPE)
        return found

    found = jacobian(gradients, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


def vhp(func: Callable, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False):
    """Return (output of `func`, vᵀH): the product of a vector, shaped as the inputs, and the Hessian.

    The arguments are those of `vjp`; the function has one element.
    """
    start = _prepare_inputs(inputs, create_graph, "vhp")
    weights = _vector(v, start.inputs, start.several, create_graph, "vhp", ONE_INPUT)
    call = _call_function(func, start, strict, "vhp")
    gradients = _first_derivatives(call, "vhp", strict)
    found = _gradients(gradients, call.inputs, weights, create_graph)
    return call.finish(filled(found, call.inputs, strict, create_graph, INDEPENDENT_JACOBIAN), call.several_inputs)


def hvp(func: Callable, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False):
    """Return (output of `func`, H·v). Where second derivatives are continuous, `vhp` gives the same with less work.

    The arguments are those of `vjp`; the function has one element and `v` is shaped as the inputs.
    """
    start = _prepare_inputs(inputs, create_graph, "hvp")
    direction = _vector(v, start.inputs, start.several, create_graph, "hvp", ONE_INPUT)
    call = _call_function(func, start, strict, "hvp")
    gradients = _first_derivatives(call, "hvp", strict)
    found = _double_backward(gradients, call.inputs, call.inputs, direction, create_graph, strict=False)
    return call.finish(filled(found, call.inputs, strict, create_graph, INDEPENDENT_HESSIAN), call.several_inputs)


@dataclass(frozen=True)
class _Inputs:
    """Aliases of the inputs, distinct from tensors that the user's function closes over."""

    inputs: tuple
    several: bool
    create_graph: bool


@dataclass(frozen=True)
class _Call:
    """One call of the user's function on aliases of the inputs."""

    inputs: tuple
    outputs: tuple
    several_inputs: bool
    several_outputs: bool
    create_graph: bool

    def finish(self, derivative: tuple, several: bool) -> tuple:
        """Return the outputs and the derivative in the structure that the user passed."""
        outputs = _unwrap_single(_detach_unless_recorded(self.outputs, self.create_graph), self.several_outputs)
        return outputs, _unwrap_single(_detach_unless_recorded(derivative, self.create_graph), several)


def _prepare_inputs(inputs: Tensors, create_graph: bool, name: str) -> _Inputs:
    several, inputs = _listed(inputs, "inputs", name)
    with enable_grad():
        return _Inputs(_own(inputs, create_graph, True), several, create_graph)


def _call_function(func: Callable, start: _Inputs, strict: bool, name: str) -> _Call:
    with enable_grad():
        several, outputs = _listed(func(*start.inputs), "outputs of the user-provided function", name)
    require_grad(outputs, strict, CONSTANT_OUTPUT)
    return _Call(start.inputs, outputs, start.several, several, start.create_graph)


def _listed(values, what: str, name: str) -> tuple[bool, tuple]:
    """Return whether a tuple was given, and the values as a tuple."""
    several = isinstance(values, tuple)
    for place, value in enumerate(values if several else (values,)):
        if not isinstance(value, TensorState):
            which = f"value at index {place}" if several else f"given {what}"
            raise ArgumentError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(value)}."
            )
    return several, values if several else (values,)


def _own(tensors: tuple, create_graph: bool, requires_grad: bool) -> tuple:
    """Return aliases of tensors; part of the user's graph only under create_graph."""
    return tuple(
        tensor.view_as(tensor)
        if create_graph and tensor._edge is not None
        else tensor.detach().requires_grad_(requires_grad)
        for tensor in tensors
    )


def _unwrap_single(values: tuple, several: bool):
    return values if several else values[0]


def _detach_unless_recorded(values: tuple, create_graph: bool) -> tuple:
    return values if create_graph else tuple(value.detach() for value in values)


def _vector(v: Tensors | None, like: tuple, several: bool, create_graph: bool, name: str, message: str):
    """Return the given vector as a tuple shaped as `like`, or None if it may be left out."""
    if v is None:
        if len(like) != 1 or like[0]._data.size != 1:
            raise GraphError(message)
        return (wrap(np.ones(like[0]._data.shape, like[0]._data.dtype)),)
    _, listed = _listed(v, "v", name)
    if len(listed) != len(like):
        raise GraphError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(listed)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for place, (one, other) in enumerate(zip(listed, like)):
        if tuple(one._data.shape) != tuple(other._data.shape):
            entry = f"Entry {place} in " if several else ""
            raise ShapeError(f"{entry}v has invalid size: should be {other.shape} but got {one.shape}.")
    return _own(listed, create_graph, False)


def _gradients(outputs: tuple, inputs: tuple, weights: tuple, create_graph: bool, keep: bool | None = None) -> tuple:
    """Return the gradients, None where an output does not depend on an input."""
    pairs = [(out, weight) for out, weight in zip(outputs, weights) if out is not None and out._edge is not None]
    if not pairs:
        return (None,) * len(inputs)
    roots, root_weights = zip(*pairs)
    return gradients_of(list(roots), list(inputs), list(root_weights), keep, create_graph, True, False)


def _double_backward(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    like: Sequence[Tensor],
    direction: Sequence[Tensor],
    create_graph: bool,
    strict: bool,
) -> tuple:
    """Return J·direction for each output, shaped as `like`: the derivative of v ↦ vᵀJ, taken at v = 0."""
    probes = tuple(zeros_like(one, requires_grad=True) for one in like)
    with enable_grad():
        pulled = _gradients(outputs, inputs, probes, True)
    require_grad(pulled, strict, INDEPENDENT_GRADIENT)
    return _gradients(pulled, probes, direction, create_graph)


def _first_derivatives(call: _Call, name: str, strict: bool) -> tuple:
    """Return the first derivatives of a function of one element."""
    out = _one_element(call.outputs if call.several_outputs else call.outputs[0], name, strict)
    with enable_grad():
        found = _gradients((out,), call.inputs, (None,), True)
    require_grad(found, strict, INDEPENDENT_SLOPE)
    return found


def _one_element(out: Tensors, name: str, strict: bool):
    several, outputs = _listed(out, "outputs of the user-provided function", name)
    require_grad(outputs, strict, CONSTANT_OUTPUT)
    if several:
        raise GraphError(f"The function given to {name} should return a single Tensor")
    if out._data.size != 1:
        raise GraphError(f"The Tensor returned by the function given to {name} should contain a single element")
    return out


def _jacobian_of(out: Tensor, number: int, inputs: tuple, create_graph: bool, strict: bool) -> tuple:
    """Return the Jacobian of one output for each input, row by row."""
    rows = []
    for row in range(out._data.size):
        weight = np.zeros(out._data.shape, out._data.dtype)
        weight.reshape(-1)[row] = 1
        found = _gradients((out,), inputs, (wrap(weight),), create_graph, keep=True)
        if strict:
            check_row(found, number, create_graph)
        rows.append([zeros_like(x) if grad is None else grad for grad, x in zip(found, inputs)])
    return tuple(_stacked(out, x, [row[place] for row in rows], create_graph) for place, x in enumerate(inputs))


def _jacobian_at_once(out: Tensor, inputs: tuple, create_graph: bool) -> tuple:
    """Return the Jacobian of one output for each input, all rows in one backward pass."""
    shape = out._data.shape
    found = [None] * len(inputs)
    if out._edge is not None and out._data.size:
        unit = wrap(np.eye(out._data.size, dtype=out._data.dtype).reshape((-1, *shape)))
        found = gradients_of_batch([out], list(inputs), [unit], True, create_graph, True, False)
    return tuple(
        wrap(np.zeros((*shape, *x._data.shape), x._data.dtype))
        if grad is None
        else grad.reshape((*shape, *x._data.shape))
        for grad, x in zip(found, inputs)
    )


def _stacked(out: Tensor, x: Tensor, rows: list, create_graph: bool):
    shape = (*out._data.shape, *x._data.shape)
    if create_graph and rows:
        return TENSOR_OPS.stack(rows, 0).view(shape)
    return wrap(np.array([row._data for row in rows], x._data.dtype).reshape(shape))


globals().update(with_checks(globals(), __all__, __name__))
