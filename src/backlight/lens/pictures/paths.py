"""The way to each op, through modules or lines of source, and the order in which ops ran."""

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath

from backlight.lens.pictures.boxes import LINE, MODULE, PART, Wire
from backlight.lens.records.nodes import LEAF, Node, Place, Recorded

DEEPEST, LONGEST_TITLE = 16, 44


@dataclass(frozen=True)
class Step:
    """One step of the path from the root group to an op: a module's name, or a line."""

    kind: str
    key: Hashable
    title: str
    detail: str = ""


def running_order(nodes: Sequence[Node]) -> list[int]:
    """Return the ids so that inputs come before users, and else as they are numbered."""
    missing = [sum(edge is not None for edge in node.edges) for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                users[edge.to].append(node.id)
    ready = [node.id for node in nodes if not missing[node.id]]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for user in users[node]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    return order


def paths_of(record: Recorded, ops: Sequence[int], by: str, most: int) -> list[list[Step]]:
    """Return the way to each op. What itself runs more ops than can be shown is divided by lines."""
    nodes = record.nodes
    if by == "line" or not any(nodes[op].module for op in ops):
        lines = by == "line" or len(ops) > most  # a small graph of no module is drawn as it is
        return [_order(nodes[op]) + (_lines(nodes[op]) if lines else []) for op in ops]
    counts: dict[str, int] = {}
    for op in ops:
        counts[nodes[op].module] = counts.get(nodes[op].module, 0) + 1
    return [
        _order(nodes[op])
        + _modules(nodes[op], record.modules)
        + (_lines(nodes[op]) if counts[nodes[op].module] > most else [])
        for op in ops
    ]


def _order(node: Node) -> list[Step]:
    return [] if node.order == 1 else [Step(PART, node.order, f"recorded backward, order {node.order}")]


def _modules(node: Node, classes: dict[str, str]) -> list[Step]:
    names = node.module.split(".") if node.module else []
    steps = []
    for number in range(1, min(len(names), DEEPEST) + 1):
        path = ".".join(names[:number])
        known = classes.get(path, node.module_type if path == node.module else "")
        steps.append(Step(MODULE, path, _title(names[:number], known), known))
    return steps


def _title(names: Sequence[str], kind: str) -> str:
    """Return a module's own name; a number says nothing without what stands before it."""
    if not names[-1].isdigit():
        return names[-1]
    return ".".join(names[-2:]) if len(names) > 1 else f"{kind} {names[-1]}".strip()


def own_name(node: Node) -> str:
    """Return what the module that ran a node is called, and its class if that does not say it."""
    title = _title(node.module.split("."), node.module_type)
    return title if node.module_type in title else f"{title} · {node.module_type}"


def _lines(node: Node) -> list[Step]:
    places = [*reversed(node.stack), node.place] if node.place is not None else []
    return [Step(LINE, (one.file, one.line, one.function), *_words(one)) for one in places[-DEEPEST:]]


def _words(place: Place) -> tuple[str, str]:
    where = f"{PurePath(place.file).name}:{place.line}"
    text = " ".join(place.text.split())
    title = text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "…"
    return title or where, f"{where} in {place.function}" if place.function else where


def depth_of(wires: Sequence[Wire]) -> int:
    """Return how many nodes the longest way has."""
    depth: dict[int, int] = {}
    for wire in sorted(wires, key=lambda wire: wire.end):
        depth[wire.end] = max(depth.get(wire.end, 1), depth.get(wire.start, 1) + 1)
    return max(depth.values(), default=0)


def passing(nodes: Sequence[Node], wires: Sequence[Wire], ops: Sequence[int]) -> dict[int, int]:
    """Return for each op how many results of ops before it are read by it or after it."""
    turn = {op: number for number, op in enumerate(ops)}
    last: dict[int, int] = {}
    for wire in wires:
        if nodes[wire.start].kind != LEAF:
            last[wire.start] = max(last.get(wire.start, 0), turn[wire.end])
    change = [0] * (len(ops) + 2)
    for op, end in last.items():
        change[turn[op] + 1] += 1
        change[end + 1] -= 1
    return dict(zip(ops, accumulate(change)))
