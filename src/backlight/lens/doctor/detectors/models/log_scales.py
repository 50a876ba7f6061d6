"""Logarithms of scales that enter a loss with the wrong sign: log-determinants of flows, widths of distributions.

NOTE [A scale and its logarithm]
A likelihood has both: a value that is multiplied by exp(s) and then squared, and s itself. What is minimised is
(b · exp(s) + t)² - s: the minus keeps the scale from shrinking to 0. With s added instead, the loss falls without a
bound as s does, whatever b and t are; divided by exp(s), or multiplied by exp(-s), it is the other way round.
The graph of a loss tells: from the loss down, sums, means and constant factors give the sign of each term; from each
exp up, what it multiplies. Nothing is said of a scale that enters with both signs, as those of samples that are to be
unlikely, that is used in another way as well, or whose product is never squared.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Node, Tensor, is_computed, nodes_behind
from backlight.lens.doctor.places import brief, place_of_node
from backlight.lens.records.record import Place

SUMS = {"Add", "Sub", "Rsub", "Neg", "Mean", "Sum", "Stack", "Cat", "Mul", "Div"}
KEEPS = {
    "Squeeze",
    "Unsqueeze",
    "View",
    "UnsafeView",
    "Select",
    "Slice",
    "Clone",
    "Expand",
    "T",
    "Transpose",
    "Permute",
}
KEEPS |= {"Alias", "ReshapeAlias", "Reshape", "Flatten", "ToCopy"}
BACKWARDS, TWICE, DEEP, UP = 6, 2, 3000, 12
Output = tuple[Node, int]  # a node and the number of its output


@dataclass(slots=True)
class Term:
    """What is added up in a loss: with which signs, and the sums through which it enters, the outermost first."""

    signs: set[int] = field(default_factory=set)
    sums: tuple[Node, ...] = ()


class LogScales(Detector):
    """Finds them (see NOTE [A scale and its logarithm])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.looked = 0
        self.times: dict[tuple, int] = {}

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look at the graph of a loss."""
        if self.looked >= BACKWARDS or tensor.numel() != 1 or not is_computed(tensor):
            return
        nodes = list(islice(nodes_behind([tensor.grad_fn]), DEEP))
        scales = [one for one in nodes if _kind(one) == "Exp"]
        if not scales or len(nodes) == DEEP:
            return
        self.looked += 1
        if any(group.get("maximize", False) for one in self.watch.optimizers.alive() for group in one.param_groups):
            return
        terms = _terms(self.engine.node_of(tensor))
        users = _users(nodes)
        wrong = [found for one in scales if (found := _wrong(one, terms, users)) is not None]
        if wrong and len(wrong) == sum(_argument(one, terms)[0] is not None for one in scales):
            self._report(*wrong[0], place)

    def _report(self, exp: Node, sum_of_both: Node, place: Place | None) -> None:
        here, there = place_of_node(self.engine, sum_of_both), place_of_node(self.engine, exp)
        key = (here.file, here.line) if here is not None else None
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] != TWICE:
            return
        self.report(
            "log-scale-of-wrong-sign",
            here or place,
            f"{brief(there)} multiplies a value by exp(s), and its square is in the loss of backward() at "
            f"{brief(place)}; {brief(here)} adds s itself with the sign that is minimised together with exp(s).",
            "Such a loss has no lower bound: values shrink to one point as s decreases.",
        )


def _terms(root: Output) -> dict[Output, Term]:
    """Return what is added up in a loss, and how."""
    terms: dict[Output, Term] = defaultdict(Term)
    stack: list[tuple[Output, int, tuple[Node, ...]]] = [(root, 1, ())]
    while stack:
        output, sign, sums = stack.pop()
        term, node = terms[output], output[0]
        if sign in term.signs:
            continue
        term.signs.add(sign)
        term.sums = term.sums or sums
        kind = _kind(node)
        if kind in ("Add", "Sub", "Rsub"):
            sums = (*sums, node)
        if kind in KEEPS or kind in SUMS:
            for number, inner in enumerate(node.next_functions):
                own = _sign_of_input(node, kind, number)
                if inner[0] is not None and own:
                    stack.append((inner, sign * own, sums))
    return dict(terms)


def _wrong(exp: Node, terms: dict[Output, Term], users: dict) -> tuple[Node, Node] | None:
    """Return an exp whose argument enters the loss with the sign that lets it fall, and the sum of it and a square."""
    argument, inner = _argument(exp, terms)
    if argument is None or len(terms[argument].signs) != 1:
        return None
    direction = _direction(exp, users)
    square = _square_above(exp, users, terms) if direction else None
    (sign,) = terms[argument].signs
    if square is None or sign != direction * inner:
        return None
    common = [one for one, other in zip(terms[argument].sums, terms[square, 0].sums) if one is other]
    return (exp, common[-1]) if common else None


def _kind(node: Node) -> str:
    return node.name().rpartition("::")[2].partition("Backward")[0]


def _constant_sign(node: Node) -> int:
    """Return the sign of the constant that a product or a quotient has; 0 if it has none, or of both signs."""
    for name in ("_saved_other", "_saved_self"):
        value = getattr(node, name, None)
        if value is None or getattr(value, "requires_grad", False):
            continue
        values = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
        if values.dtype.kind in "fiub":
            return 1 if np.all(values >= 0) and np.any(values) else -1 if np.all(values <= 0) and np.any(values) else 0
    return 0


def _sign_of_input(node: Node, kind: str, number: int) -> int:
    """Return with which sign an input enters the output of a node that is linear in it; 0 if it is not."""
    if kind in ("Neg", "Rsub"):
        return -1 if kind == "Neg" or number == 0 else 1
    if kind in ("Mul", "Div"):
        others = [inner for place, (inner, _) in enumerate(node.next_functions) if place != number]
        return (
            _constant_sign(node) if number == 0 and others in ([], [None]) else _right_of_constant(node, kind, number)
        )
    return -1 if kind == "Sub" and number == 1 else 1


def _right_of_constant(node: Node, kind: str, number: int) -> int:
    """Return the sign of `constant * x`, whose constant is the first factor."""
    first = node.next_functions[0][0]
    return _constant_sign(node) if kind == "Mul" and number == 1 and first is None else 0


def _argument(exp: Node, terms: dict[Output, Term]) -> tuple[Output | None, int]:
    """Return the output that enters the loss as a term and that exp is of, and the sign within exp."""
    output, sign = exp.next_functions[0], 1
    for _ in range(UP):
        node = output[0]
        if node is None:
            break
        if output in terms:
            return output, sign
        kind = _kind(node)
        # what is viewed one way for exp may be viewed in another for the sum
        if kind not in KEEPS and kind not in ("Neg", "Mul", "Div"):
            break
        own = _sign_of_input(node, kind, 0) if kind in SUMS else 1
        if not own:
            break
        output, sign = node.next_functions[0], sign * own
    return None, 0


def _users(nodes: list[Node]) -> dict[Node, list[tuple[Node, int]]]:
    """Return for each node those that read it, and as which input."""
    users = defaultdict(list)
    for node in nodes:
        for number, (inner, _) in enumerate(node.next_functions):
            if inner is not None:
                users[inner].append((node, number))
    return users


def _direction(exp: Node, users: dict) -> int:
    """Return 1 if what exp returned only multiplies, -1 if it only divides, 0 for both or anything else."""
    found, stack = set(), [(exp, 1)]
    for _ in range(UP):
        if not stack:
            break
        node, sign = stack.pop()
        for user, number in users[node]:
            kind = _kind(user)
            if kind in KEEPS or kind == "Sqrt":
                stack.append((user, sign))
            elif kind == "Pow":
                stack.append((user, sign if _exponent(user) > 0 else -sign))
            elif kind == "Reciprocal":
                stack.append((user, -sign))
            elif kind == "Mul":
                scaled = _sign_of_input(user, kind, number) and _is_scalar_product(user)
                stack.append((user, sign)) if scaled else found.add(sign)
            elif kind == "Div":
                found.add(-sign if number == 1 else sign)
            else:
                return 0
    return found.pop() if len(found) == 1 and not stack else 0


def _is_scalar_product(node: Node) -> bool:
    """Return whether a product's other factor is one number."""
    value = getattr(node, "_saved_other", None)
    return value is not None and getattr(value, "numel", lambda: 1)() == 1 and not value.requires_grad


def _exponent(node: Node) -> float:
    exponent = getattr(node, "_saved_exponent", 0)
    return float(exponent) if isinstance(exponent, (int, float)) else 0.0


def _is_square(node: Node) -> bool:
    if _kind(node) == "Pow":
        return _exponent(node) == 2
    inputs = node.next_functions
    return _kind(node) == "Mul" and len(inputs) == 2 and inputs[0][0] is not None and inputs[0] == inputs[1]


def _square_above(exp: Node, users: dict, terms: dict[Output, Term]) -> Node | None:
    """Return a square of what exp came into, or exp times a square, that is minimised."""
    seen, stack = set(), [exp]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for user, _ in users[node]:
            minimised = (user, 0) in terms and terms[user, 0].signs == {1}
            if minimised and (_is_square(user) or (_kind(user) == "Mul" and _has_square(user, node))):
                return user
            stack.append(user)
    return None


def _has_square(product: Node, factor: Node) -> bool:
    """Return whether the other factor of a product is a square, or a mean of squares."""
    for inner, _ in product.next_functions:
        for _ in range(UP):
            if inner is None or inner is factor:
                break
            if _is_square(inner) or _kind(inner) == "MseLoss":
                return True
            inputs = [one for one, _ in inner.next_functions if one is not None]
            if len(inputs) != 1 or (_kind(inner) not in KEEPS and _kind(inner) not in ("Mean", "Sum", "Mul", "Div")):
                break
            inner = inputs[0]
    return False
