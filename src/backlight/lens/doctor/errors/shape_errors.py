"""Shapes, dtypes and modules that do not fit: which layer, what it was made for, and what came."""

import ast
import math
from typing import Any

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.corrections.by_rule import repair
from backlight.lens.doctor.detectors.slips.loaders import Loaders
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.errors.layers import Layer, layer_of
from backlight.lens.doctor.places import brief, place_at, shown
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.source import Spot, parses, spelled, spot_of
from backlight.lens.finding import Finding

BY_CHANNEL = ("Conv", "BatchNorm", "InstanceNorm")


def layer_size(context: ErrorContext) -> Finding:
    """BL001: name the layer, the line that made it, its size and what came."""
    layer = layer_of(context)
    if layer is None or layer.size is None or not hasattr(layer.given, "shape"):
        return _of_product(context)
    shape = tuple(layer.given.shape)
    evidence = [f"{layer.name} was made with {layer.size_name}={layer.size}, and was given shape {list(shape)}"]
    made = layer.made()
    if made is not None:
        evidence.append(f"it was made at {shown(made.place)}")
    title = f"{layer.name} takes {layer.size_name}={layer.size} and gets an input of shape {list(shape)}"
    reshaped = _reshaped(layer, shape)
    if reshaped is not None:
        cure, added = reshaped
        spot = layer.spots[0]
        corrected = corrections.after_argument(spot, 0, added) if _calls(spot, layer) else None
        return context.found("BL001", *evidence, title=title, cure=cure, corrected=corrected)
    came = _size_that_came(layer, shape)
    cure = f"Create it with {layer.size_name}={came}, or let the layer before it return {layer.size}."
    line = layer.remade(came)
    if line is None:
        return context.found("BL001", *evidence, title=title, cure=cure)
    return context.found("BL001", *evidence, title=title, cure=cure, corrected=line[1], corrected_at=line[0].place)


def _size_that_came(layer: Layer, shape: tuple[int, ...]) -> int:
    return shape[1] if layer.kind.startswith(BY_CHANNEL) and len(shape) > 1 else shape[-1]


def _reshaped(layer: Layer, shape: tuple[int, ...]) -> tuple[str, str] | None:
    """Return how what came is to be reshaped, and as code, if one way fits exactly."""
    size = layer.size
    if layer.kind == "Linear" and len(shape) > 2 and math.prod(shape[1:]) == size:
        return "Flatten the input except for the batch dim: x.flatten(1).", ".flatten(1)"
    if layer.kind.startswith("Conv2d") and len(shape) == 4 and shape[3] == size != shape[1]:
        return "Put the channels before height and width: x.permute(0, 3, 1, 2).", ".permute(0, 3, 1, 2)"
    if layer.kind.startswith(("Conv1d", "BatchNorm1d")) and len(shape) == 3 and shape[2] == size != shape[1]:
        return "Put the channels before the length: x.transpose(1, 2).", ".transpose(1, 2)"
    return None


def _calls(spot: Spot, layer: Layer) -> bool:
    """Return whether a spot calls the layer itself."""
    return spot.call is not None and (
        spot.value(spot.call.func) is layer.module or spot.text(spot.call.func).endswith(f".{layer.path}")
    )


def _of_product(context: ErrorContext) -> Finding:
    """A product of two matrices that no layer computes: transposed, if that fits."""
    spot = context.spot
    node = None if spot is None else spot.expression
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
        return context.found("BL001", title="the shapes of two matrices do not match in a product")
    left, right = spot.value(node.left), spot.value(node.right)
    title = "the shapes of two matrices do not match in a product"
    if not hasattr(left, "shape") or not hasattr(right, "shape"):
        return context.found("BL001", title=title)
    seen = f"{spot.text(node.left)} has shape {list(left.shape)}, {spot.text(node.right)} {list(right.shape)}"
    corrected = None
    if len(right.shape) == 2 and right.shape[-1] == left.shape[-1]:
        end = corrections.after(node.right, ".T")
        corrected = spot.edited(end) if isinstance(node.right, corrections.ATOMS) else None
    cure = "The last size of the left one must be the first of the right one: transpose one of them, x @ w.T."
    return context.found("BL001", seen, title=title, cure=cure, corrected=corrected)


def dtypes(context: ErrorContext) -> Finding:
    """BL002: convert the tensor where the user's own code hands it over."""
    layer = layer_of(context)
    if layer is not None and hasattr(layer.given, "dtype"):
        weight = next(iter(layer.module.parameters()), None)
        wanted = getattr(weight, "dtype", None)
        if wanted is not None and wanted != layer.given.dtype:
            seen = f"{layer.name} has parameters of {wanted}, and was given {layer.given.dtype}"
            cure = f"Convert the input data: x.{_conversion(wanted)}."
            found = _converted(layer.spots, layer.given, _conversion(wanted))
            corrected, where = (None, None) if found is None else found
            return context.found("BL002", seen, cure=cure, corrected=corrected, corrected_at=where)
    given, target = context.local("input"), context.local("target")
    if getattr(given, "dtype", None) is not None and getattr(target, "dtype", given.dtype) != given.dtype:
        seen = f"the input is of {given.dtype}, the target of {target.dtype}"
        corrected = _argument(context.spot, 1, f".{_conversion(given.dtype)}")
        cure = f"Convert the target: target.{_conversion(given.dtype)}."
        return context.found("BL002", seen, cure=cure, corrected=corrected)
    return _of_operands(context)


def _of_operands(context: ErrorContext) -> Finding:
    """A product of two tensors: convert that which requires no grad."""
    spot = context.spot
    node = None if spot is None else spot.expression
    if not isinstance(node, ast.BinOp):
        return context.found("BL002")
    sides = [(one, spot.value(one)) for one in (node.left, node.right)]
    if not all(hasattr(value, "dtype") for _, value in sides):
        return context.found("BL002")
    seen = ", ".join(f"{spot.text(one)} is of {value.dtype}" for one, value in sides)
    plain = [(one, other) for (one, value), (_, other) in (sides, sides[::-1]) if not value.requires_grad]
    if len(plain) != 1 or not isinstance(plain[0][0], corrections.ATOMS):
        return context.found("BL002", seen)
    one, other = plain[0]
    added = corrections.after(one, f".{_conversion(other.dtype)}")
    return context.found("BL002", seen, corrected=spot.edited(added))


def _conversion(dtype: Any) -> str:
    """`float()` for torch.float32."""
    short = {"torch.float32": "float()", "torch.float64": "double()", "torch.float16": "half()"}
    name = f"torch.{str(dtype).rpartition('.')[2]}"
    return short.get(name, f"to({name})")


def _converted(spots: tuple[Spot, ...], tensor: Any, conversion: str) -> tuple[str, Any] | None:
    """Return the outermost call that hands a tensor over, with it converted, and where that stands."""
    for spot in reversed(spots):
        call = spot.call
        for number, argument in enumerate(call.args if call is not None else ()):
            if spot.value(argument) is tensor:
                text = corrections.after_argument(spot, number, f".{conversion}")
                return None if text is None else (text, spot.place)
    text = _argument(spots[0], 0, f".{conversion}")
    return None if text is None else (text, spots[0].place)


def _argument(spot: Spot | None, number: int, added: str) -> str | None:
    """`loss(a, b)` with something added to an argument; None if it is not a call with that many."""
    return None if spot is None or spot.call is None else corrections.after_argument(spot, number, added)


def view(context: ErrorContext) -> Finding:
    """BL004: `view` → `reshape`, and the line that changed the order."""
    spot = context.spot
    func = None if spot is None else corrections.method_of(spot, "view")
    tensor = None if func is None else spot.value(func.value)
    evidence = []
    for engine in context.session.engines:
        if tensor is not None and engine.is_tensor(tensor) and tensor.grad_fn is not None:
            line = engine.line_of(tensor.grad_fn)
            if line is not None:
                evidence.append(f"{tensor.grad_fn.name()} at line {line.line}: {line.text} made it")
    if func is None:
        return context.found("BL004", *evidence)
    renamed = (func.end_lineno, func.end_col_offset - len("view"), func.end_col_offset, "reshape")
    return context.found("BL004", *evidence, corrected=spot.edited(renamed))


def target_range(context: ErrorContext) -> Finding:
    """BL005: which targets, and how many classes."""
    scores, target = context.local("input"), context.local("target")
    if not hasattr(scores, "shape") or not hasattr(target, "shape"):
        return context.found("BL005")
    classes = scores.shape[1] if len(scores.shape) > 1 else scores.shape[0]
    low, high = int(target.min()), int(target.max())
    seen = f"the targets go from {low} to {high}; the scores, of shape {list(scores.shape)}, are of {classes} classes"
    cure, corrected = None, None
    if low >= 1 and high == classes:
        cure = "Classes are counted from 0: subtract 1 from the targets."
        corrected = _argument(context.spot, 1, " - 1")
    elif low < 0 and high < classes:
        cure = f"If {low} marks values to ignore, pass ignore_index={low}."
        corrected = corrections.with_keyword(context.spot, "ignore_index", str(low)) if _by_name(context.spot) else None
    elif high >= classes and low >= 0:
        cure = f"Give the last layer {high + 1} outputs, one per class, or correct the targets above {classes - 1}."
    return context.found("BL005", seen, *_came_from(context.spot, 1), cure=cure, corrected=corrected)


def _by_name(spot: Spot | None) -> bool:
    """Return whether a spot calls a loss function, and not a module that was made before."""
    call = None if spot is None else spot.call
    return call is not None and spot.text(call.func).endswith(("cross_entropy", "nll_loss"))


def target_dtype(context: ErrorContext) -> Finding:
    """BL713: convert the targets; say where they were made."""
    corrected = repair("BL713", context.spot)
    return context.found("BL713", *_came_from(context.spot, 1), corrected=corrected)


def _came_from(spot: Spot | None, number: int) -> list[str]:
    """Say where the variable was made that an argument is, or is a part of, if one line assigns to it."""
    node = (
        spot.call.args[number] if spot is not None and spot.call is not None and len(spot.call.args) > number else None
    )
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    for scope in (*spot.around(ast.FunctionDef), spot.tree):
        made = [one for one in ast.walk(scope) if isinstance(one, ast.Assign) and node.id in map(spelled, one.targets)]
        if made:
            where = spot.at(made[0]).place
            return [f"{node.id} was made at {brief(where)}: {where.text}"] if len(made) == 1 else []
    return []


def target_shape(context: ErrorContext) -> Finding:
    """BL006: squeeze a column; flatten scores of words and their targets."""
    scores, target = context.local("input"), context.local("target")
    if not hasattr(scores, "shape") or not hasattr(target, "shape"):
        return context.found("BL006")
    shape, other = tuple(scores.shape), tuple(target.shape)
    seen = f"the scores have shape {list(shape)}, the targets {list(other)}"
    if len(other) == 2 and other == (shape[0], 1):
        corrected = _argument(context.spot, 1, ".squeeze(1)")
        cure = "Convert the column to a vector: target.squeeze(1)."
        return context.found("BL006", seen, cure=cure, corrected=corrected)
    if len(shape) == 3 and other == shape[:2]:
        cure = "cross_entropy expects the classes in dim 1: scores.transpose(1, 2)."
        return context.found("BL006", seen, cure=cure, corrected=_argument(context.spot, 0, ".transpose(1, 2)"))
    return context.found("BL006", seen)


def one_hot(context: ErrorContext) -> Finding:
    """BL007: convert the targets."""
    return context.found("BL007", corrected=_argument(context.spot, 1, ".float()"))


def batch_norm(context: ErrorContext) -> Finding:
    """BL008: say the shape and the layer."""
    layer = layer_of(context)
    if layer is None or not hasattr(layer.given, "shape"):
        return context.found("BL008")
    seen = [f"{layer.name} was given shape {list(layer.given.shape)} in training mode"]
    known = [one for one in context.session.each(Loaders) if len(one.made)]
    left_over = [pair for one in known for pair in one.left_over()]
    loader, reason = (None, "") if known else (_loader_of(context), "")
    if len(left_over) == 1:
        loader, reason = spot_of(left_over[0][0]), f"; {left_over[0][1]}"
    where = None if loader is None else loader.place
    corrected = None if loader is None else corrections.with_keyword(loader, "drop_last", "True")
    if where is not None:
        seen.append(f"the data loader was made at {brief(where)}: {where.text}{reason}")
    return context.found("BL008", *seen, corrected=corrected, corrected_at=where)


def _loader_of(context: ErrorContext) -> Spot | None:
    """Return the call that makes the data loader over which the innermost loop of the user's goes."""
    for spot in context.spots():
        for loop in spot.around(ast.For):
            calls = [one for one in ast.walk(loop.iter) if isinstance(one, ast.Call)]
            named = {text for one in ast.walk(loop.iter) if (text := spelled(one)) is not None}
            for node in ast.walk(spot.tree):
                target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
                if target is not None and spelled(target) in named:
                    calls += [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
            makers = [one for one in calls if spot.text(one.func).endswith("DataLoader")]
            if len(makers) == 1:
                return spot.at(makers[0])
    return None


def without_init(context: ErrorContext) -> Finding:
    """BL009: call it before the first assignment."""
    spot = context.spot
    statement = None if spot is None else spot.statement
    if statement is None or spot.function != "__init__":
        return context.found("BL009")
    text = f"super().__init__()\n{spot.text(statement)}"
    return context.found("BL009", corrected=text if parses(text) and corrections.alone(spot, statement) else None)


def own_train(context: ErrorContext) -> Finding | None:
    """BL786: eval() and train() of a module came to a method of the program's own."""
    inside = [frame for frame in context.frames() if frame.f_code.co_name in ("eval", "train")]
    module = next((frame.f_locals.get("self") for frame in inside), None)
    code = getattr(getattr(type(module), "train", None), "__code__", None)
    if code is None or module is None:
        return None
    place = place_at(code, code.co_firstlineno)
    kind = type(module).__name__
    said = context.message.replace(code.co_qualname, f"{kind}.train")  # Python adds in which function a class is local
    return rule("BL786").found(context.place, said, f"{kind} defines train at {brief(place)}: {place.text}")


def embedding_index(context: ErrorContext) -> Finding:
    """BL010: which indices, and how many rows."""
    layer = layer_of(context)
    if layer is None or layer.size is None or not hasattr(layer.given, "shape"):
        return context.found("BL010")
    low, high = int(layer.given.min()), int(layer.given.max())
    seen = f"{layer.name} has rows 0 to {layer.size - 1}; the indices go from {low} to {high}"
    title = f"{layer.name} has {layer.size} rows, but row {high if high >= layer.size else low}"
    line = layer.remade(high + 1) if low >= 0 else None
    corrected, where = (None, None) if line is None else (line[1], line[0].place)
    cure = f"Create it with num_embeddings={high + 1} or more, or correct the indices." if low >= 0 else None
    return context.found("BL010", seen, title=title, cure=cure, corrected=corrected, corrected_at=where)


def index_dtype(context: ErrorContext) -> Finding:
    """BL011: convert the indices."""
    return context.found("BL011", corrected=_argument(context.spot, 0, ".long()"))
