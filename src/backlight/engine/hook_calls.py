"""Call hooks during a backward: their arguments, their return values, their order.

NOTE [Order of hooks]
For one node: hooks of its output tensors, then gradients that `retain_grad` keeps, then the node's prehooks, then the
node, then its posthooks. For a leaf: its own hooks, the prehooks of its AccumulateGrad, `.grad` is written,
post-accumulate hooks, the posthooks of its AccumulateGrad.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence

from backlight.dispatch.observed_pass import ObservedRun
from backlight.engine.accumulate_grad import accumulate_retained_grad
from backlight.engine.hooks import HookDict, RemovableHandle
from backlight.engine.node import Edge, Gradients, Node, extra_of, node_and_number
from backlight.engine.tensor_state import Gradient, TensorState, edge_of, wrap_gradient
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.kernels.sparse_array import is_sparse


def register_tensor_hook(tensor: TensorState, hook: Callable) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of `tensor`, which requires grad, is known."""
    node, number = node_and_number(edge_of(tensor))
    if node.is_leaf_edge:
        if tensor._hooks is None:
            tensor._hooks = HookDict()
        return RemovableHandle(tensor._hooks, hook)
    return RemovableHandle(extra_of(node).tensor_hooks, (number, hook))


def keep_gradient(tensor: TensorState, keep: bool = True) -> None:
    """Keep the gradient of a tensor that is no leaf, or stop keeping it."""
    node, number = node_and_number(tensor._edge)
    if keep:
        retain_gradient(tensor, tensor._edge)
    elif node.extra is not None:
        node.extra.retained.pop(number, None)
    tensor._retains_grad = keep


def retain_gradient(tensor: TensorState, edge: Edge) -> None:
    """Have the node at an edge that a tensor has, or will have, retain the tensor's gradient."""
    node, number = node_and_number(edge)
    extra_of(node).retained[number] = weakref.ref(tensor)


def call_output_hooks(node: Node, grad: Gradients, graph: bool, observed: ObservedRun | None = None):
    """Run the hooks of a node's output tensors, and store the gradients to retain."""
    extra = node.extra
    for number, hook in list(extra.tensor_hooks.values()):
        if node.outputs == 1:
            grad = call_tensor_hooks((hook,), grad, graph, observed, node)
        elif grad is None:
            call_tensor_hooks((hook,), None, graph, observed, node, number)
        else:
            grad[number] = call_tensor_hooks((hook,), grad[number], graph, observed, node, number)
    for number, reference in list(extra.retained.items()):
        tensor = reference()
        arrived = grad if node.outputs == 1 or grad is None else grad[number]
        if tensor is not None and arrived is not None:
            present = None if observed is None else observed.grad_of(tensor)
            accumulate_retained_grad(tensor, arrived, graph)
            if observed is not None:
                observed.accumulated(tensor, arrived, present)
    return grad


def call_hooks_before(node: Node, grad: Gradients, graph: bool, observed: ObservedRun | None = None):
    """Run all hooks that come before a node: see NOTE [Order of hooks]."""
    grad = call_output_hooks(node, grad, graph, observed)
    return call_prehooks(node, grad, graph, observed) if node.extra.prehooks else grad


def call_tensor_hooks(
    hooks: Iterable[Callable],
    grad: Gradient | None,
    graph: bool,
    observed: ObservedRun | None = None,
    node: Node | None = None,
    number: int = 0,
):
    """Call each hook with the gradient, or None if none arrived; it may replace it.

    Args:
        node, number: the output whose gradient it is, for observers.
    """
    for hook in list(hooks):
        seen = grad if graph or grad is None else wrap_gradient(grad)
        answer = hook(seen) if observed is None else observed.call(hook, [(node, number)], (seen,), seen)
        if answer is None:
            if not graph and seen is not None:
                grad = seen._data
            continue
        check_answer(hook, answer, seen)
        grad = answer if graph else answer._data
    return grad


def check_answer(hook: Callable, answer: object, seen: TensorState | None) -> None:
    """Raise unless a hook's return value can replace the gradient that it was called with."""
    if not isinstance(answer, TensorState):
        raise ArgumentError(
            f"expected Variable, but hook returned '{type(answer).__name__}'; "
            "return a tensor of the gradient's shape, or None to leave it as it is"
        )
    name = getattr(hook, "__name__", type(hook).__name__)
    if seen is None:
        raise GraphError(
            f"can't replace a None gradient with a non-None value; no gradient came here, so hook '{name}' must return "
            "None"
        )
    if tuple(answer._data.shape) != tuple(seen._data.shape):
        raise ShapeError(
            f"hook '{name}' has changed the size of value: from {list(seen._data.shape)} to "
            f"{list(answer._data.shape)}; a hook must return a gradient of the shape that it was given"
        )
    if answer._data.dtype != seen._data.dtype or is_sparse(answer) != is_sparse(seen):
        raise ShapeError(
            f"hook '{name}' has changed the type of value (was {seen.type()} got {answer.type()}); return "
            f"{seen.dtype}, {seen.layout}"
        )


def _seen(grads: Sequence, graph: bool) -> tuple:
    """Return gradients as a node's hook gets them: tensors."""
    return tuple(grads) if graph else tuple(None if grad is None else wrap_gradient(grad) for grad in grads)


def _answered(hook: Callable, answer: Sequence, seen: tuple, graph: bool) -> list:
    """Return what a node's hook returned in the form that the pass carries."""
    if not isinstance(answer, tuple):
        raise ArgumentError(
            f"expected tuple, but hook returned '{type(answer).__name__}'; return a tuple of {len(seen)}, or None to "
            "leave them as they are"
        )
    if len(answer) != len(seen):
        name = getattr(hook, "__name__", type(hook).__name__)
        raise GraphError(
            f"hook '{name}' has returned an incorrect number of values (got {len(answer)}, but expected {len(seen)})"
        )
    for one, old in zip(answer, seen):
        if one is not None:
            check_answer(hook, one, old)
    return list(answer) if graph else [None if one is None else one._data for one in answer]


def call_prehooks(node: Node, grad: Gradients, graph: bool, observed: ObservedRun | None = None):
    """Call each prehook with the gradients of a node's outputs; it may replace them."""
    for hook in list(node.extra.prehooks.values()):
        seen = _seen((grad,) if node.outputs == 1 else grad or (None,) * node.outputs, graph)
        if observed is None:
            answer = hook(seen)
        else:
            answer = observed.call(hook, [(node, number) for number in range(node.outputs)], seen, seen)
        if answer is not None:
            replaced = _answered(hook, answer, seen, graph)
            grad = replaced[0] if node.outputs == 1 else replaced
    return grad


def call_post_accumulate_hooks(leaf: TensorState) -> None:
    """Call each hook after the leaf's `.grad` was written."""
    for hook in list(leaf._post_accumulate_hooks.values()):
        answer = hook(leaf)
        if answer is None or answer is leaf:
            continue
        if not isinstance(answer, TensorState):
            raise ArgumentError(f"expected Variable, but hook returned '{type(answer).__name__}'; return None")
        raise GraphError("Tensor post accumulate grad hooks should return None.")


def call_posthooks(node: Node, grads: Sequence, grad: Gradients, graph: bool, observed: ObservedRun | None = None):
    """Run posthooks: each gets (grad_inputs, grad_outputs) and may return other grad_inputs."""
    outputs = _seen((grad,) if node.outputs == 1 else grad or (None,) * node.outputs, graph)
    for hook in list(node.extra.posthooks.values()):
        seen = _seen(grads, graph)
        if observed is None:
            answer = hook(seen, outputs)
        else:
            answer = observed.call(hook, node.next_functions, seen, seen, outputs)
        if answer is not None:
            grads = _answered(hook, answer, seen, graph)
    return grads
