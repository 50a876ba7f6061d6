"""Where a program keeps a tensor with its graph: in which attribute or list, and which line put it there."""

import ast
import linecache
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.graph import Node, is_computed, nodes_behind, root_nodes, sequence_of
from backlight.lens.doctor.history import Failure, PastRun
from backlight.lens.doctor.origins import switch_around_node
from backlight.lens.doctor.places import brief
from backlight.lens.doctor.source import Spot, assignments, parsed, span, spelled
from backlight.lens.engines import Engine
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

APPENDS = {"append", "appendleft", "add", "insert", "extend"}
CLEAN = {"detach", "item", "tolist", "no_grad", "numpy", "clone"}
ELEMENTWISE = ("Add", "Sub", "Div", "Mul", "Neg")
LISTED = re.compile(r"\[[^0]|\].*\[|\[\d\d")  # an element of a list or a dict that is not the first
DEEP, MANY, LEVELS = 3, 200, 200
CONSTANT = (
    "{} was computed with its graph before the loop; each iteration recomputes it to compare the two.",
    "Make {0} a constant: {0}.detach(), or compute it under torch.no_grad().",
)
TOTAL = (
    "the loss is a sum that contains the losses of earlier iterations",
    "A running total was made from the losses themselves, and backward() is called on it: it goes through the graphs "
    "of earlier iterations, which are freed.",
    "Call backward() only on the loss of this iteration, and add loss.item() to the total; start a new list.",
)


def running_total(context: ErrorContext, earlier: PastRun, evidence: list[str]) -> Finding | None:
    """BL206 of a sum of losses, some of which had their backward in an earlier iteration."""
    history, failure = context.failure
    node = _sum_with_old(root_nodes(failure.run), earlier)
    line = None if node is None else history.engine.line_of(node)
    if line is None:
        return None
    seen = f"what {line.file.rpartition('/')[2]}:{line.line} added was computed before that backward(): {line.text}"
    title, cause, cure = TOTAL
    return context.found("BL206", *evidence, seen, title=title, cause=cause, cure=cure)


def _sum_with_old(level: list[Node], earlier: PastRun) -> Node | None:
    """Return the addition behind a root, through ops on single numbers only, of what is older than a backward."""
    for _ in range(LEVELS):
        below = []
        for node in level[:LEVELS]:
            inner = [one for one, _ in node.next_functions if one is not None and one.next_functions]
            if node.name().startswith("Add") and any(sequence_of(one) < earlier.after for one in inner):
                return node
            below += inner if node.name().startswith(ELEMENTWISE) else []
        level = below
    return None


def kept_state(context: ErrorContext, freed: Node, earlier: PastRun) -> tuple[str, Spot | None, str | None] | None:
    """Return what keeps a freed graph of the failing backward, in words, the line that put it there, and it detached.

    Only attributes, and lists and dicts, are looked at: a plain variable is what the loop itself carries over.
    """
    history, failure = context.failure
    engine = history.engine
    behind = {engine.key_of(node) for node in nodes_behind(root_nodes(failure.run))}

    read = _read_at(engine.line_of(freed))
    for spot in context.spots():
        for name, value in list(spot.frame.f_locals.items()):
            for path, owner, tensor in _held(value, name, engine):
                key = engine.key_of(tensor.grad_fn)
                old = sequence_of(tensor.grad_fn) < earlier.after  # or it was set anew for this iteration
                anew = owner in read and not LISTED.search(path) and _reaches(engine, tensor.grad_fn, freed)
                if path != name and ((old and key in behind) or anew):
                    made = _storing(context, owner, several=path.endswith("]") and not old)
                    return f"{path} keeps its graph from one iteration to the next", *(made or (None, None))
    return None


def made_before_loop(context: ErrorContext, earlier: PastRun, evidence: list[str]) -> Finding | None:
    """BL218 of a variable that was computed once, before the loop of a function, and that each iteration uses."""
    history, failure = context.failure
    engine = history.engine
    behind = {engine.key_of(node) for node in nodes_behind(root_nodes(failure.run))}
    for spot in context.spots():
        loop = next((one for kind in (ast.For, ast.While) for one in spot.around(kind)), None)
        scope = spot.scope
        for name, value in list(spot.frame.f_locals.items()) if loop is not None else ():
            if not engine.is_tensor(value) or not is_computed(value) or engine.key_of(value.grad_fn) not in behind:
                continue
            made = assignments(scope, name)
            if sequence_of(value.grad_fn) >= earlier.after or len(made) != 1 or made[0].lineno >= loop.lineno:
                continue
            where = spot.at(made[0])
            seen = f"{name} was computed at {brief(where.place)}, before the loop: {where.place.text}"
            if not runs_again(engine, failure, value.grad_fn, earlier):
                cure = f"Compute {name} inside the loop, in each iteration."
                return context.found("BL218", *evidence, seen, cure=cure)
            atom = isinstance(made[0].value, corrections.ATOMS)
            text = where.edited(corrections.after(made[0].value, ".detach()")) if atom else None
            cause, cure = CONSTANT[0].format(name), CONSTANT[1].format(name)
            at = where.place
            return context.found("BL218", *evidence, seen, cause=cause, cure=cure, corrected=text, corrected_at=at)
    return None


def runs_again(engine: Engine, failure: Failure, node: Node, earlier: PastRun) -> bool:
    """Return whether the line of a node made another one since an earlier backward, in the graph of the failing one."""
    line = engine.line_of(node)
    newer = (one for one in nodes_behind(root_nodes(failure.run)) if one.next_functions)
    newer = (one for one in newer if sequence_of(one) >= earlier.after and one.name() == node.name())
    return line is not None and any(engine.line_of(one) == line for one in newer)


def _reaches(engine: Engine, node: Node, wanted: Node) -> bool:
    """Return whether a node is among the next ones behind another."""
    key = engine.key_of(wanted)
    return any(engine.key_of(one) == key for one in islice(nodes_behind([node]), MANY))


def _read_at(line: Place | None) -> set[str]:
    """Return the attributes that the function reads in which a line stands."""
    tree = None if line is None else parsed(tuple(linecache.getlines(line.file)))
    functions = [one for one in ast.walk(tree or ast.Module(body=[])) if isinstance(one, ast.FunctionDef)]
    around = [one for one in functions if one.lineno <= line.line <= one.end_lineno]
    inner = ast.walk(max(around, key=lambda one: one.lineno)) if around else ()
    return {one.attr for one in inner if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)}


def attribute_of_copied(context: ErrorContext) -> Finding | None:
    """BL405 of a module: the attribute that holds a computed tensor, and the line that sets it."""
    spot = context.spot
    arguments = spot.call.args if spot is not None and spot.call is not None else ()
    copied = spot.value(arguments[0]) if arguments else None
    for engine in context.session.engines if isinstance(copied, tuple(_modules(context))) else ():
        for path, owner, tensor in _held(copied, spot.text(arguments[0]), engine):
            made = _storing(context, owner)
            seen = [f"{path} is a tensor with a graph, of shape {list(tensor.shape)}"]
            if made is None:
                return context.found("BL405", *seen)
            where, text = made
            seen.append(f"it was set at {brief(where.place)}: {where.place.text}")
            cure = f"Keep it without its graph: {path} = ….detach()."
            return context.found("BL405", *seen, cure=cure, corrected=text, corrected_at=where.place)
    return None


def _modules(context: ErrorContext) -> Iterator[type]:
    return (engine.module.nn.Module for engine in context.session.engines)


def _held(value: Any, path: str, engine: Engine, depth: int = DEEP) -> Iterator[tuple[str, str, Any]]:
    """Give the computed tensors in a value: how each is reached, the last name on the way, and itself."""
    if engine.is_tensor(value):
        if is_computed(value):
            yield path, path.partition("[")[0].rpartition(".")[2], value
        return
    if depth == 0 or isinstance(value, (str, bytes, type)) or (callable(value) and not hasattr(value, "_modules")):
        return
    if isinstance(value, (list, tuple, deque)):
        inner = [(f"{path}[{number}]", one) for number, one in enumerate(list(value)[-MANY:])]
    elif isinstance(value, dict):
        inner = [(f"{path}[{key!r}]", one) for key, one in list(value.items())[:MANY]]
    else:
        state = getattr(value, "__dict__", None)
        state = state if isinstance(state, dict) else {}
        several = [state.get("_buffers"), state.get("_modules")]
        state = {**state, **{name: one for table in several if isinstance(table, dict) for name, one in table.items()}}
        inner = [(f"{path}.{name}", one) for name, one in list(state.items())[:MANY] if not name.startswith("_")]
    for name, one in inner:
        yield from _held(one, name, engine, depth - 1)


def _storing(context: ErrorContext, owner: str, several: bool = False) -> tuple[Spot, str | None] | None:
    """Return the only line of the user's files that keeps a recorded tensor under a name, and it corrected."""
    found: list[tuple[Spot, ast.AST]] = []
    for spot in {spot.file: spot for spot in context.spots() if spot.tree is not None}.values():
        for node in ast.walk(spot.tree) if not found else ():  # the innermost file in which there is one
            value = _stored(node, owner)
            if value is not None and not _is_clean(value) and switch_around_node(node) is None:
                found.append((Spot(spot.file, _function(node), span(node)), value))
    if len(found) != 1:
        return None
    ((where, value),) = found
    if several:
        edit = corrections.replace(value, f"tuple(one.detach() for one in {where.text(value)})")
    else:
        edit = corrections.on(where, value, ".detach()")
    return where, None if isinstance(value, (ast.List, ast.Tuple, ast.Dict)) else where.edited(edit)


def _stored(node: ast.AST, owner: str) -> ast.AST | None:
    """Return what a piece of syntax puts into an attribute, a list or a dict of a name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in APPENDS and node.args:
        return node.args[-1] if _last_name(node.func.value) == owner else None
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if isinstance(target, ast.Subscript):
        return node.value if _last_name(target.value) == owner else None
    return node.value if isinstance(target, ast.Attribute) and target.attr == owner else None


def _last_name(node: ast.AST) -> str:
    return (spelled(node) or "").rpartition(".")[2]


def _is_clean(value: ast.AST) -> bool:
    """Return whether a value is None or a number, an empty container, new data, or detached."""
    if isinstance(value, (ast.Constant, ast.List, ast.Tuple, ast.Dict)):
        return not getattr(value, "elts", getattr(value, "keys", ()))
    names = {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)}
    makes = isinstance(value, ast.Call) and (spelled(value.func) or "").startswith(("torch.zeros", "torch.randn"))
    return makes or not CLEAN.isdisjoint(names) or (isinstance(value, ast.Call) and _last_name(value.func) in KINDS)


KINDS = {"deque", "list", "dict", "defaultdict"}


def _function(node: ast.AST) -> str:
    while node is not None and not isinstance(node, ast.FunctionDef):
        node = getattr(node, "parent", None)
    return "" if node is None else node.name
