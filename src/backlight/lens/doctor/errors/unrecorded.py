"""backward() of a tensor without a graph: the line that cut it off, or why nothing was recorded."""

import ast
from typing import Any

from backlight.lens.doctor import corrections
from backlight.lens.doctor.detectors.second_order import Gradients
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.origins import CutOrigin, Origins
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.finding import Finding

COPIES = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "from_numpy", "Tensor", "FloatTensor"})
WITHOUT_HISTORY = frozenset({"detach", "data", "item", "tolist", "numpy", "__array__", "__float__", "__int__"})
CONSTANT = "The gradient is constant, as that of a linear function is: its own derivative is zero everywhere."


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
        return context.found("BL411", frozen)
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
        seen = "it was recorded (create_graph=True), and does not depend on anything that requires grad"
        return context.found("BL208", came, seen, cause=CONSTANT)
    corrected = corrections.with_keyword(given.spot, "create_graph", "True")
    return context.found("BL603", came, corrected=corrected, corrected_at=given.spot.place)


def _cut_off(context: ErrorContext, cut: CutOrigin) -> Finding:
    """Return the finding for a root whose graph ends at a cut."""
    spot = spot_of(cut)
    where = f"{cut.name} at {shown(spot.place)} returned a tensor without a graph, and was given one that has one"
    name, corrected, reason = "BL209", None, ()
    if not cut.recording:
        name, reason = "BL211", ("recording was off there",)
        if corrections.rebinds(spot.statement):
            name, corrected = "BL410", _in_place(spot)
    elif cut.name in COPIES:
        name, corrected = "BL210", _uncopied(spot) if cut.of_tensor else None
        context.session.drop("BL505", spot.place)  # which would have it copied with other words
    elif cut.name in WITHOUT_HISTORY:
        reason = (f"{cut.name} is a way out of the graph",)
    return context.found(name, where, *reason, corrected=corrected, corrected_at=spot.place)


def _in_place(spot: Spot) -> str | None:
    """`w = w - 0.1 * w.grad` → `w -= 0.1 * w.grad`, which keeps the leaf."""
    text = corrections.as_in_place(spot)
    return None if text is None else spot.edited(corrections.replace(spot.statement, text))


def _uncopied(spot: Spot) -> str | None:
    """`torch.tensor(x.sum())` → `x.sum()`."""
    call = spot.call
    named = call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in COPIES
    return corrections.without_call(spot) if named and not call.keywords else None
