"""Warnings of the engine: what `.grad` was read of, and where the leaf got lost."""

import ast
import dataclasses
import re
from typing import Any

from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.corrections.by_rule import repair
from backlight.lens.doctor.errors.error_context import first_sentence
from backlight.lens.doctor.history import History
from backlight.lens.doctor.places import shown
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot, assignment_to, span, spelled
from backlight.lens.finding import NOTE, Finding
from backlight.lens.records.record import Place


def diagnose_warning(session: Session, name: str, text: str, spot: Spot | None) -> Finding | None:
    """Return what a warning is the sign of; None where another finding says it better."""
    if name == "BL502" and spot is not None and spot.call is not None and spot.text(spot.call.func).endswith(COPIES):
        return None  # torch.tensor([a, b]) reads each as a number: BL506
    if name == "BL711" and _is_table_of_pairs(text):
        return None
    said = f"UserWarning: {first_sentence(text).partition(' (Triggered internally')[0]}"
    if name == "BL101" and spot is not None:
        return grad_of_non_leaf(session, spot, said)
    place = None if spot is None else spot.place
    if name == "BL775" and spot is not None:
        corrected, where = batch_mean(spot)
        return rule(name).found(place, said, corrected=corrected, corrected_at=where)
    found = rule(name).found(place, said, corrected=repair(name, spot))
    return dataclasses.replace(found, level=NOTE) if name == "BL502" and spot is not None and _is_shown(spot) else found


def batch_mean(spot: Spot) -> tuple[str | None, Place | None]:
    """Return the call of kl_div, or the only one of KLDivLoss in the file, with reduction="batchmean"."""
    if spot.call is not None and (spelled(spot.call.func) or "").endswith("kl_div"):
        return corrections.with_keyword(spot, "reduction", '"batchmean"'), spot.place
    calls = [node for node in ast.walk(spot.tree or ast.Module(body=[])) if _makes_divergence(node)]
    if len(calls) != 1 or calls[0].args:
        return None, None
    made = Spot(spot.file, "", span(calls[0]))
    return corrections.with_keyword(made, "reduction", '"batchmean"'), made.place


def _makes_divergence(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (spelled(node.func) or "").rpartition(".")[2] == "KLDivLoss"


def _is_table_of_pairs(text: str) -> bool:
    """Return whether both sides of a loss were opened on purpose: (b, n, 1) against (b, 1, m)."""
    one, other = ([int(size) for size in sizes.split(",") if size.strip()] for sizes in SIZES.findall(text)[:2])
    return (
        len(one) == len(other) > 2
        and any(a == 1 < b for a, b in zip(one, other))
        and any(b == 1 < a for a, b in zip(one, other))
    )


def _is_shown(spot: Spot) -> bool:
    """Return whether a number is printed, formatted or kept in a list: nothing is computed from it there."""
    return any(True for _ in spot.around(ast.FormattedValue)) or any(
        call is not spot.call and (spelled(call.func) or "").rpartition(".")[2] in SHOWING
        for call in spot.around(ast.Call)
    )


SIZES = re.compile(r"torch\.Size\(\[([\d, ]*)\]\)")
COPIES = ("tensor", "as_tensor")
SHOWING = ("print", "append", "format", "info", "debug", "write", "set_postfix", "set_description", "add_scalar")
NEW_LEAF = (
    "the loop assigns {} a new tensor, which is not a leaf: its .grad is None from the second iteration on",
    "The step computes a new tensor, and .grad is read from it as if it were the original leaf.",
    "Make it a leaf again at the end of each step: x = (x + step).detach().requires_grad_().",
)


def grad_of_non_leaf(session: Session, spot: Spot, said: str) -> Finding:
    """`.grad` of a non-leaf was read: BL102 or BL409 if the line that made it lost a leaf, else BL101."""
    # what `.grad` is read of: `c.grad`, `self.c.grad`, `hasattr(c, "grad")`
    node = spot.expression
    if isinstance(node, ast.Attribute) and node.attr == "grad":
        node = node.value
    elif isinstance(node, ast.Call) and len(node.args) > 1 and spot.text(node.func) in ("hasattr", "getattr"):
        node = node.args[0]
    read = node if node is not None and spelled(node) is not None else None
    tensor = None if read is None else spot.value(read)
    made = None if tensor is None else maker(session, tensor, spelled(read))
    if made is None:
        return rule("BL101").found(spot.place, said)
    seen = f"{spelled(read)} was made at {shown(made.place)}"
    again = corrections.leaf_again(spot, spelled(read))
    if again is not None and not _descends(made.statement):
        last, text = again
        words = {"title": NEW_LEAF[0].format(spelled(read)), "cause": NEW_LEAF[1], "cure": NEW_LEAF[2]}
        return rule("BL409").found(spot.place, said, seen, corrected=text, corrected_at=last.place, **words)
    if corrections.rebinds(made.statement) and of_leaf(session, tensor):
        name, corrected = "BL409", corrections.under_no_grad(made, corrections.as_in_place(made))
    elif any(corrections.makes_leaf(inner) for inner in ast.walk(made.statement.value)):
        name, corrected = "BL102", corrections.requires_grad_last(made)
    else:
        name, corrected = "BL101", _retaining(session, made, spelled(read))
    return rule(name).found(spot.place, said, seen, corrected=corrected, corrected_at=made.place)


def _descends(statement: ast.stmt) -> bool:
    """Return whether a statement is `w = w - ...`, the update of a parameter."""
    return corrections.rebinds(statement) and isinstance(statement.value.op, ast.Sub)


def maker(session: Session, tensor: Any, name: str | None) -> Spot | None:
    """Return the assignment that made a tensor."""
    for engine in session.engines:
        if engine.is_tensor(tensor) and tensor.grad_fn is not None:
            line = engine.line_of(tensor.grad_fn)
            return None if line is None else assignment_to(name, line.file, line.line, line.function)
    return None


def of_leaf(session: Session, tensor: Any) -> bool:
    """Return whether a tensor was computed from a leaf directly."""
    nodes = [inner for inner, _ in tensor.grad_fn.next_functions if inner is not None]
    return bool(nodes) and any(engine.is_leaf_node(nodes[0]) for engine in session.engines)


def made_from_leaf(session: Session, tensor: Any) -> Spot | None:
    """Return the assignment that made a tensor of a leaf which has no name."""
    made = maker(session, tensor, None)
    if made is None or not any(corrections.makes_leaf(inner) for inner in ast.walk(made.statement.value)):
        return None
    return made


def _retaining(session: Session, made: Spot, name: str) -> str | None:
    """`c = a * 3` → `c = a * 3; c.retain_grad()`, if a backward has run since."""
    ran = any(history.runs for history in session.each(History))
    alone = corrections.alone(made, made.statement)
    return f"{made.text(made.statement)}; {name}.retain_grad()" if ran and alone else None
