"""A node's turn in anomaly mode, where the compiled walk does not take it: run, looked at, freed."""

from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.forward_traceback import note_parents
from backlight.engine.hook_calls import after
from backlight.engine.node import next_sequence
from backlight.engine.tensor_state import plain
from backlight.kernels.reduction.summaries import oddities
from backlight.system.lazy_import import function_later

# They raise the error: imported only when there is something to report.
odd_node = function_later("backlight.dispatch.anomaly_report", "odd_node")
odd_op = function_later("backlight.dispatch.anomaly_report", "odd_op")


def checked_gradients(walk, node, grad, edges):
    """Return a node's gradients, looked at after its hooks, as PyTorch does, and before it is freed.

    Args:
        walk: the engine's, which remembers the node that first made an infinity of a finite gradient.

    Raises:
        AnomalyError: they hold what is looked for.
    """
    since = next_sequence()
    grads = node.backward_graph(grad, edges) if walk.graph else node.backward(grad, edges, True)
    if walk.graph:
        note_parents(node, grads, since)
    if node.extra is not None and node.extra.posthooks:
        grads = after(node, grads, grad, walk.graph, walk.observed)
    found = _oddities_of(grads)
    if found & anomaly.wanted:
        odd_node(walk.roots, node, grad, grads, walk.first_infinite)
    if found and walk.first_infinite is None and not _oddities_of(grad if isinstance(grad, (list, tuple)) else (grad,)):
        walk.first_infinite = node
    if not walk.keep:
        node.free()
    if walk.observed is not None:
        walk.observed.ran(node, grad, grads, not walk.keep)
    return grads


def _oddities_of(grads) -> int:
    found = 0
    for one in grads:
        if one is not None:
            found |= oddities(plain(one))
    return found
