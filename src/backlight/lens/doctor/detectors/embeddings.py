"""An embedding whose padding_idx is a real token: its row stays 0 and never learns.

NOTE [What no padding looks like]
Padding stands in runs at one end of a sequence. If the index stands between others again and again, and never twice in
a row at an end, it is a token. Rows of a batch of sequences are looked at, and single sequences, which an embedding's
result shows by being summed up or averaged over its first dim.
It is one, too, if the program draws it: randint(0, …) gives ids to embed, negatives of a recommender, and they hold the
index; or if a loss over as many classes as there are rows wants that class, one class for each padded sequence.
"""

import weakref
from dataclasses import dataclass
from types import CodeType
from typing import Any, Unpack

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, replaced
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_frame
from backlight.lens.doctor.rule_index import Words
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

INSIDE, CALLS, CLASSES = 5, 3, 16
JOINS = {"mean", "sum"}
KEEPS = {"cat", "stack", "view", "reshape", "unsqueeze", "squeeze", "to", "long", "getitem", "__getitem__", "flatten"}
KEEPS |= {"slice", "select", "index", "index_select", "concat", "hstack", "expand"}
CLASS_LOSSES = {"cross_entropy", "nll_loss"}
SHIFT = (
    "Count real ids from 1 where {index} is the padding, and give the table one row more; or take a number for the "
    "padding that no id has."
)


@dataclass(slots=True)
class Padding:
    """What was seen of one embedding's padding index."""

    index: int
    line: Instruction
    calls: int = 0
    inside: int = 0  # between other tokens
    at_ends: int = 0  # in runs of two or more at an end
    drawn: Instruction | None = None  # where it was drawn
    found: int = 0  # how often it was among ids that were drawn
    draws: int = 0  # how many such calls there were


@dataclass(slots=True)
class Wanted:
    """How often a loss wanted the class of a padding index, and in how many steps."""

    rows: int
    index: int
    times: int = 0
    steps: int = 0


class Embeddings(Detector):
    """Looks at where padding indices stand (see NOTE [What no padding looks like])."""

    calls = frozenset({"embedding", "randint", *JOINS, *KEEPS, *CLASS_LOSSES})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: dict[tuple, Place | None] = {}  # (rows, padding_idx) -> where such an embedding was made
        self.seen: dict[tuple, Padding] = {}
        self.single: tuple[Any, np.ndarray, Padding] | None = None  # a single sequence's result, its indices
        self.drawn: WeakIdDict[tuple[Instruction, int]] = WeakIdDict()  # ids -> where they were drawn, the least
        self.padded: tuple[int, int, int] | None = None  # of the last batch: rows of the table, index, sequences
        self.wanted: dict[Instruction, Wanted] = {}

    def begin(self) -> None:
        """Watch the making of embeddings."""
        self.watch.after(self.engine.module.nn.Embedding, "__init__", self._made)

    def _made(self, frame: Any, out: None, args: tuple, kwargs: dict) -> None:
        table = args[0]
        self.made[table.num_embeddings, table.padding_idx] = place_of_frame(frame)

    def called(self, call: Call) -> None:
        """Look at indices."""
        name = self.watch.name
        if name == "embedding":
            self._look_at_ids(call)
        elif name in JOINS:
            self._look_at_join(call)
        elif name == "randint":
            if self.engine.is_tensor(call.out):
                self.drawn[call.out] = Instruction(call.code, call.lasti), _least(call)
        elif name in CLASS_LOSSES:
            self._look_at_classes(call)
        elif len(self.drawn):
            known = next((found for one in self.watch.inputs if (found := self.drawn.get(one)) is not None), None)
            if known is not None and self.engine.is_tensor(call.out) and not call.out.is_floating_point():
                self.drawn[call.out] = known

    def _look_at_ids(self, call: Call) -> None:
        index = call.args[2] if len(call.args) > 2 else call.kwargs.get("padding_idx")
        tensors = [one for one in self.watch.inputs if not one.is_floating_point()]
        weight = next((one for one in self.watch.inputs if one.is_floating_point()), None)
        if not isinstance(index, int) or index < 0 or len(tensors) != 1 or weight is None or not weight.requires_grad:
            return
        ids = self.values(tensors[0])
        if ids is None or ids.ndim == 0 or ids.shape[-1] < 2:
            return
        key = call.code, call.lasti, weight.shape[0], index
        known = self.seen.setdefault(key, Padding(index, Instruction(call.code, call.lasti)))
        drawn = self.drawn.get(tensors[0])
        if drawn is not None and drawn[1] <= index and call.out.requires_grad:
            known.drawn, known.draws = drawn[0], known.draws + 1
            known.found += int(np.count_nonzero(ids == index))
        if ids.ndim == 2 and call.out.requires_grad:
            self.padded = weight.shape[0], index, len(ids)
        if ids.ndim == 1:
            self.single = weakref.ref(call.out), ids.copy(), known
        else:
            self._count(ids.reshape(-1, ids.shape[-1]), known)

    def wrote(self, tensor: Tensor, name: str, code: CodeType, lasti: int) -> None:
        """Ids that were drawn are written over: by padding, it may be."""
        self.drawn.pop(tensor)

    def _look_at_classes(self, call: Call) -> None:
        """Look at a loss over as many classes as a table has rows: whether one of them is the padding."""
        padded, self.padded = self.padded, None
        scores, target = (*self.watch.inputs, None, None)[:2]
        if padded is None or target is None or target.dim() != 1 or scores.dim() != 2 or target.is_floating_point():
            return
        rows, index, count = padded
        ignored = call.kwargs.get("ignore_index", -100)
        if rows < CLASSES or scores.shape != (count, rows) or not scores.requires_grad or ignored == index:
            return
        values = self.values(target)
        known = self.wanted.setdefault(Instruction(call.code, call.lasti), Wanted(rows, index))
        if values is not None and not (values == index).all():
            known.steps += 1
            known.times += int(np.count_nonzero(values == index))

    def _look_at_join(self, call: Call) -> None:
        """Count a single sequence, when its vectors are joined."""
        single, self.single = self.single, None
        dim = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
        if single is not None and call.args and call.args[0] is single[0]() and dim in (0, -2, [0], (0,)):
            self._count(single[1][None], single[2])

    def _count(self, rows: np.ndarray, known: Padding) -> None:
        known.calls += 1
        for row in rows == known.index:
            others = np.flatnonzero(~row)
            if not others.size:
                known.at_ends += 1
                continue
            first, last = int(others[0]), int(others[-1])
            known.inside += int(row[first:last].sum())
            known.at_ends += (first > 1) + (len(row) - 1 - last > 1)

    def end(self, problem: BaseException | None) -> None:
        """Report indices that are no padding."""
        for (_, _, rows, index), known in self.seen.items():
            if known.calls >= CALLS and known.inside >= INSIDE and not known.at_ends:
                made = self.made.get((rows, index))
                self._report(
                    rows,
                    index,
                    known.line,
                    f"Index {index} was between other tokens {counted(known.inside, 'time')} in "
                    f"{counted(known.calls, 'call')} at {brief_at(known.line)}, and never in a run at the end of a "
                    "sequence.",
                    corrected=None if made is None else replaced(code_of(made), f", padding_idx={index}", ""),
                )
            elif known.drawn is not None and known.draws >= CALLS and known.found >= INSIDE:
                self._report(
                    rows,
                    index,
                    known.line,
                    f"{brief_at(known.drawn)} draws ids, {index} among them: {counted(known.found, 'time')} in "
                    f"{counted(known.draws, 'call')} at {brief_at(known.line)}.",
                    cure=SHIFT.format(index=index),
                )
        for line, wanted in self.wanted.items():
            if wanted.steps >= CALLS and wanted.times >= INSIDE:
                self._report(
                    wanted.rows,
                    wanted.index,
                    line,
                    f"The loss at {brief_at(line)}, over {wanted.rows} classes, wants class {wanted.index} "
                    f"{counted(wanted.times, 'time')} in {counted(wanted.steps, 'step')}: it is to be predicted.",
                    cure=SHIFT.format(index=wanted.index),
                )

    def _report(self, rows: int, index: int, line: Instruction, evidence: str, **words: Unpack[Words]) -> None:
        made = self.made.get((rows, index))
        self.report(
            "padding-index-is-token",
            made or place_of(line),
            evidence,
            f"The embedding of {rows} rows, made at {brief(made)}, has padding_idx={index}: row {index} gets no "
            "gradient.",
            title=f"padding_idx={index} is a token that sequences use: its embedding is never trained",
            **words,
        )


def _least(call: Call) -> int:
    """Return the least number that a randint draws."""
    numbers = [one for one in call.args if isinstance(one, int)]
    low = call.kwargs.get("low", numbers[0] if len(numbers) > 1 or ("high" in call.kwargs and numbers) else 0)
    return low if isinstance(low, int) else 0
