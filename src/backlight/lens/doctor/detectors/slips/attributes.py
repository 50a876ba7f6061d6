"""Attributes that are set and that nothing reads: `p.required_grad = False`, `optimizer.lr = 0.01`.

NOTE [An attribute that nothing reads]
Python takes any attribute. One of a parameter is a slip if its name is nearly `requires_grad`, its value a bool, and
the parameter's `requires_grad` the opposite while an optimizer steps; not if the program reads the attribute anywhere.
One of an engine's optimizer is a slip if its name is an option (lr, weight_decay) and its value stands against that of
all groups, which stays the same over several steps: the program meant to change it there.
"""

import ast
import difflib
import linecache
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from backlight.lens.doctor.corrections.lines import alone
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted, name_of
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import brief, is_users, users_frames
from backlight.lens.doctor.source import Spot, parsed, span
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

MEANT, NEAR = "requires_grad", 0.85
STEPS = 3


@dataclass(slots=True)
class Option:
    """An attribute of an optimizer with the name of an option: its value, the groups' values, for how many steps."""

    value: float
    groups: tuple
    steps: int = 0


class UnreadAttributes(Detector):
    """Finds them (see NOTE [An attribute that nothing reads])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.options: WeakIdDict[dict[str, Option]] = WeakIdDict()
        self.known: set[str] = set()  # names that were reported, or found to be read

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look at the attributes of parameters that get gradients, and of the optimizer."""
        slips: dict[str, list] = {}
        for param in params:
            for name, value in vars(param).items():
                if isinstance(value, bool) and is_near(name) and value is not param.requires_grad:
                    slips.setdefault(name, []).append(param)
        for name, members in slips.items():
            if name not in self.known:
                self.known.add(name)
                self._report_parameters(name, members, place)
        if type(optimizer).__module__.partition(".")[0] == self.engine.module.__name__.partition(".")[0]:
            self._look_at_options(optimizer, place)

    def _report_parameters(self, name: str, members: list, place: Place | None) -> None:
        spots = _assignments(name)
        if spots is None:
            return
        value = vars(members[0])[name]
        first = self.watch.flow.name_of(members[0])
        spot = spots[0] if len(spots) == 1 else None
        self.report(
            "attribute-near-requires-grad",
            spots[0].place if spots else place,
            f"{first} has the attribute {name} = {value}, but requires_grad={not value}, at {brief(place)}; so do "
            f"{counted(len(members), 'parameter')} of this optimizer in total.",
            title=f"tensors have no attribute {name}: requires_grad is meant",
            cure=f"write requires_grad = {value}",
            corrected=None if spot is None else _renamed(spot, name),
        )

    def _look_at_options(self, optimizer: Optimizer, place: Place | None) -> None:
        """Compare attributes with the options of the same names."""
        before = self.options.get(optimizer) or {}
        now = {}
        for name, value in vars(optimizer).items():
            groups = tuple(group.get(name) for group in optimizer.param_groups)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or name not in optimizer.defaults or hasattr(type(optimizer), name) or value in groups:
                continue
            known = before.get(name)
            same = known is not None and (known.value, known.groups) == (value, groups)
            now[name] = Option(value, groups, known.steps + 1 if same else 1)
            if now[name].steps == STEPS and name not in self.known:
                self.known.add(name)
                self._report_option(optimizer, name, now[name], place)
        if now or before:
            self.options[optimizer] = now

    def _report_option(self, optimizer: Optimizer, name: str, option: Option, place: Place | None) -> None:
        holds = name_of(optimizer)
        spots = [one for one in _assignments(name, read=True) or () if not _of_self(one)]
        spot = spots[0] if len(spots) == 1 else None
        self.report(
            "attribute-optimizer-ignores",
            spot.place if spot is not None else place,
            f"{holds}.{name} is {option.value:g}, and {name} of its groups {', '.join(map(str, option.groups))}: "
            f"{STEPS} steps at {brief(place)} used the latter.",
            title=f"{holds}.{name} is set, but no step reads it",
            cure=f'write it into the groups: for group in {holds}.param_groups: group["{name}"] = ...',
            corrected=None if spot is None else _in_groups(spot, name),
        )


@lru_cache(maxsize=256)
def is_near(name: str) -> bool:
    """Return whether a name is nearly `requires_grad`, and not one that a program keeps for itself."""
    return not name.startswith("_") and name != MEANT and difflib.SequenceMatcher(None, name, MEANT).ratio() >= NEAR


def _files() -> Iterator[str]:
    """Give the user's files: those whose code runs, and modules that were imported."""
    running = {frame.f_code.co_filename for frame in users_frames(sys._getframe(1))}
    modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    yield from sorted(running)
    yield from sorted(file for file in modules - running if isinstance(file, str) and is_users(file))


def _assignments(name: str, *, read: bool = False) -> list[Spot] | None:
    """Return the statements that set an attribute of a name; None if the program also reads it, unless `read`."""
    found = []
    for file in _files():
        lines = linecache.getlines(file)
        if not any(name in line for line in lines):
            continue  # to parse a file takes a hundred times as long
        tree = parsed(tuple(lines))
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and not read and _gets(node, name):
                return None
            if isinstance(node, ast.Attribute) and node.attr == name:
                if isinstance(node.ctx, ast.Store) and isinstance(node.parent, (ast.Assign, ast.AugAssign)):
                    found.append(Spot(file, _function_of(node), span(node.parent)))
                elif not read:
                    return None
    return found


def _gets(call: ast.Call, name: str) -> bool:
    """Return whether a call is `getattr(p, name)` or `hasattr(p, name)`."""
    by_name = isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr") and len(call.args) > 1
    return by_name and isinstance(call.args[1], ast.Constant) and call.args[1].value == name


def _function_of(node: ast.AST) -> str:
    while node is not None and not isinstance(node, ast.FunctionDef):
        node = getattr(node, "parent", None)
    return "<module>" if node is None else node.name


def _targets(spot: Spot) -> Iterable[ast.AST]:
    statement = spot.statement
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _of_self(spot: Spot) -> bool:
    """Return whether a statement sets an attribute of the object that it is a method of, `self.lr = lr`."""
    owners = [target.value for target in _targets(spot) if isinstance(target, ast.Attribute)]
    return not owners or any(isinstance(one, ast.Name) and one.id == "self" for one in owners)


def _renamed(spot: Spot, name: str) -> str | None:
    """`p.required_grad = False` → `p.requires_grad = False`."""
    (target, *more) = _targets(spot)
    end = target.end_col_offset
    return None if more else spot.edited((target.end_lineno, end - len(name.encode()), end, MEANT))


def _in_groups(spot: Spot, name: str) -> str | None:
    """`optimizer.lr = rate` → `for group in optimizer.param_groups: group["lr"] = rate`."""
    statement = spot.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not alone(spot, statement):
        return None
    owner, value = spot.text(statement.targets[0].value), spot.text(statement.value)
    return f'for group in {owner}.param_groups: group["{name}"] = {value}'
