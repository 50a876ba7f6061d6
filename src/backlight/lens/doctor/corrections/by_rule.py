"""For each rule whose line says all, how that line is corrected."""

import ast
from collections.abc import Callable

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.source import Spot, spelled

ARRAYS = ("numpy", "__array__")
MAKERS = {"tensor", "as_tensor", "from_numpy", "asarray", "Tensor", "FloatTensor"}
MODES = ("no_grad", "enable_grad", "inference_mode")


def reduced(spot: Spot) -> str | None:
    """`y.backward()` → `y.sum().backward()`; `grad(y, x)` → `grad(y.sum(), x)`."""
    call = spot.call
    if call is None:
        return None
    if corrections.method_of(spot, "backward") and not call.args and not call.keywords:
        return corrections.before_method(spot, ".sum()", "backward")
    is_grad = isinstance(call.func, (ast.Name, ast.Attribute)) and spot.text(call.func).rpartition(".")[2] == "grad"
    several = bool(call.args) and isinstance(call.args[0], (ast.List, ast.Tuple))
    return corrections.after_argument(spot, 0, ".sum()") if is_grad and not several else None


def detached(spot: Spot) -> str | None:
    """`x.numpy()` → `x.detach().numpy()`; `np.sin(x)` → `np.sin(x.detach())`; not where a forward goes on with it."""
    if is_used_later(spot):
        return None
    if corrections.method_of(spot, *ARRAYS):
        return corrections.before_method(spot, ".detach()", *ARRAYS)
    call = spot.call
    if call is None or len(call.args) != 1 or isinstance(call.args[0], (ast.List, ast.Tuple)):
        return None
    return corrections.after_argument(spot, 0, ".detach()")


def as_item(spot: Spot) -> str | None:
    """`float(x)` → `x.item()`."""
    call = spot.call
    if call is None or not isinstance(call.func, ast.Name) or call.func.id not in ("float", "int", "bool"):
        return None
    return corrections.without_call(spot, ".item()") if call.func.id == "float" else None


def floating(spot: Spot) -> str | None:
    """`torch.tensor([1, 2], requires_grad=True)` → the same with `dtype=torch.float32`, and similar."""
    statement, call = spot.statement, spot.call
    if corrections.method_of(spot, "requires_grad_"):
        return corrections.before_method(spot, ".float()", "requires_grad_")
    if call is not None and corrections.makes_leaf(call) and spot.torch:
        return corrections.with_keyword(spot, "dtype", f"{spot.torch}.float32")
    if call is not None and spot.text(call.func).endswith("Parameter") and len(call.args) == 1:
        return corrections.after_argument(spot, 0, ".float()")
    if isinstance(statement, ast.Assign) and spot.text(statement.targets[0]).endswith(".requires_grad"):
        owner = statement.targets[0].value
        new = f"{spot.text(owner)} = {spot.text(owner)}.float().requires_grad_()"
        return spot.edited(corrections.replace(statement, new))
    return None


def detach_assigned(spot: Spot) -> str | None:
    """`b.requires_grad = False`, `b.requires_grad_(False)`, `b.detach_()` → `b = b.detach()`."""
    statement = spot.statement
    target = None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0].value
    func = corrections.method_of(spot, "requires_grad_", "detach_")
    if func is not None and isinstance(statement, ast.Expr) and statement.value is spot.call:
        target = func.value
    if not isinstance(target, ast.Name):
        return None
    return spot.edited(corrections.replace(statement, f"{target.id} = {target.id}.detach()"))


def copied(spot: Spot) -> str | None:
    """`copy.deepcopy(b)` → `b.detach().clone()`, where b is a tensor itself."""
    call = spot.call
    if call is None or len(call.args) != 1 or not hasattr(spot.value(call.args[0]), "grad_fn"):
        return None
    return corrections.without_call(spot, ".detach().clone()")


def cloned_before_write(spot: Spot) -> str | None:
    """`a.expand(3).add_(b)` → `a.expand(3).clone().add_(b)`."""
    func = corrections.method_of(spot, *corrections.OUT_OF_PLACE)
    if func is None or not isinstance(func.value, ast.Call):
        return None
    return corrections.before_method(spot, ".clone()", func.attr)


def called_mode(spot: Spot) -> str | None:
    """`with torch.no_grad:` → `with torch.no_grad():`."""
    statement = spot.statement
    items = statement.items if isinstance(statement, ast.With) else ()
    modes = [item.context_expr for item in items if spot.text(item.context_expr).endswith(MODES)]
    if len(modes) != 1:
        return None
    return spot.edited(corrections.after(modes[0], "()"))


def integer_targets(spot: Spot) -> str | None:
    """`F.cross_entropy(scores, target)` → `F.cross_entropy(scores, target.long())`."""
    return corrections.after_argument(spot, 1, ".long()")


def not_reentrant(spot: Spot) -> str | None:
    """`checkpoint(f, x)` → `checkpoint(f, x, use_reentrant=False)`."""
    return corrections.with_keyword(spot, "use_reentrant", "False")


def is_used_later(spot: Spot) -> bool:
    """Return whether an array is made in a forward, or becomes a tensor again at once: it is computed with."""
    outer = [(spelled(call.func) or "").rpartition(".")[2] for call in spot.around(ast.Call) if call is not spot.call]
    return spot.function == "forward" or not MAKERS.isdisjoint(outer)


def plain_copy(spot: Spot) -> str | None:
    """`torch.tensor(a)` → `a.detach().clone()`, unless a requires grad: what is meant then shows later (CutOff)."""
    call = spot.call
    if call is None or call.keywords or len(call.args) != 1:
        return None
    source = spot.value(call.args[0])
    if source is None or source.requires_grad:
        return None
    return corrections.without_call(spot, ".detach().clone()")


REPAIRS: dict[str, Callable[[Spot], str | None]] = {
    "BL201": reduced,
    "BL301": corrections.under_no_grad,
    "BL302": corrections.under_no_grad,
    "BL303": corrections.under_no_grad,
    "BL311": cloned_before_write,
    "BL401": floating,
    "BL402": detach_assigned,
    "BL404": detach_assigned,
    "BL405": copied,
    "BL501": detached,
    "BL502": as_item,
    "BL505": plain_copy,
    "BL614": called_mode,
    "BL713": integer_targets,
    "BL905": corrections.out_of_place,
    "BL906": corrections.out_of_place,
    "BL911": not_reentrant,
    "BL912": not_reentrant,
}


def repair(rule: str, spot: Spot | None) -> str | None:
    """Return the line of a spot as it should be by a rule, if that is certain."""
    make = REPAIRS.get(rule)
    return make(spot) if make is not None and spot is not None and spot.tree is not None else None
