"""Errors of a graph that was freed or written to: which backward freed it, which lines saved and wrote."""

import ast
import math
import re
from itertools import islice
from typing import Any

from backlight.dispatch.observers import Run
from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.errors import kept_graphs, several_optimizers
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.graph import nodes_behind, root_nodes, sequence_of
from backlight.lens.doctor.history import Failure, History, PastRun, PastWrite
from backlight.lens.doctor.places import brief, place_of_node, shown
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.source import Spot, assignment_to, spelled, spot_of
from backlight.lens.engines import Engine
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
SHAPE = re.compile(r"Tensor \[([\d, ]*)\]")
RETAINED = (
    "the graphs of earlier steps are kept, but step() has changed tensors that they need",
    "A tensor is passed from one step to the next with its graph, which retain_graph=True keeps alive.",
    "Detach the tensors that the next step uses, h = h.detach(), and remove retain_graph=True.",
)
MANY = 200_000  # nodes that are looked at


def freed(context: ErrorContext) -> Finding:
    """A graph is walked, or its saved tensors read, after it was freed: BL203 to BL206."""
    if context.failure is None:
        return context.found("BL205" if context.spot is not None and reads_saved(context.spot.expression) else "BL203")
    history, failure = context.failure
    here = context.place_of_backward
    node, earlier = _freed_before(history, failure)
    if node is None:
        return rule("BL203").found(here, context.message)
    made = shown(place_of_node(history.engine, node))
    evidence = [context.message, f"{node.name()}, made at {made}, has no saved tensors any more"]
    if earlier is None:
        return rule("BL203").found(here, *evidence)
    evidence.append(f"backward() at {shown(spot_of(earlier).place)} freed it")
    name = _which(history.engine, failure, earlier, node)
    if name == "BL204" and (special := several_optimizers.of_shared_graph(context, evidence[1:])) is not None:
        return special
    if name == "BL206" and (total := kept_graphs.running_total(context, earlier, evidence[1:])) is not None:
        return total
    if name == "BL206" and (once := kept_graphs.made_before_loop(context, earlier, evidence[1:])) is not None:
        return once
    corrected, where = _keep_or_detach(name, history.engine, node, earlier)
    if name == "BL206" and corrected is None and (carried := _carried_in(context)) is not None:
        corrected, where = carried
    if name == "BL206" and corrected is None and (kept := kept_graphs.kept_state(context, node, earlier)) is not None:
        return _kept(context, evidence[1:], *kept)
    return rule(name).found(here, *evidence, corrected=corrected, corrected_at=where)


def _kept(context: ErrorContext, evidence: list[str], seen: str, made: Spot | None, corrected: str | None) -> Finding:
    """BL206 of what an attribute, a list or a dict keeps."""
    cure = "Keep it without its graph: use detach()."
    if made is None:
        return context.found("BL206", *evidence, seen, cure=cure)
    stored = f"it was kept at {brief(made.place)}: {made.place.text}"
    return context.found("BL206", *evidence, seen, stored, cure=cure, corrected=corrected, corrected_at=made.place)


def _freed_before(history: History, failure: Failure) -> tuple[Any, PastRun | None]:
    """Return the node that a backward stopped at, and the earlier backward that freed it."""
    for node in stopped_at(history.engine, failure.run, "second time"):
        earlier = history.freed_by.get(history.engine.key_of(node))
        if earlier is not failure.past:
            return node, earlier
    return None, None


def reads_saved(expression: ast.AST | None) -> bool:
    """Return whether an expression reads what a node saved."""
    return isinstance(expression, ast.Attribute) and expression.attr.startswith(("_saved_", "_raw_saved_", "saved_"))


def _which(engine: Engine, failure: Failure, earlier: PastRun, node: Any) -> str:
    run = failure.run
    if earlier.roots & {engine.key_of(root) for root, _ in run.roots}:
        return "BL203"
    if (earlier.code, earlier.lasti) != (run.code, run.lasti):
        return "BL204"
    if all(sequence_of(root) < earlier.after for root in root_nodes(run)):
        return "BL204"  # a loop over losses that were all computed before it
    return "BL218" if _made_once(engine, node, spot_of(run)) else "BL206"


def _made_once(engine: Engine, node: Any, backward: Spot) -> bool:
    """Return whether a node was made in a constructor, or before the loop around a backward."""
    line = engine.line_of(node)
    if line is None:
        return False
    loop = next((one for kind in (ast.For, ast.While) for one in backward.around(kind)), None)
    before = loop is not None and line.file == backward.file and line.line < loop.lineno
    return line.function == "__init__" or (before and line.function == backward.function)


def _keep_or_detach(name: str, engine: Engine, node: Any, earlier: PastRun) -> tuple[str | None, Place | None]:
    """Return a corrected line and where it stands: the first backward, or the line that carries a state over."""
    if name == "BL218":
        line = engine.line_of(node)
        made = assignment_to(None, line.file, line.line, line.function)
        text = None if made is None else corrections.parameter_last(made)
        return text, None if made is None else made.place
    if name != "BL206":
        return corrections.with_keyword(spot_of(earlier), "retain_graph", "True"), spot_of(earlier).place
    line = engine.line_of(node)
    statement = None if line is None else _carrying(line.file, line.line)
    return (None, None) if statement is None else (statement[1], statement[0].place)


def _carrying(file: str, line: int) -> tuple[Spot, str] | None:
    """`h = cell(x, h)` → `h = cell(x, h.detach())`; a state of several tensors is detached in a line before."""
    spot = assignment_to(None, file, line)
    if spot is None:
        return None
    name = spelled(spot.statement.targets[0])
    call = spot.statement.value
    used = [one for one in ast.walk(call) if spelled(one) == name]
    if not isinstance(call, ast.Call) or len(used) != 1 or used[0] not in call.args or _may_be_none(spot.tree, name):
        return None
    text = spot.edited(corrections.after(used[0], ".detach()"))
    return None if text is None else (spot, text)


def _carried_in(context: ErrorContext) -> tuple[str, Place] | None:
    """`out, h = model(x, h)` → the same, after a line that detaches h, for the frame that called backward()."""
    for spot in context.spots():
        loop = next((one for kind in (ast.For, ast.While) for one in spot.around(kind)), None)
        for node in ast.walk(loop) if loop is not None else ():
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            called = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for one in target.elts if isinstance(target, ast.Tuple) and called else ():
                name = spelled(one)
                given = [*node.value.args, *(word.value for word in node.value.keywords)]
                if isinstance(one, ast.Name) and name in {spelled(argument) for argument in given}:
                    state = spot.frame.f_locals.get(name)
                    made = spot.at(node)
                    line = _detached_state(name, state, _may_be_none(spot.tree, name))
                    return None if line is None else (f"{line}\n{spot.text(node)}", made.place)
    return None


def _detached_state(name: str, state: Any, may_be_none: bool) -> str | None:
    """Return the line that detaches a tensor, or a tuple of them."""
    several = isinstance(state, tuple) and all(hasattr(one, "detach") for one in state)
    if not several and not hasattr(state, "detach"):
        return None
    line = f"{name} = tuple(one.detach() for one in {name})" if several else f"{name} = {name}.detach()"
    return f"if {name} is not None: {line}" if may_be_none else line


def _may_be_none(tree: ast.Module, name: str) -> bool:
    """Return whether a state may be None at first: the program assigns None to it, or is given it as an argument."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        nothing = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
        if nothing and name in {spelled(target) for target in node.targets}:
            return True
    return False


def modified(context: ErrorContext) -> Finding:
    """A saved tensor was written to: BL304, or BL305 if an optimizer's step did it."""
    if context.failure is None:
        return context.found("BL304")
    history, failure = context.failure
    node = next(iter(stopped_at(history.engine, failure.run, "modified by an inplace")), None)
    evidence = [_versions(str(context.problem))]
    if node is not None:
        evidence.append(f"{node.name()}, made at {shown(place_of_node(history.engine, node))}, saved it")
    writes = _writes(history, str(context.problem))
    evidence += [f"{write.name} at {shown(spot_of(write).place)} wrote to it" for write in writes[:3]]
    by_step = bool(writes) and all(corrections.method_of(spot_of(write), "step") is not None for write in writes)
    corrected = where = None
    if not by_step and len(writes) == 1 and not writes[0].view:
        wrote = spot_of(writes[0])
        corrected, where = corrections.out_of_place(wrote) or corrections.masked(wrote), wrote.place
    if by_step and node is not None:
        special = several_optimizers.of_step(context, node, evidence)
        if special is not None:
            return special
    if by_step and node is not None and failure.run.retain_graph:
        before = history.runs[-2] if len(history.runs) > 1 else None  # the last one is the one that failed
        if before is not None and kept_graphs.runs_again(history.engine, failure, node, before):
            title, cause, cure = RETAINED
            return rule("BL305").found(context.place_of_backward, *evidence, title=title, cause=cause, cure=cure)
    if not by_step and len(writes) == 1:
        evidence += [
            f"{brief(line)} made it an op in place: {line.text}" for line in _in_place_layer(context, writes[0])
        ]
    name = "BL305" if by_step else "BL304"
    return rule(name).found(context.place_of_backward, *evidence, corrected=corrected, corrected_at=where)


def _in_place_layer(context: ErrorContext, write: PastWrite) -> list[Place]:
    """Return the line of the only layer with inplace=True that is named as the op that wrote."""
    op = write.name.strip("_").replace("_", "")
    known = [pair for one in context.session.each(Constructions) for pair in one.modules.items()]
    made = {line for module, line in known if getattr(module, "inplace", False) and type(module).__name__.lower() == op}
    return [spot_of(line).place for line in made] if len(made) == 1 else []


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


def stopped_at(engine: Engine, run: Run, said: str) -> list:
    """Return the nodes of a run that can no longer show what they saved, for a reason; the last made first."""
    nodes = [
        node
        for node in islice(nodes_behind(root_nodes(run)), MANY)
        if any(kept.problem is not None and said in kept.problem for kept in engine.saved_by(node))
    ]
    return sorted(nodes, key=sequence_of, reverse=True)
