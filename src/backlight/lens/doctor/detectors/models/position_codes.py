"""Codes of positions that are added along the batch: all times of a row get the same code.

NOTE [Positions of rows]
A table of codes is cut to the size of a batch, `pe[: x.size(0)]`, and added to (batch, time, features), where a layer
with batch_first reads the sum. The table's rows differ, and its second dim is 1: the code says which row of the batch
this is, and not which time. It is one table: a part of a parameter or of a buffer, which depends on no data.
"""

from dataclasses import dataclass

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

CUTS = {"getitem", "__getitem__", "slice", "narrow"}
ADDS = {"add", "mul"}
KEEPS = {"dropout", "layer_norm", "contiguous", "to", "detach"}
READS = {"transpose", "multi_head_attention_forward", "gru", "lstm"}
TWICE, DIMS = 2, 3
DEPTH = 3  # modules, one inside the other, of which one may say batch_first


@dataclass(frozen=True, slots=True)
class Coded:
    """A sum with codes: its line, that of the cut, the sizes of both."""

    line: Instruction
    cut: Instruction
    codes: tuple[int, ...]
    rows: tuple[int, ...]


class PositionCodes(Detector):
    """Finds them (see NOTE [Positions of rows])."""

    calls = frozenset({*CUTS, *ADDS, *KEEPS, *READS})

    def __init__(self, watch):
        super().__init__(watch)
        self.cut: WeakIdDict[Instruction] = WeakIdDict()
        self.coded: WeakIdDict[Coded] = WeakIdDict()
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow codes into a sum."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        if name in CUTS:
            first = inputs[0]
            if out.dim() == DIMS and first.dim() == DIMS and out.shape[1] == 1 and 1 < out.shape[0] < first.shape[0]:
                if out.shape[2] == first.shape[2] and len(inputs) == 1:
                    self.cut[out] = Instruction(call.code, call.lasti)
            return
        found = self.coded.get(inputs[0]) if len(self.coded) else None
        if found is not None and out.requires_grad and self._in_batch_first():
            self.coded.pop(inputs[0])
            self._count(found)
        if name in READS:
            return
        if name in KEEPS or (name == "mul" and inputs[0] in self.coded):  # dropout is a product on backlight
            if inputs[0] in self.coded:
                self.coded[out] = self.coded.get(inputs[0])
            elif inputs[0] in self.cut:
                self.cut[out] = self.cut.get(inputs[0])
        elif len(inputs) == 2 and len(self.cut):
            codes = next((one for one in inputs if one in self.cut), None)
            rows = next((one for one in inputs if one is not codes), None)
            if name == "add" and codes is not None and rows is not None and self._is_along_batch(codes, rows):
                line = Instruction(call.code, call.lasti)
                self.coded[out] = Coded(line, self.cut.get(codes), tuple(codes.shape), tuple(rows.shape))

    def _is_along_batch(self, codes: Tensor, rows: Tensor) -> bool:
        if rows.dim() != DIMS or rows.shape[0] != codes.shape[0] or rows.shape[1] < 2 or not rows.requires_grad:
            return False
        values = self.values(codes)
        return values is not None and bool((values != values[:1]).any())

    def _in_batch_first(self) -> bool:
        """Return whether one of the innermost layers that run takes the batch first."""
        for module in self.watch.detectors[Constructions].running[-DEPTH:]:
            own = getattr(module, "batch_first", None)  # a layer of a transformer has it in its attention
            if own is True or getattr(getattr(module, "self_attn", None), "batch_first", None) is True:
                return True
        return False

    def _count(self, found: Coded) -> None:
        self.times[found.line] = self.times.get(found.line, 0) + 1
        if self.times[found.line] == TWICE:
            self.report(
                "codes-along-batch",
                place_of(found.cut),
                f"Codes of shape {list(found.codes)} are cut at {brief_at(found.cut)} and added at "
                f"{brief_at(found.line)} to a tensor of shape {list(found.rows)}.",
                "The layer that gets the sum takes (batch, time, features): each row has one code for all its times.",
            )
