"""The values around an anomaly: summaries of arrays, what a node saved, the node that made it, paths to nodes."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.engine.node import Node, node_and_number
from backlight.engine.tensor_state import TensorState
from backlight.kernels.reduction.summaries import numbers_in_short, oddities

SHOWN = 6  # up to so many numbers are listed


@dataclass(frozen=True)
class Numbers:
    """An array in short.

    Args:
        least: of the finite numbers; None if there are none.
        most: likewise.
        first: the index of the first NaN, or of the first infinity if there is no NaN; None if all is finite.
        few: all numbers, if there are only few.
        origin: which node made it, on which line; "" if that is not known.
    """

    shape: tuple[int, ...]
    dtype: str
    least: float | None
    most: float | None
    nans: int
    infs: int
    first: tuple[int, ...] | None
    few: list | None
    origin: str = ""

    def __str__(self) -> str:
        """Return `float32 [7] from 0 to 4, 1 nan (the first at [2])`."""
        shown = f"{self.dtype} {list(self.shape)}"
        if self.few is not None:
            shown += f" {self.few}"
        elif self.least is not None:
            shown += f" from {self.least:.4g} to {self.most:.4g}"
        odd = [f"{count} {name}" for count, name in ((self.nans, "nan"), (self.infs, "inf")) if count]
        if odd:
            shown += f", {' and '.join(odd)}" + (f" (the first at {list(self.first)})" if self.shape else "")
        return shown + (f", from {self.origin}" if self.origin else "")


def numbers_of(data: np.ndarray | np.generic, origin: str = "") -> Numbers:
    """Summarise an array or a NumPy scalar."""
    array = np.asarray(data)
    dtype, shape = str(array.dtype), array.shape
    if array.dtype.kind not in "fV" or not array.size:
        few = array.tolist() if array.size <= SHOWN else None
        return Numbers(shape, dtype, None, None, 0, 0, None, few, origin)
    wide = np.ascontiguousarray(array if array.dtype.itemsize > 2 else array.astype(np.float32))
    least, most, *_, nans, infs, _ = numbers_in_short(wide)
    first = None
    if nans or infs:
        bad = (np.isnan(wide) if nans else np.isinf(wide)).reshape(shape)
        first = tuple(int(one) for one in np.argwhere(bad)[0])
    few = _short(wide.reshape(shape).tolist()) if array.size <= SHOWN else None
    finite = nans + infs < array.size
    return Numbers(shape, dtype, least if finite else None, most if finite else None, nans, infs, first, few, origin)


def _short(values):
    return [_short(one) for one in values] if isinstance(values, list) else float(f"{values:.4g}")


def saved_by(node: Node) -> Iterator[tuple[str, object, object]]:
    """Yield the saved values of a node: (name, data, the tensor if it is one)."""
    for slot in node.freed_slots:
        value = node.ctx._saved if hasattr(node, "ctx") else getattr(node, slot, None)  # neither unpacked nor refused
        name = "result" if slot == "out" else slot
        several = isinstance(value, (list, tuple))
        for number, one in enumerate(value if several else (value,)):
            if isinstance(one, (np.ndarray, np.generic)):
                tensor, data = None, one
            else:  # a custom Function keeps wrappers of tensors
                tensor = one if isinstance(one, TensorState) else getattr(one, "tensor", None)
                data = getattr(one, "data", None) if tensor is None else tensor._data
            if isinstance(data, (np.ndarray, np.generic)):
                yield f"{name}[{number}]" if several else name, data, tensor


def origin_of(tensor: TensorState | None) -> str:
    """Return the text of the node that made a tensor, with its line."""
    edge = None if tensor is None else tensor._edge
    if edge is None:
        return "no recorded op" if tensor is not None else ""
    node, _ = node_and_number(edge)
    return node_text(node) if isinstance(node, Node) else "a leaf"


def node_text(node: Node) -> str:
    """Return `SqrtBackward0 (train.py:7)`."""
    if node.code is None:
        return "a leaf"
    filename, number = node.line
    return f"{node.name()} ({Path(filename).name}:{number})"


def first_nonfinite_node(node: Node) -> Node:
    """Return the node whose forward first made the NaN or infinity that a node saved, as far as nodes saved values."""
    for _ in range(10_000):
        further = next(_nonfinite_inputs(node), None)
        if further is None:
            return node
        node = further
    return node


def _nonfinite_inputs(node: Node) -> Iterator[Node]:
    for _, data, tensor in saved_by(node):
        if tensor is not None and oddities(data) and tensor._edge is not None:
            before = node_and_number(tensor._edge)[0]
            if isinstance(before, Node) and before is not node:
                yield before
    for edge in node.edges:
        before = None if edge is None else node_and_number(edge)[0]
        if isinstance(before, Node) and any(name == "result" and oddities(data) for name, data, _ in saved_by(before)):
            yield before


def path_to(node: Node, roots: Sequence) -> tuple[Node, ...]:
    """Return the nodes on the shortest path of gradients from the roots to a node."""
    starts = [node_and_number(edge)[0] for edge in roots]
    came = dict.fromkeys(starts)
    waiting = deque(starts)
    while waiting and node not in came:
        here = waiting.popleft()
        for edge in () if here.is_end else here.edges:
            following = None if edge is None else node_and_number(edge)[0]
            if following is not None and following not in came:
                came[following] = here
                waiting.append(following)
    way, here = [], node if node in came else None
    while here is not None:
        way.append(here)
        here = came[here]
    return tuple(reversed(way))


def path_from(node: Node | None) -> tuple[Node, ...]:
    """Return a node and those before it, along first inputs, up to a leaf."""
    way = []
    while isinstance(node, Node) and len(way) < 10_000:
        way.append(node)
        node = next((node_and_number(edge)[0] for edge in node.edges if edge is not None), None)
    return tuple(way)
