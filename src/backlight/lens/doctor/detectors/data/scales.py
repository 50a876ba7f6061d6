"""Inputs of an evaluation that are not scaled as those of the training were, or the other way round.

NOTE [Two scales]
What was divided, or lessened by a statistic, before a training gave it to the first layer has two scales: as it came,
and as the layer got it. An evaluation, the same layer with recording off, gives it unscaled inputs if theirs is the
scale of what came, column by column, and not that of what the layer was trained with. Inputs from elsewhere, such as
those far away from the training's, have neither scale. A layer whose weights the program writes to after the last step
may have taken the scaling into itself; a state that is loaded is one of before.
"""

import sys
from dataclasses import dataclass, field
from types import CodeType, FrameType

import numpy as np

from backlight.dispatch.observers import Call
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_parameter
from backlight.lens.doctor.places import Instruction, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict

FIRST = {"linear", "conv1d", "conv2d", "lstm", "gru", "rnn_tanh"}
KEEPS = {
    "getitem",
    "__getitem__",
    "slice",
    "index",
    "index_select",
    "select",
    "to",
    "float",
    "view",
    "reshape",
    "stack",
}
KEEPS |= {"unsqueeze", "squeeze", "permute", "transpose", "contiguous", "clone", "flatten", "add", "mul", "clamp"}
SCALES = {"sub", "div", "true_divide"}
ROWS, READ, CALLS, BATCHES = 8, 512, 400, 4
NEAR, ALIKE, FAR, UNLIKE = 0.5, 2.0, 3.0, 5.0


@dataclass(frozen=True, slots=True)
class Scale:
    """The mean and the deviation of each column, and the line that changed them next."""

    mean: np.ndarray
    deviation: np.ndarray
    line: Instruction

    def is_like(self, other: "Scale") -> bool:
        """Return whether two scales are the same, but for chance."""
        if self.mean.shape != other.mean.shape:
            return False
        larger = np.maximum(self.deviation, other.deviation)
        least = np.minimum(self.deviation, other.deviation)
        return bool(np.all(abs(self.mean - other.mean) <= NEAR * larger) and np.all(larger <= ALIKE * least))

    def is_unlike(self, other: "Scale") -> bool:
        """Return whether a column has another scale."""
        if self.mean.shape != other.mean.shape:
            return False
        far = abs(self.mean - other.mean) > FAR * other.deviation
        ratio = self.deviation / np.maximum(other.deviation, 1e-12)
        return bool(np.any(far | (ratio > UNLIKE) | (ratio < 1 / UNLIKE)))


@dataclass(slots=True)
class Fed:
    """What a first layer was trained with: the scale of its first batches, what this was before it was scaled."""

    line: Instruction
    scales: list[Scale] = field(default_factory=list)
    raw: Scale | None = None
    rewritten: bool = False


class Scales(Detector):
    """Finds them (see NOTE [Two scales])."""

    calls = frozenset({*FIRST, *KEEPS, *SCALES})

    def __init__(self, watch):
        super().__init__(watch)
        self.raw: WeakIdDict[Scale] = WeakIdDict()  # what was scaled -> the scale that it had before
        self.layers: WeakIdDict[Fed] = WeakIdDict()  # weights
        self.memories: dict[int, Fed] = {}  # by the memory of their weights
        self.read = 0
        self.evaluated = 0
        self.done = False

    def called(self, call: Call) -> None:
        """Follow data from where they are scaled to the first layer."""
        name, inputs, outs = self.watch.name, self.watch.inputs, self.watch.outs
        if self.done or not inputs or not outs or inputs[0].requires_grad:
            return
        if name in FIRST:
            weight = next((one for one in inputs[1:] if is_parameter(one)), None)
            if weight is not None:
                self._enters(call, inputs[0], weight, outs[0].requires_grad)
        elif not outs[0].requires_grad and name in SCALES:
            self._scaled(call, inputs, outs[0])
        elif len(self.raw):
            known = self.raw.get(inputs[0])
            if known is not None and (name != "stack" or all(one in self.raw for one in inputs)):
                for out in outs:
                    self.raw[out] = known

    def wrote(self, tensor: Tensor, name: str, code: CodeType, lasti: int) -> None:
        """Note that the program writes to a layer's weights, and no optimizer and no loading of a state."""
        if self.memories and not self.watch.stepping:
            known = self.memories.get(self.engine.memory_of(tensor)[0])
            if known is not None and not _is_loading(sys._getframe(1)):
                known.rewritten = True

    def _scaled(self, call: Call, inputs: list, out: Tensor) -> None:
        if call.args and call.args[0] is not inputs[0]:
            return
        if inputs[0] in self.raw:
            self.raw[out] = self.raw.get(inputs[0])
        elif self.read < CALLS and inputs[0].dim() > 1 and all(16 * one.numel() <= out.numel() for one in inputs[1:]):
            self.read += 1
            scale = self._scale_of(inputs[0], Instruction(call.code, call.lasti))
            if scale is not None:
                self.raw[out] = scale

    def _scale_of(self, tensor: Tensor, line: Instruction) -> Scale | None:
        """Return the scale of each feature or channel of many rows."""
        if tensor.dim() < 2 or tensor.shape[0] < ROWS:
            return None
        values = self.values(tensor)
        if values is None or values.dtype.kind not in "fui":
            return None
        values = values[:READ]
        values = np.moveaxis(values, 1, -1) if values.ndim > 3 else values
        columns = values.reshape(-1, values.shape[-1]).astype(np.float64)
        with silent_floats():
            mean, deviation = columns.mean(axis=0), columns.std(axis=0)
        return Scale(mean, deviation, line) if np.all(np.isfinite(deviation)) and np.all(deviation > 0) else None

    def _enters(self, call: Call, tensor: Tensor, weight: Tensor, trains: bool) -> None:
        users = (one for one in users_frames(sys._getframe(1)) if one.f_code.co_name != "forward")
        caller = next(users, None)  # where the model is called
        line = Instruction(call.code, call.lasti) if caller is None else Instruction(caller.f_code, caller.f_lasti)
        known = self.layers.get(weight)
        if trains:
            if known is None:
                known = self.layers[weight] = Fed(line, raw=self.raw.get(tensor))
                self.memories[self.engine.memory_of(weight)[0]] = known
            known.rewritten = False
            if len(known.scales) < BATCHES and (scale := self._scale_of(tensor, line)) is not None:
                known.scales.append(scale)
            return
        if known is None or not known.scales or known.rewritten or self.evaluated >= CALLS:
            return
        self.evaluated += 1
        scaled, own = self.raw.get(tensor), None
        if (known.raw is None) == (scaled is None):
            return
        own = self._scale_of(tensor, line)
        if own is None or not all(own.is_unlike(one) for one in known.scales):
            return
        if known.raw is not None and own.is_like(known.raw):
            self._report(own, known.scales[0], known.raw, "the training data", "the evaluation data")
        elif scaled is not None and all(scaled.is_like(one) for one in known.scales):
            self._report(own, known.scales[0], scaled, "the evaluation data", "the training data")

    def _report(self, own: Scale, trained: Scale, raw: Scale, what: str, other: str) -> None:
        self.done = True
        moved = abs(own.mean - trained.mean) / trained.deviation
        column = int(np.argmax(moved + abs(np.log(own.deviation / trained.deviation))))
        self.report(
            "evaluated-on-another-scale",
            place_of(own.line),
            f"{brief_at(raw.line)} scales {what}, but {other} is not scaled.",
            f"Column {column} had a mean of {short(trained.mean[column])} and a standard deviation of "
            f"{short(trained.deviation[column])} in training; at {brief_at(own.line)} it has {short(own.mean[column])} "
            f"and {short(own.deviation[column])}.",
        )


def _is_loading(frame: FrameType | None) -> bool:
    """Return whether load_state_dict() runs."""
    while frame is not None:
        if frame.f_code.co_name == "_load_from_state_dict":
            return True
        frame = frame.f_back
    return False
