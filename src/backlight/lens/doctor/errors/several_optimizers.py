"""Errors of programs with several optimizers, such as GANs and actor-critics: what has to be detached.

NOTE [Whose loss]
One optimizer holds all parameters behind an intermediate result, another all others of the failing graph. A loss of the
other one must not reach behind the result: it takes a detached one.
"""

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.graph import is_computed, nodes_behind, root_nodes, sequence_of
from backlight.lens.doctor.history import Failure, History
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.source import Spot, assignments, spelled, spot_of
from backlight.lens.finding import Finding

NOT_MODELS = ("torch.", "F.", "nn.", "print", "len", "float")


class Shared(NamedTuple):
    """An intermediate result that both losses are computed from.

    Args:
        name: the user's variable.
        spot: the instruction that runs in the variable's function.
        frame: that function's.
        owner: the optimizer that holds what is behind it.
    """

    name: str
    spot: Spot
    frame: FrameType
    owner: Any


def of_shared_graph(context: ErrorContext, evidence: list[str]) -> Finding | None:
    """BL204 of two optimizers: the loss of the one is to take a detached result of the other's model."""
    history, failure = context.failure
    shared = _shared(context, history, failure)
    if shared is None:
        return None
    earlier = spot_of(history.freed_by[history.engine.key_of(shared.frame.f_locals[shared.name].grad_fn)])
    calls = _uses(shared, earlier, _first_is_owners(shared, earlier))
    if len(calls) == 1:
        calls = _inside(calls[0], shared.spot.tree, earlier.line) or calls
    text = None
    where = None
    if len(calls) == 1:
        call, number = calls[0]
        where = shared.spot.at(call)
        text = corrections.after_argument(where, number, ".detach()")
    title = f"the other optimizer's loss goes through {shared.name} into the model that made it"
    seen = f"{shared.name} and both losses: two optimizers; one holds all parameters that {shared.name} depends on"
    return context.found(
        "BL204",
        *evidence,
        seen,
        title=title,
        cause=f"A loss for one model (a discriminator) is computed from {shared.name} with its graph.",
        cure=f"Give that loss {shared.name}.detach(): no gradient is needed before it.",
        corrected=text,
        corrected_at=None if where is None else where.place,
    )


def _owners(history: History, node: Any) -> set[int]:
    """Return which optimizers hold the leaves behind a node; 0 for those that none holds."""
    held = {}
    for optimizer in history.watch.optimizers.alive():
        for group in optimizer.param_groups:
            held.update(dict.fromkeys(map(id, group["params"]), id(optimizer)))
    leaves = (getattr(inner, "variable", None) for inner in nodes_behind([node]) if not inner.next_functions)
    return {held.get(id(leaf), 0) for leaf in leaves if leaf is not None}


def _shared(context: ErrorContext, history: History, failure: Failure) -> Shared | None:
    """Return the last made variable whose graph an earlier backward freed and one optimizer holds alone."""
    roots = root_nodes(failure.run)
    keys = {history.engine.key_of(node) for node in nodes_behind(roots)}
    everything = set().union(*(_owners(history, node) for node in roots)) - {0}
    found: list[tuple[int, Shared]] = []
    for spot in context.spots():
        for name, value in list(spot.frame.f_locals.items()):
            if not history.engine.is_tensor(value) or not is_computed(value):
                continue
            key = history.engine.key_of(value.grad_fn)
            owners = _owners(history, value.grad_fn)
            if key in keys and key in history.freed_by and len(owners) == 1 and owners < everything:
                owner = next(one for one in history.watch.optimizers.alive() if id(one) in owners)
                found.append((sequence_of(value.grad_fn), Shared(name, spot, spot.frame, owner)))
    last = max((number for number, _ in found), default=None)
    candidates = [shared for number, shared in found if number == last]  # a variable and the arguments that get it
    return next((one for one in candidates if _is_within(one, history, one.frame)), (candidates or [None])[-1])


def _is_within(shared: Shared, history: History, frame: FrameType) -> bool:
    """Return whether the earlier backward stands in the function whose variable this is."""
    earlier = spot_of(history.freed_by[history.engine.key_of(frame.f_locals[shared.name].grad_fn)])
    function = shared.spot.scope
    return earlier.file == shared.spot.file and _holds(function, earlier.line)


def _inside(use: tuple[ast.Call, int], tree: ast.AST, line: int) -> list[tuple[ast.Call, int]]:
    """Return the one call that takes the result inside of the function that is called with it, if a line lies there."""
    call, number = use
    name = (spelled(call.func) or "").rpartition(".")[2]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and _holds(node, line):
            arguments = [one.arg for one in node.args.args]
            number += "." in (spelled(call.func) or "") and arguments[:1] == ["self"]
            given = arguments[number] if number < len(arguments) else None
            uses = [one for one in ast.walk(node) if isinstance(one, ast.Call) and _may_be_model(one)]
            uses = [(one, at) for one in uses for at, value in enumerate(one.args) if spelled(value) == given]
            return uses if given is not None and len(uses) == 1 else []
    return []


def _may_be_model(call: ast.Call) -> bool:
    name = spelled(call.func)
    return name is not None and not name.startswith(NOT_MODELS)


def _first_is_owners(shared: Shared, earlier: Spot) -> bool:
    """Return whether the earlier backward was that of the loss for the model which made the result."""
    if earlier.tree is None or earlier.file != shared.spot.file:
        return False
    after = earlier.line, earlier.position[2] or 0
    steps = [node for node in ast.walk(earlier.tree) if _is_step(node) and (node.lineno, node.col_offset) > after]
    first = min(steps, key=lambda node: (node.lineno, node.col_offset), default=None)
    return first is not None and _value(shared.frame, first.func.value) is shared.owner


def _is_step(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"


def _value(frame: FrameType, node: ast.AST) -> Any:
    """Return what a name or attributes of one stand for."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(frame, node.value), "__dict__", {}).get(node.attr)
    return frame.f_locals.get(node.id, frame.f_globals.get(node.id)) if isinstance(node, ast.Name) else None


def _uses(shared: Shared, earlier: Spot, first_is_owners: bool) -> list[tuple[ast.Call, int]]:
    """Return the calls that are to take a detached result: before the earlier backward, or after it."""
    function = shared.spot.scope
    calls = sorted(_calls_with(function, shared), key=lambda pair: pair[0].lineno)
    same = earlier.file == shared.spot.file and _holds(function, earlier.line)
    if same:
        return [pair for pair in calls if (pair[0].lineno > earlier.line) is first_is_owners]
    return calls[-1:] if first_is_owners else calls[:1]


def _holds(node: ast.AST, line: int) -> bool:
    """Return whether a line lies in a function."""
    return not hasattr(node, "lineno") or node.lineno <= line <= node.end_lineno


def _calls_with(function: ast.AST, shared: Shared) -> Iterator[tuple[ast.Call, int]]:
    """Give the calls of models with the result as an argument, up to the line that runs."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node.lineno <= shared.spot.line:
            if _may_be_model(node):
                for number, argument in enumerate(node.args):
                    if spelled(argument) == shared.name:
                        yield node, number


def of_step(context: ErrorContext, saved_by: Any, evidence: list[str]) -> Finding | None:
    """BL305 of two optimizers: what the stepped model returned is a constant for the other's loss.

    It is, if nothing of the other optimizer lies behind what the stepped model computed.
    """
    history, failure = context.failure
    behind = _owners(history, saved_by)
    everything = set().union(*(_owners(history, node) for node in root_nodes(failure.run))) - {0}
    if len(everything) < 2:
        return None
    if len(behind) != 1 or 0 in behind:
        cure = "Compute it again after step(), and give the first loss a detached input: D(fake.detach())."
        cause = "Both losses come from one forward pass, but the first optimizer stepped before the second backward."
        return context.found("BL305", *evidence, cause=cause, cure=cure)
    named = _named_in_loss(context, history, behind)
    if named is None:
        return None
    spot, node = named
    made = spot.at(node)
    text = made.edited(corrections.after(node, ".detach()"))
    name = spelled(node)
    return context.found(
        "BL305",
        *evidence,
        f"{name} at {shown(made.place)} is computed from the parameters that were stepped, and from no others",
        cause=f"The loss goes through {name} into the model of the other optimizer, which has stepped.",
        cure=f"Use {name}.detach() in this loss: for it, the other model's result is a constant.",
        corrected=text,
        corrected_at=made.place,
    )


def _named_in_loss(context: ErrorContext, history: History, behind: set[int]) -> tuple[Spot, ast.Name] | None:
    """Return the variable in the assignment of the failing loss whose graph the stepped optimizer holds alone."""
    for spot in context.spots():
        method = corrections.method_of(spot, "backward")
        loss = None if method is None else spelled(method.value)
        made = [] if loss is None else [one for one in assignments(spot.scope, loss) if one.lineno <= spot.line]
        if not made:
            continue
        last = max(made, key=lambda node: node.lineno)
        names = [node for node in ast.walk(last.value) if isinstance(node, ast.Name)]
        fitting = []
        for node in names:
            value = spot.frame.f_locals.get(node.id)
            if history.engine.is_tensor(value) and is_computed(value) and _owners(history, value.grad_fn) == behind:
                fitting.append(node)
        return (spot, fitting[0]) if len(fitting) == 1 else None
    return None
