"""States of recurrent layers that are carried from one batch to the next, though the batches are shuffled.

NOTE [What a state belongs to]
A state that is carried over says that the next batch goes on where the last one ended. Batches of a loader that
shuffles do not; nor do pieces that are cut out of a series at places in no order. A state that was computed in an
earlier batch and enters the layer again, in three steps or more, is the mistake. Within one batch states may be carried
from piece to piece; one that is learned, or that an encoder gives, is no result of an earlier batch.
"""

from dataclasses import dataclass, field

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.data.leaks import RECURRENT
from backlight.lens.doctor.detectors.slips.loaders import Loaders
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LAYERS = RECURRENT | {"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"}
KEEPS = {"detach", "clone", "data", "contiguous", "getitem", "__getitem__", "select", "slice", "unsqueeze", "squeeze"}
KEEPS |= {"mul", "to", "float", "transpose", "permute", "view", "reshape"}
CUTS = {"getitem", "__getitem__", "select", "slice", "narrow"}
ROWWISE = {"unsqueeze", "squeeze", "float", "to", "transpose", "permute", "contiguous", "view", "reshape", "clone"}
JOINS = {"stack", "cat", "getitem", "__getitem__"}  # of layers' states; picked by an index, states are a memory
LAYERS_AT_MOST = 4
PROJECTS = {"linear", "matmul", "addmm"}  # on backlight apart from the steps
TIMES, PIECES, BACKWARD = 3, 10, 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a series: which one, and where it begins in memory."""

    source: int
    offset: int


@dataclass(slots=True)
class Carried:
    """How often a layer's line got a state of an earlier batch or piece.

    Args:
        times: batches of a loader that shuffles.
        pieces: where the pieces began that it got, with the series that they are of.
    """

    times: int = 0
    pieces: list[Piece] = field(default_factory=list)


class CarriedStates(Detector):
    """Finds them (see NOTE [What a state belongs to])."""

    calls = frozenset({*LAYERS, *KEEPS, *CUTS, *JOINS, *PROJECTS})

    def __init__(self, watch):
        super().__init__(watch)
        self.states: WeakIdDict[tuple[int, int]] = WeakIdDict()  # -> the number of the batch, of the backward
        self.pieces: WeakIdDict[Piece] = WeakIdDict()
        self.lines: dict[Instruction, Carried] = {}
        self.fed: dict[Instruction, bool] = {}  # layers in this step -> whether with a state of an earlier batch
        self.done: set[Instruction] = set()
        self.backwards = 0
        if self.engine.name == "torch":
            self.calls = self.calls - PROJECTS

    def called(self, call: Call) -> None:
        """Follow states, and look at those that a layer gets."""
        name, inputs, outs = self.watch.name, self.watch.inputs, self.watch.outs
        if not inputs or not outs:
            return
        if name in LAYERS:
            if outs[0].requires_grad:
                self._look(Instruction(call.code, call.lasti), inputs, outs)
            return
        known = self.states.get(inputs[0]) if len(self.states) else None
        if known is not None:
            if name not in JOINS or (len(inputs) <= LAYERS_AT_MOST and all(one in self.states for one in inputs)):
                for out in outs:
                    self.states[out] = known
        elif name in PROJECTS and inputs[0] in self.pieces:
            self.pieces[outs[0]] = self.pieces.get(inputs[0])
        elif name in CUTS or name in ROWWISE:
            self._cut(name, inputs[0], outs[0])

    def _cut(self, name: str, series: Tensor, out: Tensor) -> None:
        if not series.dim():
            return
        known = self.pieces.get(series)
        if known is not None:
            self.pieces[out] = known
        elif series.requires_grad or out.requires_grad:
            return
        elif name in CUTS and out.dim() and series.dtype.is_floating_point and out.numel() < series.numel():
            memory = self.engine.memory_of(out)[0]
            if memory == self.engine.memory_of(series)[0]:
                self.pieces[out] = Piece(memory, out.storage_offset())

    def _look(self, line: Instruction, inputs: list, outs: list) -> None:
        loaders = self.watch.detectors[Loaders]
        now = loaders.number, self.backwards
        earlier = [known for one in inputs[1:] if (known := self.states.get(one)) is not None]
        for out in outs:
            self.states[out] = now
        if line in self.done or line in self.fed:
            return
        carried = bool(earlier) and max(number for _, number in earlier) < self.backwards
        self.fed[line] = carried
        if not carried:
            return
        known = self.lines.setdefault(line, Carried())
        shuffled = loaders.shuffled
        if shuffled is not None and max(number for number, _ in earlier) < loaders.number:
            known.times += 1
            if known.times == TIMES:
                made = "" if shuffled.made is None else f", made at {brief_at(shuffled.made)},"
                self._report(
                    line,
                    f"{TIMES} batches of a loader{made} that shuffles met the state which the layer at "
                    f"{brief_at(line)} had returned for the batch before.",
                    "Do not shuffle what the state is carried through, shuffle=False; or begin each batch without a "
                    "state.",
                    shuffled.made,
                )
            return
        piece = self.pieces.get(inputs[0])
        if piece is not None:
            known.pieces = [*known.pieces, piece][-PIECES:]
            self._look_at_order(line, known)

    def _look_at_order(self, line: Instruction, known: Carried) -> None:
        if len(known.pieces) < PIECES or len({one.source for one in known.pieces}) > 1:
            return
        places = [one.offset for one in known.pieces]
        steps = [after - before for before, after in zip(places, places[1:])]
        if sum(step < 0 for step in steps) >= BACKWARD and len(set(steps)) > BACKWARD:
            self._report(
                line,
                f"The last {PIECES} pieces that {brief_at(line)} got, each with the state after the one before, begin "
                f"at {', '.join(map(str, places[:5]))} … of one tensor: in no order.",
                "Go through the pieces in the order of time; or begin each piece without a state.",
                None,
            )

    def _report(self, line: Instruction, evidence: str, cure: str, made: Instruction | None) -> None:
        self.done.add(line)
        self.report("state-of-unrelated-batch", place_of(made or line), evidence, cure=cure)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.backwards += 1
        self.fed.clear()
