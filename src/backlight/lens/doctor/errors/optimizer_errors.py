"""Errors of optimizers and schedulers: parameters used up, a closure that is missing, a schedule that is too short."""

import ast
from collections.abc import Iterator

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.detectors.training.schedules import Schedules
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.places import brief, brief_at
from backlight.lens.doctor.source import Spot, assignment_to, assignments, spelled, spot_of
from backlight.lens.finding import Finding

LENGTHS = ("total_steps", "epochs", "steps_per_epoch")
USED_UP = (
    "the generator of parameters was exhausted before the optimizer got it",
    "A generator such as model.parameters() yields its values once, and earlier code has consumed them.",
    "Make a list of it, or call model.parameters() again.",
)
NOTHING = (
    "the closure of an optimizer returns nothing",
    "The closure computes the loss and calls backward(), but does not return the loss.",
    "End the closure with `return loss`.",
)


def no_parameters(context: ErrorContext) -> Finding:
    """BL702: say whether a generator was used up."""
    spot = context.spot
    call = None if spot is None else spot.call
    given = call.args[0] if call is not None and call.args else None
    name = None if given is None else spelled(given)
    if name is None or not isinstance(spot.value(given), Iterator):
        return context.found("BL702")
    scope = spot.tree if "." in name else spot.scope
    before = [one for one in ast.walk(scope) if spelled(one) == name and _reads(one) and one.lineno < spot.line]
    made = assignments(scope, name)
    if not before or len(made) != 1:
        return context.found("BL702")
    where = assignment_to(name, spot.file, made[0].lineno, spot.function)
    seen = f"{name} is a generator, made at {brief(where.place)}, and line {before[0].lineno} went through it"
    title, cause, cure = USED_UP
    value = where.statement.value
    text = where.edited(corrections.replace(value, f"list({where.text(value)})"))
    return context.found("BL702", seen, title=title, cause=cause, cure=cure, corrected=text, corrected_at=where.place)


def _reads(node: ast.AST) -> bool:
    return isinstance(node.ctx, ast.Load)


def overrun(context: ErrorContext) -> Finding:
    """BL765: where the schedule was made, and for how many steps."""
    frames = (frame.f_locals.get("self") for frame in context.frames())
    scheduler = next((one for one in frames if hasattr(one, "total_steps")), None)
    known = [one.schedules.get(scheduler) for one in context.session.each(Schedules)]
    made = next((one.made for one in known if one is not None and one.made is not None), None)
    if made is None:
        return context.found("BL765")
    spot = spot_of(made)
    stated = [word for word in spot.call.keywords if word.arg in LENGTHS] if spot.call is not None else []
    length = "".join(f", by {spot.text(word)} at {brief(spot.at(word).place)}" for word in stated[-1:])
    seen = f"the {type(scheduler).__name__} made at {brief_at(made)} is for {scheduler.total_steps} steps{length}"
    cure = "Pass the total number of steps: epochs * len(loader), which includes an incomplete last batch."
    return context.found("BL765", seen, cure=cure)


def given_twice(context: ErrorContext) -> Finding:
    """BL766: which group holds parameters that one before it has."""
    spot = context.spot
    groups = spot.call.args[0] if spot is not None and spot.call is not None and spot.call.args else None
    optimizer, added = (context.local(name) for name in ("self", "param_group"))
    known = getattr(optimizer, "param_groups", None)
    if (
        not isinstance(groups, ast.List)
        or not isinstance(added, dict)
        or known is None
        or len(known) >= len(groups.elts)
    ):
        return context.found("BL766")
    held = {id(param) for group in known for param in group["params"]}
    twice = [param for param in added["params"] if id(param) in held]
    node = groups.elts[len(known)]
    seen = f"of the group at {brief(spot.at(node).place)}, {spot.text(node)}, {counted(len(twice), 'parameter')} of "
    return context.found("BL766", f"{seen}{len(added['params'])} are in an earlier group")


def closure(context: ErrorContext) -> Finding | None:
    """BL782: the function that is to be passed; or that it returns nothing, where that is what the error says."""
    spot = context.spot
    if "closure" not in str(context.problem):
        frames = {frame.f_code.co_name for frame in context.frames()}
        engine_files = any(frame.f_code.co_filename.endswith("lbfgs.py") for frame in context.frames())
        if "step" not in frames or not engine_files:
            return None
        title, cause, cure = NOTHING
        return context.found("BL782", title=title, cause=cause, cure=cure)
    tree = None if spot is None else spot.tree
    closures = [node for node in ast.walk(tree or ast.Module(body=[])) if _is_closure(node)]
    fitting = {node.name for node in closures if not node.lineno <= spot.line <= node.end_lineno}
    if len(fitting) != 1:
        return context.found("BL782")
    (name,) = fitting
    return context.found("BL782", f"{name}() computes the loss and its gradients", corrected=_passing(spot, name))


def _is_closure(node: ast.AST) -> bool:
    """Return whether a function without arguments calls backward() and returns something."""
    if not isinstance(node, ast.FunctionDef) or node.args.args or node.args.posonlyargs:
        return False
    calls = {one.func.attr for one in ast.walk(node) if isinstance(one, ast.Call) and hasattr(one.func, "attr")}
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))
    return "backward" in calls and returns


def _passing(spot: Spot, name: str) -> str | None:
    """`optimizer.step()` → `optimizer.step(closure)`."""
    call = spot.call
    if call is None or call.args or call.keywords:
        return None
    return spot.edited(corrections.insert(call.end_lineno, call.end_col_offset - 1, name))
