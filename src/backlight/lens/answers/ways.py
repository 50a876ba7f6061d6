"""Paths through a recorded graph: from a loss to a tensor, node by node, with the gradients along them."""

from pathlib import Path

from backlight.lens.records.nodes import Backward, Edge, Node, Place, Recorded, Step, Summary


class GraphPaths:
    """A record, and one backward through it, if one ran that matters.

    Args:
        record: the graph.
        node: the id of the examined node.
        backward: the one whose gradients to read.
        roots: where gradients start.
    """

    def __init__(self, record: Recorded, node: int | None, backward: Backward | None, roots: list[int]):
        self.record = record
        self.node = node
        self.backward = backward
        self.roots = roots
        self.steps: dict[int, Step] = {} if backward is None else {step.node: step for step in backward.steps}
        self.reached = self._reached()
        self._users = self._all_users()

    def _reached(self) -> set[int]:
        """Return all nodes that the roots reach."""
        found, stack = set(self.roots), list(self.roots)
        while stack:
            for edge in self.record.nodes[stack.pop()].edges:
                if edge is not None and edge.to not in found:
                    found.add(edge.to)
                    stack.append(edge.to)
        return found

    def users(self, node: int) -> list[tuple[Node, int, Edge]]:
        """Return what sends gradients to a node: (user, place of the edge among its edges, edge), if it is reached."""
        return self._users.get(node, [])

    def _all_users(self) -> dict[int, list[tuple[Node, int, Edge]]]:
        found = {}
        for number in sorted(self.reached):
            user = self.record.nodes[number]
            for place, edge in enumerate(user.edges):
                if edge is not None:
                    found.setdefault(edge.to, []).append((user, place, edge))
        return found

    def outgoing(self, user: Node, place: int) -> Summary | None:
        """Return the gradient that a node sent along one edge; None if it sent none, or none was recorded."""
        step = self.steps.get(user.id)
        return None if step is None or place >= len(step.outgoing) else step.outgoing[place]

    def incoming(self, node: int) -> Summary | None:
        """Return the gradient that arrived at a node, the first of its outputs that one arrived at."""
        step = self.steps.get(node)
        return None if step is None else next((one for one in step.incoming if one is not None), None)

    def path(self, to: int | None = None) -> list[Node]:
        """Return the nodes from a root to a node, along the largest gradients seen; [] if none leads there."""
        target = self.node if to is None else to
        if target is None or target not in self.reached:
            return []
        found = [target]
        while found[-1] not in self.roots:
            users = [(user, self.outgoing(user, place)) for user, place, _ in self.users(found[-1])]
            if not users:
                return []
            best = max(users, key=lambda pair: -1.0 if pair[1] is None or pair[1].norm is None else pair[1].norm)[0].id
            found.append(best)
        return [self.record.nodes[one] for one in reversed(found)]

    def below(self, node: int) -> set[int]:
        """Return all nodes computed from a node, itself too; a node's inputs have lower numbers than itself."""
        found = {node}
        for one in self.record.nodes:
            if any(edge is not None and edge.to in found for edge in one.edges):
                found.add(one.id)
        return found


def described(node: Node, norm: Summary | None = None) -> str:
    """Return a node as one line: `MulBackward0 → h, train.py:12: h = x * w, gradient norm 0.5`."""
    name = f" → {node.name}" if node.name and node.edges else f" {node.name}" if node.name else ""
    kind = node.type if node.edges else "leaf"
    text = f"{kind}{name}"
    if node.place is not None:
        text += f", {at(node.place)}"
    if norm is not None and norm.norm is not None:
        text += f", gradient {magnitude(norm)}"
    return text


def at(place: Place | None) -> str:
    """Return a line as `train.py:12: h = x * w`."""
    if place is None:
        return "a line that nobody watched"
    return f"{Path(place.file).name}:{place.line}" + (f": {place.text}" if place.text else "")


def size_of(summary: Summary) -> int:
    """Return how many elements a tensor has."""
    count = 1
    for one in summary.shape:
        count *= one
    return count


def all_zero(summary: Summary | None) -> bool:
    """Return whether a tensor is known to be 0 everywhere."""
    return summary is not None and summary.zeros is not None and 0 < size_of(summary) == summary.zeros


def has_non_finite(summary: Summary | None) -> bool:
    """Return whether a tensor is known to have a NaN or an infinity."""
    return summary is not None and bool(summary.nans or summary.infs)


def magnitude(summary: Summary) -> str:
    """Return how large a gradient is: `0`, `norm 0.5`, `NaN`."""
    if summary.nans or summary.infs:
        parts = [f"{count} {name}" for count, name in ((summary.nans, "NaN"), (summary.infs, "inf")) if count]
        return f"{' and '.join(parts)} of {size_of(summary)}"
    if all_zero(summary):
        return "0 everywhere"
    return "not read" if summary.norm is None else f"norm {summary.norm:.4g}"
