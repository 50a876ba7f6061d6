"""Logarithms of scales that enter a loss with the wrong sign: log-determinants of flows, widths of distributions.

NOTE [A scale and its logarithm]
A likelihood has both: a value that is multiplied by exp(s) and then squared, and s itself. What is minimised is
(b · exp(s) + t)² - s: the minus keeps the scale from shrinking to 0. With s added instead, the loss falls without a
bound as s does, whatever b and t are; divided by exp(s), or multiplied by exp(-s), it is the other way round.
The graph of a loss tells: from the loss down, sums, means and constant factors give the sign of each term; from each
exp up, what it multiplies. Nothing is said of a scale that enters with both signs, as those of samples that are to be
unlikely, that is used in another way as well, or whose product is never squared.

Both have the same number of terms, and so their weights tell, too: s that is averaged over the dims of a row, where
squares are summed, has too little weight by exactly that number. What lies between exp and the square is linear in what
exp returned; behind a network, as in an autoencoder, weights are a choice.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
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
AFFINE = {*KEEPS, "Add", "Sub", "Rsub", "Neg", "Mul", "Div", "Cat", "Stack", "Split", "SplitWithSizes", "Index", "Flip"}
AFFINE |= {"IndexSelect", "Where", "IndexPut", "Roll", "CopySlices", "Chunk", "Unbind", "Slices", "Scatter", "Gather"}
CLOSE = 1e-3
BACKWARDS, TWICE, DEEP, UP = 6, 2, 3000, 12
Output = tuple[Node, int]  # a node and the number of its output


@dataclass(slots=True)
class Term:
    """What is added up in a loss: with which signs, and the sums through which it enters, the outermost first.

    Args:
        ways: in how many ways it was found to enter; of the first one:
        weight: the factor of each of its numbers, NaN if that is not known.
        averaged: over how many numbers the means on the way are.
        means: these means.
    """

    signs: set[int] = field(default_factory=set)
    sums: tuple[Node, ...] = ()
    ways: int = 0
    weight: float = math.nan
    averaged: tuple[int, ...] = ()
    means: tuple[Node, ...] = ()


class LogScales(Detector):
    """Finds them (see NOTE [A scale and its logarithm])."""

    calls = frozenset({"mean", "exp", "pow", "square", "mul"})

    def __init__(self, watch):
        super().__init__(watch)
        self.looked = 0
        self.times: dict[tuple, int] = {}
        self.sizes: dict[int, tuple] = {}  # keys of nodes -> the shapes of what a mean is of, else of the result

    def called(self, call: Call) -> None:
        """Note the sizes of what may be a scale, a square or a mean."""
        inputs, outs, name = self.watch.inputs, self.watch.outs, self.watch.name
        if self.looked >= BACKWARDS or not inputs or not outs or not is_computed(outs[0]):
            return
        if name != "mul" or (len(inputs) == 2 and inputs[0] is inputs[1]):
            shown = inputs[0] if name == "mean" else outs[0]
            found = tuple(shown.shape), shown.numel() // max(outs[0].numel(), 1)
            self.sizes[self.engine.key_of(self.engine.node_of(outs[0])[0])] = found

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look at the graph of a loss."""
        sizes, self.sizes = self.sizes, {}
        if self.looked >= BACKWARDS or tensor.numel() != 1 or not is_computed(tensor):
            return
        nodes = list(islice(nodes_behind([tensor.grad_fn]), DEEP))
        scales = [one for one in nodes if kind_of(one) == "Exp"]
        if not scales or len(nodes) == DEEP:
            return
        self.looked += 1
        if any(group.get("maximize", False) for one in self.watch.optimizers.alive() for group in one.param_groups):
            return
        sized = {one: found for one in nodes if (found := sizes.get(self.engine.key_of(one))) is not None}
        terms = terms_of(self.engine.node_of(tensor), sized)
        users = users_of(nodes)
        wrong = [found for one in scales if (found := _wrong(one, terms, users)) is not None]
        if wrong and len(wrong) == sum(argument_of(one, terms)[0] is not None for one in scales):
            self._report(*wrong[0], place)
            return
        for one in scales:
            found = _of_other_weight(one, terms, users, sized)
            if found is not None:
                self._report_weight(one, found, place)
                return

    def _report_weight(self, exp: Node, found: "Weight", place: Place | None) -> None:
        there = place_of_node(self.engine, exp)
        here = place_of_node(self.engine, found.mean) if found.mean is not None else there
        key = ("weight", here.file, here.line) if here is not None else None
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] == TWICE:
            self.report(
                "log-scale-of-other-weight",
                here or place,
                f"{brief(there)} multiplies numbers by exp(s), and their squares are in the loss of backward() at "
                f"{brief(place)}.",
                f"{found.what}: its weight is {short(found.times)} times what it has in the logarithm of a density.",
                cure=found.cure,
            )

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


def terms_of(root: Output, sized: dict[Node, tuple]) -> dict[Output, Term]:
    """Return what is added up in a loss, and how."""
    terms: dict[Output, Term] = defaultdict(Term)
    stack: list[tuple[Output, int, Term]] = [(root, 1, Term(weight=1.0))]
    while stack:
        output, sign, way = stack.pop()
        term, node = terms[output], output[0]
        term.ways += 1
        if sign in term.signs:
            continue
        term.signs.add(sign)
        term.sums = term.sums or way.sums
        if term.ways == 1:
            term.weight, term.averaged, term.means = way.weight, way.averaged, way.means
        kind = kind_of(node)
        if kind in KEEPS or kind in SUMS:
            inner_way = _way_through(node, kind, way, sized)
            for number, inner in enumerate(node.next_functions):
                own = _sign_of_input(node, kind, number)
                if inner[0] is not None and own:
                    stack.append((inner, sign * own, inner_way))
    return dict(terms)


def _way_through(node: Node, kind: str, way: Term, sized: dict[Node, tuple]) -> Term:
    """Return how what a node is computed of enters a loss."""
    if kind in ("Add", "Sub", "Rsub"):
        alpha = getattr(node, "_saved_alpha", 1)
        return replace(way, sums=(*way.sums, node), weight=way.weight * alpha if alpha != 1 else way.weight)
    if kind == "Mean":
        count = sized[node][1] if node in sized else 0
        weight = way.weight / count if count else math.nan
        return replace(way, weight=weight, averaged=(*way.averaged, count), means=(*way.means, node))
    if kind in ("Mul", "Div"):
        factor = constant_factor(node)
        return replace(way, weight=way.weight * (factor if kind == "Mul" else 1 / factor if factor else math.nan))
    return way


def constant_factor(node: Node) -> float:
    """Return the size of the one number that a product or a quotient has as a constant; NaN if there is none."""
    values = _constant_of(node)
    return math.nan if values is None or values.size != 1 else abs(float(values.reshape(-1)[0]))


def _constant_of(node: Node) -> np.ndarray | None:
    """Return the constant that a product or a quotient has; None if it has none."""
    for name in ("_saved_other", "_saved_self"):
        value = getattr(node, name, None)
        if value is not None and not getattr(value, "requires_grad", False):
            return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    return None


def _wrong(exp: Node, terms: dict[Output, Term], users: dict) -> tuple[Node, Node] | None:
    """Return an exp whose argument enters the loss with the sign that lets it fall, and the sum of it and a square."""
    argument, inner = argument_of(exp, terms)
    if argument is None or len(terms[argument].signs) != 1:
        return None
    direction = _direction(exp, users)
    square = _square_above(exp, users, terms) if direction else None
    (sign,) = terms[argument].signs
    if square is None or sign != direction * inner:
        return None
    common = [one for one, other in zip(terms[argument].sums, terms[square, 0].sums) if one is other]
    return (exp, common[-1]) if common else None


def kind_of(node: Node) -> str:
    return node.name().rpartition("::")[2].partition("Backward")[0]


def _constant_sign(node: Node) -> int:
    """Return the sign of the constant that a product or a quotient has; 0 if it has none, or of both signs."""
    values = _constant_of(node)
    if values is None or values.dtype.kind not in "fiub":
        return 0
    return 1 if np.all(values >= 0) and np.any(values) else -1 if np.all(values <= 0) and np.any(values) else 0


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


@dataclass(frozen=True, slots=True)
class Weight:
    """A logarithm of a scale whose weight in a loss is not that of the scale: why, by which factor, and what helps."""

    what: str
    times: float
    cure: str
    mean: Node | None


def _of_other_weight(exp: Node, terms: dict[Output, Term], users: dict, sized: dict[Node, tuple]) -> Weight | None:
    """Return how the weight of a logarithm of a scale differs from that of the squares, if a mean explains it.

    In `(b · exp(c · s))² / 2 - c · s`, and in `exp(c · s) · q² / 2 - c · s / 2`, the weights are 2c : 1 and c : 1.
    """
    argument, _ = argument_of(exp, terms)
    if argument is None or terms[argument].ways != 1 or exp not in sized:
        return None
    square, inside = _affine_square(exp, users, terms)
    if square is None or square not in sized or terms[square, 0].ways != 1:
        return None
    log, squares = terms[argument], terms[square, 0]
    scales, numbers = sized[exp][0], sized[square][0]
    within = factor_within(exp, argument)
    if len(scales) < 2 or len(scales) != len(numbers) or scales[0] != numbers[0] or not squares.weight:
        return None
    times = log.weight / squares.weight / (2 * within if inside else within)
    dims, all_dims, rows = math.prod(scales[1:]), math.prod(numbers[1:]), scales[0]
    over = next((one for one in (dims, rows * dims) if one in log.averaged), 0)
    if dims > 1 and over and abs(times * dims - 1) < CLOSE:
        mean = log.means[log.averaged.index(over)]
        what = f"s enters the loss as a mean over {dims} dims, and the squares as a sum"
        return Weight(what, times, "Sum the log-scales of each row: s.sum(dim=1) in place of s.mean(dim=1).", mean)
    if all_dims > 1 and all_dims in squares.averaged and abs(times / all_dims - 1) < CLOSE:
        mean = squares.means[squares.averaged.index(all_dims)]
        what = f"s enters the loss as a sum over the dims of a row, and the squares as a mean over {all_dims} dims"
        return Weight(what, times, "Sum the squares of each row, too: (z ** 2).sum(dim=1).", mean)
    if rows > 1 and rows in squares.averaged and rows not in log.averaged and abs(times / rows - 1) < CLOSE:
        what = f"s enters the loss as a sum over all {rows} rows, and the squares as a mean over them"
        return Weight(
            what, times, "Sum the log-scales of each row alone, s.sum(dim=1), and take the mean of both.", None
        )
    return None


def _affine_square(exp: Node, users: dict, terms: dict[Output, Term]) -> tuple[Node | None, bool]:
    """Return a square that is minimised of what exp multiplied, or exp times a square: whether exp is inside of it."""
    seen, stack = set(), [exp]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for user, _ in users[node]:
            if (user, 0) in terms and terms[user, 0].signs == {1}:
                if _is_square(user):
                    return user, True
                if node is exp and kind_of(user) == "Mul" and _has_square(user, node):
                    return user, False
            if kind_of(user) in AFFINE:
                stack.append(user)
    return None, False


def factor_within(exp: Node, argument: Output) -> float:
    """Return the factor between an argument and what exp is taken of."""
    output, factor = exp.next_functions[0], 1.0
    while output != argument and output[0] is not None:
        kind = kind_of(output[0])
        if kind in ("Mul", "Div"):
            own = constant_factor(output[0])
            factor *= own if kind == "Mul" else 1 / own if own else math.nan
        output = output[0].next_functions[0]
    return factor


def argument_of(exp: Node, terms: dict[Output, Term]) -> tuple[Output | None, int]:
    """Return the output that enters the loss as a term and that exp is of, and the sign within exp."""
    output, sign = exp.next_functions[0], 1
    for _ in range(UP):
        node = output[0]
        if node is None:
            break
        if output in terms:
            return output, sign
        kind = kind_of(node)
        # what is viewed one way for exp may be viewed in another for the sum
        if kind not in KEEPS and kind not in ("Neg", "Mul", "Div"):
            break
        own = _sign_of_input(node, kind, 0) if kind in SUMS else 1
        if not own:
            break
        output, sign = node.next_functions[0], sign * own
    return None, 0


def users_of(nodes: list[Node]) -> dict[Node, list[tuple[Node, int]]]:
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
            kind = kind_of(user)
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
    if kind_of(node) == "Pow":
        return _exponent(node) == 2
    inputs = node.next_functions
    return kind_of(node) == "Mul" and len(inputs) == 2 and inputs[0][0] is not None and inputs[0] == inputs[1]


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
            if minimised and (_is_square(user) or (kind_of(user) == "Mul" and _has_square(user, node))):
                return user
            stack.append(user)
    return None


def _has_square(product: Node, factor: Node) -> bool:
    """Return whether the other factor of a product is a square, or a mean of squares."""
    for inner, _ in product.next_functions:
        for _ in range(UP):
            if inner is None or inner is factor:
                break
            if _is_square(inner) or kind_of(inner) == "MseLoss":
                return True
            inputs = [one for one, _ in inner.next_functions if one is not None]
            if len(inputs) != 1 or (
                kind_of(inner) not in KEEPS and kind_of(inner) not in ("Mean", "Sum", "Mul", "Div")
            ):
                break
            inner = inputs[0]
    return False
