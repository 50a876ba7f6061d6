"""Run one backward pass: choose the Python or the compiled one, on arrays or on tensors.

NOTE [One walk, two kinds of gradient]
Without create_graph gradients are plain arrays and no tensor is made. With create_graph they are tensors, and every
node runs its rules on tensors, so that the pass is itself recorded. Where an interpreter must see the backward (NOTE
[Interpreters]), the pass runs on tensors too, without recording. All state of a run lives in the run: nodes are not
written to, and a backward may be started from a hook or from several threads.
"""

from contextlib import nullcontext

from backlight.dispatch.anomaly_mode import anomaly, running
from backlight.dispatch.interpreters import backward_is_seen
from backlight.dispatch.observation import observers
from backlight.dispatch.observed_pass import observed_run
from backlight.engine import backward_tasks
from backlight.engine.backward_pass import BackwardPass
from backlight.engine.backward_tasks import Task, counting, note_pass
from backlight.engine.grad_mode import modes, set_recording
from backlight.engine.node import node_and_number
from backlight.engine.tensor_state import TensorState, wrap
from backlight.engine.threads import MOST_BACKWARDS, anywhere, depth, in_another_thread
from backlight.kernels.native import core
from backlight.kernels.state_blocks import Setting, silent_floats


def run(
    roots, root_grads, *, keep_graph: bool, create_graph: bool, inputs=None, into_grad: bool = False, since: int = -1
) -> list:
    """Run the graph backward from `roots`, and notify this thread's observers.

    Args and Returns: see `_run`.
    """
    if not observers.active and not counting.tasks:
        return _run(roots, root_grads, keep_graph, create_graph, inputs, into_grad, None, since)
    observed = None
    if observers.active:
        observed = observed_run(roots, root_grads, keep_graph, create_graph, inputs, into_grad)
    with Setting(backward_tasks.local, "task", Task(partial=inputs is not None)), observed or nullcontext():
        try:
            return _run(roots, root_grads, keep_graph, create_graph, inputs, into_grad, observed, since)
        except BaseException as problem:
            if observed is not None:
                observed.run.problem = problem
            raise


@running
def _run(roots, root_grads, keep_graph: bool, create_graph: bool, inputs, into_grad: bool, observed, since) -> list:
    """Run the graph backward from `roots`.

    Args:
        roots: edges to start from.
        root_grads: the gradient of each root: arrays, or tensors with create_graph.
        keep_graph: leave what nodes saved in place, for another backward.
        create_graph: record the pass.
        inputs: edges whose gradients are wanted. Then only what leads to them runs.
        into_grad: leaves among the inputs get their gradients in `.grad`, and nothing is returned.
        observed: notifies the observers of the run, if there are any.
        since: the sequence number of the oldest node that can lead to an input; older nodes are skipped.

    Returns:
        The gradient of each input (None where none arrived); an empty list without inputs.
    """
    nested = anywhere.backwards
    if nested:
        here = depth.here
        if here == MOST_BACKWARDS:
            args = roots, root_grads, keep_graph, create_graph, inputs, into_grad, observed, since
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
            if core is not None and not on_tensors:
                found = core.core_backward_pass(
                    roots, root_grads, keep_graph, observed, anomaly.wanted, inputs, into_grad, since
                )
                if found is not None:
                    return found
            backward_pass = BackwardPass(keep_graph, on_tensors, observed, roots)
            if counting.tasks:
                note_pass(backward_pass)
            order = backward_pass.collect(roots, since)
            if inputs is not None:
                backward_pass.restrict(order, roots, inputs, into_grad)
            if observed is not None:
                backward_pass.has_hooks = True  # leaves are written at the moment that hooks would see
            if backward_pass.has_hooks:
                backward_pass.count_deliveries(roots, order)
            backward_pass.start(roots, root_grads)
            backward_pass.run(order)
            return backward_pass.captured
    finally:
        anywhere.backwards -= 1
        if nested:
            depth.here = here
        set_recording(previous)


def runs_on_tensors(create_graph: bool) -> bool:
    """Tell whether gradients are tensors in a run: it is recorded, or interpreters must see the ops that it calls."""
    return create_graph or backward_is_seen()


def _oldest(inputs) -> int:
    """Return the sequence number of the oldest of the inputs' nodes: an edge always leads to what was made before.

    It is -1 if one of them is a leaf, which any node may lead to.
    """
    return min((-1 if edge.is_end else node_and_number(edge)[0].sequence for edge in inputs), default=-1)
