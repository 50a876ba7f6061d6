"""From an exception to a finding: the rule that its message means, the user's line, what was seen, the line mended."""

import ast
from collections.abc import Callable

from backlight.lens.doctor import corrections
from backlight.lens.doctor.errors import graph_errors
from backlight.lens.doctor.errors.engine_warnings import made_from_leaf
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.errors.unrecorded import without_graph
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.repairs import repair
from backlight.lens.doctor.rule_index import rule, rule_of_message
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import spot_of_traceback
from backlight.lens.finding import Finding


def diagnose(problem: BaseException, session: Session) -> Finding | None:
    """Return what an exception is the sign of; None for one that the doctor does not know."""
    context = ErrorContext(problem, spot_of_traceback(problem.__traceback__), session)
    name = rule_of_message(str(problem), error=True) or hooks_refused(context)
    if name is None:
        return None
    return SPECIAL[name](context) if name in SPECIAL else plain(name, context)


def plain(name: str, context: ErrorContext, *evidence: str) -> Finding:
    """Return the finding of a rule that its message and its line alone are enough for."""
    known = rule(name)
    return known.found(context.place_of_backward, context.message, *evidence, corrected=repair(name, context.spot))


def hooks_refused(context: ErrorContext) -> str | None:
    """BL910, whose message is the program's own: it comes out of entering saved_tensors_hooks."""
    entering = (frame for frame in context.frames() if frame.f_code.co_name in ("__enter__", "_block_state"))
    owner = next((type(frame.f_locals.get("self")).__name__ for frame in entering), "")
    return "BL910" if owner == "saved_tensors_hooks" else None


def non_scalar(context: ErrorContext) -> Finding:
    """BL201: say the shape."""
    shape = getattr(context.local("self", "tensors", "outputs"), "shape", None)
    return plain("BL201", context, *(() if shape is None else (f"its shape is {list(shape)}",)))


def on_leaf(context: ErrorContext) -> Finding:
    """A write to a leaf: BL302 where the line reads `.grad`, which makes it an update of a parameter."""
    statement = None if context.spot is None else context.spot.statement
    reads = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute)] if statement is not None else ()
    return plain("BL302" if any(one.attr == "grad" for one in reads) else "BL301", context)


def unused(context: ErrorContext) -> Finding:
    """An input that the output does not depend on: BL604 where it is made in the very call."""
    call = None if context.spot is None else context.spot.call
    requested = call.args[1] if call is not None and len(call.args) > 1 else None
    several = requested.elts if isinstance(requested, (ast.List, ast.Tuple)) else [requested]
    remade = [one for one in several if isinstance(one, (ast.Subscript, ast.Call))]
    if not remade:
        return plain("BL601", context)
    text = ", ".join(context.spot.text(one) for one in remade)
    return plain("BL604", context, f"{text} is a new tensor, made after the forward")


def non_leaf_to_optimise(context: ErrorContext) -> Finding:
    """BL701: show the line where the leaf got lost."""
    tensor = context.local("param")
    made = None if tensor is None else made_from_leaf(context.session, tensor)
    if made is None:
        return plain("BL701", context)
    corrected = corrections.requires_grad_last(made)
    return context.found(
        "BL701", f"the tensor was made at {shown(made.place)}", corrected=corrected, corrected_at=made.place
    )


def several_to_one(context: ErrorContext) -> Finding:
    """BL503: PyTorch warns of the conversion first, and then refuses it."""
    context.session.drop("BL502", context.place)
    return plain("BL503", context)


SPECIAL: dict[str, Callable[[ErrorContext], Finding]] = {
    "BL201": non_scalar,
    "BL203": graph_errors.freed,
    "BL208": without_graph,
    "BL301": on_leaf,
    "BL304": graph_errors.modified,
    "BL503": several_to_one,
    "BL601": unused,
    "BL701": non_leaf_to_optimise,
}
