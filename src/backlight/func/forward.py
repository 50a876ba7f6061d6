"""Forward mode as transforms: `jvp`, and `linearize`, which keeps a function's linear part for many tangents."""

from collections.abc import Callable, Sequence

from backlight.autograd.forward_ad import dual_at, unpacked_at
from backlight.codegen.forward_mode import Level, level
from backlight.engine.mutation_checks import Transform
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.func.arguments import Argnums, replace_arguments, require_output, select_arguments, with_aux
from backlight.func.reverse import recorded_vjp
from backlight.tensor.factories import zeros_like
from backlight.tensor.tensor import Tensor
from backlight.transforms.pytrees import tree_flatten, tree_leaves, tree_map, tree_unflatten
from backlight.transforms.vmap.batched_gradients import RecordedInputs, without_history

JVP = "jvp(f, primals, tangents)"


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Return the outputs of `func` and J · tangents: how they change when the inputs move along the tangents.

    Args:
        primals: the inputs, a tuple.
        tangents: shaped as the inputs.
        strict: raise where an output does not depend on the inputs, instead of giving zeros.
        has_aux: `func` returns (outputs, aux), and `jvp` (outputs, tangents of outputs, aux).

    Raises:
        RuntimeError: primals are no tuple, or tangents do not fit.

    >>> import backlight as torch
    >>> jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    with level() as own:
        output, linear_part, aux = jvp_at_level(own, func, primals, tangents, None, strict, has_aux)
    return (output, linear_part, aux) if has_aux else (output, linear_part)


def jvp_at_level(
    own: Level, func: Callable, primals: tuple, tangents: object, argnums: Argnums | None, strict: bool, has_aux: bool
) -> tuple:
    """Return outputs, their tangents, and aux; tangents are of the chosen arguments, of all for None."""
    if not isinstance(primals, tuple):
        raise GraphError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = tree_flatten(primals if argnums is None else select_arguments(primals, argnums))
    directions, given_spec = tree_flatten(tangents)
    if spec != given_spec:
        raise GraphError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{given_spec}"
        )
    _require_tensors(leaves, "primals")
    _require_tensors(directions, "tangents")
    duals = tree_unflatten([dual_at(own, leaf, one) for leaf, one in zip(leaves, directions)], spec)
    args = duals if argnums is None else replace_arguments(primals, argnums, duals)
    with Transform([*tree_leaves(args), *leaves, *directions]):
        output = func(*args)
    output, aux = with_aux(output, has_aux, JVP)
    outputs, out_spec = tree_flatten(output)
    require_output(outputs, JVP)
    pairs = [_split(own, one, strict) for one in outputs]
    aux = tree_map(lambda one: unpacked_at(own, one)[0] if isinstance(one, TensorState) else one, aux)
    values, linear_part = zip(*pairs)
    return tree_unflatten(values, out_spec), tree_unflatten(linear_part, out_spec), aux


def _require_tensors(leaves: Sequence, name: str) -> None:
    if not leaves:
        raise GraphError(f"{JVP}: Expected {name} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, TensorState):
            raise GraphError(f"{JVP}: Expected {name} to only contain Tensors, got {type(leaf)}")


def _split(own: Level, output: Tensor, strict: bool) -> tuple:
    value, tangent = unpacked_at(own, output)
    if tangent is None:
        if strict:
            raise GraphError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        tangent = zeros_like(value)
    return value, tangent


def linearize(func: Callable, *primals) -> tuple:
    """Return the outputs of `func` and a function that computes J · tangents, without calling `func` again.

    vᵀJ is linear in v, and its own derivative for v along the tangents is J · tangents: the backward of the function is
    recorded once, and each call differentiates it.

    Raises:
        RuntimeError: the tangents given later do not fit the primals.
    """
    leaves, spec = tree_flatten(primals)
    output, backward, _ = recorded_vjp(func, primals, None, False, checked=False)
    outputs, out_spec = tree_flatten(output)
    recorded = RecordedInputs([without_history(zeros_like(one)) for one in outputs])
    gradients, _ = tree_flatten(backward(tree_unflatten(recorded.given, out_spec), True, True))
    shapes = [(one.shape, one.dtype) for one in leaves]

    def linear_part(*tangents):
        directions, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise GraphError(f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}")
        for place, (one, (shape, kind)) in enumerate(zip(directions, shapes)):
            for what, found, wanted in (("shape", one.shape, shape), ("dtype", one.dtype, kind)):
                if found != wanted:
                    raise GraphError(
                        f"tangent:{place} with {what} {found} in flattened pytree doesn't match the {what} {wanted} of "
                        "the corresponding primal."
                    )
        return tree_unflatten(recorded.gradients(gradients, directions, retain_graph=True), out_spec)

    return output, linear_part
