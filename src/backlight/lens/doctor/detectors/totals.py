"""`total += loss`: a sum over iterations that keeps the graph of each alive.

NOTE [Which sums are kept for nothing]
A sum of losses is healthy if something differentiates it: several tasks, steps through time. It is a mistake if no
backward ever reaches it, or if each summand has had a backward of its own. Only sums of single numbers are looked at,
made by the same line each time, whose summands do not depend on the sum so far (a recurrence does).
"""

import ast
import linecache
import re
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.corrections.lines import after_argument
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, locals_of
from backlight.lens.doctor.graph import Node, Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import brief, place_of, users_frames
from backlight.lens.doctor.source import Spot, parsed, span, spelled
from backlight.lens.records.record import Place

ENOUGH = 3
KEPT = 12  # losses of one line that are alive at once
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
        self.roots: dict[tuple, list[weakref.ref]] = {}  # line of a backward -> the losses that it started from
        self.lists: dict[str, tuple[Place, int]] = {}  # a list that keeps them -> where, how many

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

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note losses that live on after many backwards of their line, and the list that keeps them."""
        if place is None or not is_computed(tensor):
            return
        known = self.roots.setdefault((place.file, place.line), [])
        alive = [one for one in known if one() is not None]
        known[:] = [*alive, weakref.ref(tensor)][-KEPT:]
        if len(alive) >= KEPT - 1 and len(self.lists) < KEPT:
            name, count = _list_of(sys._getframe(1), alive[0]())
            if name is not None and count >= KEPT - 1:
                self.lists[name] = place, count

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Note that a sum is differentiated."""
        if self.totals and node.next_functions:
            number = sequence_of(node)
            for total in self.totals.values():
                if number in total.numbers:
                    total.reached = True

    def end(self, problem: BaseException | None) -> None:
        """Report sums that nothing differentiated, and lists of losses."""
        for name, (place, count) in self.lists.items():
            line, corrected = _appending(place, name)
            self.report(
                "total-loss-keeps-graphs",
                line or place,
                f"{name} holds {count} losses or more; backward() at {brief(place)} started from each of them.",
                "Each keeps its graph alive.",
                title=f"{name} keeps the graph of every iteration alive",
                cure=f"Append numbers: {name}.append(loss.item()), or loss.detach().",
                corrected=corrected,
                corrected_at=line,
            )
        for total in self.totals.values():
            if total.added < ENOUGH or total.reached or total.recurrent:
                continue
            place = place_of(total)
            nodes = counted(total.nodes, "node")
            title, cure, line, corrected, kept = None, None, None, None, _listed(place)
            if kept is not None:
                title = f"{kept} keeps the graph of every iteration alive"
                cure = f"Append numbers to {kept}: {kept}.append(loss.item()), or loss.detach()."
                line, corrected = _appending(place, kept)
            self.report(
                "total-loss-keeps-graphs",
                place,
                f"The line ran {total.added} times; the sum has a graph, but no backward() went through it.",
                f"Each term adds {nodes} and their saved tensors: all {total.added} live as long as the sum.",
                title=title,
                cure=cure,
                corrected=corrected or _detached(place),
                corrected_at=line,
            )


def _list_of(frame: FrameType, tensor: Any) -> tuple[str | None, int]:
    """Return the list that holds a tensor, as the user's code names it, and how many tensors with a graph are in it."""
    for user in users_frames(frame):
        variables = locals_of(user)
        owner = variables.get("self")
        attributes = getattr(owner, "__dict__", None)
        own = attributes.items() if isinstance(attributes, dict) else ()
        named = [*variables.items(), *((f"self.{key}", value) for key, value in own)]
        tables = [(name, value) for name, value in named if type(value) is dict]
        named += [(f"{name}[{key!r}]", one) for name, table in tables for key, one in list(table.items())]
        for name, value in named:
            if type(value) is list and any(one is tensor for one in value):
                return name, sum(getattr(one, "requires_grad", False) is True for one in value)
    return None, 0


def _listed(place: Place) -> str | None:
    """Return the name of the list that a line adds up by `sum(losses)`."""
    names = set(re.findall(r"\bsum\(([A-Za-z_][\w.]*)\)", code_of(place)))
    return names.pop() if len(names) == 1 else None


def _appending(place: Place, kept: str) -> tuple[Place | None, str | None]:
    """Return the only line of the file that appends to a list, and that line with `.item()`.

    Of an expression it is `.detach()`: what is computed of the list may be a tensor's.
    """
    tree = parsed(tuple(linecache.getlines(place.file)))
    calls = [one for one in ast.walk(tree or ast.Module(body=[])) if _appends_to(one, kept)]
    if len(calls) != 1:
        return None, None
    spot = Spot(place.file, place.function, span(calls[0]))
    return spot.place, after_argument(spot, 0, ".item()" if isinstance(calls[0].args[0], ast.Name) else ".detach()")


def _appends_to(node: ast.AST, kept: str) -> bool:
    """Return whether a call appends one value to a list, which is not detached yet."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return False
    if node.func.attr != "append" or ast.unparse(node.func.value) != kept:
        return False
    value = node.args[0]
    method = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    return method not in ("item", "detach", "tolist")


def _detached(place: Place) -> str | None:
    """Return `total += loss.item()` for `total += loss`; what stands before it on the line stays.

    If the program calls methods of the total, or of what is computed of it, it has to stay a tensor: `loss.detach()`.
    """
    text = code_of(place)
    total, sign, value = text.rpartition("+=")
    try:
        kind = ast.parse(value.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not sign or not isinstance(kind, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
        return None
    name = total.split()[-1] if total.split() else ""
    return f"{text}.detach()" if _is_used_as_tensor(name, place) else f"{text}.item()"


def _is_used_as_tensor(name: str, place: Place) -> bool:
    """Return whether a file calls a method of a variable, or of an expression with it."""
    tree = parsed(tuple(linecache.getlines(place.file)))
    for node in ast.walk(tree or ast.Module(body=[])):
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.BinOp, ast.Attribute)):
            if any(spelled(one) == name for one in ast.walk(node.value)):
                return True
    return False
