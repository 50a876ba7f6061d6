"""Slips with modules: requires_grad set on one, layers in a plain list, train() forgotten after eval()."""

import weakref

from backlight.lens.doctor.part import Part, code_of, name_in, said
from backlight.lens.doctor.places import is_users, place_of_frame
from backlight.lens.doctor.report import counted
from backlight.lens.doctor.rule_index import rule

PLAIN = (list, tuple, dict)
OWN = {"_modules", "_parameters", "_buffers"}
CHANGE_IN_TRAINING = ("Dropout", "BatchNorm", "InstanceNorm")


class ModuleSlips(Part):
    """Looks at how modules are put together and switched."""

    def __init__(self, silent):
        super().__init__(silent)
        self.lists: dict[int, tuple] = {}  # modules that hold layers in a plain list -> (weak reference, name, place)
        self.running: list = []
        self.trained: dict[int, int] = {}  # outermost model -> steps in train mode
        self.evaluated: dict[int, list] = {}  # and steps in eval mode after them
        self.seen: dict[int, tuple] = {}

    def assigned(self, module, name, value, old, frame) -> None:
        """Look at an attribute that was set on a module."""
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        if name == "requires_grad" and isinstance(value, bool) and not hasattr(type(module), name):
            self._look_at_requires_grad(module, value, frame)
        elif isinstance(value, PLAIN) and name not in OWN and not name.startswith("_"):
            self.lists[id(module), name] = weakref.ref(module), name, place_of_frame(frame)

    def _look_at_requires_grad(self, module, value: bool, frame) -> None:
        names = frame.f_code.co_varnames
        if names and frame.f_locals.get(names[0]) is module:
            return  # the module sets an attribute of its own
        place = place_of_frame(frame)
        name = name_in(frame, module) or type(module).__name__
        parameters = list(module.parameters())
        still = sum(parameter.requires_grad is not value for parameter in parameters)
        if not still:
            return
        evidence = (
            f"{name} is a {type(module).__name__}; {still} of its {counted(len(parameters), 'parameter')} have "
            f"requires_grad={not value} after that line.",
        )
        corrected = None
        text = code_of(place)
        for equals in ("=", " = "):
            if text.count(f"requires_grad{equals}{value}") == 1:
                corrected = text.replace(f"requires_grad{equals}{value}", f"requires_grad_({value})")
        found = rule("module-requires-grad").found(place=place, evidence=evidence, corrected=corrected)
        self.session.add(found)

    def entered(self, module, path) -> None:
        """Note what runs with recording on; learn what mode an outermost model runs in."""
        if self.engine.module.is_grad_enabled() and self.lists:
            self.running.append(weakref.ref(module))
        if not path:
            self.seen[id(module)] = weakref.ref(module), module.training

    def stepped(self, optimizer, params, grads, place) -> None:
        """Count the steps that a model takes in each mode."""
        held = {id(param) for param in params}
        for key, (reference, training) in list(self.seen.items()):
            model = reference()
            if model is None or not any(id(param) in held for param in model.parameters()):
                continue
            if training:
                self.trained[key] = self.trained.get(key, 0) + 1
                self.evaluated.pop(key, None)
            elif key in self.trained:
                self.evaluated.setdefault(key, []).append((type(model).__name__, place, _switched(model)))
        self.seen.clear()

    def end(self, problem) -> None:
        """Report layers that no model knows of, and models that went on learning in eval mode."""
        for reference, name, place in self.lists.values():
            module = reference()
            if module is not None:
                self._look_at_list(module, name, place)
        for key, steps in self.evaluated.items():
            name, place, layers = steps[0]
            if len(steps) > 1 and layers:
                evidence = (
                    f"{name} took {self.trained[key]} step(s) in train mode, then {len(steps)} in eval mode, the first "
                    f"at {said(place)}.",
                    f"Layers of {name} that work differently in eval mode: {', '.join(layers)}.",
                )
                self.session.add(rule("train-mode-forgotten").found(place=place, evidence=evidence))

    def _look_at_list(self, module, name: str, place) -> None:
        """Report layers with parameters in a plain list, which no module has and no optimiser."""
        layers = [one for one in _inside(getattr(module, name, None)) if isinstance(one, self.engine.module.nn.Module)]
        known = {id(one) for model in self._models(module) for one in model.modules()}
        optimised = self.silent.optimised()
        ran = {id(one) for reference in self.running if (one := reference()) is not None}
        lost = []
        for layer in layers:
            parameters = [one for one in layer.parameters() if one.requires_grad]
            learns = any(id(one) in optimised for one in parameters)
            empty = next(iter(module.parameters()), None) is None
            if parameters and id(layer) not in known and not learns and (id(layer) in ran or empty):
                lost.append((layer, parameters))
        if not lost:
            return
        count = sum(len(parameters) for _, parameters in lost)
        kind = type(getattr(module, name))
        evidence = (
            f"{type(module).__name__}.{name} is a {kind.__name__} with {counted(len(lost), 'layer')}, "
            f"{counted(count, 'parameter')}.",
            f"{type(module).__name__}().parameters() has none of them, and no optimiser does.",
        )
        wanted = "nn.ModuleDict" if kind is dict else "nn.ModuleList"
        corrected = None
        text = code_of(place)
        if text.endswith(("]", "}")) and text.count(" = ") == 1:
            target, _, value = text.partition(" = ")
            corrected = f"{target} = {wanted}({value})"
        found = rule("layers-in-plain-list").found(
            place=place, evidence=evidence, corrected=corrected, cure=f"use {wanted} in place of the {kind.__name__}"
        )
        self.session.add(found)

    def _models(self, module) -> list:
        flow = self.silent.flow
        return [module, *(one for reference in flow.modules.values() if (one := reference()) is not None)]


def _inside(value) -> list:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _switched(model) -> tuple[str, ...]:
    """Return the names of a model's layers that work differently in eval mode."""
    kinds = (type(one).__name__ for one in model.modules())
    return tuple(dict.fromkeys(kind for kind in kinds if kind.startswith(CHANGE_IN_TRAINING)))
