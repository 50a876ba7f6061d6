"""Errors of a graph that was freed or written to: which backward freed it, which lines saved and wrote."""

import ast
import math
import re
from collections.abc import Iterator

from backlight.dispatch.observers import Run
from backlight.lens.doctor import corrections
from backlight.lens.doctor.errors.scene import Scene, shown
from backlight.lens.doctor.history import Failure, History, PastRun, PastWrite
from backlight.lens.doctor.places import is_users
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.source import Spot, assignment_to, spelled, spot_of
from backlight.lens.engines import Engine
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
SHAPE = re.compile(r"Tensor \[([\d, ]*)\]")
MANY = 200_000  # nodes that are looked at


def freed(scene: Scene) -> Finding:
    """A graph is walked, or its saved tensors read, after it was freed: BL203 to BL206."""
    failed = scene.failure()
    if failed is None:
        name = "BL205" if scene.spot is not None and reads_saved(scene.spot.expression) else "BL203"
        return rule(name).found(place=scene.place, evidence=(scene.said,))
    history, failure = failed
    node, earlier = _freed_before(history, failure)
    here = spot_of_run(failure.run, scene)
    evidence = [scene.said]
    if node is not None:
        evidence.append(
            f"{node.name()}, made at {shown(place_of_node(history.engine, node))}, has nothing saved any more"
        )
    if earlier is None:
        return rule("BL203").found(place=here.place, evidence=tuple(evidence))
    evidence.append(f"backward() at {shown(earlier.spot.place)} freed it")
    name = _which(history.engine, failure, earlier)
    corrected, where = _keep_or_detach(name, history.engine, node, earlier)
    return rule(name).found(place=here.place, evidence=tuple(evidence), corrected=corrected, corrected_at=where)


def _freed_before(history: History, failure: Failure) -> tuple:
    """Return the node that a backward stopped at, and the earlier backward that freed it."""
    for node in stopped_at(history.engine, failure.run, "second time"):
        earlier = history.freed_by.get(history.engine.key_of(node))
        if earlier is not failure.past:
            return node, earlier
    return None, None


def reads_saved(expression: ast.AST | None) -> bool:
    """Return whether an expression reads what a node saved."""
    return isinstance(expression, ast.Attribute) and expression.attr.startswith(("_saved_", "_raw_saved_", "saved_"))


def _which(engine: Engine, failure: Failure, earlier: PastRun) -> str:
    run = failure.run
    if earlier.roots & {engine.key_of(node) for node, _ in run.roots}:
        return "BL203"
    return "BL206" if (earlier.code, earlier.lasti) == (run.code, run.lasti) else "BL204"


def _keep_or_detach(name: str, engine: Engine, node, earlier: PastRun) -> tuple[str | None, Place | None]:
    """Return a corrected line and where it stands: the first backward, or the line that carries a state over."""
    if name != "BL206":
        return corrections.with_keyword(earlier.spot, "retain_graph", "True"), earlier.spot.place
    line = engine.line_of(node)
    statement = None if line is None else _carrying(line.file, line.line)
    return (None, None) if statement is None else (statement[1], statement[0].place)


def _carrying(file: str, line: int):
    """`h = cell(x, h)` → `h = cell(x, h.detach())`."""
    spot = assignment_to(None, file, line)
    if spot is None:
        return None
    name = spelled(spot.statement.targets[0])
    call = spot.statement.value
    used = [one for one in ast.walk(call) if spelled(one) == name]
    if not isinstance(call, ast.Call) or len(used) != 1 or used[0] not in call.args or _may_be_none(spot.tree, name):
        return None
    text = spot.edited(corrections.insert(used[0].end_lineno, used[0].end_col_offset, ".detach()"))
    return None if text is None else (spot, text)


def _may_be_none(tree: ast.Module, name: str) -> bool:
    """Return whether a state may be None at first: the program assigns None to it, or is given it as an argument."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        nothing = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
        if nothing and name in {spelled(target) for target in node.targets}:
            return True
    return False


def modified(scene: Scene) -> Finding:
    """A saved tensor was written to: BL304, or BL305 if an optimiser's step did it."""
    failed = scene.failure()
    if failed is None:
        return rule("BL304").found(place=scene.place, evidence=(scene.said,))
    history, failure = failed
    node = next(stopped_at(history.engine, failure.run, "modified by an inplace"), None)
    evidence = [_versions(str(scene.problem))]
    if node is not None:
        evidence.append(f"{node.name()}, made at {shown(place_of_node(history.engine, node))}, saved it")
    writes = _writes(history, str(scene.problem))
    evidence += [f"{write.name} at {shown(write.spot.place)} wrote to it" for write in writes[:3]]
    here = spot_of_run(failure.run, scene)
    if writes and all(_is_step(write) for write in writes):
        return rule("BL305").found(place=here.place, evidence=tuple(evidence))
    corrected = where = None
    if len(writes) == 1 and not writes[0].view:
        corrected, where = corrections.out_of_place(writes[0].spot), writes[0].spot.place
    return rule("BL304").found(place=here.place, evidence=tuple(evidence), corrected=corrected, corrected_at=where)


def _versions(text: str) -> str:
    """Describe which tensor it is and what its count of writes was and is."""
    shape, versions = SHAPE.search(text), VERSIONS.search(text)
    of = f" of shape [{shape[1]}]" if shape else ""
    if versions is None:
        return f"a saved tensor{of} was written to"
    return f"a tensor{of} was saved at version {versions[2]} and is at version {versions[1]} now"


def _writes(history: History, text: str) -> list[PastWrite]:
    """Return the writes that did it, if that is certain: all since the tensor was saved, to one memory of its size."""
    shape, versions = SHAPE.search(text), VERSIONS.search(text)
    if shape is None or versions is None:
        return []
    sizes = tuple(int(size) for size in shape[1].split(",") if size.strip())
    now, then = int(versions[1]), int(versions[2])
    recent = [write for write in history.writes if then < write.version <= now]
    same = [write for write in recent if write.shape == sizes]
    size = math.prod(sizes)  # what was saved may be a view, such as a transposed weight
    return _at_one_line(same, now) or _at_one_line([one for one in recent if math.prod(one.shape) == size], now)


def _at_one_line(writes: list[PastWrite], now: int) -> list[PastWrite]:
    """Return the writes to one memory that end in a version; none if several memories were written at other lines."""
    found: dict[int, list[PastWrite]] = {}
    for write in writes:
        found.setdefault(write.memory, []).append(write)
    ended = [one for one in found.values() if one[-1].version == now]
    lines = {tuple((write.code, write.lasti) for write in one): one for one in ended}
    return next(iter(lines.values())) if len(lines) == 1 else []


def _is_step(write: PastWrite) -> bool:
    """Return whether a write happened in `optimizer.step()`."""
    return corrections.method_of(write.spot, "step") is not None


def stopped_at(engine: Engine, run, said: str) -> Iterator:
    """Give the nodes of a run that can no longer show what they saved, for a reason; the last made first."""
    seen, stack, nodes = set(), [node for node, _ in run.roots], []
    while stack and len(seen) < MANY:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack += [inner for inner, _ in node.next_functions]
        if any(kept.problem is not None and said in kept.problem for kept in engine.saved_by(node)):
            nodes.append(node)
    return iter(sorted(nodes, key=lambda node: node._sequence_nr(), reverse=True))


def spot_of_run(run: Run, scene: Scene) -> Spot:
    """Return where the user called a backward: the line that an exception passed, if a library called it for them."""
    called = spot_of(run.code, run.lasti)
    return called if is_users(called.file) or scene.spot is None else scene.spot


def place_of_node(engine: Engine, node) -> Place | None:
    """Return the user's line that made a node."""
    line = engine.line_of(node)
    return None if line is None else Place(*line)
