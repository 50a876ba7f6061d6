"""What to write against a NaN or an infinity: which op removed the value afterwards, and the line with a safe input."""

import ast
import linecache
from typing import Any

from backlight.dispatch.numerical_hazards import Cause, hazard_of
from backlight.dispatch.observers import Run
from backlight.lens.doctor.corrections.lines import ATOMS, insert, replace
from backlight.lens.doctor.graph import nodes_behind, root_nodes
from backlight.lens.doctor.source import Spot, parsed, span
from backlight.lens.records.record import Place

CHOOSING = ("Where", "MaskedFill", "MaskedSelect", "Index", "NanToNum", "Clamp", "Take", "Gather", "Slice", "Select")
FAR = 12  # nodes between the op and what removed its value
SMALL = {"sqrt": "1e-12", "rsqrt": "1e-12", "div": "1e-8", "true_divide": "1e-8", "reciprocal": "1e-8"}
CLAMPED = ("log", "log2", "log10")
PRODUCT = (
    "a later product with 0 removes the value, but not its derivative: the slope of {op} is infinite there, and "
    "0 · inf is NaN"
)
SELECTION = (
    "a later selection removes the value, but not its derivative: the slope of {op} is infinite there, and 0 · inf "
    "is NaN"
)
CHOICE = (
    "where() discards the value, but not its derivative: the slope of the branch not taken is infinite, and 0 · inf is "
    "NaN"
)
FACTOR = "where() discards the product, but not its derivative: a factor is infinite there, and 0 · inf is NaN"
SAFE_INPUT = (
    "make the input safe before the op: safe = torch.where(x > 0, x, 1.0), and {op}(safe) in the where() after it"
)
SAFE_DIVISOR = "make the divisor safe before the op: safe = torch.where(y != 0, y, 1.0), and x / safe"


def cause_of_removed(run: Run, node: Any, op: str) -> Cause:
    """Return why a gradient became NaN that was 0 when it arrived: who took the value away, and the op's own cure."""
    own, remover = hazard_of(op, derivative=True), removed_by(run, node)
    if remover.startswith("Mul"):
        return Cause(PRODUCT.format(op=op), own.cure)
    if remover and not remover.startswith(("Where", "MaskedFill")):
        return Cause(SELECTION.format(op=op), own.cure)
    if op == "mul":  # of a constant that is infinite: no op of this graph has made it
        return Cause(
            FACTOR, "keep both factors finite: masked_fill, or where() on the factor itself, before the product"
        )
    if remover:
        divides = op in ("div", "true_divide", "reciprocal")
        return Cause(CHOICE, SAFE_DIVISOR if divides else SAFE_INPUT.format(op=f"torch.{op}"))
    return own


def removal(cause: Cause) -> str:
    """Return what happened to a value whose gradient is 0, as evidence says it."""
    return "a later product with 0 removed the value" if "product" in cause.cause else "the value had been discarded"


def removed_by(run: Run, node: Any) -> str:
    """Return the name of the node after one, towards the loss, that chooses, or else multiplies; "" if none does."""
    after: dict[Any, list] = {}
    for consumer in nodes_behind(root_nodes(run)):
        for inner, _ in consumer.next_functions:
            after.setdefault(inner, []).append(consumer)
    nodes, product = [node], ""
    for _ in range(FAR):
        nodes = [consumer for one in nodes for consumer in after.get(one, ())]
        for name in (one.name().rpartition("::")[2] for one in nodes):
            if name.startswith(CHOOSING):
                return name
            product = product or (name if name.startswith("Mul") else "")
    return product


def safe_line(place: Place | None, op: str, *, outside: bool = False) -> str | None:
    """Return a line with a small number in an op's input: `torch.sqrt(x)` → `torch.sqrt(x + 1e-12)`.

    Only where the line has one such op, and its input is written there. `outside` is whether the input left the op's
    domain, where adding does not help.
    """
    if place is None or (op not in SMALL and op not in CLAMPED):
        return None
    tree = parsed(tuple(linecache.getlines(place.file)))
    found = [node for node in ast.walk(tree or ast.Module(body=[])) if _makes(node, op) and _on(node, place.line)]
    if len(found) != 1:
        return None
    node = found[0]
    spot, target = Spot(place.file, place.function, span(node)), _input(node)
    if op in CLAMPED or (outside and op.endswith("sqrt")):
        added = ".clamp_min(1e-12)"
        if isinstance(target, ATOMS):
            return spot.edited(insert(target.end_lineno, target.end_col_offset, added))
        return spot.edited(replace(target, f"({spot.text(target)}){added}"))
    text = spot.text(target)
    inner = text if isinstance(target, ATOMS) else f"({text})"
    in_call = isinstance(node, ast.Call) and target in node.args
    whole = f"{text if in_call else inner} + {SMALL[op]}"
    return spot.edited(replace(target, whole if in_call else f"({whole})"))


def _on(node: ast.AST, line: int) -> bool:
    return node.lineno <= line <= node.end_lineno and node.lineno == node.end_lineno


def _makes(node: ast.AST, op: str) -> bool:
    """Return whether syntax calls an op or is its operator, with an input that is written there."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) and op in ("div", "true_divide", "reciprocal")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != op:
        return False
    return op not in ("div", "true_divide") and (len(node.args) == 1 or not node.args)


def _input(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.BinOp):
        return node.right
    return node.args[0] if node.args else node.func.value
