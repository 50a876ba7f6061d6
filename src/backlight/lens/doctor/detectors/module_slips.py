"""Slips with modules: requires_grad set on one, layers in a plain list, train() forgotten after eval()."""

import weakref
from types import FrameType
from typing import Any

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, name_in, replaced
from backlight.lens.doctor.graph import Module, Optimizer
from backlight.lens.doctor.places import brief, place_of_frame, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

PLAIN = (list, tuple, dict)
OWN = {"_modules", "_parameters", "_buffers"}
CHANGE_IN_TRAINING = ("Dropout", "BatchNorm", "InstanceNorm")


class ModuleSlips(Detector):
    """Looks at how modules are put together and switched."""

    def __init__(self, watch):
        super().__init__(watch)
        self.lists: dict[tuple[int, str], tuple] = {}  # modules that hold layers in a plain list -> (weak ref., place)
        self.running: WeakIdDict[None] = WeakIdDict()
        self.trained: dict[int, int] = {}  # outermost model -> steps in train mode
        self.evaluated: dict[int, list[tuple]] = {}  # and steps in eval mode after them: (name, place, layers)
        self.seen: WeakIdDict[bool] = WeakIdDict()  # outermost models that ran -> whether in train mode

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """Look at an attribute that was set on a module."""
        user = next(users_frames(frame), None)
        if user is None:
            return
        if name == "requires_grad" and isinstance(value, bool) and not hasattr(type(module), name):
            self._look_at_requires_grad(module, value, user)
        elif isinstance(value, PLAIN) and name not in OWN and not name.startswith("_"):
            self.lists[id(module), name] = weakref.ref(module), place_of_frame(user)

    def _look_at_requires_grad(self, module: Any, value: bool, frame: FrameType) -> None:
        names = frame.f_code.co_varnames
        if names and frame.f_locals.get(names[0]) is module:
            return  # the module sets an attribute of its own
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
        if self.lists and self.engine.module.is_grad_enabled():
            self.running[module] = None
        if not path:
            self.seen[module] = module.training

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count the steps that a model takes in each mode."""
        held = {id(param) for param in params}
        for model, training in self.seen.items():
            key = id(model)
            if not any(id(param) in held for param in model.parameters()):
                continue
            if training:
                self.trained[key] = self.trained.get(key, 0) + 1
                self.evaluated.pop(key, None)
            elif key in self.trained:
                self.evaluated.setdefault(key, []).append((type(model).__name__, place, _switched(model)))
        self.seen.clear()

    def end(self, problem: BaseException | None) -> None:
        """Report layers that no model knows of, and models that went on learning in eval mode."""
        for (_, name), (reference, place) in self.lists.items():
            module = reference()
            if module is not None:
                self._look_at_list(module, name, place)
        for key, steps in self.evaluated.items():
            name, place, layers = steps[0]
            if len(steps) > 1 and layers:
                self.report(
                    "train-mode-forgotten",
                    place,
                    f"{name} took {self.trained[key]} step(s) in train mode, then {len(steps)} in eval mode, the first "
                    f"at {brief(place)}.",
                    f"Layers of {name} that work differently in eval mode: {', '.join(layers)}.",
                )

    def _look_at_list(self, module: Any, name: str, place: Place) -> None:
        """Report layers with parameters in a plain list, which no module has and no optimiser."""
        value, owner = getattr(module, name, None), type(module).__name__
        known = {id(one) for model in (module, *self.watch.flow.modules.alive()) for one in model.modules()}
        optimised = self.watch.optimised()
        empty = next(iter(module.parameters()), None) is None
        lost = []  # the parameters of each such layer
        for layer in value.values() if isinstance(value, dict) else value if isinstance(value, PLAIN) else ():
            if not isinstance(layer, self.engine.module.nn.Module) or id(layer) in known:
                continue
            parameters = [one for one in layer.parameters() if one.requires_grad]
            learns = any(id(one) in optimised for one in parameters)
            if parameters and not learns and (layer in self.running or empty):
                lost.append(parameters)
        if not lost:
            return
        kind = type(value)
        wanted = "nn.ModuleDict" if kind is dict else "nn.ModuleList"
        text = code_of(place)
        target, _, made = text.partition(" = ")
        self.report(
            "layers-in-plain-list",
            place,
            f"{owner}.{name} is a {kind.__name__} with {counted(len(lost), 'layer')}, "
            f"{counted(sum(map(len, lost)), 'parameter')}.",
            f"{owner}().parameters() has none of them, and no optimiser does.",
            corrected=f"{target} = {wanted}({made})" if text.endswith(("]", "}")) and text.count(" = ") == 1 else None,
            cure=f"use {wanted} in place of the {kind.__name__}",
        )


def _switched(model: Any) -> tuple[str, ...]:
    """Return the names of a model's layers that work differently in eval mode."""
    kinds = (type(one).__name__ for one in model.modules())
    return tuple(dict.fromkeys(kind for kind in kinds if kind.startswith(CHANGE_IN_TRAINING)))
