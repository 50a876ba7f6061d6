"""Run a node in anomaly mode, in the Python pass: run it, check its gradients, free it."""

from collections.abc import Sequence

from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.forward_traceback import note_parents
from backlight.engine.hook_calls import call_posthooks
from backlight.engine.node import Node, next_sequence
from backlight.engine.tensor_state import plain
from backlight.kernels.reduction.summaries import nonfinite_kinds
from backlight.system.lazy_import import function_later

# They raise the error: imported only when there is something to report.
nonfinite_node = function_later("backlight.dispatch.anomaly_report", "nonfinite_node")
nonfinite_op = function_later("backlight.dispatch.anomaly_report", "nonfinite_op")


def checked_gradients(backward_pass, node: Node, grad, edges):
    """Return a node's gradients, checked after its hooks, as PyTorch does, and before it is freed.

    Args:
        backward_pass: remembers the node that first made an infinity of a finite gradient.

    Raises:
        AnomalyError: they contain NaN, or infinity if that is checked.
    """
    since = next_sequence()
    grads = node.backward_graph(grad, edges) if backward_pass.on_tensors else node.backward(grad, edges, True)
    if backward_pass.on_tensors:
        note_parents(node, grads, since)
    if node.extra is not None and node.extra.posthooks:
        grads = call_posthooks(node, grads, grad, backward_pass.on_tensors, backward_pass.observed)
    found = _nonfinite_in(grads)
    if found & anomaly.wanted:
        nonfinite_node(backward_pass.roots, node, grad, grads, backward_pass.first_infinite)
    if (
        found
        and backward_pass.first_infinite is None
        and not _nonfinite_in(grad if isinstance(grad, (list, tuple)) else (grad,))
    ):
        backward_pass.first_infinite = node
    if not backward_pass.retain_graph:
        node.free()
    if backward_pass.observed is not None:
        backward_pass.observed.ran(node, grad, grads, not backward_pass.retain_graph)
    return grads


def _nonfinite_in(grads: Sequence) -> int:
    found = 0
    for one in grads:
        if one is not None:
            found |= nonfinite_kinds(plain(one))
    return found
