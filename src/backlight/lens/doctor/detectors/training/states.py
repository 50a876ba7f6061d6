"""States of models that are kept and used again: live ones that were never copied, and those that fit nothing.

NOTE [Several states, one memory]
Of a model that goes on learning, two states that were taken after different steps and are combined by one line are the
same numbers if their tensors share memory: each is what the model is now.
"""

import ast
import sys
import weakref
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, counted, listed
from backlight.lens.doctor.graph import Module, Optimizer
from backlight.lens.doctor.places import Instruction, brief, brief_at, is_users, place_of_frame
from backlight.lens.doctor.source import Spot, spelled, spot_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SHOWN, TWICE = 3, 2


class States(Detector):
    """Watches `state_dict` and `load_state_dict` of modules, and what states are combined by."""

    calls = frozenset({"mul", "add", "sub", "stack", "cat"})

    def __init__(self, watch):
        super().__init__(watch)
        self.taken: WeakIdDict[tuple[Spot, int]] = WeakIdDict()  # a tensor of a state -> line, steps before
        self.own: dict[tuple, int] = {}  # lines that load a model's own state -> times
        self.steps = 0
        self.loaded: WeakIdDict[None] = WeakIdDict()  # modules
        self.combined: dict[int, tuple] = {}  # memory -> a state's tensor, steps before it was taken and before its use

    def begin(self) -> None:
        """Watch both."""
        kind = self.engine.module.nn.Module
        self.watch.after(kind, "state_dict", self._take)
        self.session.patch(kind, "load_state_dict", self._loading)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step."""
        self.steps += 1

    def _take(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        spot = spot_of_frame(frame) if is_users(frame.f_code.co_filename) else None
        for value in () if spot is None else out.values():
            if self.engine.is_tensor(value):
                self.taken[value] = spot.without_frame(), self.steps

    def called(self, call: Call) -> None:
        """Look at the states that a line combines (see NOTE [Several states, one memory])."""
        if not len(self.taken):
            return
        for tensor in self.watch.inputs:
            spot, before = self.taken.get(tensor, (None, 0))
            if spot is None or not tensor.dtype.is_floating_point or not tensor.dim():
                continue
            memory = self.engine.memory_of(tensor)[0]
            known, other, used = self.combined.get(memory, (None, before, self.steps))
            self.combined[memory] = weakref.ref(tensor), before, self.steps
            if used == self.steps and other != before and known() is not None:
                self.report(
                    "state-not-copied",
                    spot.place,
                    f"{brief_at(Instruction(call.code, call.lasti))} combines two states, taken by {brief(spot.place)} "
                    f"after {counted(min(before, other), 'step')} and after {max(before, other)}: their tensors share "
                    "the memory of the model's own parameters.",
                    title="several saved states are the same",
                    corrected=_copied(spot),
                )

    def _loading(self, original: Callable) -> Callable:
        @wraps(original)
        def load_state_dict(module: Module, state_dict: Any, *args, **kwargs):
            busy = self.watch.busy
            if not busy:
                self._look_at(module, state_dict, place_of_frame(sys._getframe(1)))
            found = original(module, state_dict, *args, **kwargs)
            if not busy:
                self._look_at_keys(module, found, place_of_frame(sys._getframe(1)))
            return found

        return load_state_dict

    def _look_at(self, module: Any, state: Any, place: Place | None) -> None:
        """Report a state whose tensors are the module's own, and have changed since it was taken."""
        self.loaded[module] = None
        own = dict(module.named_parameters())
        pairs = [(own[name], value) for name, value in state.items() if name in own and self.engine.is_tensor(value)]
        if not pairs or any(not self._share(*pair) for pair in pairs):
            return
        spot, before = self.taken.get(pairs[0][1], (None, self.steps))
        if spot is None:
            return
        if before == self.steps:
            self._count_own(spot, place)
            return
        self.report(
            "state-not-copied",
            spot.place,
            f"state_dict() at {brief(spot.place)} returned {counted(len(pairs), 'tensor')} that share the "
            "memory of the "
            f"model's own parameters; {counted(self.steps - before, 'step')} changed them afterwards.",
            f"load_state_dict() at {brief(place)} was given these tensors: it copies each onto itself.",
            corrected=_copied(spot),
        )

    def _count_own(self, spot: Spot, place: Place | None) -> None:
        """Report a model that is loaded with its own state again and again: two names for one model."""
        if place is None:
            return
        key = place.file, place.line
        self.own[key] = self.own.get(key, 0) + 1
        if self.own[key] != TWICE:
            return
        alias = _alias_in(spot, place)
        words, where = {}, place
        if alias is not None:
            where, second, first = alias
            words = {
                "title": f"{second} and {first} have the same parameters",
                "cause": f"`{code_of(where)}` does not copy the parameters: both names refer to the same ones",
                "corrected": f"{second} = copy.deepcopy({first})",
            }
        self.report(
            "model-loaded-onto-itself",
            where,
            f"load_state_dict() at {brief(place)} was given the current state of the same model, {TWICE} times: it "
            f"copies each tensor onto itself.",
            **words,
        )

    def _share(self, one: Any, other: Any) -> bool:
        return self.engine.memory_of(one)[0] == self.engine.memory_of(other)[0]

    def _look_at_keys(self, module: Any, found: Any, place: Place | None) -> None:
        """Report a state of which no entry fits, which `strict=False` lets pass."""
        missing, unexpected = (list(getattr(found, name, ())) for name in ("missing_keys", "unexpected_keys"))
        own = [name for name, _ in module.named_parameters()]
        if unexpected and own and set(own) <= set(missing):
            self.report(
                "state-not-loaded",
                place,
                f"load_state_dict(strict=False) found none of the model's {counted(len(own), 'parameter')}: it "
                f"expects {listed(own, SHOWN)}.",
                f"The state has {listed(unexpected, SHOWN)}.",
            )


def _copied(spot: Spot) -> str | None:
    """`best = model.state_dict()` → `best = {key: value.clone() for key, value in model.state_dict().items()}`."""
    call = spot.call
    if call is None:
        return None
    return spot.edited(replace(call, f"{{key: value.clone() for key, value in {spot.text(call)}.items()}}"))


def _alias_in(spot: Spot, place: Place) -> tuple[Place, str, str] | None:
    """Return the line `second = first` that gave a model two names: `second.load_state_dict(first.state_dict())`."""
    statement, call = spot.statement, spot.call
    outer = [one for one in ast.walk(statement) if isinstance(one, ast.Call)] if statement is not None else []
    loads = [one.func.value for one in outer if getattr(one.func, "attr", "") == "load_state_dict"]
    if call is None or len(loads) != 1 or not isinstance(call.func, ast.Attribute) or spot.tree is None:
        return None
    names = {spelled(loads[0]), spelled(call.func.value)}
    for node in ast.walk(spot.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and len(names) == 2:
            target, value = spelled(node.targets[0]), spelled(_of_shallow_copy(node.value))
            if {target, value} == names and target is not None and value is not None:
                text = spot.lines[node.lineno - 1].strip()
                return Place(spot.file, node.lineno, place.function, text), target, value
    return None


def _of_shallow_copy(node: ast.AST) -> ast.AST:
    """`copy.copy(x)` → `x`: the copy has the same parameters."""
    shallow = isinstance(node, ast.Call) and spelled(node.func) in ("copy.copy", "copy") and len(node.args) == 1
    return node.args[0] if shallow else node
