"""Returns and risks in the wrong order, episodes whose end is ignored, losses that are added up and not divided.

NOTE [Names that say what is meant]
These mistakes leave no trace in the graph. They are read off the source of the function that ran: a list that is
filled from the last step to the first and never reversed; a discounted value of the next state in a function that
takes `done` from its batch and never uses it; a step every `accum_steps` batches, where nothing is divided by that
number; a sum over those at risk that is cumulated from the earliest time to the latest.
"""

import ast
import re
import sys

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import Instruction, brief, brief_at, users_frames
from backlight.lens.doctor.source import Spot, spelled, spot_of
from backlight.lens.records.record import Place

DISCOUNT = re.compile(r"gamma|discount")
DONE = re.compile(r"^(?:.*_)?(?:d|done|dones|terminal|terminals|terminated)$")
STEP_OF_EPISODE = re.compile(r"^(?:s|a|r|ns|s2|s_next|obs|states?|actions?|rewards?|next_.*)$")
TIMES = re.compile(r"^(?:.*_)?(?:times?|durations?|t|survival|followup)$")
ACCUMULATES = re.compile(r"accum", re.IGNORECASE)
MAKERS = {"tensor", "as_tensor", "stack", "FloatTensor", "cat"}


class Returns(Detector):
    """Finds them (see NOTE [Names that say what is meant])."""

    calls = frozenset({*MAKERS, "mul", "logcumsumexp"})

    def __init__(self, watch):
        super().__init__(watch)
        self.looked: set[Instruction] = set()
        self.steps: set[tuple] = set()

    def called(self, call: Call) -> None:
        """Look at a line when it runs first."""
        line = Instruction(call.code, call.lasti)
        if line in self.looked:
            return
        self.looked.add(line)
        if self.watch.name == "mul":
            self._look_at_discount(line)
        elif self.watch.name == "logcumsumexp":
            self._look_at_risks(line)
        else:
            self._look_at_order(line)

    def _look_at_discount(self, line: Instruction) -> None:
        spot = spot_of(line)
        node = spot.expression
        if not isinstance(node, ast.BinOp) or not isinstance(spot.scope, ast.FunctionDef):
            return
        if not any(DISCOUNT.search((spelled(one) or "").lower()) for one in (node.left, node.right)):
            return
        read, given = set(), set()
        for inner in ast.walk(spot.scope):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and not _renews(inner):
                read.add(inner.id)
            elif isinstance(inner, ast.Tuple) and isinstance(inner.ctx, ast.Store) and len(inner.elts) > 3:
                given |= {one.id for one in inner.elts if isinstance(one, ast.Name)}
        given |= {one.arg for one in spot.scope.args.args} if len(spot.scope.args.args) > 3 else set()
        unread = sorted(one for one in given - read if DONE.match(one.lower()))
        if unread and any(STEP_OF_EPISODE.match(one.lower()) for one in given):
            name = unread[0]
            self.report(
                "end-of-episode-ignored",
                spot.place,
                f"{spot.function} has the parameter {name} and does not use it; {brief_at(line)} discounts the next "
                f"value even where the episode has ended.",
                cure=f"Multiply the next value by (1 - {name}).",
            )

    def _look_at_order(self, line: Instruction) -> None:
        spot = spot_of(line)
        argument = spot.call.args[0] if spot.call is not None and spot.call.args else None
        if not isinstance(argument, ast.Name) or not isinstance(spot.scope, (ast.FunctionDef, ast.Module)):
            return
        appended, expected = None, set()
        for node in ast.walk(spot.scope):
            if isinstance(node, ast.For) and _is_reversed(node.iter):
                appended = appended or _appends(node, argument.id)
                expected.add(node.iter)
            elif _restores(node, argument.id) or (_is_reversed(node) and node not in expected):
                return  # in order again; or something else is turned round to go with it
        if appended is not None:
            self.report(
                "returns-in-reverse",
                spot.at(appended).place,
                f"{argument.id} is filled from the last step to the first, and {brief_at(line)} makes a "
                "tensor of it in "
                "that order.",
                cure=f"Insert at the front, {argument.id}.insert(0, …), or reverse {argument.id} after the loop.",
            )

    def _look_at_risks(self, line: Instruction) -> None:
        """Look at the order in which risks are cumulated: those who are at risk last longer."""
        spot = spot_of(line)
        if spot.tree is None or "flip" in spot.text(spot.scope):
            return
        for node in ast.walk(spot.scope):
            sorts = isinstance(node, ast.Call) and (spelled(node.func) or "").rpartition(".")[2] in ("argsort", "sort")
            if not sorts or any(word.arg == "descending" for word in node.keywords):
                continue
            of = node.args[0] if node.args else getattr(node.func, "value", None)
            if TIMES.search((spelled(of) or "").rpartition(".")[2].lower()):
                self.report(
                    "risks-of-the-earlier",
                    spot.at(node).place,
                    f"{brief_at(line)} accumulates in the order of {brief(spot.at(node).place)}, from the smallest "
                    f"{spelled(of)} to the largest.",
                    "The sum for each row covers the rows with an earlier time, not those still at risk.",
                )
                return

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look at the condition that a step is made under."""
        if place is None or (place.file, place.line) in self.steps:
            return
        self.steps.add((place.file, place.line))
        user = next(users_frames(sys._getframe(1)), None)
        spot = None if user is None else spot_of(Instruction(user.f_code, user.f_lasti), user)
        test = None if spot is None else next((one.test for one in spot.around(ast.If) if _counts(one.test)), None)
        if test is None:
            return
        name = _counts(test)
        whole = [node for node in ast.walk(spot.tree) if isinstance(node, ast.BinOp)]
        divided = any(isinstance(one.op, (ast.Div, ast.Mult)) and _has(one, name) for one in whole)
        backward = next((one for one in ast.walk(spot.scope) if _is_backward(one)), None)
        steps = next((spot.value(one) for one in ast.walk(test) if spelled(one) and spelled(one).endswith(name)), None)
        if divided or backward is None or steps == 1 or "sum" in spot.text(spot.scope):
            return
        self._report_sum(spot, backward, name, place)

    def _report_sum(self, spot: Spot, backward: ast.AST, name: str, place: Place) -> None:
        where = spot.at(backward).place
        owner = backward.func.value
        self.report(
            "accumulated-not-divided",
            where,
            f"backward() at {brief(where)} adds to the gradients of the previous batches; the step at {brief(place)} "
            f"runs once in {name} batches, and nothing is divided by {name}.",
            cure=f"Divide each loss: ({spot.text(owner)} / {name}).backward().",
        )


def _renews(name: ast.Name) -> bool:
    """Return whether a name is read only to be assigned anew: `d = torch.tensor(d)`."""
    node = name
    while node is not None and not isinstance(node, ast.stmt):
        node = getattr(node, "parent", None)
    return isinstance(node, ast.Assign) and any(name.id == spelled(one) for one in node.targets)


def _is_reversed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return spelled(node.func) == "reversed"
    step = node.slice.step if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) else None
    return isinstance(step, ast.UnaryOp)


def _appends(loop: ast.For, name: str) -> ast.AST | None:
    """Return `name.append(...)` of a loop that discounts."""
    discounts = any(isinstance(one, ast.Name) and DISCOUNT.search(one.id.lower()) for one in ast.walk(loop))
    calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
    return next((one for one in calls if discounts and spelled(one.func) == f"{name}.append"), None)


def _restores(node: ast.AST, name: str) -> bool:
    """Return whether something brings a list, or a tensor made of it, into the order of time."""
    if isinstance(node, ast.Call):
        func = spelled(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        own = func in (f"{name}.reverse", f"{name}.insert", f"{name}.appendleft") or func.endswith("flip")
        arguments = [spelled(one) for one in node.args]
        return own or (func == "reversed" and name in arguments)
    return isinstance(node, ast.Subscript) and spelled(node.value) == name and _is_reversed(node)


def _counts(test: ast.AST) -> str | None:
    """Return the name of `% accum_steps` in a condition."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            name = (spelled(node.right) or "").rpartition(".")[2]
            if ACCUMULATES.search(name):
                return name
    return None


def _has(node: ast.AST, name: str) -> bool:
    return any((spelled(one) or "").rpartition(".")[2] == name for one in ast.walk(node))


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
