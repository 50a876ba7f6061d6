"""Errors whose line is innocent: what was done before, and where, so that there is no gradient here."""

import ast
import linecache
import re
from types import CodeType
from typing import Any

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.detectors.causing_lines import CausingLines
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.places import brief, brief_at, place_at, shown
from backlight.lens.doctor.rule_index import Words, rule
from backlight.lens.doctor.source import Spot, parsed, span, spelled
from backlight.lens.finding import Finding

NUMBER = re.compile(r"'([\w.]+)' object has no attribute 'backward'")
HOOK = re.compile(r"hook '(\w+)'")
FUNCTION = re.compile(r"[Ff]unction (\w+?)(?:Backward)? returned an")
SHAPES = re.compile(r"got \[([\d, ]+)\].*? (?:compatible with|expected) \[([\d, ]+)\]")
TRANSPOSED: Words = {
    "cause": "The gradient is the transpose of the input: the factors of the product are in the wrong order.",
    "cure": "Return its transpose: for x @ weight.t(), the weight's gradient is grad.t() @ x, not x.t() @ grad.",
}
TO_NUMBERS = ("item", "tolist", "float", "int", "numpy")
RECORDED = {"no_grad": "enable_grad", "inference_mode": "enable_grad"}


def number(context: ErrorContext) -> Finding:
    """BL217: the line that made a number of the loss."""
    kind = NUMBER.search(str(context.problem))[1]
    spot = context.spot
    name = None if spot is None or not isinstance(spot.expression, ast.Attribute) else spelled(spot.expression.value)
    made = None if name is None else _made_number(spot, name)
    title = f"backward() of a {kind}: the loss is not a tensor any more"
    if kind == "NoneType":
        cause, cure = "The function that computes the loss returns nothing.", "Return the loss from it."
        return context.found("BL217", title="backward() of None", cause=cause, cure=cure)
    if kind in ("tuple", "list", "dict"):
        cause = "The model or the loss function returns several things."
        return context.found("BL217", title=title, cause=cause, cure="Select the loss from the returned values.")
    if made is None:
        return context.found("BL217", title=title)
    text, where = _kept(made), made.place
    summed = _summed(made)
    if summed is not None:  # running += loss.item(); running.backward()
        text, where = spot.edited(corrections.replace(spot.expression.value, summed)), spot.place
    seen = f"{name} became a number at {shown(made.place)}"
    return context.found("BL217", seen, title=title, corrected=text, corrected_at=where)


def _made_number(spot: Spot, name: str) -> Spot | None:
    """Return the call that makes a number of the loss: where the name is assigned, or in the function called there."""
    calls = []
    for node in ast.walk(spot.tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and name in {
            spelled(one) for one in targets if one
        }:
            calls += _number_calls(node.value) or _in_function(spot, node.value)
    spots = {one.lineno: one for one in calls}
    if len(spots) != 1:
        return None
    (call,) = spots.values()
    return spot.at(call)


def _summed(made: Spot) -> str | None:
    """Return `loss` of `running += loss.item()`."""
    func = made.call.func
    added = isinstance(made.statement, ast.AugAssign) and made.statement.value is made.call
    return func.value.id if added and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else None


def _number_calls(value: ast.AST | None) -> list[ast.Call]:
    """Return the calls of `.item()` and its like, and of float(), in an expression."""
    calls = [one for one in ast.walk(value) if isinstance(one, ast.Call)] if value is not None else []
    return [
        one for one in calls if (spelled(one.func) or getattr(one.func, "attr", "")).rpartition(".")[2] in TO_NUMBERS
    ]


def _in_function(spot: Spot, value: ast.AST) -> list[ast.Call]:
    """Return such calls in what the functions return that an expression calls."""
    called = {(spelled(one.func) or "").rpartition(".")[2] for one in ast.walk(value) if isinstance(one, ast.Call)}
    found = []
    for node in ast.walk(spot.tree):
        if isinstance(node, ast.FunctionDef) and node.name in called:
            for one in ast.walk(node):
                if isinstance(one, ast.Return):
                    found += _number_calls(one.value)
    return found


def _kept(made: Spot) -> str | None:
    """`loss.item()` → `loss`; `float(loss)` → `loss`."""
    call = made.call
    if isinstance(call.func, ast.Attribute):
        return made.edited(corrections.replace(call, made.text(call.func.value)))
    return corrections.without_call(made)


def recorded_again(switch: Spot | None) -> str | None:
    """`with torch.no_grad():` → `with torch.enable_grad():`, unless what is in the block has to stay unrecorded."""
    head = None if switch is None else switch.expression
    func = head.func if isinstance(head, ast.Call) else head
    if not isinstance(func, ast.Attribute):
        return None
    block = next(switch.around(ast.With), None)
    if block is not None and block.lineno == head.lineno and any(map(_writes, ast.walk(block))):
        return None
    line = switch.lines[head.lineno - 1]
    if func.attr == "set_grad_enabled":
        text = line.replace("set_grad_enabled(False)", "set_grad_enabled(True)")
    else:
        text = line.replace(f".{func.attr}", f".{RECORDED[func.attr]}", 1)
    return text.strip() if text != line else None


def _writes(node: ast.AST) -> bool:
    """Return whether syntax is a write in place, which an update of parameters is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.endswith("_") and not node.func.attr.endswith("__")
    return isinstance(node, ast.AugAssign)


def switch_of(context: ErrorContext, switch: Spot | None) -> tuple[str, str | None, Any] | None:
    """Return a sentence about what switched recording off, that line with recording on, and where it stands."""
    if switch is not None:
        return f"recording was switched off at {shown(switch.place)}", recorded_again(switch), switch.place
    for lines in context.session.each(CausingLines):
        place = lines.switched_off
        if place is not None:
            on = place.text.replace("set_grad_enabled(False)", "set_grad_enabled(True)")
            return f"recording was switched off at {shown(place)}", on if on != place.text else None, place
    return None


def freeze(context: ErrorContext) -> Any:
    """Return the line that froze parameters last, if one was seen or only one stands in the file."""
    for lines in context.session.each(CausingLines):
        if lines.frozen is not None:
            return lines.frozen
    spot = context.spot
    found = [one for one in ast.walk(spot.tree) if _freezes(one)] if spot is not None and spot.tree is not None else []
    if len(found) != 1:
        return None
    return Spot(spot.file, "", span(found[0])).place


def _freezes(node: ast.AST) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    off = isinstance(getattr(node, "value", None), ast.Constant) and node.value.value is False
    return isinstance(target, ast.Attribute) and target.attr == "requires_grad" and off


def of_hook(name: str, context: ErrorContext) -> Finding:
    """A hook that returned something wrong: where it was registered."""
    said = HOOK.search(str(context.problem))
    known = [lines.hook(said[1]) for lines in context.session.each(CausingLines)] if said else []
    lines = [one for one in known if one is not None]
    evidence = [f"the hook {said[1]} was registered at {shown(lines[0])}"] if lines else []
    return rule(name).found(context.place_of_backward, context.message, *evidence)


def of_function(name: str, context: ErrorContext) -> Finding:
    """A custom Function whose backward returned something wrong: the line of its backward."""
    said = FUNCTION.search(str(context.problem))
    evidence = []
    for engine in context.session.engines if said else ():
        kinds = engine.module.autograd.Function.__subclasses__()
        codes = [
            kind.backward.__code__ for kind in kinds if kind.__name__ == said[1] and hasattr(kind.backward, "__code__")
        ]
        if len(codes) > 1 and context.place_of_backward is not None:  # several of one name: that of the same file
            codes = [code for code in codes if code.co_filename == context.place_of_backward.file]
        if len(codes) == 1:
            evidence.append(f"{said[1]}.backward is defined at {shown(place_at(codes[0], codes[0].co_firstlineno))}")
            line = _only_return(codes[0])
            if line is not None:
                evidence.append(f"it returns at {brief(place_at(codes[0], line))}: {place_at(codes[0], line).text}")
    words = TRANSPOSED if _is_transposed(str(context.problem)) else {}
    return rule(name).found(context.place_of_backward, context.message, *evidence, **words)


def _is_transposed(text: str) -> bool:
    """Return whether a gradient has the two sizes that were expected, in the other order."""
    said = SHAPES.search(text)
    given, wanted = (said[one].replace(" ", "").split(",") for one in (1, 2)) if said else ((), ())
    return len(given) == 2 and given != wanted and given[::-1] == wanted


def sparse(context: ErrorContext) -> Finding:
    """BL767: the layers that give sparse gradients, and the optimizer."""
    lines = []
    for one in context.session.each(Constructions):
        layers = [line for module, line in one.modules.items() if getattr(module, "sparse", False) is True]
        lines += [f"sparse=True was given at {brief_at(line)}" for line in dict.fromkeys(layers)]
        made = [line for _, (_, line) in one.optimizers.items() if line is not None]
        lines += [f"the optimizer was made at {brief_at(line)}" for line in dict.fromkeys(made)]
    return context.found("BL767", *lines)


def random_in_vmap(context: ErrorContext) -> Finding:
    """BL017: the line that calls vmap, if there is only one."""
    spot = next((one for one in context.spots() if one.tree is not None), None)
    calls = [] if spot is None else [one for one in ast.walk(spot.tree) if _is_vmap(one)]
    if len(calls) != 1:
        return context.found("BL017")
    made = Spot(spot.file, "", span(calls[0]))
    corrected = corrections.with_keyword(made, "randomness", '"different"')
    seen = f"vmap is called at {brief(made.place)}"
    return context.found("BL017", seen, corrected=corrected, corrected_at=made.place)


def _is_vmap(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (spelled(node.func) or "").rpartition(".")[2] == "vmap"


def _only_return(code: CodeType) -> int | None:
    """Return the line of a function's only `return`."""
    tree = parsed(tuple(linecache.getlines(code.co_filename))) or ast.Module(body=[])
    for node in ast.walk(tree):
        first = getattr(node, "decorator_list", None)
        if isinstance(node, ast.FunctionDef) and code.co_firstlineno in (node.lineno, *(one.lineno for one in first)):
            lines = [one.lineno for one in ast.walk(node) if isinstance(one, ast.Return)]
            return lines[0] if len(lines) == 1 else None
    return None
