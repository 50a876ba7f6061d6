"""Batch norms of frozen models that go on counting: their running statistics follow the new data.

NOTE [Frozen and not still]
A model has trained parameters and a part all of whose parameters are frozen, and a batch norm of that part runs in
train mode: it normalises by each batch, and moves its running mean and variance. It is a mistake if nothing else moves
that part: weights that are written to in between, as those of a moving average, or that learn before the program ends,
have statistics that move with them. Random features, which nothing has trained and whose statistics begin with the
program, may be normalised as they are. Such modules are judged at the end, by plain data that the last step left.
"""

from dataclasses import dataclass

import numpy as np

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions, maker_of
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Module, Optimizer
from backlight.lens.doctor.places import Instruction, brief, place_of
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

STEPS = 5


@dataclass(slots=True)
class Frozen:
    """Batch norms of a model's frozen part, as the last step saw them.

    Args:
        model: the model's class.
        layers: how many they are.
        parameters: how many parameters the frozen part has that are no batch norm's.
        versions: how often each of these was written to.
        mean: the first one's running mean, when it was first seen.
        line: where the model was switched to train mode, or made.
    """

    model: str
    layers: int
    parameters: int
    versions: tuple[int, ...]
    mean: np.ndarray
    line: Instruction | None
    place: Place | None
    steps: int = 0
    moved: bool = False


class FrozenStatistics(Detector):
    """Finds them (see NOTE [Frozen and not still])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.running: WeakIdDict[None] = WeakIdDict()  # outermost models that ran in train mode since the last step
        self.frozen: WeakIdDict[Frozen] = WeakIdDict(outlived=OUTLIVED)
        self.fresh: WeakIdDict[tuple[int, ...]] = WeakIdDict()  # batch norms that had seen nothing -> versions around
        self.known: WeakIdDict[None] = WeakIdDict()  # outermost models that ran
        self.switched: WeakIdDict[Instruction] = WeakIdDict()  # models -> where they were switched to train mode

    def begin(self) -> None:
        """Watch train()."""
        self.watch.after(self.engine.module.nn.Module, "train", self._switched)

    def _switched(self, frame, out, args: tuple, kwargs: dict) -> None:
        if args[1] if len(args) > 1 else kwargs.get("mode", True):
            line = maker_of(frame)
            if line is not None:
                self.switched[args[0]] = line

    def entered(self, module: Module, path: str) -> None:
        """Note an outermost model that runs in train mode."""
        if path:
            return
        if module not in self.known:
            self.known[module] = None
            for norm in self._norms(module):
                if norm not in self.fresh and not self._has_seen(norm):
                    self.fresh[norm] = self._versions(module)
        if module.training and self.engine.module.is_grad_enabled():
            self.running[module] = None

    def _norms(self, module: Module) -> list:
        nn = self.engine.module.nn
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm
        norms = [one for one in module.modules() if isinstance(one, kinds)]
        return [one for one in norms if one.weight is not None and one.running_mean is not None]

    def _has_seen(self, norm: Module) -> bool:
        count = self.number(norm.num_batches_tracked)
        return count is None or count > 0

    def _versions(self, module: Module) -> tuple[int, ...]:
        return tuple(self.engine.version_of(one) for one in module.parameters() if not one.requires_grad)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look at the models of which the optimizer holds a part."""
        held = {id(param) for param in params}
        for model in self.running.alive():
            parameters = list(model.parameters())
            if any(id(one) in held for one in parameters) and not all(one.requires_grad for one in parameters):
                self._look(model, place)
            elif model in self.frozen:
                self.frozen.pop(model)  # it learns by now
        self.running.clear()

    def _look(self, model: Module, place: Place | None) -> None:
        norms, others = self._parts(model)
        versions = tuple(self.engine.version_of(one) for one in others)
        known = self.frozen.get(model)
        if not norms or not others:
            if known is not None:
                self.frozen.pop(model)
            return
        mean = self.values(norms[0].running_mean)
        if mean is None:
            return
        if known is None or known.layers != len(norms) or known.versions != versions:
            line = self.switched.get(model) or self.watch.detectors[Constructions].modules.get(model)
            name = type(model).__name__
            self.frozen[model] = Frozen(name, len(norms), len(others), versions, mean.copy(), line, place)
            return
        known.steps += 1
        known.line = self.switched.get(model) or known.line
        known.moved = known.moved or not np.array_equal(known.mean, mean)

    def _parts(self, model: Module) -> tuple[list, list]:
        """Return the batch norms of frozen parts that run in train mode, and the other parameters of these parts."""
        norms, others = {}, {}
        for part in model.modules():
            held = list(part.parameters())
            inside = self._norms(part) if part is not model and held else []
            if not inside or part in inside or any(one.requires_grad for one in held):
                continue
            own = {id(one) for norm in inside for one in norm.parameters(recurse=False)}
            rest = [one for one in held if id(one) not in own]
            inside = [one for one in inside if one.training and one.track_running_stats]
            inside = [one for one in inside if self.fresh.get(one) != self._versions(model)]
            if inside and rest:
                norms |= {id(one): one for one in inside}
                others |= {id(one): one for one in rest}
        return list(norms.values()), list(others.values())

    def end(self, problem: BaseException | None) -> None:
        """Report what was frozen, and counted on, until the end."""
        for _, known in self.frozen.histories():
            if known.steps < STEPS or not known.moved:
                continue
            place = known.place if known.line is None else place_of(known.line)
            self.report(
                "frozen-statistics-move",
                place,
                f"A part of {known.model} is frozen, with {counted(known.parameters, 'parameter')} besides those of "
                f"{counted(known.layers, 'batch norm')}, which ran in train mode in {known.steps + 1} steps "
                f"of {brief(known.place)}.",
                "Their running means have moved, and each batch was normalised by its own mean and variance.",
            )
