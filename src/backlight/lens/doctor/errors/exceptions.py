"""From an exception to a finding: the rule that its message means, the user's line, what was seen, the line mended."""

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.corrections.by_rule import is_used_later, repair
from backlight.lens.doctor.detectors.second_order import Gradients
from backlight.lens.doctor.errors import (
    graph_errors,
    kept_graphs,
    lost_gradients,
    missing_gradients,
    optimizer_errors,
    shape_errors,
)
from backlight.lens.doctor.errors.engine_warnings import made_from_leaf
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.origins import CutOrigin, Origins
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.rule_index import rule, rule_of_message
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot, spot_of, spot_of_traceback
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


def to_numpy(context: ErrorContext) -> Finding:
    """BL501: detach() would only silence it where the program goes on computing with the array."""
    if context.spot is None or not is_used_later(context.spot):
        return plain("BL501", context)
    return context.found("BL501", cure="Compute it with tensor functions: detach() would cut the gradient.")


COPIES = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "from_numpy", "Tensor", "FloatTensor"})
WITHOUT_HISTORY = frozenset({"detach", "data", "item", "tolist", "numpy", "__array__", "__float__", "__int__"})
OTHER_GRAD = "autograd.grad(..., create_graph=True): the .grad from backward() has no graph."
STAYS_OFF = "Evaluate in a `with torch.no_grad():` block, which restores recording, or switch it on again afterwards."
REPORTED = "Compute the loss from the scores themselves (cross_entropy); the result of argmax can only be reported."
CONSTANT = "The gradient is constant, as for a linear function: its own derivative is zero everywhere."


def without_graph(context: ErrorContext) -> Finding:
    """Return what a root without a graph is the sign of."""
    root = context.local("tensors", "outputs", "self")
    if root is None:
        return context.found("BL208")
    second = not_recorded(context, root)
    if second is not None:
        return second
    origins = context.session.each(Origins)
    cut = next((cut for one in origins for cut in one.cuts_before(root)), None)
    if cut is not None:
        return _cut_off(context, cut)
    frozen = next((text for one in origins for text in one.all_frozen()), None)
    if frozen is not None:
        line = lost_gradients.freeze(context)
        return context.found("BL411", frozen, *(() if line is None else (f"they were frozen at {shown(line)}",)))
    return context.found("BL208", f"its shape is {list(root.shape)}")


def not_recorded(context: ErrorContext, tensor: Any) -> Finding | None:
    """A gradient is differentiated that has no graph: BL603 or BL605."""
    known = [one.given.get(tensor) for one in context.session.each(Gradients)]
    given = next((one for one in known if one is not None), None)
    if given is None:
        return None
    came = f"it is what autograd.grad returned at {shown(given.spot.place)}"
    if given.once is not None:
        return context.found("BL605", came, f"{given.once}, on the way, is marked @once_differentiable")
    if given.create_graph:
        seen = "it was recorded (create_graph=True), but does not depend on anything that requires grad"
        return context.found("BL208", came, seen, cause=CONSTANT)
    corrected = corrections.with_keyword(given.spot, "create_graph", "True")
    return context.found("BL603", came, corrected=corrected, corrected_at=given.spot.place)


def _cut_off(context: ErrorContext, cut: CutOrigin) -> Finding:
    """Return the finding for a root whose graph ends at a cut."""
    spot = spot_of(cut)
    where = f"{cut.name} at {shown(spot.place)} returned a tensor without a graph for an input that has one"
    name, corrected, reason = "BL209", None, ()
    if cut.name == "grad":
        return _of_gradient(context, spot)
    if not cut.recording and context.session.has({"BL912"}):
        return rule("BL912").found(spot.place)
    if not cut.recording:
        name, reason = "BL211", ("recording was off there",)
        if corrections.rebinds(spot.statement):
            name, corrected = "BL410", _in_place(spot)
        elif (switched := lost_gradients.switch_of(context, cut.switch)) is not None:
            sentence, corrected, line = switched
            cure = STAYS_OFF if line.text.startswith(f"{spot.torch}.set_grad_enabled(") else None
            return context.found(name, where, sentence, cure=cure, corrected=corrected, corrected_at=line)
    elif cut.name in COPIES:
        name, corrected = "BL210", _uncopied(spot) if cut.of_tensor else None
        context.session.drop("BL505", spot.place)  # which would have it copied with other words
    elif cut.name in WITHOUT_HISTORY:
        reason = (f"{cut.name} leaves the graph",)
    cure = REPORTED if name == "BL209" and cut.name == "argmax" else None
    return context.found(name, where, *reason, cure=cure, corrected=corrected, corrected_at=spot.place)


def _of_gradient(context: ErrorContext, spot: Spot) -> Finding:
    """BL603: the root was computed from gradients alone, which were not recorded."""
    seen = (
        f"what backward() starts from was computed from the gradients of {shown(spot.place)}, and these have no graph"
    )
    if spot.call is None:
        return context.found("BL603", seen, cure=f"Take them by {spot.torch or 'torch'}.{OTHER_GRAD}")
    corrected = corrections.with_keyword(spot, "create_graph", "True")
    return context.found("BL603", seen, corrected=corrected, corrected_at=spot.place)


def _in_place(spot: Spot) -> str | None:
    """`w = w - 0.1 * w.grad` → `w -= 0.1 * w.grad`, which keeps the leaf."""
    text = corrections.as_in_place(spot)
    return None if text is None else spot.edited(corrections.replace(spot.statement, text))


def _uncopied(spot: Spot) -> str | None:
    """`torch.tensor(x.sum())` → `x.sum()`."""
    call = spot.call
    named = call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in COPIES
    return corrections.without_call(spot) if named and not call.keywords else None


def copied(context: ErrorContext) -> Finding:
    """BL405: of a module, the attribute that cannot be copied."""
    return kept_graphs.attribute_of_copied(context) or plain("BL405", context)


SPECIAL: dict[str, Callable[[ErrorContext], Finding | None]] = {
    "BL001": shape_errors.layer_size,
    "BL002": shape_errors.dtypes,
    "BL004": shape_errors.view,
    "BL005": shape_errors.target_range,
    "BL006": shape_errors.target_shape,
    "BL007": shape_errors.one_hot,
    "BL008": shape_errors.batch_norm,
    "BL009": shape_errors.without_init,
    "BL010": shape_errors.embedding_index,
    "BL011": shape_errors.index_dtype,
    "BL110": missing_gradients.in_loop,
    "BL201": non_scalar,
    "BL017": lost_gradients.random_in_vmap,
    "BL217": lost_gradients.number,
    "BL767": lost_gradients.sparse,
    "BL203": graph_errors.freed,
    "BL208": without_graph,
    "BL301": on_leaf,
    "BL304": graph_errors.modified,
    "BL405": copied,
    "BL501": to_numpy,
    "BL503": several_to_one,
    "BL601": unused,
    "BL701": non_leaf_to_optimise,
    "BL702": optimizer_errors.no_parameters,
    "BL713": shape_errors.target_dtype,
    "BL765": optimizer_errors.overrun,
    "BL766": optimizer_errors.given_twice,
    "BL782": optimizer_errors.closure,
    "BL786": shape_errors.own_train,
    "BL902": partial(lost_gradients.of_hook, "BL902"),
    "BL903": partial(lost_gradients.of_hook, "BL903"),
    "BL907": partial(lost_gradients.of_function, "BL907"),
    "BL908": partial(lost_gradients.of_function, "BL908"),
}
