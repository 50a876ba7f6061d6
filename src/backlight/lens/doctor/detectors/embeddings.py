"""An embedding whose padding_idx is a real token: its row stays 0 and never learns.

NOTE [What no padding looks like]
Padding stands in runs at one end of a sequence. If the index stands between others again and again, and never twice in
a row at an end, it is a token. Rows of a batch of sequences are looked at, and single sequences, which an embedding's
result shows by being summed up or averaged over its first dim.
"""

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, replaced
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_frame
from backlight.lens.records.record import Place

INSIDE, CALLS = 5, 3
JOINS = {"mean", "sum"}


@dataclass(slots=True)
class Padding:
    """What was seen of one embedding's padding index."""

    index: int
    line: Instruction
    calls: int = 0
    inside: int = 0  # between other tokens
    at_ends: int = 0  # in runs of two or more at an end


class Embeddings(Detector):
    """Looks at where padding indices stand (see NOTE [What no padding looks like])."""

    calls = frozenset({"embedding", *JOINS})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: dict[tuple, Place | None] = {}  # (rows, padding_idx) -> where such an embedding was made
        self.seen: dict[tuple, Padding] = {}
        self.single: tuple[Any, np.ndarray, Padding] | None = None  # a single sequence's result, its indices

    def begin(self) -> None:
        """Watch the making of embeddings."""
        self.watch.after(self.engine.module.nn.Embedding, "__init__", self._made)

    def _made(self, frame: Any, out: None, args: tuple, kwargs: dict) -> None:
        table = args[0]
        self.made[table.num_embeddings, table.padding_idx] = place_of_frame(frame)

    def called(self, call: Call) -> None:
        """Look at indices."""
        if self.watch.name in JOINS:
            self._look_at_join(call)
            return
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
        if ids.ndim == 1:
            self.single = weakref.ref(call.out), ids.copy(), known
        else:
            self._count(ids.reshape(-1, ids.shape[-1]), known)

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
            if known.calls < CALLS or known.inside < INSIDE or known.at_ends:
                continue
            made = self.made.get((rows, index))
            self.report(
                "padding-index-is-token",
                made or place_of(known.line),
                f"Index {index} was between other tokens {counted(known.inside, 'time')} in "
                f"{counted(known.calls, 'call')} at {brief_at(known.line)}, and never in a run at the end of a "
                f"sequence.",
                f"The embedding of {rows} rows, made at {brief(made)}, has padding_idx={index}: row {index} gets no "
                "gradient.",
                title=f"padding_idx={index} is a token that sequences use: its embedding is never trained",
                corrected=None if made is None else replaced(code_of(made), f", padding_idx={index}", ""),
            )
