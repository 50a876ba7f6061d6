"""Masks: −inf that was put into scores so that a softmax gives these places no weight. It is meant, and no alarm."""

from collections.abc import Sequence

from backlight.lens.pictures.boxes import is_plumbing
from backlight.lens.pictures.labels import name_of
from backlight.lens.records.nodes import OP, Node, Summary, users_of

MASKING = {"masked_fill", "where", "add", "sub", "masked_scatter", "index_put", "index_fill", "scatter", "copy_slices"}
PASSING = {"mul", "div", "cat", "stack", "slice", "select", "index", "to_copy", "split"}
NORMALISING = {"softmax", "safe_softmax", "logsumexp", "exp"}  # finite of −inf, NaN or inf of +inf


def masked(nodes: Sequence[Node]) -> set[int]:
    """Return the ids of nodes whose infinite values are a mask.

    They were put there by an op that masks, there is no NaN beside them, and all that reads them normalises them away:
    a softmax of −inf is 0, one of +inf would be NaN, so that a finite result proves the sign. The log of a softmax
    keeps its −inf, and is a mask as well where its input is one.
    """
    users = users_of(nodes)
    kept: set[int] = set()
    for node in reversed(nodes):  # users before what they read
        if _infinite(node) and _put_or_passed_on(node) and users[node.id]:
            if all(user in kept or _normalises(nodes[user]) for user in users[node.id]):
                kept.add(node.id)
    found: set[int] = set()
    for node in nodes:
        dirty = [one for one in node.inputs if _broken(nodes[one])]
        put_here = not dirty and name_of(node.type) in MASKING
        log_of_masked = name_of(node.type) == "log_softmax" and _infinite(node)
        passed_on = dirty and all(one in found for one in dirty) and (node.id in kept or log_of_masked)
        if passed_on or (put_here and node.id in kept):
            found.add(node.id)
    return found


def _put_or_passed_on(node: Node) -> bool:
    return is_plumbing(node) or name_of(node.type) in MASKING | PASSING


def _normalises(node: Node) -> bool:
    name = name_of(node.type)
    if name == "log_softmax":
        return bool(node.outputs) and not any(one.nans for one in node.outputs)
    return name in NORMALISING and bool(node.outputs) and not _broken(node)


def _infinite(node: Node) -> bool:
    return node.kind == OP and any(one.infs for one in node.outputs) and not any(one.nans for one in node.outputs)


def _broken(node: Node) -> bool:
    return any(map(_nonfinite, node.outputs))


def _nonfinite(summary: Summary) -> bool:
    return bool(summary.nans or summary.infs)
