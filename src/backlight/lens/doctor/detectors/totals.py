"""`total += loss`: a sum over iterations that keeps the graph of each alive.

NOTE [Which sums are kept for nothing]
A sum of losses is healthy if something differentiates it: several tasks, steps through time. It is a mistake if no
backward ever reaches it, or if each summand has had a backward of its own. Only sums of single numbers are looked at,
made by the same line each time, whose summands do not depend on the sum so far (a recurrence does).
"""

import ast
import linecache
import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted
from backlight.lens.doctor.graph import Node, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import place_of
from backlight.lens.records.record import Place

ENOUGH = 3
DEEP = 20_000
REMEMBERED = 1000  # additions of one sum: a backward that comes through later ones comes through these


@dataclass(slots=True)
class Total:
    """A sum that one line adds to."""

    reference: weakref.ref
    code: CodeType
    lasti: int
    added: int = 1
    nodes: int = 0
    numbers: set[int] = field(default_factory=set)  # sequence numbers of its additions
    reached: bool = False
    recurrent: bool = False


class Totals(Detector):
    """Follows sums (see NOTE [Which sums are kept for nothing])."""

    calls = frozenset({"add"})

    def __init__(self, watch):
        super().__init__(watch)
        self.totals: dict[tuple, Total] = {}

    def called(self, call: Call) -> None:
        """Note an addition to a sum."""
        if len(call.args) != 2 or not self.engine.is_tensor(call.out):
            return
        out, key = call.out, (call.code, call.lasti)
        if not is_computed(out) or out.numel() != 1:
            return
        first, second = call.args
        total = self.totals.get(key)
        if total is not None and (first is total.reference() or second is total.reference()):
            if not total.reached and not total.recurrent:
                self._add(total, out, second if first is total.reference() else first)
        elif not all(self.engine.is_tensor(one) and one.requires_grad for one in (first, second)):
            self.totals[key] = Total(weakref.ref(out), call.code, call.lasti, numbers={sequence_of(out.grad_fn)})

    def _add(self, total: Total, out: Any, summand: Any) -> None:
        total.reference = weakref.ref(out)
        total.added += 1
        if len(total.numbers) < REMEMBERED:
            total.numbers.add(sequence_of(out.grad_fn))
        if total.added == ENOUGH and self.engine.is_tensor(summand) and summand.requires_grad:
            total.nodes, total.recurrent = self._look_behind(summand, total.numbers)

    def _look_behind(self, summand: Any, numbers: set[int]) -> tuple[int, bool]:
        """Return how many nodes a summand's graph has, and whether the sum so far is among them."""
        count = 0
        for count, node in enumerate(islice(nodes_behind([self.engine.node_of(summand)[0]]), DEEP), 1):
            if node.next_functions and sequence_of(node) in numbers:
                return count, True
        return count, False

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Note that a sum is differentiated."""
        if self.totals and node.next_functions:
            number = sequence_of(node)
            for total in self.totals.values():
                if number in total.numbers:
                    total.reached = True

    def end(self, problem: BaseException | None) -> None:
        """Report sums that nothing differentiated."""
        for total in self.totals.values():
            if total.added < ENOUGH or total.reached or total.recurrent:
                continue
            place = place_of(total)
            nodes = counted(total.nodes, "node")
            title, cure, line, corrected, kept = None, None, None, None, _listed(place)
            if kept is not None:
                title = f"{kept} keeps the graph of every iteration alive"
                cure = f"Append numbers, where {kept} is filled: {kept}.append(loss.item()), or loss.detach()."
                line, corrected = _appending(place, kept)
            self.report(
                "total-loss-keeps-graphs",
                place,
                f"The line has added {total.added} times; the sum has a graph, and no backward() went through it.",
                f"Each summand brings {nodes} with what they saved: all {total.added} live as long as the sum.",
                title=title,
                cure=cure,
                corrected=corrected or _detached(place),
                corrected_at=line,
            )


def _listed(place: Place) -> str | None:
    """Return the name of the list that a line adds up by `sum(losses)`."""
    names = set(re.findall(r"\bsum\(([A-Za-z_][\w.]*)\)", code_of(place)))
    return names.pop() if len(names) == 1 else None


def _appending(place: Place, kept: str) -> tuple[Place | None, str | None]:
    """Return the only line of the file that appends a variable to a list, and that line with `.item()`."""
    wanted = re.compile(rf"\b{re.escape(kept)}\.append\(([A-Za-z_]\w*)\)")
    lines = [(n, text.strip()) for n, text in enumerate(linecache.getlines(place.file), 1) if wanted.search(text)]
    if len(lines) != 1:
        return None, None
    number, text = lines[0]
    return Place(place.file, number, place.function, text), wanted.sub(rf"{kept}.append(\1.item())", text)


def _detached(place: Place) -> str | None:
    """Return `total += loss.item()` for `total += loss`; what stands before it on the line stays."""
    text = code_of(place)
    _, sign, value = text.rpartition("+=")
    try:
        kind = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        return None
    return f"{text}.item()" if sign and isinstance(kind, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else None
