"""Images that are flipped and rotated by chance, and targets of the same pixels that are not.

NOTE [Augmented apart]
Rows of two tensors are taken by an index, one goes to a convolution, the other, of the same height and width, is the
target of a loss. What flips, rotates and rolls did to each on the way is kept for each row, through stacking too. In
some rows both had the same, in others only one of the two had, and the target is not symmetrical: an augmentation that
forgets the target. What is done to every row is no augmentation; one tensor that is made of the other may be its mirror
image on purpose; and where a prediction is flipped back, as in averages over views, nothing is said.
"""

from dataclasses import dataclass, replace

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

TAKES = {"getitem", "__getitem__", "index_select", "select", "index", "slice"}
MOVES = {"flip", "fliplr", "flipud", "rot90", "roll"}
KEEPS = {"mul", "add", "sub", "div", "true_divide", "clamp", "to", "float", "long", "clone", "contiguous", "unsqueeze"}
KEEPS |= {"squeeze", "pow", "sqrt", "neg", "normalize", "abs", "where", "double", "detach"}
CONVOLUTIONS = {"conv1d", "conv2d", "convolution"}
PIXEL_LOSSES = {*LOSSES, "cross_entropy_2d"}
LEAST = 4
PIXELS = 3  # least width, or length


@dataclass(frozen=True, slots=True)
class Track:
    """What was done to a row, or to a whole batch, since it was taken.

    Args:
        source: the id of what it was taken from.
        flips: the dims that were flipped, counted from the end.
        others: turns and rolls, in order.
        line: the last of these.
    """

    source: int
    flips: frozenset[int] = frozenset()
    others: tuple = ()
    line: Instruction | None = None

    def moves(self, dims: set[int]) -> tuple:
        """Return what was done along some dims."""
        return self.flips & dims, self.others


@dataclass(slots=True)
class Pairs:
    """Rows of input and target at one loss: how many were treated alike, how many apart, by which line."""

    alike: int = 0
    apart: int = 0
    line: Instruction | None = None
    moved: str = ""


class Augmentations(Detector):
    """Finds them (see NOTE [Augmented apart])."""

    calls = frozenset({*TAKES, *MOVES, *KEEPS, *CONVOLUTIONS, *PIXEL_LOSSES, "stack"})

    def __init__(self, watch):
        super().__init__(watch)
        self.tracks: WeakIdDict[tuple[Track, ...]] = WeakIdDict()
        self.fed: tuple[tuple[Track, ...], int, tuple] | None = None  # what a convolution got in this step
        self.back = False  # whether a prediction was flipped
        self.moved = False  # whether anything was
        self.pairs: dict[Instruction, Pairs] = {}
        self.done: set[Instruction] = set()

    def called(self, call: Call) -> None:
        """Follow rows to a convolution and to a loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        if name in MOVES:
            self._move(call, name, inputs[0], out)
        elif name in PIXEL_LOSSES:
            if self.fed is not None and self.moved and len(inputs) > 1 and is_computed(inputs[0]):
                self._look(Instruction(call.code, call.lasti), inputs[0], inputs[1])
        elif out.requires_grad:
            if name in CONVOLUTIONS and not inputs[0].requires_grad and self.fed is None:
                known, dims = self.tracks.get(inputs[0]), inputs[1].dim() - 2
                if known is not None and dims in (1, 2):
                    self.fed = known, dims, tuple(inputs[0].shape[-dims:])
        elif name == "stack":
            known = [self.tracks.get(one) for one in inputs]
            if all(one is not None and len(one) == 1 for one in known):
                self.tracks[out] = tuple(one[0] for one in known)
        elif name in TAKES:
            self._take(inputs[0], out)
        else:
            self._keep(inputs, out)

    def _take(self, source: Tensor, out: Tensor) -> None:
        known = self.tracks.get(source)
        if known is not None:
            if out.dim() >= source.dim():  # a piece of it; another row of a batch is not followed
                self.tracks[out] = known
        elif out.dim() and out.shape[-1] >= PIXELS and not self.watch.flow.of(source).leaves:
            self.tracks[out] = (Track(id(source)),)

    def _keep(self, inputs: list, out: Tensor) -> None:
        found = {known for one in inputs if (known := self.tracks.get(one)) is not None}
        if len(found) == 1 and all(out.shape[-2:] == one.shape[-2:] or one not in self.tracks for one in inputs):
            self.tracks[out] = found.pop()

    def _move(self, call: Call, name: str, source: Tensor, out: Tensor) -> None:
        if source.requires_grad:
            self.back = True
            return
        known, line = self.tracks.get(source), Instruction(call.code, call.lasti)
        if known is None:
            return
        self.moved = True
        if name not in ("rot90", "roll"):
            flips = _flipped(name, call, source.dim())
            self.tracks[out] = tuple(replace(one, flips=one.flips ^ flips, line=line) for one in known)
        else:
            words = name, repr(call.args[1:]), repr(sorted(call.kwargs.items()))
            self.tracks[out] = tuple(replace(one, others=(*one.others, words), line=line) for one in known)

    def _look(self, line: Instruction, output: Tensor, target: Tensor) -> None:
        """Compare what was done to the rows of an input and of a target."""
        given, dims, size = self.fed
        wanted = self.tracks.get(target)
        if wanted is None or self.back or len(wanted) != len(given) or line in self.done:
            return
        if tuple(target.shape[-dims:]) != size or tuple(output.shape[-dims:]) != size:
            return
        if any(one.source == other.source for one, other in zip(given, wanted)):
            return
        values, spatial = self.values(target), {-one for one in range(1, dims + 1)}
        pairs = self.pairs.setdefault(line, Pairs())
        for number, (one, other) in enumerate(zip(given, wanted)):
            mine, theirs = one.moves(spatial), other.moves(spatial)
            if mine == theirs:
                pairs.alike += 1
                continue
            shown = values if len(given) == 1 or values is None else values[number]
            flips = mine[0] ^ theirs[0]
            if shown is None or (mine[1] == theirs[1] and _is_symmetrical(shown, flips)):
                continue
            pairs.apart += 1
            pairs.line = one.line if mine[0] - theirs[0] or len(mine[1]) > len(theirs[1]) else other.line
            pairs.moved = "the input" if pairs.line is one.line else "the target"
        if min(pairs.alike, pairs.apart) >= LEAST and pairs.line is not None:
            self.done.add(line)
            self._report(line, pairs)

    def _report(self, line: Instruction, pairs: Pairs) -> None:
        other = "target" if pairs.moved == "the input" else "input"
        self.report(
            "augmented-apart",
            place_of(pairs.line),
            f"In {pairs.apart} of {counted(pairs.alike + pairs.apart, 'row')} that {brief_at(line)} compares, "
            f"{brief_at(pairs.line)} moved the pixels of {pairs.moved} but not those of the {other}; in {pairs.alike} "
            f"both were treated the same.",
            cure=f"Apply the same random transform to the {other}.",
        )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.fed, self.back = None, False


def _flipped(name: str, call: Call, dims: int) -> frozenset[int]:
    """Return the dims that are flipped, counted from the end."""
    if name != "flip":
        return frozenset({(1 if name == "fliplr" else 0) - dims})
    given = call.kwargs.get("dims", call.args[1:] if len(call.args) > 2 else call.args[1] if call.args[1:] else ())
    given = given if isinstance(given, (tuple, list)) else (given,)
    return frozenset(one % dims - dims for one in given)


def _is_symmetrical(values: np.ndarray, flips: frozenset[int]) -> bool:
    return bool(np.array_equal(values, np.flip(values, tuple(flips))))
