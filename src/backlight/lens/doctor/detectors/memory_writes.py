"""Writes that no version counts: through `.data`, through NumPy, through what detach() returned.

NOTE [Fingerprints]
In strict mode each tensor that a node saves gets a checksum when it is saved; when a backward begins, the tensors of
its graph are compared with theirs. No saved_tensors_hooks are installed: in PyTorch these switch its own check of
in-place writes off. A tensor whose version has changed is left to that check. Without strict mode only writes that go
through `.data` itself are known.
"""

import sys
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, NamedTuple

from backlight.dispatch.observers import Call, Run, SavedValue
from backlight.lens.doctor.detector import Detector, checksum_of
from backlight.lens.doctor.evidence import code_of, replaced
from backlight.lens.doctor.graph import Node, Tensor, is_computed, is_parameter, nodes_behind, root_nodes, sequence_of
from backlight.lens.doctor.places import brief, place_of, place_of_node
from backlight.lens.doctor.source import stored_in
from backlight.lens.doctor.weak_id_dict import WeakIdDict, keep_newest
from backlight.lens.records.record import Place

UPDATED_UNSEEN = {"running_mean", "running_var"}  # written by the op that saves them, and not used in training
MOST_PRINTS = 200_000


@dataclass(slots=True)
class Write:
    """A write that no version of the tensor itself counted."""

    op: str
    place: Place
    after: int  # the sequence number of a node that was made just before


class Alias(NamedTuple):
    """What `.data` or detach() returned, or a view of it: of which tensor, where; whether a variable holds it."""

    base: weakref.ref
    how: str
    place: Place
    kept: bool


@dataclass(slots=True)
class Print:
    """What a saved tensor held when it was saved."""

    name: str
    version: int
    checksum: int
    first: float | None


class MemoryWrites(Detector):
    """Knows who shares memory with whom, and compares saved tensors (see NOTE [Fingerprints])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.aliases: WeakIdDict[Alias] = WeakIdDict()
        self.writes: dict[int, Write] = {}  # memory -> the last uncounted write
        self.exposed: dict[int, Place] = {}  # memory -> where NumPy got it
        self.prints: dict[int, list[Print]] = {}  # node -> of what it saved
        self.reported: set[int] = set()
        self.last_write: tuple[int, str, CodeType, int] | None = None  # memory, op, line

    def called(self, call: Call) -> None:
        """Note new names of old memory, and what new nodes saved."""
        args = call.args
        if args and self.engine.is_tensor(args[0]):
            if call.name in ("data", "detach") and len(args) == 1:
                self._note_alias(call, args[0])
            elif call.name in ("numpy", "__array__"):
                self.exposed[self.engine.memory_of(args[0])[0]] = place_of(call)
            elif (known := self.aliases.get(args[0])) is not None:
                self._look_at_write(call, args[0], known)
                if self.engine.is_tensor(call.out) and call.out is not args[0] and not call.out.requires_grad:
                    if self._share(args[0], call.out):
                        self.aliases[call.out] = known
        if self.session.strict:
            for out in self.watch.outs:
                if is_computed(out):
                    self._take_prints(self.engine.node_of(out)[0])

    def _note_alias(self, call: Call, base: Any) -> None:
        how, known = call.name, self.aliases.get(base)
        if known is not None:  # an alias of an alias
            base, how = known.base(), "data" if "data" in (how, known.how) else how
        if base is not None:
            kept = stored_in(call.code, call.lasti) is not None
            self.aliases[call.out] = Alias(weakref.ref(base), how, place_of(call), kept)

    def _share(self, one: Tensor, other: Tensor) -> bool:
        return self.engine.memory_of(one)[0] == self.engine.memory_of(other)[0]

    def wrote(self, tensor: Tensor, name: str, code: CodeType, lasti: int) -> None:
        """Note which memory was written to last; the call that did it comes next."""
        if self.aliases:
            self.last_write = self.engine.memory_of(tensor)[0], name, code, lasti

    def _look_at_write(self, call: Call, alias: Any, known: Alias) -> None:
        """Note a write through an alias."""
        base = known.base()
        if base is None or not self._share(base, alias):
            return
        memory = self.engine.memory_of(alias)[0]
        if self.last_write is None or self.last_write[0] != memory or self.last_write[2:] != (call.code, call.lasti):
            return
        name, place, self.last_write = self.last_write[1], place_of(call), None
        if known.how == "data" and not _is_gradcheck(sys._getframe(1)):
            self.writes[memory] = Write(name, place, self.engine.next_number())
        elif is_parameter(base) and self.engine.module.is_grad_enabled() and known.kept:
            self._report_detached(base, name, known.place, place)

    def _report_detached(self, base: Any, op: str, made: Place, place: Place) -> None:
        name = self.watch.flow.name_of(base)
        self.report(
            "detached-shares-memory",
            place,
            f"detach() of {name} at {brief(made)} shares its memory; {op} at {brief(place)} wrote to it.",
            f"{name} requires grad and now has the new values.",
            corrected=replaced(code_of(made), ".detach()", ".detach().clone()"),
            corrected_at=made,
        )

    def _take_prints(self, node: Any) -> None:
        """Take the checksums of what the new nodes behind one saved."""
        key_of = self.engine.key_of
        for new in nodes_behind([node], until=lambda one: not one.next_functions or key_of(one) in self.prints):
            prints = [self._print(kept) for kept in self.engine.saved_by(new)]
            self.prints[key_of(new)] = [one for one in prints if one is not None]
        keep_newest(self.prints, MOST_PRINTS)

    def _print(self, kept: SavedValue) -> Print | None:
        if kept.tensor is None or kept.name in UPDATED_UNSEEN:
            return None
        values = self.values(kept.tensor)
        if values is None:
            return None
        first = float(values.flat[0].real) if values.size and values.dtype.kind in "fiubc" else None
        return Print(kept.name, self.engine.version_of(kept.tensor), checksum_of(values), first)

    def started(self, run: Run) -> None:
        """Compare what the graph of a backward saved, if there is anything to compare."""
        if not self.prints and not self.writes:
            return
        for node in nodes_behind(root_nodes(run)):
            if node.next_functions:
                self._compare(node)

    def freed(self, run: Run, node: Node) -> None:
        """Forget what a node dropped."""
        if self.prints:
            self.prints.pop(self.engine.key_of(node), None)

    def _compare(self, node: Node) -> None:
        prints = self.prints.get(self.engine.key_of(node)) if self.prints else None
        if prints is None and not self.writes:
            return
        before = {one.name: one for one in prints or ()}
        for kept in self.engine.saved_by(node):
            if kept.tensor is None or kept.name in UPDATED_UNSEEN:
                continue
            known = before.get(kept.name)
            if prints is None:
                write = self.writes.get(self.engine.memory_of(kept.tensor)[0])
                if write is not None and sequence_of(node) < write.after:
                    self._report(node, kept, None)
            elif known is not None and self._has_changed(known, kept):
                self._report(node, kept, known)

    def _has_changed(self, known: Print, kept: SavedValue) -> bool:
        if self.engine.version_of(kept.tensor) != known.version:
            return False  # the engine's own check tells
        values = self.values(kept.tensor)
        return values is not None and checksum_of(values) != known.checksum

    def _report(self, node: Node, kept: SavedValue, known: Print | None) -> None:
        memory = self.engine.memory_of(kept.tensor)[0]
        if memory in self.reported:
            return
        self.reported.add(memory)
        made = place_of_node(self.engine, node)
        saved = "" if made is None else f" at {brief(made)}"
        evidence = [f"{node.name()} saved {kept.name}, of shape {tuple(kept.tensor.shape)}{saved}."]
        if known is not None:
            values = self.values(kept.tensor)
            now = float(values.flat[0].real) if known.first is not None else None
            first = "" if now is None or now == known.first else f": its first element was {known.first:g}, is {now:g}"
            evidence.append(f"Its values have changed since{first}; its version, {known.version}, has not.")
        write, exposed = self.writes.get(memory), self.exposed.get(memory)
        if write is not None and sequence_of(node) < write.after:
            evidence.append(
                f"{write.op} at {brief(write.place)} wrote through .data, which does not change the version."
            )
            self.report("data-write-to-saved", write.place, *evidence)
            return
        if exposed is not None:
            evidence.append(f"NumPy got this memory at {brief(exposed)}.")
        self.report("array-write-to-saved", exposed or made, *evidence)


def _is_gradcheck(frame: FrameType | None) -> bool:
    """Return whether gradcheck runs, which changes its inputs through `.data` and puts them back."""
    while frame is not None and not frame.f_code.co_filename.endswith("gradcheck.py"):
        frame = frame.f_back
    return frame is not None
