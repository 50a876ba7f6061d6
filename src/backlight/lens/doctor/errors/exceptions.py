"""From an exception to a finding: the rule that its message means, the user's line, what was seen, the line mended."""

import ast
from collections.abc import Callable

from backlight.lens.doctor import corrections
from backlight.lens.doctor.errors import graph_errors
from backlight.lens.doctor.errors.readings import made_from_leaf
from backlight.lens.doctor.errors.scene import Scene
from backlight.lens.doctor.errors.unrecorded import without_graph
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.repairs import repair
from backlight.lens.doctor.rule_index import rule, rule_of_message
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import spot_of_traceback
from backlight.lens.finding import Finding


def diagnose(problem: BaseException, session: Session) -> Finding | None:
    """Return what an exception is the sign of; None for one that the doctor does not know."""
    scene = Scene(problem, spot_of_traceback(problem.__traceback__), session)
    name = rule_of_message(str(problem), error=True) or hooks_refused(scene)
    if name is None:
        return None
    return SPECIAL[name](scene) if name in SPECIAL else plain(name, scene)


def plain(name: str, scene: Scene, *evidence: str) -> Finding:
    """Return the finding of a rule that its message and its line alone are enough for."""
    known = rule(name)
    return known.found(scene.place_of_backward, scene.message, *evidence, corrected=repair(name, scene.spot))


def hooks_refused(scene: Scene) -> str | None:
    """BL910, whose message is the program's own: it comes out of entering saved_tensors_hooks."""
    entering = (frame for frame in scene.frames() if frame.f_code.co_name in ("__enter__", "_block_state"))
    owner = next((type(frame.f_locals.get("self")).__name__ for frame in entering), "")
    return "BL910" if owner == "saved_tensors_hooks" else None


def non_scalar(scene: Scene) -> Finding:
    """BL201: say the shape."""
    shape = getattr(scene.local("self", "tensors", "outputs"), "shape", None)
    return plain("BL201", scene, *(() if shape is None else (f"its shape is {list(shape)}",)))


def on_leaf(scene: Scene) -> Finding:
    """A write to a leaf: BL302 where the line reads `.grad`, which makes it an update of a parameter."""
    statement = None if scene.spot is None else scene.spot.statement
    reads = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute)] if statement is not None else ()
    return plain("BL302" if any(one.attr == "grad" for one in reads) else "BL301", scene)


def unused(scene: Scene) -> Finding:
    """An input that the output does not depend on: BL604 where it is made in the very call."""
    call = None if scene.spot is None else scene.spot.call
    requested = call.args[1] if call is not None and len(call.args) > 1 else None
    several = requested.elts if isinstance(requested, (ast.List, ast.Tuple)) else [requested]
    remade = [one for one in several if isinstance(one, (ast.Subscript, ast.Call))]
    if not remade:
        return plain("BL601", scene)
    text = ", ".join(scene.spot.text(one) for one in remade)
    return plain("BL604", scene, f"{text} is a new tensor, made after the forward")


def non_leaf_to_optimise(scene: Scene) -> Finding:
    """BL701: show the line where the leaf got lost."""
    tensor = scene.local("param")
    made = None if tensor is None else made_from_leaf(scene.session, tensor)
    if made is None:
        return plain("BL701", scene)
    corrected = corrections.requires_grad_last(made)
    return scene.found(
        "BL701", f"the tensor was made at {shown(made.place)}", corrected=corrected, corrected_at=made.place
    )


def several_to_one(scene: Scene) -> Finding:
    """BL503: PyTorch warns of the conversion first, and then refuses it."""
    scene.session.drop("BL502", scene.place)
    return plain("BL503", scene)


SPECIAL: dict[str, Callable[[Scene], Finding]] = {
    "BL201": non_scalar,
    "BL203": graph_errors.freed,
    "BL208": without_graph,
    "BL301": on_leaf,
    "BL304": graph_errors.modified,
    "BL503": several_to_one,
    "BL601": unused,
    "BL701": non_leaf_to_optimise,
}
