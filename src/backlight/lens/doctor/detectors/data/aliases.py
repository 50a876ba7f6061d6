"""Models that are to be copies and are the same object: `target = model`, `best = model`; what is trained on by name.

NOTE [A second name]
A statement that only gives a module a second name makes no copy. It is reported if the second name is that of a model
that stays as it was, or follows slowly, and the first is trained.
"""

import ast
import re
import sys
from itertools import islice

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import locals_of
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import Instruction, brief, users_frames
from backlight.lens.doctor.source import Spot, parsed, span, spelled, spot_of
from backlight.lens.records.record import Place

COPIES = re.compile(
    r"(?:^|_)(?:target|teacher|ema|best|old|prev|previous|snapshot|backup|reference|ref|initial)(?:_|$)"
)
STEPS, FRAMES = (1, 12, 40), 4


class Aliases(Detector):
    """Finds them (see NOTE [A second name])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.steps = 0
        self.done: set[tuple] = set()

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look at the names of the functions that train."""
        self.steps += 1
        if self.steps not in STEPS:
            return
        held = {id(param) for param, grad in zip(params, grads) if grad is not None}
        for user in islice(users_frames(sys._getframe(1)), FRAMES):
            spot = spot_of(Instruction(user.f_code, user.f_lasti))
            if spot.tree is None:
                continue
            names = {**user.f_globals, **locals_of(user)}
            own = names.get("self")
            for node in ast.walk(spot.scope or spot.tree):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    self._look(spot, node, names, held)
            if own is not None and isinstance(spot.tree, ast.Module):
                for node in ast.walk(parsed(spot.lines)):
                    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_of_self(node.targets[0]):
                        self._look(spot, node, names, held)

    def _look(self, spot: Spot, node: ast.Assign, names: dict, held: set[int]) -> None:
        new, old = spelled(node.targets[0]), spelled(node.value)
        if new is None or old is None or not COPIES.search(new.rpartition(".")[2].lower()):
            return
        if COPIES.search(old.rpartition(".")[2].lower()):
            return
        one, other = _value(new, names), _value(old, names)
        key = spot.file, node.lineno
        if one is None or one is not other or key in self.done or not isinstance(one, self.engine.module.nn.Module):
            return
        if any(id(param) in held for param in one.parameters()):
            self.done.add(key)
            at = Spot(spot.file, spot.function, span(node))
            self.report(
                "second-name-no-copy",
                at.place,
                f"{brief(at.place)} assigns the model {old} to a second name, {new}: both are the same object.",
                f"Each step changes the parameters of both. {new} and {old} are always equal.",
                cure=f"Copy it: {new} = copy.deepcopy({old}).",
            )


def _is_of_self(node: ast.AST) -> bool:
    """Return whether a name is `self.x` or something of that: only such can be looked up from here."""
    name = spelled(node)
    return name is not None and "self." in name


def _value(name: str, names: dict):
    first, *rest = name.split(".")
    value = names.get(first)
    for one in rest:
        state = getattr(value, "__dict__", {})
        value = state.get(one, (state.get("_modules") or {}).get(one))
    return value
