"""Data loaders: where they were made, and those of which a training only ever sees the first batch.

NOTE [The first batch again]
`next(iter(loader))` in a loop begins a new pass each time. Of a loader that does not shuffle it gives the same rows for
ever. That is reported if many passes in a row gave one batch each, of the same numbers, every one went into a backward,
and the loader has more.
"""

import sys
import zlib
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import maker_of
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

FOLLOWED = {"to", "float", "double", "long", "view", "reshape", "flatten", "unsqueeze", "squeeze", "permute"}
USES = {"linear", "conv1d", "conv2d", "conv3d", "matmul", "embedding", "lstm", "gru", "mul", "sub", "mse_loss"}
USES |= {"cross_entropy", "binary_cross_entropy_with_logits"}
PASSES = 10
MOST = 100  # data sets that are remembered


@dataclass(slots=True)
class Passes:
    """The passes over one loader: what the current one has given, how many before it gave the same single batch."""

    made: Instruction | None
    shuffles: bool = False
    place: Place | None = None
    batches: int = 0
    checksum: int = 0
    same: bool = False
    recorded: bool = False
    used: bool = False
    again: int = 0
    first: WeakIdDict[None] = field(default_factory=WeakIdDict)  # tensors of the first batch


class Loaders(Detector):
    """Follows passes over loaders (see NOTE [The first batch again])."""

    calls = frozenset({*FOLLOWED, *USES})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[Passes] = WeakIdDict()
        self.running: dict[int, Passes] = {}  # ids of data sets -> the pass over them that began last
        self.open: Passes | None = None  # the pass whose first batch came last
        self.number = 0  # how many batches came from loaders
        self.shuffled: Passes | None = None  # the loader of the last batch, if it shuffles

    def begin(self) -> None:
        """Watch loaders and what gives their batches."""
        engine = self.engine.module
        data = getattr(engine.utils, "data", None) or engine.data  # torch.utils.data, or backlight.data
        kind = data.DataLoader
        self.watch.after(kind, "__init__", self._is_made)
        self.watch.after(kind, "__iter__", self._begins)
        module = vars(sys.modules[kind.__module__])
        iterator = module.get("_BaseDataLoaderIter")
        if iterator is not None:
            self.watch.after(iterator, "__next__", lambda frame, out, args, kwargs: self._gave(args[0]._dataset, out))
        else:
            self.watch.after(
                module["FetchPlan"], "_many", lambda frame, out, args, kwargs: self._gave(args[0].dataset, out)
            )

    def _is_made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        self.made[args[0]] = Passes(maker_of(frame), _shuffles(args[0]))

    def _begins(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        loader = args[0]
        known = self.made.get(loader)
        if known is None or len(self.running) > MOST:
            return
        line = maker_of(frame)
        here = None if line is None else place_of(line)  # one line may be several instructions, once it is specialised
        alone = known.batches == 1 and known.used and here == known.place
        known.again = known.again + known.same if alone else 0
        known.place, known.batches, known.recorded, known.used = here, 0, False, False
        self.running[id(loader.dataset)] = known
        if known.again == PASSES and here is not None and _has_more(loader):
            self._report(known, here)

    def _gave(self, dataset: Any, batch: Any) -> None:
        known = self.running.get(id(dataset))
        if known is None:
            return
        known.batches += 1
        self.number += 1
        self.shuffled = known if known.shuffles else None
        if known.batches > 1:
            return
        self.open = known
        known.first.clear()
        checksum = 0
        for tensor in self.watch.tensors_in(batch):
            known.first[tensor] = None
            values = self.values(tensor)
            checksum = checksum if values is None else zlib.crc32(values.tobytes(), checksum)
        known.same, known.checksum = checksum == known.checksum, checksum

    def called(self, call: Call) -> None:
        """Follow a batch through conversions, up to an op that is recorded."""
        known, outs = self.open, self.watch.outs
        if known is None or known.recorded or not any(one in known.first for one in self.watch.inputs):
            return
        known.recorded = any(out.requires_grad for out in outs)
        if self.watch.name in FOLLOWED:
            for out in outs:
                known.first[out] = None

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note that a first batch is trained on."""
        if self.open is not None:
            self.open.used = self.open.used or self.open.recorded

    def _report(self, known: Passes, place: Place) -> None:
        made = "" if known.made is None else f", made at {brief_at(known.made)},"
        loop = place.text.startswith("for ")
        self.report(
            "first-batch-again",
            place,
            f"{brief(place)} began a new pass over the loader{made} {PASSES} times in a row; each yielded one batch "
            f"with the same values, which a backward used.",
            "The loader has more batches, but no step has used them.",
            cure="Remove the `break`, so that the loop uses all batches; and shuffle." if loop else None,
        )

    def left_over(self) -> list[tuple[Instruction, str]]:
        """Return the lines of loaders whose last batch is a single sample, and how that comes about."""
        found: dict[Instruction, str] = {}
        for loader, known in self.made.items():
            size, rows = loader.batch_size, _length(loader.dataset)
            if size and size > 1 and rows and rows % size == 1 and not loader.drop_last and known.made is not None:
                found[known.made] = f"its {rows} samples in batches of {size} leave one over"
        return list(found.items())


def _shuffles(loader: Any) -> bool:
    """Return whether a loader takes the rows in a random order."""
    samplers = getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    return any(type(one).__name__ in ("RandomSampler", "SubsetRandomSampler") for one in samplers)


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


def _has_more(loader: Any) -> bool:
    batches = _length(loader)
    return batches is None or batches > 1
