"""Reverse mode as transforms of functions: `grad`, `value_and_grad`, `vjp`."""

import functools
from collections.abc import Callable
from contextlib import nullcontext

from backlight.engine.grad_mode import enable_grad
from backlight.engine.mutation_checks import Transform
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.func.arguments import (
    Argnums,
    replace_arguments,
    require_output,
    require_tensors,
    select_arguments,
    with_aux,
)
from backlight.ops.type_promotion import has_gradient
from backlight.transforms.pytrees import tree_flatten, tree_leaves, tree_map, tree_unflatten
from backlight.transforms.vmap.batched_gradients import RecordedInputs


def wraps_function(func: Callable):
    """Return a decorator that copies name and docstring of the function to a transformed function."""
    return functools.wraps(func, assigned=[name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(func, name)])


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of `func`, which returns a 0-d tensor.

        ∂func(args) / ∂args[argnums]

    Args:
        argnums: for which arguments; an int gives one gradient, a tuple a tuple of them. They may be nested tuples,
            lists and dicts of tensors, and so is the gradient then.
        has_aux: `func` returns (output, aux), and the new function (gradient, aux).

    Raises:
        RuntimeError: `func` returns something else.

    >>> import backlight as torch
    >>> grad(lambda x: x ** 3)(torch.tensor(2.0))
    tensor(12.)
    """

    @wraps_function(func)
    def gradient(*args, **kwargs):
        found, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of `func` and its value: (gradient, value), PyTorch's order.

    With `has_aux` the new function returns (gradient, (value, aux)). The arguments are those of `grad`.
    """

    @wraps_function(func)
    def gradient_and_value(*args, **kwargs):
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return gradient_and_value


def value_and_grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes (value, gradient): like `grad_and_value`, in the order of the name."""

    @wraps_function(func)
    def value_and_gradient(*args, **kwargs):
        return _grad_and_value(func, argnums, has_aux, args, kwargs)[::-1]

    return value_and_gradient


def _grad_and_value(func: Callable, argnums: Argnums, has_aux: bool, args: tuple, kwargs: dict) -> tuple:
    api = "grad_and_value(f)(*args)"
    leaves, spec = tree_flatten(select_arguments(args, argnums))
    require_tensors(leaves)
    recorded = RecordedInputs(leaves)
    args = replace_arguments(args, argnums, tree_unflatten(recorded.given, spec))
    with Transform(tree_leaves((args, kwargs)), recorded.given), enable_grad():
        output = func(*args, **kwargs)
    output, aux = with_aux(output, has_aux, api)
    if not isinstance(output, TensorState):
        raise GraphError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output._data.ndim:
        raise GraphError(
            f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {output._data.ndim} dims. Maybe "
            "you wanted to use the vjp or jacrev APIs instead?"
        )
    value = recorded.released(output)
    aux = tree_map(lambda one: recorded.released(one) if isinstance(one, TensorState) else one, aux)
    found = recorded.gradients([output], retain_graph=has_aux)
    recorded.close()
    return tree_unflatten(found, spec), (value, aux) if has_aux else value


def vjp(func: Callable, *primals, has_aux: bool = False) -> tuple:
    """Return the outputs of `func` and a function that computes vᵀJ for cotangents v, shaped as the outputs.

    The new function returns a tuple with a gradient for each of `primals`, and may be called several times.

    Args:
        has_aux: `func` returns (outputs, aux), and `vjp` (outputs, function, aux).

    Raises:
        RuntimeError: `func` returns something else than floating point tensors, or cotangents do not fit.
    """
    output, backward, aux = recorded_vjp(func, primals, None, has_aux)

    def of_primals(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        return backward(cotangents, retain_graph, create_graph)

    return (output, of_primals, aux) if has_aux else (output, of_primals)


def recorded_vjp(func: Callable, args: tuple, argnums: Argnums | None, has_aux: bool, checked: bool = True) -> tuple:
    """Return outputs, a function from cotangents to gradients for the chosen arguments (all for None), and aux.

    Args:
        checked: refuse writes to captured tensors.
    """
    leaves, spec = tree_flatten(args if argnums is None else select_arguments(args, argnums))
    require_tensors(leaves)
    recorded = RecordedInputs(leaves)
    given = tree_unflatten(recorded.given, spec)
    given = given if argnums is None else replace_arguments(args, argnums, given)
    with Transform(tree_leaves(given), recorded.given) if checked else nullcontext(), enable_grad():
        output = func(*given)
    output, aux = with_aux(output, has_aux, "vjp(f, *primals)")
    outputs, out_spec = tree_flatten(output)
    require_output(outputs, "vjp(f, *primals)")
    for one in outputs:
        if not has_gradient(one._data.dtype):
            raise GraphError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{one.dtype}"
            )

    def backward(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        weights, given_spec = tree_flatten(cotangents)
        if given_spec != out_spec:
            raise GraphError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given_spec}, primal output: {out_spec}"
            )
        found = recorded.gradients(outputs, weights, retain_graph=retain_graph, create_graph=create_graph)
        return tree_unflatten(found, spec)

    released = tree_unflatten([recorded.released(one) for one in outputs], out_spec)
    aux = tree_map(lambda one: recorded.released(one) if isinstance(one, TensorState) else one, aux)
    recorded.close()
    return released, backward, aux
