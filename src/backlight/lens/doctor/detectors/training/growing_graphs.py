"""Graphs that grow from step to step: an average that is kept with its history, a backward that goes through the past.

NOTE [What a growing graph is]
A line adds to a tensor that the same line made before, over and over, and no backward ever comes through: a running
average outside of no_grad(). Or a backward with retain_graph=True goes through more nodes each time than the time
before, by the same number: it goes through the graphs of all steps so far.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Node, is_computed, sequence_of
from backlight.lens.doctor.places import Instruction, brief_at, place_of

LONG, FEW, DEEP, REMEMBERED = 12, 3, 3, 2000
RUNS = 8


@dataclass(slots=True, eq=False)
class Chain:
    """The tensors that one line made of those that it made before."""

    last: weakref.ref
    number: int
    length: int = 1
    longest: int = 1
    shape: tuple = ()
    numbers: set[int] = field(default_factory=set)
    reached: bool = False


class GrowingGraphs(Detector):
    """Follows them (see NOTE [What a growing graph is])."""

    calls = frozenset({"add", "sub", "lerp", "addcmul", "cat", "maximum"})

    def __init__(self, watch):
        super().__init__(watch)
        self.chains: dict[tuple, Chain] = {}
        self.long: list[Chain] = []  # those that no backward has come through yet
        self.counts: dict[Instruction, list[int]] = {}
        self.count = 0
        self.counting = False
        self.found: dict[Instruction, list[int]] = {}

    def called(self, call: Call) -> None:
        """Look whether a result was computed from what the same line made before."""
        out = call.out
        if not self.engine.is_tensor(out) or not is_computed(out) or out.numel() == 1:
            return
        key = call.code, call.lasti, tuple(out.shape)
        number = sequence_of(out.grad_fn)
        known = self.chains.get(key)
        if known is None:
            if len(self.chains) < REMEMBERED:
                self.chains[key] = Chain(weakref.ref(out), number, shape=tuple(out.shape), numbers={number})
            return
        if known.reached:
            return
        known.length = known.length + 1 if _is_behind(out.grad_fn, known.number) else 1
        known.longest = max(known.longest, known.length)
        if known.length == FEW and known not in self.long:
            self.long.append(known)
        known.last, known.number = weakref.ref(out), number
        if len(known.numbers) < REMEMBERED:
            known.numbers.add(number)

    def started(self, run: Run) -> None:
        """Count the nodes of a backward that keeps its graph."""
        self.count, self.counting = 0, bool(run.retain_graph) and not run.create_graph

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Count a node; note that a chain is differentiated."""
        self.count += 1
        if self.long and node.next_functions:
            number = sequence_of(node)
            for chain in self.long:
                if number in chain.numbers:
                    chain.reached = True

    def ended(self, run: Run) -> None:
        """Note whether a backward was longer than the one before it, and by how much."""
        self.long = [chain for chain in self.long if not chain.reached]
        if not self.counting or run.problem is not None:
            return
        line = Instruction(run.code, run.lasti)
        counts = self.counts.setdefault(line, [])
        counts.append(self.count)
        del counts[:-RUNS]
        steps = {after - before for before, after in zip(counts, counts[1:])}
        if len(counts) == RUNS and len(steps) == 1 and steps.pop() > 0:
            self.found[line] = list(counts)

    def end(self, problem: BaseException | None) -> None:
        """Report what grew."""
        for (code, lasti, shape), chain in self.chains.items():
            if chain.longest >= LONG and not chain.reached:
                line = Instruction(code, lasti)
                self.report(
                    "graph-grows",
                    place_of(line),
                    f"{brief_at(line)} computed a tensor of shape {shape} from its previous result, "
                    f"{chain.longest} times in a row; no backward() went through it.",
                    f"The last one keeps the graphs of all {chain.longest} alive.",
                )
        for line, counts in self.found.items():
            self.report(
                "graph-grows",
                place_of(line),
                f"The backward at {brief_at(line)} keeps its graph (retain_graph=True) and goes through "
                f"{counted(counts[1] - counts[0], 'node')} more each time: {counts[0]}, {counts[1]} … {counts[-1]}.",
                title="each backward goes through the graphs of all steps before it",
                cause="a tensor of the last step goes into the next with its graph; retain_graph=True hides the error",
                cure="detach what is kept from one step to the next, and remove retain_graph=True",
            )


def _is_behind(node: Any, number: int) -> bool:
    """Return whether a node of a sequence number is one of the next few behind another."""
    level = [node]
    for _ in range(DEEP):
        level = [inner for one in level for inner, _ in one.next_functions if inner is not None]
        if any(one.next_functions and sequence_of(one) == number for one in level):
            return True
        if len(level) > 16:
            return False
    return False
