"""The tensors that a graph keeps for backward: their nodes, bytes and source lines."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.autograd.nodes import nodes, place_of, short
from backlight.codegen.packed_nodes import SavedTensor
from backlight.dispatch.observers import Line
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState
from backlight.kernels.reduction.summaries import whole_memory
from backlight.tensor.tensor import Tensor

ROWS = 30  # so many are shown


@dataclass(frozen=True)
class Saved:
    """One tensor or value that a node keeps for backward.

    Args:
        node: the node that keeps it.
        name: PyTorch's name of it: `_saved_self`, `_saved_result`, …
        value: the tensor; where hooks packed it, the packed value.
        bytes: the size of the memory that it keeps alive, the full base of a view; 0 for other values.
        place: the line that made the node: `place.file`, `place.line`, `place.text`.
    """

    node: Node
    name: str
    value: Any
    bytes: int
    place: Line | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The tensor's shape, None for other values."""
        return tuple(self.value._data.shape) if isinstance(self.value, TensorState) else None

    def __str__(self) -> str:
        what = "packed" if self.shape is None else f"{list(self.shape)}"
        return f"{self.bytes:>12,} bytes  {self.node.name()}.{self.name} {what}  {short(self.place)}".rstrip()


class SavedList(list):
    """All that a graph keeps for backward, with the sum of its bytes."""

    @property
    def bytes(self) -> int:
        """How many bytes are kept in all; memory that is kept twice counts once."""
        return sum(one.bytes for one in self)

    def by_line(self) -> dict[str, int]:
        """Return the bytes kept by the nodes of each line, the most first: {"train.py:12: h = x * w": 4000}."""
        found: dict[str, int] = {}
        for one in self:
            line = short(one.place)
            found[line] = found.get(line, 0) + one.bytes
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def _largest(self) -> list[Saved]:
        return sorted(self, key=lambda one: -one.bytes)[:ROWS]

    def __str__(self) -> str:
        plural = "" if len(self) == 1 else "s"
        lines = [f"{self.bytes:>12,} bytes in {len(self)} tensor{plural}", *map(str, self._largest())]
        return "\n".join([*lines, f"and {len(self) - ROWS} smaller ones"] if len(self) > ROWS else lines)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = "".join(
            f"<tr><td align='right'>{one.bytes:,}</td><td>{html.escape(f'{one.node.name()}.{one.name}')}</td>"
            f"<td>{'packed' if one.shape is None else list(one.shape)}</td><td><code>{html.escape(short(one.place))}"
            "</code></td></tr>"
            for one in self._largest()
        )
        head = "<tr><th>bytes</th><th>kept as</th><th>shape</th><th>line</th></tr>"
        return f"<p>{self.bytes:,} bytes in {len(self)} tensors</p><table>{head}{rows}</table>"


def saved(tensor: Tensor | Node) -> SavedList:
    """Return the tensors that the nodes behind `tensor` keep for backward, with bytes and lines; each memory once.

    Values packed by hooks are not unpacked; freed tensors are left out.

    Example:
        >>> import backlight
        >>> x = backlight.ones(1000, requires_grad=True)
        >>> found = saved((x * 3).exp())
        >>> [(one.name, one.bytes) for one in found]
        [('_saved_result', 4000), ('_saved_other', 4)]
        >>> found.bytes
        4004
    """
    found, seen = SavedList(), set()
    for node in nodes(tensor):
        for name, kept in _kept_by(node):
            value = kept.data
            if value is None:
                continue
            memory, size = _memory(value)
            if memory not in seen:
                seen.add(memory)
                found.append(Saved(node, name, value, size, place_of(node)))
    return found


def _kept_by(node: Node) -> Iterator[tuple[str, SavedTensor]]:
    """Yield the saved values of a node with their names."""
    if hasattr(node, "ctx"):
        yield from ((f"saved_tensors[{number}]", one) for number, one in enumerate(node.ctx._raw_saved()))
        return
    for raw in (name for name in dir(type(node)) if name.startswith("_raw_saved_")):
        kept, name = getattr(node, raw), raw.removeprefix("_raw")
        if isinstance(kept, tuple):
            yield from ((f"{name}[{number}]", one) for number, one in enumerate(kept))
        else:
            yield name, kept


def _memory(value: object) -> tuple[int, int]:
    """Return a key that identifies a value's memory, and its bytes."""
    data = getattr(value, "_data", value)
    if isinstance(data, np.ndarray):
        return whole_memory(data)
    return id(data), data.nbytes if isinstance(data, np.generic) else 0
