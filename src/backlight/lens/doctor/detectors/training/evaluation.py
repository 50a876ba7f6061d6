"""Dropout and batch norm in the wrong mode: dropout that works in eval mode, evaluation in train mode.

NOTE [What an evaluation is]
A model with dropout or batch norm that an optimizer trains, run in train mode with recording off, is evaluated if what
it returned went into a loss or was compared with something. Its results are then not those of the model. It may be
meant: Monte Carlo dropout runs the same input several times, a teacher's output becomes a constant of the training
loss, and statistics are refreshed by forwards whose result is dropped. A model that ever ran in eval mode is left
alone.
"""

from dataclasses import dataclass
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import with_keyword
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.detectors.training.roots import COSTS
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Module, Optimizer
from backlight.lens.doctor.places import Instruction, brief, place_of_frame
from backlight.lens.doctor.source import spot_of
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

DROPS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
COMPARES = {"eq", "ne"}
FOLLOWED = {"argmax", "max", "softmax", "sigmoid", "squeeze", "view", "reshape", "gt", "ge", "lt", "round", "flatten"}
FOLLOWED |= {"topk", "float", "long", "int", "cat", "permute", "transpose", "getitem", "__getitem__", "select"}
CHANGE = ("Dropout", "AlphaDropout", "BatchNorm", "SyncBatchNorm")
TWICE = 2


@dataclass(slots=True)
class Evaluated:
    """Runs of one model in train mode with recording off, at one line."""

    kind: str
    place: Place
    layers: tuple[str, ...]
    compared: int = 0
    excused: bool = False


class Evaluation(Detector):
    """Looks at modes (see NOTE [What an evaluation is])."""

    calls = frozenset({*DROPS, *COMPARES, *COSTS, *FOLLOWED, "add", "sub", "mul", "linear"})

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[tuple, Evaluated] = {}
        self.models: WeakIdDict[list[tuple]] = WeakIdDict(outlived=OUTLIVED)  # -> keys of its lines
        self.evaluated: WeakIdDict[None] = WeakIdDict()  # models that ran in eval mode
        self.trained: WeakIdDict[bool] = WeakIdDict()
        self.steps = 0
        self.came: WeakIdDict[Evaluated] = WeakIdDict()  # what such runs returned, and what was computed from it
        self.drops: dict[Instruction, int] = {}

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note what a model returned in train mode with recording off."""
        if path or self.engine.module.is_grad_enabled():
            return
        place = place_of_frame()
        if place is None:
            return
        if not module.training:
            for key in self.models.get(module, ()):
                self.lines[key].excused = True
            self.evaluated[module] = None
        elif module not in self.evaluated and self._is_trained(module):
            self._note(module, out, place)

    def _note(self, module: Module, out: Any, place: Place) -> None:
        layers = tuple(dict.fromkeys(kind for one in module.modules() if (kind := _changing(one)) is not None))
        if not layers:
            return
        key = id(module), place.file, place.line
        known = self.lines.setdefault(key, Evaluated(type(module).__name__, place, layers))
        keys = self.models.get(module, [])
        if key not in keys:
            self.models[module] = [*keys, key]
        for one in self.watch.tensors_in(out):
            self.came[one] = known

    def _is_trained(self, module: Module) -> bool:
        if not self.steps:
            return False
        known = self.trained.get(module)
        if known is None:
            held = self.watch.optimised()
            known = self.trained[module] = any(id(one) in held for one in module.parameters())
        return known

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step."""
        self.steps += 1

    def called(self, call: Call) -> None:
        """Look at functional dropout; follow what an evaluation returned."""
        name = self.watch.name
        if name in DROPS:
            self._look_at_dropout(call, name)
        if not len(self.came):
            return
        known = next((one for tensor in self.watch.inputs if (one := self.came.get(tensor)) is not None), None)
        if known is None:
            return
        outs = self.watch.outs
        if any(out.requires_grad for out in outs):
            known.excused = True
        elif name in COMPARES or name in COSTS:
            known.compared += 1
        elif name in FOLLOWED:
            for out in outs:
                self.came[out] = known

    def _look_at_dropout(self, call: Call, name: str) -> None:
        """Count a dropout that works because `training` was not passed to it, in a model in eval mode."""
        running = self.watch.detectors[Constructions].running
        if not running or running[-1].training or not call.kwargs.get("training", False):
            return
        line = Instruction(call.code, call.lasti)
        self.drops[line] = self.drops.get(line, 0) + 1
        if self.drops[line] != 1:
            return
        spot = spot_of(call)
        node = spot.call
        if node is None or len(node.args) > 2 or any(word.arg in ("training", None) for word in node.keywords):
            return
        owner = type(running[-1]).__name__
        self.report(
            "dropout-in-eval",
            spot.place,
            f"{name} at {brief(spot.place)} dropped values while {owner} was in eval mode: its training=True is the "
            "default.",
            corrected=with_keyword(spot, "training", "self.training"),
        )

    def end(self, problem: BaseException | None) -> None:
        """Report evaluations in train mode."""
        for one in self.lines.values():
            if one.compared >= TWICE and not one.excused:
                self.report(
                    "evaluated-in-train-mode",
                    one.place,
                    f"{one.kind} ran at {brief(one.place)} in train mode with recording off, and its output was used "
                    f"in a loss or a comparison, {counted(one.compared, 'time')}.",
                    f"Layers of {one.kind} that behave differently in train mode: {', '.join(one.layers)}.",
                    f"{one.kind} never ran in eval mode.",
                )


def _changing(module: Any) -> str | None:
    """Return the kind of a layer that works differently in train mode."""
    kind = type(module).__name__
    if not kind.startswith(CHANGE) or getattr(module, "p", 1.0) == 0:
        return None
    return kind
