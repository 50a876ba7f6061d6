"""Where a node of a failed backward was made, for any error in anomaly mode: a warning, as PyTorch's, and a note."""

import linecache
import warnings
import weakref
from collections.abc import Sequence

from backlight.dispatch.anomaly_mode import anomaly
from backlight.engine.node import Node, node_and_number
from backlight.engine.tensor_state import TensorState
from backlight.errors import AnomalyError

_parents: weakref.WeakKeyDictionary[Node, Node] = weakref.WeakKeyDictionary()


def note_parents(node: Node, grads: Sequence, since: int) -> None:
    """Note the node for which a recorded backward made other nodes: those since a sequence number."""
    waiting = [grad._edge for grad in grads if isinstance(grad, TensorState) and grad._edge is not None]
    while waiting:
        made = node_and_number(waiting.pop())[0]
        if isinstance(made, Node) and made.sequence >= since and made not in _parents:
            _parents[made] = node
            waiting += [edge for edge in made.edges if edge is not None]


def warn_of(node: Node) -> list[str]:
    """Warn with the line of the forward that made the node that failed, as PyTorch does in anomaly mode.

    Returns:
        The texts: for the node, then for the nodes that it was made for by a recorded backward.
    """
    text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{_traceback(node)}"
    warnings.warn(text, UserWarning, stacklevel=2)
    texts = [text]
    parent = _parents.get(node)
    while parent is not None:
        text = (
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{_traceback(parent)}"
        )
        warnings.warn(text, UserWarning, stacklevel=2)
        texts.append(text.strip())
        parent = _parents.get(parent)
    return [one.rstrip("\n") for one in texts]


def _traceback(node: Node) -> str:
    filename, number = node.line
    source = linecache.getline(filename, number).strip()
    return f'  File "{filename}", line {number}, in {node.code.co_name}\n' + (f"    {source}\n" if source else "")


def say_where(problem: Exception, node) -> None:
    """Add to an exception which node was running and which line made it."""
    known = any("raised while running" in note for note in getattr(problem, "__notes__", ()))
    if anomaly.enabled:
        texts = warn_of(node)
        if not known:
            for text in texts[isinstance(problem, AnomalyError) :]:  # which says where its node was made
                problem.add_note(text)
    if not known and not isinstance(problem, AnomalyError):
        problem.add_note(f"raised while running {node.name()}, made at {node.where}")
