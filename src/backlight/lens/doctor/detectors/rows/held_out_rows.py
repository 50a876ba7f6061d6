"""Losses over all rows, of which some are held out: a permutation split them, and each part is evaluated apart.

NOTE [Parts of a permutation]
Rows that are split by chance are a piece of a permutation, from one place in it to another: no group of data is, but by
chance. Two pieces of one permutation that have no row in common, each used to pick what the evaluation counts, are a
training set and one that is held out, or two that are. It is a mistake if the loss goes over all rows with the very
target that is evaluated, and no piece ever picks anything that has a graph. One piece alone may be a sample of the
training rows; batches pick rows of what is trained on.
"""

from dataclasses import dataclass, field

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

PICKS = {"getitem", "__getitem__", "index_select", "masked_select", "index"}
KEEPS = {"eq", "ne", "sub", "abs", "pow", "float", "to", "long", "squeeze", "view", "square", "int"}
LEAST, MOST, PERMUTATIONS, STEPS = 16, 1_000_000, 8, 3


@dataclass(slots=True)
class Whole:
    """A loss over all rows: how often, and the pieces of permutations that its target was evaluated by."""

    line: Instruction
    rows: int
    steps: int = 0
    pieces: dict[tuple[int, int, int], Instruction] = field(default_factory=dict)  # permutation, first, last -> line


class HeldOutRows(Detector):
    """Finds them (see NOTE [Parts of a permutation])."""

    calls = frozenset({"randperm", *LOSSES, *PICKS, *KEEPS, "mul"})

    def __init__(self, watch):
        super().__init__(watch)
        self.places: list[np.ndarray] = []  # permutations: where each row stands in it
        self.targets: WeakIdDict[Whole] = WeakIdDict()
        self.wholes: list[Whole] = []
        self.evaluated: WeakIdDict[Whole] = WeakIdDict()  # what was computed from targets
        self.picked: WeakIdDict[tuple | None] = WeakIdDict()  # masks and indices -> the piece that they are
        self.apart = False  # whether a piece picked something with a graph

    def called(self, call: Call) -> None:
        """Look at permutations, losses, and at what is picked."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if self.apart or not self.engine.is_tensor(out):
            return
        if name == "randperm":
            self._permuted(out)
        elif not self.places or not inputs:
            return
        elif name in LOSSES:
            if out.requires_grad and len(inputs) > 1 and not inputs[1].requires_grad:
                self._lost(Instruction(call.code, call.lasti), inputs[1])
        elif name in PICKS or name == "mul":
            self._pick(call, inputs, out)
        elif not out.requires_grad:
            known = next((found for one in inputs if (found := self._whole_of(one)) is not None), None)
            if known is not None and out.dim() and out.shape[0] == known.rows:
                self.evaluated[out] = known

    def _permuted(self, out: Tensor) -> None:
        if len(self.places) < PERMUTATIONS and LEAST <= out.numel() <= MOST:
            values = self.values(out)
            if values is not None:
                self.places.append(np.argsort(values))

    def _whole_of(self, tensor: Tensor) -> Whole | None:
        return self.targets.get(tensor) or self.evaluated.get(tensor)

    def _lost(self, line: Instruction, target: Tensor) -> None:
        known = self.targets.get(target)
        if known is None:
            rows = target.shape[0] if target.dim() else 0
            if not any(len(one) == rows for one in self.places):
                return
            known = self.targets[target] = Whole(line, rows)
            self.wholes.append(known)
        known.steps += 1

    def _pick(self, call: Call, inputs: list, out: Tensor) -> None:
        if len(inputs) == 2 and inputs[0].dim() and inputs[1].dim() == 1 and _picks_rows(call):
            source, index = inputs
            if self.watch.name == "mul" and not source.requires_grad and index.requires_grad:
                source, index = index, source
            whole, graph = self._whole_of(source), is_computed(source)
            if (whole is None and not graph) or not any(len(one) == source.shape[0] for one in self.places):
                return
            piece = self._piece(index, source.shape[0])
            if piece is None:
                return
            if graph:
                self.apart = True
            else:
                whole.pieces.setdefault(piece, Instruction(call.code, call.lasti))

    def _piece(self, index: Tensor, rows: int) -> tuple[int, int, int] | None:
        """Return which piece of a permutation an index is: its number, its first and its last place."""
        if index in self.picked:
            return self.picked.get(index)
        found = None
        values = self.values(index)
        if values is not None and values.size:
            if values.dtype.kind == "i" and len(np.unique(values)) == len(values) and values.max() < rows:
                chosen = values if values.min() >= 0 and len(values) < rows else None
            else:
                zeros_and_ones = len(values) == rows and np.all((values == 0) | (values == 1))
                chosen = np.flatnonzero(values) if zeros_and_ones and values.any() and not values.all() else None
            if chosen is not None and len(chosen) > 1:
                found = self._place_of(chosen, rows)
        self.picked[index] = found
        return found

    def _place_of(self, chosen: np.ndarray, rows: int) -> tuple[int, int, int] | None:
        for number, places in enumerate(self.places):
            if len(places) == rows:
                own = places[chosen]
                first, last = int(own.min()), int(own.max())
                if last - first + 1 == len(chosen) and not np.array_equal(places, np.arange(rows)):
                    return number, first, last
        return None

    def end(self, problem: BaseException | None) -> None:
        """Report a loss over all rows whose parts were evaluated apart."""
        for whole in () if self.apart else self.wholes:
            pieces = sorted(whole.pieces)
            pairs = [(one, other) for one, other in zip(pieces, pieces[1:]) if one[0] == other[0] and one[2] < other[1]]
            if whole.steps < STEPS or not pairs:
                continue
            one, other = pairs[0]
            self.report(
                "held-out-rows-in-loss",
                place_of(whole.line),
                f"The loss at {brief_at(whole.line)} uses all {whole.rows} rows, in {whole.steps} steps.",
                f"{brief_at(whole.pieces[one])} evaluates places {one[1]} to {one[2]} of a random permutation of them, "
                f"and places {other[1]} to {other[2]} separately: rows that were held out are used for training.",
            )


def _picks_rows(call: Call) -> bool:
    """Return whether an index is one of the first dim, and not the second one of several."""
    if call.name == "index_select":
        return call.args[1:2] == (0,) or call.kwargs.get("dim") == 0
    if call.name == "index":
        return call.args[2:3] == ((0,),)
    return not isinstance(call.args[1] if len(call.args) > 1 else None, (tuple, list))
