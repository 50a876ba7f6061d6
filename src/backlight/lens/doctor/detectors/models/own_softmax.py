"""Probabilities that are passed for logits to a distribution, or to gumbel_softmax, which take a softmax of them.

NOTE [A softmax of a softmax]
Logits that are never below 0 and add up to 1 in each row, and that a softmax made, are probabilities. Those of a
Bernoulli that a sigmoid made are, too: what is between 0 and 1 gives probabilities between a half and 0.73.
"""

from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

KEEPS = {"view", "reshape", "squeeze", "unsqueeze", "clamp", "getitem", "__getitem__", "select"}
KINDS = {"softmax": {"Categorical", "OneHotCategorical", "RelaxedOneHotCategorical"}}
KINDS["sigmoid"] = {"Bernoulli", "RelaxedBernoulli"}
THRICE, LOGITS_AT = 3, 2


class OwnSoftmax(Detector):
    """Finds them (see NOTE [A softmax of a softmax])."""

    calls = frozenset({*KINDS, *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[tuple[str, Instruction]] = WeakIdDict()
        self.times: dict[tuple, int] = {}

    def begin(self) -> None:
        """Watch the making of distributions."""
        distributions = getattr(self.engine.module, "distributions", None)
        for names in KINDS.values():
            for name in names:
                kind = getattr(distributions, name, None)
                if kind is not None and "__init__" in vars(kind):
                    self.watch.after(kind, "__init__", self._is_made)
        self.watch.after(self.engine.module.nn.functional, "gumbel_softmax", self._gumbel)

    def _gumbel(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        logits = args[0] if args else kwargs.get("logits")
        known = self.made.get(logits) if self.engine.is_tensor(logits) else None
        if known is not None and known[0] == "softmax":
            self._count(place_of_frame(frame), "gumbel_softmax takes them for logits", *known)

    def _is_made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        kind = type(args[0]).__name__
        place = LOGITS_AT + ("Relaxed" in kind)
        logits = kwargs.get("logits", args[place] if len(args) > place else None)
        known = self.made.get(logits) if self.engine.is_tensor(logits) else None
        if known is not None and kind in KINDS[known[0]]:
            self._count(place_of_frame(frame), f"{kind} takes them for logits", *known)

    def called(self, call: Call) -> None:
        """Note what a softmax or a sigmoid made."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out) or not out.requires_grad:
            return
        if name in KINDS:
            self.made[out] = name, Instruction(call.code, call.lasti)
            return
        known = self.made.get(inputs[0])
        if known is not None:
            self.made[out] = known

    def _count(self, place: Place | None, how: str, made: str, line: Instruction) -> None:
        key = (place.file, place.line) if place is not None else ()
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] == THRICE:
            one = "log-probabilities" if made == "softmax" else "numbers of both signs"
            self.report(
                "probabilities-as-logits",
                place,
                f"{made} at {brief_at(line)} made probabilities; {how} at {brief(place)}, which are {one}.",
                cure="Pass what the last layer returns as logits, without the "
                f"{made}; " + ("or the probabilities as probs=." if "gumbel" not in how else "or their logarithm."),
            )
