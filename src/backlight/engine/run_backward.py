"""Run a backward: check the roots and their gradients, choose the Python or the compiled pass, return the results.

NOTE [Arrays or tensors]
Without create_graph gradients are plain arrays and no tensor is made. With create_graph they are tensors, and every
node runs its rules on tensors, so that the pass is itself recorded. Where an interpreter must see the backward (NOTE
[Interpreters]), the pass runs on tensors too, without recording. All state of a run lives in the run: nodes are not
written to, and a backward may be started from a hook or from several threads.
"""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from backlight.dispatch import torch_function
from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.interpreters import backward_is_seen
from backlight.dispatch.observation import observers
from backlight.dispatch.observed_pass import ObservedRun, observed_run
from backlight.dispatch.torch_dispatch import torch_dispatch
from backlight.dispatch.torch_function import DisableTorchFunctionAndAutocast
from backlight.dtypes import from_numpy_dtype
from backlight.engine import graph_task
from backlight.engine.accumulate_grad import own_copy
from backlight.engine.backward_pass import BackwardPass
from backlight.engine.grad_mode import modes, set_recording
from backlight.engine.graph_task import GraphTask, counting, note_pass
from backlight.engine.hook_calls import keep_gradient
from backlight.engine.mutation_checks import refuse_backward
from backlight.engine.node import Edge, GradientEdge, edge_from_public, node_and_number, origin
from backlight.engine.tensor_state import LEAF, Gradient, TensorState, edge_of, wrap, wrap_gradient
from backlight.engine.threads import MOST_BACKWARDS, anywhere, depth, in_another_thread
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.kernels.native import core
from backlight.kernels.sparse_array import SparseArray
from backlight.kernels.state_blocks import Setting, silent_floats


def backward_from(
    tensors: Sequence,
    gradients: Sequence | None,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: TensorState | Sequence | None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of leaves, or of `inputs` where these are given."""
    refuse_backward()
    keep = create_graph if retain_graph is None else retain_graph
    wanted = None if inputs is None else [inputs] if isinstance(inputs, TensorState) else list(inputs)
    if wanted is not None and not wanted:
        raise GraphError("`inputs` argument to `backward()` cannot be empty. Leave it out to reach all leaves")
    roots, root_grads = root_edges(tensors, gradients, create_graph)
    if create_graph:
        _warn_of_cycle()
    if wanted is None:
        run(roots, root_grads, retain_graph=keep, create_graph=create_graph)
        return
    edges = [input_edge(tensor) for tensor in wanted]
    for tensor in wanted:
        if isinstance(tensor, TensorState) and not tensor.is_leaf:
            keep_gradient(tensor)
    run(roots, root_grads, retain_graph=keep, create_graph=create_graph, inputs=edges, accumulate_grad=True)


def gradients_of(
    outputs: Sequence,
    inputs: Sequence,
    grad_outputs: Sequence | None,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple:
    """Return the gradient of the outputs for each input; see autograd.grad."""
    keep = create_graph if retain_graph is None else retain_graph
    if not inputs:
        raise GraphError("`inputs` argument to `grad()` cannot be empty. Name what to differentiate for")
    roots, root_grads = root_edges(outputs, grad_outputs, create_graph)
    edges = [input_edge(tensor) for tensor in inputs]
    found = run(roots, root_grads, retain_graph=keep, create_graph=create_graph, inputs=edges)
    on_tensors = runs_on_tensors(create_graph)
    results, used = [], {id(grad) for grad in root_grads}
    for number, (tensor, grad) in enumerate(zip(inputs, found)):
        if grad is None and materialize_grads and isinstance(tensor, TensorState):
            grad = np.zeros(tensor._data.shape, tensor._data.dtype)
            grad = wrap(grad, LEAF if create_graph else None) if on_tensors else grad
        if grad is None and not allow_unused:
            raise GraphError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                f"allow_unused=True if this is the desired behavior.{_unused(tensor, outputs)}"
            )
        if grad is not None and not on_tensors and isinstance(tensor, TensorState):
            grad = grad if grad.dtype == tensor._data.dtype else grad.astype(tensor._data.dtype)
        if isinstance(grad, np.ndarray):
            if grad.base is not None or id(grad) in used:  # the memory may have another owner
                grad = own_copy(grad, grad)
            used.add(id(grad))
        elif grad.__class__ is SparseArray:
            grad = own_copy(grad)
        results.append(grad if grad is None or on_tensors else wrap_gradient(grad))
    return tuple(results)


def run(
    roots: list[Edge],
    root_grads: list[Gradient],
    *,
    retain_graph: bool,
    create_graph: bool,
    inputs: list[Edge] | None = None,
    accumulate_grad: bool = False,
    since: int = -1,
) -> list:
    """Run the graph backward from `roots`, and notify this thread's observers.

    Args and Returns: see `_run`.
    """
    if torch_function.overrides_state.on:
        with DisableTorchFunctionAndAutocast():
            return _run_observed(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad, since)
    return _run_observed(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad, since)


def _run_observed(
    roots: list[Edge],
    root_grads: list[Gradient],
    retain_graph: bool,
    create_graph: bool,
    inputs: list[Edge] | None,
    accumulate_grad: bool,
    since: int,
) -> list:
    if not observers.active and not counting.tasks:
        return _run(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad, None, since)
    observed = None
    if observers.active:
        observed = observed_run(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad)
    with Setting(graph_task.local, "task", GraphTask(partial=inputs is not None)), observed or nullcontext():
        try:
            return _run(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad, observed, since)
        except BaseException as problem:
            if observed is not None:
                observed.run.problem = problem
            raise


def _run(
    roots: list[Edge],
    root_grads: list[Gradient],
    retain_graph: bool,
    create_graph: bool,
    inputs: list[Edge] | None,
    accumulate_grad: bool,
    observed: ObservedRun | None,
    since: int,
) -> list:
    """Run the graph backward from `roots`.

    Args:
        roots: edges to start from.
        root_grads: the gradient of each root: arrays, or tensors with create_graph.
        retain_graph: leave what nodes saved in place, for another backward.
        create_graph: record the pass.
        inputs: edges whose gradients are wanted. Then only what leads to them runs.
        accumulate_grad: leaves among the inputs get their gradients in `.grad`, and nothing is returned.
        observed: notifies the observers of the run, if there are any.
        since: the sequence number of the oldest node that can lead to an input; older nodes are skipped.

    Returns:
        The gradient of each input (None where none arrived); an empty list without inputs.
    """
    nested = anywhere.backwards
    if nested:
        here = depth.here
        if here == MOST_BACKWARDS:
            args = roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad, observed, since
            return in_another_thread(_run, *args)
    previous = modes.requested
    try:  # NOTE [Interrupts]: all counting happens inside `try`, and only the last line of `finally` calls anything
        anywhere.backwards += 1
        if nested:
            depth.here = here + 1
        set_recording(create_graph)
        on_tensors = runs_on_tensors(create_graph)
        if on_tensors and not create_graph:
            root_grads = [grad if isinstance(grad, TensorState) else wrap(grad) for grad in root_grads]
        with silent_floats():
            since = since if inputs is None else max(since, _oldest(inputs))
            if core is not None and not on_tensors and not modes.inference:
                found = core.core_backward_pass(
                    roots, root_grads, retain_graph, observed, anomaly.wanted, inputs, accumulate_grad, since
                )
                if found is not None:
                    return found
            backward_pass = BackwardPass(retain_graph, on_tensors, observed, inputs, accumulate_grad)
            if counting.tasks:
                note_pass(backward_pass)
            return backward_pass.run(roots, root_grads, since)
    finally:
        anywhere.backwards -= 1
        if nested:
            depth.here = here
        set_recording(previous)


anomaly.backward = _run.__code__


def runs_on_tensors(create_graph: bool) -> bool:
    """Tell whether gradients are tensors in a run: it is recorded, or interpreters must see the ops that it calls."""
    return create_graph or backward_is_seen() or torch_dispatch.classes > 0


def _oldest(inputs: list[Edge]) -> int:
    """Return the sequence number of the oldest of the inputs' nodes: an edge always leads to what was made before.

    It is -1 if one of them is a leaf, which any node may lead to.
    """
    return min((-1 if edge.is_leaf_edge else node_and_number(edge)[0].sequence for edge in inputs), default=-1)


def input_edge(tensor: TensorState | GradientEdge):
    """Return the edge whose gradient is wanted.

    Raises:
        RuntimeError: this is no tensor, or one that does not require grad.
    """
    if isinstance(tensor, GradientEdge):
        return edge_from_public(tensor)
    if not isinstance(tensor, TensorState):
        raise GraphError(f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}")
    if tensor._edge is None:
        raise GraphError(
            "One of the differentiated Tensors does not require grad; call requires_grad_() on it before the "
            "computation"
        )
    return edge_of(tensor)


def root_edges(tensors: Sequence, gradients: Sequence | None, create_graph: bool) -> tuple[list, list]:
    """Return the edges to start from and their gradients (arrays, or tensors under create_graph).

    Raises:
        RuntimeError: a tensor does not require grad, or its gradient is missing or does not fit.
    """
    if gradients is None:
        gradients = [None] * len(tensors)
    if len(tensors) > len(gradients):  # PyTorch ignores what is left over
        raise GraphError(
            f"got {len(tensors)} tensors and {len(gradients)} gradients\n  Give one for each tensor, or None"
        )
    roots, root_grads = [], []
    for number, (tensor, gradient) in enumerate(zip(tensors, gradients)):
        if gradient is not None and not isinstance(gradient, TensorState):
            raise ArgumentError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
        if isinstance(tensor, GradientEdge):
            edge, gradient = edge_from_public(tensor), _gradient_of_edge(gradient)
        else:
            edge, gradient = _root_edge(tensor, gradient, number)
        roots.append(edge)
        root_grads.append(gradient if runs_on_tensors(create_graph) else gradient._data)
    return roots, root_grads


def _gradient_of_edge(gradient: TensorState | None):
    if gradient is None:
        raise GraphError(
            "grad can be implicitly created only for scalar outputs; a GradientEdge needs its gradient given"
        )
    return gradient


def _root_edge(tensor: TensorState, gradient: TensorState | None, number: int):
    """Return a tensor's edge and its gradient in its own dtype."""
    if not isinstance(tensor, TensorState):
        raise ArgumentError(f"Expected output to be a torch.Tensor, got {type(tensor).__name__}")
    gradient = _implied(tensor) if gradient is None else _matching(tensor, gradient, number)
    if tensor._edge is None:
        raise GraphError(
            f"element {number} of tensors does not require grad and does not have a grad_fn; it was made without "
            "recording: from tensors with requires_grad=False, under no_grad, or through .detach(), .item() or .data"
        )
    return edge_of(tensor), gradient


def _implied(tensor: TensorState):
    """Return a gradient of ones, for a tensor of one element."""
    data = tensor._data
    if tensor._edge is not None and data.size != 1:
        raise GraphError(
            f"grad can be implicitly created only for scalar outputs; this one has shape {list(data.shape)}: reduce it "
            "(.sum(), .mean()), or pass gradient= of that shape"
        )
    if tensor._edge is not None and data.dtype.kind in "cW":
        raise GraphError(
            "grad can be implicitly created only for real scalar outputs but got "
            f"{from_numpy_dtype(data.dtype)}; take .real or .abs() of it, or pass gradient="
        )
    one = data.dtype.type(1)
    if torch_dispatch.active:
        return torch_dispatch.ones_like(tensor)
    return wrap(np.full(data.shape, one) if data.ndim else one)


def _matching(tensor: TensorState, gradient: TensorState, number: int):
    """Return a given gradient in the tensor's dtype.

    Raises:
        RuntimeError: its shape is not the tensor's.
    """
    if tuple(gradient._data.shape) != tuple(tensor._data.shape):
        raise ShapeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a "
            f"shape of {tensor.shape}.{origin(tensor)}\n  Give a gradient of the output's shape"
        )
    given, own = gradient._data.dtype, tensor._data.dtype
    if (given.kind in "cW") != (own.kind in "cW"):
        raise GraphError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{number}] has a dtype of {from_numpy_dtype(given)} and output[{number}] has a dtype of "
            f"{from_numpy_dtype(own)}.{origin(tensor)}"
        )
    return gradient if given == own else gradient.to(tensor.dtype)


def _unused(tensor: TensorState | GradientEdge, outputs: Sequence) -> str:
    """Return what a message adds about an input that the graph of the outputs does not reach."""
    if not isinstance(tensor, TensorState):
        return ""
    if tensor.is_leaf:
        made = [origin(output) for output in outputs if isinstance(output, TensorState)]
        return f"\n  No op that led to the outputs took it.{made[0].replace('It was', 'They were') if made else ''}"
    return (
        f"{origin(tensor)}\n  The outputs were computed from another tensor: name that one, or compute them from this"
    )


def _warn_of_cycle() -> None:
    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak.",
        UserWarning,
        stacklevel=4,
    )
