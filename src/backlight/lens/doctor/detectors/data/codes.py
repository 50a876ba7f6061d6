"""Codes that are looked up, with no way back: a quantiser without a straight-through copy, blanks among labels.

NOTE [A code without a way back]
The nearest entry of a codebook is chosen by argmin, which has no derivative. A decoder that gets the entry itself sends
its gradient to the codebook and none to the encoder; z + (entry - z).detach() sends it there.

NOTE [A blank among the labels]
ctc_loss has a class of its own for no label, 0 unless another one is named. Targets within their lengths that are of
that class cannot be told from it.
"""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

LOOKS_UP = {"embedding", "getitem", "__getitem__", "index_select", "index"}
KEEPS = {"view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "contiguous", "movedim"}
LAYERS = {"linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "lstm", "gru"}
THRICE = 3


class Codes(Detector):
    """Finds them (see NOTE [A code without a way back], NOTE [A blank among the labels])."""

    calls = frozenset({"argmin", "ctc_loss", *LOOKS_UP, *KEEPS, *LAYERS})

    def __init__(self, watch):
        super().__init__(watch)
        self.nearest: WeakIdDict[Instruction] = WeakIdDict()  # indices
        self.codes: WeakIdDict[tuple[Instruction, Instruction]] = WeakIdDict()  # entries -> argmin, lookup
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow an index to the layer that gets its entry."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if name == "ctc_loss":
            self._look_at_labels(call)
            return
        if not inputs or not self.engine.is_tensor(out):
            return
        line = Instruction(call.code, call.lasti)
        if name == "argmin":
            if is_computed(inputs[0]):
                self.nearest[out] = line
        elif name in LAYERS:
            if inputs[0] in self.codes and is_computed(inputs[0]):
                self._decoded(line, *self.codes.get(inputs[0]))
        elif name in LOOKS_UP and is_computed(out):
            index = next((one for one in inputs if one in self.nearest), None)
            if index is not None:
                self.codes[out] = self.nearest.get(index), line
        elif name in KEEPS:
            for table in (self.nearest, self.codes):
                if inputs[0] in table:
                    table[out] = table.get(inputs[0])

    def _decoded(self, line: Instruction, chosen: Instruction, looked_up: Instruction) -> None:
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == THRICE:
            self.report(
                "code-without-way-back",
                place_of(looked_up),
                f"{brief_at(chosen)} chooses the nearest entry by argmin, {brief_at(looked_up)} looks it up, and "
                f"{brief_at(line)} uses it.",
                "The gradient from later ops ends at the entries.",
            )

    def _look_at_labels(self, call: Call) -> None:
        line = Instruction(call.code, call.lasti)
        if len(call.args) < 4 or line in self.times:
            return
        blank = call.kwargs.get("blank", call.args[4] if len(call.args) > 4 else 0)
        labels, lengths = (self.values(one) if self.engine.is_tensor(one) else one for one in call.args[1:4:2])
        if labels is None or lengths is None:
            return
        labels, lengths = np.asarray(labels), np.asarray(lengths).reshape(-1)
        if labels.ndim == 2:
            labels = (
                labels[np.arange(labels.shape[1]) < lengths[:, None]] if len(lengths) == len(labels) else labels[:0]
            )
        if (labels == blank).any():
            self.times[line] = 1
            self.report(
                "blank-among-labels",
                place_of(line),
                f"The targets of ctc_loss at {brief_at(line)} have {counted(int((labels == blank).sum()), 'label')} of "
                f"class {blank}, which is the blank.",
            )
