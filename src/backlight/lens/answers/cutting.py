"""Notes where values leave the graph under a watcher: `detach()`, `item()`, `argmax()`, ops under no_grad()."""

import weakref
from dataclasses import dataclass
from types import CodeType
from typing import Any

from backlight.dispatch.observers import Call, line_at
from backlight.dispatch.torch_function import flat
from backlight.lens.engines import Engine
from backlight.lens.records.building import Builder
from backlight.lens.records.nodes import DETACHES, NO_DERIVATIVE, NUMBER, UNRECORDED, Cut, Place
from backlight.training.engine_types import AnyTensor

DETACHED = {"detach", "detach_", "data", "tensor", "as_tensor", "new_tensor"}
TO_NUMBERS = {"item", "tolist", "numpy", "__array__", "__float__", "__int__"}
NOWHERE = -1  # not in the record
LOOKS = {
    *("grad", "backward", "requires_grad_", "is_same_size"),
    *("__bool__", "__repr__", "__format__", "__len__", "__contains__"),
}
MOST = 1000  # so many cuts are noted, each line once for each tensor
MOST_CUT_OFF = 20_000  # tensors


@dataclass(slots=True)
class CutCall:
    """A call that cut.

    Args:
        leaf: the tensor that it read, if that is a leaf: it need not be in the record.
        node: the number of that tensor's node, if it is in the record.
        into: the first node of the record that what it returned, or what was computed from that, went into.
    """

    leaf: Any
    node: int | None
    op: str
    reason: str
    code: CodeType
    lasti: int
    into: int | None = None

    def cut(self, node: int) -> Cut:
        """Return the cut as a record keeps it."""
        return Cut(node, self.op, self.reason, self.into, Place(*line_at(self.code, self.lasti)))


class Cutting:
    """Collects cuts while a record grows."""

    def __init__(self, engine: Engine, builder: Builder):
        self.engine = engine
        self.builder = builder
        self.seen: dict[tuple, CutCall] = {}  # by tensor or node, op and instruction
        self.cut_off: dict[int, tuple] = {}  # id of a tensor that was cut off -> (weak reference, what cut it off)

    def called(self, call: Call, out: list) -> None:
        """Note a call that returned nothing that has a graph, if it read what has one, or what was cut off."""
        if call.name in LOOKS:
            return
        tensors = [one for one in flat((*call.args, *call.kwargs.values())) if self.engine.is_tensor(one)]
        read = [one for one in tensors if one.requires_grad]
        reason = self._reason(call.name, out) if read else None
        by = None
        for tensor in read if reason is not None else ():
            by = self._note(tensor, reason, call) or by
        by = by or next((found for found in map(self.that_cut, tensors) if found is not None), None)
        if by is not None and len(self.cut_off) < MOST_CUT_OFF:
            for one in out:
                self.cut_off[id(one)] = weakref.ref(one), by

    def fed(self, call: Call, node: int) -> None:
        """Note that a node of the record read tensors: those that were cut off have come into it."""
        for one in flat((*call.args, *call.kwargs.values())) if self.cut_off else ():
            by = self.that_cut(one)
            if by is not None and by.into is None:
                by.into = node

    def that_cut(self, tensor: AnyTensor) -> CutCall | None:
        """Return what cut a tensor off."""
        reference, by = self.cut_off.get(id(tensor), (None, None))
        return by if reference is not None and reference() is tensor else None

    def _reason(self, op: str, out: list) -> str | None:
        if op in TO_NUMBERS:
            return NUMBER
        if not out:
            return None
        if op in DETACHED:
            return DETACHES
        if not any(one.is_floating_point() for one in out):
            return NO_DERIVATIVE
        return NO_DERIVATIVE if self.engine.module.is_grad_enabled() else UNRECORDED

    def _note(self, tensor: AnyTensor, reason: str, call: Call) -> CutCall | None:
        leaf = tensor if tensor.is_leaf else None
        known = self.builder.known_tensor(tensor)
        key = (id(tensor) if known is None else known, call.name, id(call.code), call.lasti)
        if key not in self.seen and (leaf is not None or known is not None) and len(self.seen) < MOST:
            self.seen[key] = CutCall(leaf, known, call.name, reason, call.code, call.lasti)
        return self.seen.get(key)

    def cuts(self) -> list[Cut]:
        """Return the cuts at nodes of the record."""
        found = []
        for seen in self.seen.values():
            number = self.builder.known_tensor(seen.leaf) if seen.node is None else seen.node
            if number is not None:
                found.append(seen.cut(number))
        return found

    def of_leaf(self, tensor: AnyTensor) -> list[Cut]:
        """Return the cuts at a leaf, which need not be in the record."""
        return [seen.cut(NOWHERE) for seen in self.seen.values() if seen.leaf is tensor]

    def that_made(self, tensor: AnyTensor) -> Cut | None:
        """Return the cut that a tensor came out of, or out of what was computed from."""
        by = self.that_cut(tensor)
        return None if by is None else by.cut(NOWHERE if by.node is None else by.node)

    def release_tensors(self) -> None:
        """Hold no tensor any longer."""
        self.seen, self.cut_off = {}, {}
