"""Losses as they are made: at which line, of which value, and which of them no backward ever uses.

NOTE [Losses that are dropped]
A line that makes a loss, reached by the same calls each time, is looked at between two backwards of what it makes. If
it made the same number of further losses in several such cycles in a row, in train mode, which had a graph, came into
no backward and were not read for the next, all but the last batch of each cycle is computed for nothing.
"""

import sys
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Module, Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

COSTS = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy"}
COSTS |= {"binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss", "gaussian_nll_loss", "poisson_nll_loss"}
REDUCTIONS = {
    "mean",
    "sum",
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "true_divide",
    "neg",
    "ctc_loss",
    "triplet_margin_loss",
}
CHOOSES = {"lt", "gt", "le", "ge", "stack", "minimum", "maximum", "min", "cat"}
CYCLES, FEWEST, DEEP, FRAMES = 3, 2, 20_000, 8
Path = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Line:
    """A line that makes losses, by one path of calls.

    Args:
        at: the line.
        pending: the sequence numbers of the losses since the last backward.
        counts: how many were dropped before each of the last backwards.
    """

    at: Instruction
    pending: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class Roots(Detector):
    """Knows the line of each loss (see NOTE [Losses that are dropped])."""

    calls = frozenset({*COSTS, *REDUCTIONS, *CHOOSES})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[tuple[Instruction, float | None, int]] = WeakIdDict()  # scalars -> line, value, sequence
        self.paths: WeakIdDict[Path] = WeakIdDict()
        self.lines: dict[Path, Line] = {}
        self.training = True
        self.current: Instruction | None = None  # where the root of the backward that runs was made
        self.reported: set[Path] = set()

    def entered(self, module: Module, path: str) -> None:
        """Learn whether a model runs in train mode."""
        if not path:
            self.training = module.training

    def called(self, call: Call) -> None:
        """Note a loss."""
        out = call.out
        if self.watch.name in CHOOSES:
            self._choose()
        if not self.engine.is_tensor(out) or out.dim() or not is_computed(out):
            return
        at, number = Instruction(call.code, call.lasti), sequence_of(out.grad_fn)
        self.made[out] = at, self.number(out), number
        if self.training:
            frames = islice(users_frames(sys._getframe(1)), FRAMES)
            path = ((id(call.code), call.lasti), *((id(one.f_code), one.f_lasti) for one in islice(frames, 1, None)))
            self.paths[out] = path
            line = self.lines.setdefault(path, Line(at))
            line.pending = [*line.pending[-999:], number]

    def _choose(self) -> None:
        """Forget the losses of a line that are compared or joined: the program chooses among them."""
        for tensor in self.watch.inputs:
            path = self.paths.get(tensor)
            if path is not None and path in self.lines:
                self.lines[path].pending.clear()
                self.lines[path].counts.clear()

    def line_of(self, tensor: Tensor) -> Instruction | None:
        """Return the line that made a loss."""
        known = self.made.get(tensor)
        return None if known is None else known[0]

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count the losses of the same line that were dropped before this one."""
        self.current = self.line_of(tensor)
        path = self.paths.get(tensor)
        line = None if path is None else self.lines.get(path)
        if line is None or path in self.reported:
            return
        *dropped, own = line.pending or [0]
        line.pending = []
        if len(dropped) < FEWEST or own != sequence_of(tensor.grad_fn) or self._are_in_graph(tensor, set(dropped)):
            line.counts.clear()
            return
        line.counts.append(len(dropped))
        if len(line.counts) >= CYCLES and len(set(line.counts[-CYCLES:])) == 1:
            self.reported.add(path)
            self._report(line, len(dropped), place)

    def _are_in_graph(self, tensor: Any, numbers: set[int]) -> bool:
        nodes = islice(nodes_behind([tensor.grad_fn]), DEEP)
        return any(node.next_functions and sequence_of(node) in numbers for node in nodes)

    def ended(self, run: Run) -> None:
        """Forget the root."""
        self.current = None

    def _report(self, line: Line, dropped: int, place: Place | None) -> None:
        self.report(
            "losses-dropped",
            place or place_of(line.at),
            f"Between two backwards at {brief(place)}, {brief_at(line.at)} made {dropped + 1} losses; only "
            f"the last had a backward, {CYCLES} times in a row.",
            f"The other {dropped} had a graph to the parameters and were discarded.",
        )
