"""Images that are flipped, rotated and cropped by chance, and targets of the same pixels that are not, or by another.

NOTE [Augmented apart]
One tensor goes to a convolution, another one of the same height and width is the target of a loss. What flips, rotates,
rolls and crops did to each on the way is kept for each row, through stacking too. In some rows both had the same, in
others not, and the target is not symmetrical: an augmentation that forgets the target, or draws for it anew. What is
done to every row is no augmentation; one tensor that is made of the other may be its mirror image on purpose; and where
a prediction is flipped back, as in averages over views, nothing is said.
Crops drawn apart are hardly ever alike: what shows them is the distance between the two corners, which differs from row
to row. A target that lies in the middle of its input has the same distance in all.
"""

import sys
from dataclasses import dataclass, field, replace

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.slips.softmax_dims import LOSSES
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

TAKES = {"getitem", "__getitem__", "index_select", "select", "index", "slice"}
MOVES = {"flip", "fliplr", "flipud", "rot90", "roll"}
KEEPS = {"mul", "add", "sub", "div", "true_divide", "clamp", "to", "float", "long", "clone", "contiguous", "unsqueeze"}
KEEPS |= {"squeeze", "pow", "sqrt", "neg", "normalize", "abs", "where", "double", "detach"}
CONVOLUTIONS = {"conv1d", "conv2d", "convolution"}
PIXEL_LOSSES = {*LOSSES, "cross_entropy_2d"}
LEAST, CROPS = 4, 8
PIXELS = 3  # least width, or length


@dataclass(frozen=True, slots=True)
class Track:
    """What was done to a row, or to a whole batch, since it was taken.

    Args:
        source: the id of what it was taken from.
        flips: the dims that were flipped, counted from the end.
        others: turns and rolls, in order.
        corners: for dims, counted from the end, that were cropped: where the crop begins.
        line: the last of these.
        caller: the line that called the function in which that is.
    """

    source: int
    flips: frozenset[int] = frozenset()
    others: tuple = ()
    corners: tuple[tuple[int, int], ...] = ()
    line: Instruction | None = None
    caller: Instruction | None = None

    def moves(self, dims: set[int]) -> tuple:
        """Return what was done along some dims."""
        return self.flips & dims, self.others


@dataclass(slots=True)
class Pairs:
    """Rows of input and target at one loss: how many were treated alike, how many apart, by which line.

    Args:
        moved: which of the two were moved alone, in some row.
        callers: who had the input and the target moved.
        corners: the distances of the corners of crops.
        cropped: how many rows were.
    """

    alike: int = 0
    apart: int = 0
    line: Instruction | None = None
    moved: set[str] = field(default_factory=set)
    callers: tuple[Instruction | None, Instruction | None] = (None, None)
    corners: set[tuple] = field(default_factory=set)
    cropped: int = 0


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
            known = [self.tracks.get(one) or self._new(one) for one in inputs]
            if all(len(one) == 1 for one in known):
                self.tracks[out] = tuple(one[0] for one in known)
        elif name in TAKES:
            self._take(call, inputs[0], out)
        else:
            self._keep(inputs, out)

    def _new(self, tensor: Tensor) -> tuple[Track, ...]:
        """Return the track of what was not taken from anything: an image that a file or a function gave."""
        return (Track(id(tensor)),) if tensor.dim() and tensor.shape[-1] >= PIXELS else ()

    def _take(self, call: Call, source: Tensor, out: Tensor) -> None:
        known = self.tracks.get(source)
        corner = _corner(self.watch.name, call, source) if out.dim() == source.dim() else ()
        if corner and not self.watch.flow.of(source).leaves:
            self.moved, line = True, Instruction(call.code, call.lasti)
            known = known or self._new(source)
            caller = _caller()
            self.tracks[out] = tuple(
                replace(one, corners=_added(one.corners, corner), line=line, caller=caller) for one in known
            )
        elif known is not None:
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
        known, line = self.tracks.get(source) or self._new(source), Instruction(call.code, call.lasti)
        if not known or self.watch.flow.of(source).leaves:
            return
        self.moved, caller = True, _caller()
        if name not in ("rot90", "roll"):
            flips = _flipped(name, call, source.dim())
            self.tracks[out] = tuple(replace(one, flips=one.flips ^ flips, line=line, caller=caller) for one in known)
        else:
            words = name, repr(call.args[1:]), repr(sorted(call.kwargs.items()))
            self.tracks[out] = tuple(
                replace(one, others=(*one.others, words), line=line, caller=caller) for one in known
            )

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
            pairs.callers = one.caller or pairs.callers[0], other.caller or pairs.callers[1]
            if one.corners and other.corners:
                pairs.cropped += 1
                pairs.corners.add(_distance(one, other, spatial))
            if mine == theirs:
                pairs.alike += 1
                pairs.line = pairs.line or (one.line if one.corners else None)
                continue
            shown = values if len(given) == 1 or values is None else values[number]
            flips = mine[0] ^ theirs[0]
            if shown is None or (mine[1] == theirs[1] and _is_symmetrical(shown, flips)):
                continue
            pairs.apart += 1
            by_input = bool(mine[0] - theirs[0]) or len(mine[1]) > len(theirs[1])
            pairs.line = one.line if by_input else other.line
            pairs.moved.add("the input" if by_input else "the target")
        apart = min(pairs.alike, pairs.apart) >= LEAST
        cropped = len(pairs.corners) >= LEAST and pairs.cropped >= CROPS
        if (apart or cropped) and pairs.line is not None:
            self.done.add(line)
            self._report(line, pairs, cropped=not apart)

    def _report(self, line: Instruction, pairs: Pairs, *, cropped: bool) -> None:
        if cropped or len(pairs.moved) > 1:
            rows = pairs.cropped if cropped else pairs.alike + pairs.apart
            given, wanted = pairs.callers
            apart = given is not None and wanted is not None and given != wanted
            called = f", for the input at {brief_at(given)}, for the target at {brief_at(wanted)}" if apart else ""
            what = (
                f"their crops begin at different places, in {len(pairs.corners)} distances from each other."
                if cropped
                else f"{pairs.apart} had input and target moved in different ways, {pairs.alike} in the same."
            )
            self.report(
                "augmented-apart",
                place_of(wanted if apart else pairs.line),
                f"{brief_at(pairs.line)} moves pixels by chance{called}. Of {counted(rows, 'row')} that "
                f"{brief_at(line)} compares, {what}",
                title="an augmentation of the image and one of its target are drawn apart",
                cause="The random numbers are drawn once for the input, and anew for the target.",
                cure="Draw once, and do the same to both: concatenate the two, move them, and take them apart.",
            )
            return
        moved = next(iter(pairs.moved))
        other = "target" if moved == "the input" else "input"
        self.report(
            "augmented-apart",
            place_of(pairs.line),
            f"In {pairs.apart} of {counted(pairs.alike + pairs.apart, 'row')} that {brief_at(line)} compares, "
            f"{brief_at(pairs.line)} moved the pixels of {moved} but not those of the {other}; in {pairs.alike} "
            "both were treated the same.",
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


def _caller() -> Instruction | None:
    """Return the line that called the user's function that runs."""
    frames = users_frames(sys._getframe(1))
    next(frames, None)
    outer = next(frames, None)
    return None if outer is None else Instruction(outer.f_code, outer.f_lasti)


def _corner(name: str, call: Call, source: Tensor) -> tuple[tuple[int, int], ...]:
    """Return where a crop begins, for each dim that it shortens, counted from the end; () of what is no crop."""
    if name == "slice":
        dim, start, end, step = (*call.args[1:], *(None,) * 4)[:4]
        index = (*(slice(None),) * dim, slice(start, end, step)) if isinstance(dim, int) and dim >= 0 else ()
    else:
        index = call.args[1] if len(call.args) > 1 and name in ("getitem", "__getitem__") else ()
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [one for one in index if one is Ellipsis]:
        place = next(number for number, one in enumerate(index) if one is Ellipsis)
        index = (*index[:place], *(slice(None),) * (source.dim() - len(index) + 1), *index[place + 1 :])
    if not all(isinstance(one, slice) for one in index) or len(index) > source.dim():
        return ()
    found = []
    for dim, (one, size) in enumerate(zip(index, source.shape)):
        first, last, step = one.indices(size)
        if step == 1 and last - first < size and dim >= source.dim() - 2 and last > first:
            found.append((dim - source.dim(), first))
    return tuple(found)


def _added(corners: tuple[tuple[int, int], ...], more: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    found = dict(corners)
    for dim, first in more:
        found[dim] = found.get(dim, 0) + first
    return tuple(sorted(found.items()))


def _distance(one: Track, other: Track, dims: set[int]) -> tuple[tuple[int, int], ...]:
    """Return how far apart two crops begin."""
    mine, theirs = dict(one.corners), dict(other.corners)
    return tuple((dim, mine.get(dim, 0) - theirs.get(dim, 0)) for dim in sorted(dims))


def _is_symmetrical(values: np.ndarray, flips: frozenset[int]) -> bool:
    return bool(np.array_equal(values, np.flip(values, tuple(flips))))
