"""Slips with modules: requires_grad set on one, layers in a plain list, train() forgotten after eval()."""

from dataclasses import dataclass
from types import FrameType
from typing import Any

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import code_of, counted, name_in, replaced
from backlight.lens.doctor.graph import Module, Optimizer
from backlight.lens.doctor.places import brief, place_of, place_of_frame, users_frames
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

PLAIN = (list, tuple, dict)
OWN = {"_modules", "_parameters", "_buffers"}
CHANGE_IN_TRAINING = ("Dropout", "BatchNorm", "InstanceNorm")


@dataclass(slots=True)
class PlainList:
    """A list or dict that was set on a module: where, and what is wrong with it, as it was last seen."""

    place: Place | None
    finding: Finding | None = None


@dataclass(slots=True)
class Modes:
    """The steps of an outermost model: in train mode, in eval mode since then, and the first of these."""

    trained: int = 0
    evaluated: int = 0
    name: str = ""
    place: Place | None = None
    layers: tuple[str, ...] = ()
    switched: Place | None = None  # the eval() before


class ModuleSlips(Detector):
    """Looks at how modules are put together and switched."""

    def __init__(self, watch):
        super().__init__(watch)
        self.lists: WeakIdDict[dict[str, PlainList]] = WeakIdDict(outlived=OUTLIVED)  # by the attribute's name
        self.running: WeakIdDict[None] = WeakIdDict()
        self.modes: WeakIdDict[Modes] = WeakIdDict(outlived=OUTLIVED)  # of outermost models that stepped
        self.seen: WeakIdDict[bool] = WeakIdDict()  # outermost models that ran -> whether in train mode
        self.evaluated: WeakIdDict[None] = WeakIdDict()  # those that ran in eval mode with recording off

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """Look at an attribute that was set on a module."""
        user = next(users_frames(frame), None)
        if user is None:
            return
        if name == "requires_grad" and isinstance(value, bool) and not hasattr(type(module), name):
            self._look_at_requires_grad(module, value, user)
        elif isinstance(value, PLAIN) and name not in OWN and not name.startswith("_"):
            if not isinstance(value, tuple) or self._layers_in(value):  # a tuple stays as it is: (3, 3)
                listed = self.lists.get(module) or {}
                self.lists[module] = {**listed, name: PlainList(place_of_frame(user))}

    def _look_at_requires_grad(self, module: Any, value: bool, frame: FrameType) -> None:
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount]
        if names and hasattr(type(module), code.co_name) and frame.f_locals.get(names[0]) is module:
            return  # a method of the module sets an attribute of its own
        place, kind = place_of_frame(frame), type(module).__name__
        parameters = list(module.parameters())
        still = sum(parameter.requires_grad is not value for parameter in parameters)
        if not still:
            return
        text, called = code_of(place), f"requires_grad_({value})"
        corrected = replaced(text, f"requires_grad = {value}", called)
        self.report(
            "module-requires-grad",
            place,
            f"{name_in(frame, module) or kind} is a {kind}; {still} of its {counted(len(parameters), 'parameter')} "
            f"have requires_grad={not value} after that line.",
            corrected=corrected or replaced(text, f"requires_grad={value}", called),
        )

    def entered(self, module: Module, path: str) -> None:
        """Note what runs with recording on; learn what mode an outermost model runs in."""
        if len(self.lists) and self.engine.module.is_grad_enabled():
            self.running[module] = None
        if path:
            return
        if self.engine.module.is_grad_enabled():
            self.seen[module] = module.training
        elif not module.training:
            self.evaluated[module] = None

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count the steps that a model takes in each mode, and look at plain lists."""
        self._look_at_lists()
        held = {id(param) for param in params}
        for model, training in self.seen.items():
            if not any(id(param) in held for param in model.parameters()):
                continue
            modes = self.modes.get(model)
            if training:
                self.modes[model] = Modes(1 if modes is None else modes.trained + 1)
            elif modes is not None or model in self.evaluated:
                if modes is None:
                    modes = self.modes[model] = Modes()
                if not modes.evaluated:
                    modes.name, modes.place, modes.layers = type(model).__name__, place, _switched(model)
                    line = self.watch.detectors[Constructions].evaluated.get(model)
                    modes.switched = None if line is None else place_of(line)
                modes.evaluated += 1
        self.seen.clear()

    def left(self, module: Module, path: str, out: Any) -> None:
        """Look at plain lists when an outermost model has run."""
        if not path and self.engine.module.is_grad_enabled():
            self._look_at_lists()

    def end(self, problem: BaseException | None) -> None:
        """Report layers that no model knows of, and models that went on learning in eval mode."""
        self._look_at_lists()
        for _, lists in self.lists.histories():
            for one in lists.values():
                if one.finding is not None:
                    self.session.add(one.finding)
        for _, modes in self.modes.histories():
            if modes.evaluated > 1 and modes.layers:
                switched = modes.switched
                before = f"took {modes.trained} step(s) in train mode, then"
                if not modes.trained:
                    before = "was evaluated, and then took all its steps,"
                seen = () if switched is None else (f"{brief(switched)} switched it to eval mode: {switched.text}",)
                self.report(
                    "train-mode-forgotten",
                    modes.place,
                    *seen,
                    f"{modes.name} {before} {modes.evaluated} in eval mode, the first at {brief(modes.place)}.",
                    f"Layers of {modes.name} that behave differently in eval mode: {', '.join(modes.layers)}.",
                )

    def _look_at_lists(self) -> None:
        for module, lists in self.lists.items():
            for name, one in lists.items():
                layers = self._layers_in(vars(module).get(name))
                one.finding = self._of_list(module, name, layers, one.place) if layers else None

    def _layers_in(self, value: Any) -> list:
        """Return the modules in a plain list, tuple or dict."""
        members = value.values() if isinstance(value, dict) else value if isinstance(value, PLAIN) else ()
        return [one for one in members if isinstance(one, self.engine.module.nn.Module)]

    def _of_list(self, module: Any, name: str, layers: list, place: Place) -> Finding | None:
        """Return the finding of layers with parameters in a plain list, which no module has and no optimizer."""
        value, owner = vars(module)[name], type(module).__name__
        others = [model for model in self.watch.flow.modules.alive() if all(model is not layer for layer in layers)]
        known = {id(one) for model in (module, *others) for one in model.modules()}
        optimised = self.watch.optimised()
        empty = next(iter(module.parameters()), None) is None
        lost = []  # the parameters of each such layer
        for layer in layers:
            if id(layer) in known:
                continue
            parameters = [one for one in layer.parameters() if one.requires_grad]
            learns = any(id(one) in optimised for one in parameters)
            if parameters and not learns and (layer in self.running or empty):
                lost.append(parameters)
        if not lost:
            return None
        kind = type(value)
        wanted = "nn.ModuleDict" if kind is dict else "nn.ModuleList"
        text = code_of(place)
        target, _, made = text.partition(" = ")
        return rule("layers-in-plain-list").found(
            place,
            f"{owner}.{name} is a {kind.__name__} with {counted(len(lost), 'layer')}, "
            f"{counted(sum(map(len, lost)), 'parameter')}.",
            f"{owner}().parameters() contains none of them, and neither does an optimizer.",
            corrected=f"{target} = {wanted}({made})" if text.endswith(("]", "}")) and text.count(" = ") == 1 else None,
            cure=f"use {wanted} instead of the {kind.__name__}",
        )


def _switched(model: Any) -> tuple[str, ...]:
    """Return the names of a model's layers that work differently in eval mode."""
    kinds = (type(one).__name__ for one in model.modules())
    return tuple(dict.fromkeys(kind for kind in kinds if kind.startswith(CHANGE_IN_TRAINING)))
