"""Losses of pairs that are given the two the wrong way round: the worse one is to come first.

NOTE [Which of a pair is the better one]
The graph cannot tell; names can. A pair is named by words of which one is better (`s_clicked`, `s_skipped`), in the
order that the loss wants the other way round: a ranking loss with a target of ones, -logsigmoid(worse - better),
softplus(better - worse), a triplet loss whose second argument is the negative one. Of a distance the smaller one is the
better one, so that scores must come straight from a layer or a product of vectors.
"""

import ast
import re

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Node, Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief
from backlight.lens.doctor.source import Spot, spelled, spot_of

PAIRS = (
    ({"pos", "positive", "positives"}, {"neg", "negative", "negatives"}),
    ({"clicked", "bought", "liked", "watched"}, {"skipped", "unclicked", "ignored", "disliked"}),
    ({"chosen", "preferred"}, {"rejected", "dispreferred"}),
    ({"winner", "win", "winning"}, {"loser", "lose", "losing"}),
    ({"better", "best"}, {"worse", "worst"}),
    ({"good"}, {"bad"}),
    ({"relevant", "rel"}, {"irrelevant", "irrel", "nonrel"}),
)
DISTANCES = re.compile(r"dist|energy|cost|loss|(?:^|_)d(?:_|\d|$)")
VIEWS = ("Squeeze", "Unsqueeze", "View", "Reshape", "Select", "Slice", "Index", "Clone", "Unbind", "Split", "Alias")
SCORES = ("Addmm", "Linear", "Mm", "Mv", "Bmm", "Dot", "AddBackward", "Matmul")
CALLS = 2


class RankedPairs(Detector):
    """Finds them (see NOTE [Which of a pair is the better one])."""

    calls = frozenset({"margin_ranking_loss", "triplet_margin_loss", "logsigmoid", "softplus"})

    def __init__(self, watch):
        super().__init__(watch)
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Look at a line when it runs the second time."""
        line = Instruction(call.code, call.lasti)
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] != CALLS or not self.watch.inputs:
            return
        name, spot = self.watch.name, spot_of(call)
        arguments = spot.call.args if spot.call is not None else []
        if name == "margin_ranking_loss":
            target = self.watch.inputs[2] if len(self.watch.inputs) > 2 else None
            if len(arguments) > 1 and target is not None and self._is_ones(target) and self._are_scores(call.args[:2]):
                self._look(spot, arguments[1], arguments[0], f"{name} with a target of 1 expects the better one first.")
        elif name == "triplet_margin_loss":
            if len(arguments) > 2:
                self._look(spot, arguments[2], arguments[1], f"{name} expects anchor, positive, negative.", False)
        elif arguments and isinstance(arguments[0], ast.BinOp) and isinstance(arguments[0].op, ast.Sub):
            left, right = arguments[0].left, arguments[0].right
            if not is_computed(self.watch.inputs[0]) or not self._is_of_scores(self.watch.inputs[0]):
                return
            if name == "logsigmoid" and _is_negated(spot.call):
                self._look(spot, right, left, "-logsigmoid(x) is small if x is large: pass better - worse.")
            elif name == "softplus" and not _is_negated(spot.call):
                self._look(spot, left, right, "softplus(x) is small if x is small: pass worse - better.")

    def _look(self, spot: Spot, second: ast.AST, first: ast.AST, wants: str, scores: bool = True) -> None:
        """Report a pair whose `first` is named as the worse one; `wants` says what is expected."""
        one, other = spelled(first), spelled(second)
        if one is None or other is None or (scores and any(DISTANCES.search(name.lower()) for name in (one, other))):
            return
        if not _is_pair(better=other, worse=one):
            return
        self.report(
            "ranked-the-other-way",
            spot.place,
            f"{brief(spot.place)} trains {one} to be larger than {other}."
            if scores
            else f"{brief(spot.place)} pulls {one} towards the anchor and pushes {other} away from it.",
            wants,
            corrected=spot.edited(replace(first, spot.text(second)), replace(second, spot.text(first))),
        )

    def _is_ones(self, target: Tensor) -> bool:
        values = self.values(target)
        return values is not None and values.size > 0 and bool(np.all(values == 1))

    def _are_scores(self, pair: tuple) -> bool:
        return all(self.engine.is_tensor(one) and is_computed(one) and self._is_score(one.grad_fn) for one in pair)

    def _is_of_scores(self, difference: Tensor) -> bool:
        """Return whether a difference is one of two scores."""
        nodes = [one for one, _ in difference.grad_fn.next_functions if one is not None]
        return difference.grad_fn.name().startswith("Sub") and len(nodes) == 2 and all(map(self._is_score, nodes))

    def _is_score(self, node: Node | None) -> bool:
        """Return whether a value comes from a layer or a product, views apart."""
        while node is not None and node.name().startswith(VIEWS):
            node = next((one for one, _ in node.next_functions if one is not None), None)
        if node is None:
            return False
        if node.name().startswith("Sum"):  # a product of two vectors
            inner = node.next_functions[0][0]
            factors = [one for one, _ in inner.next_functions] if inner is not None else []
            return inner is not None and inner.name().startswith("Mul") and len(set(factors)) == 2
        return node.name().startswith(SCORES)


def _is_negated(node: ast.AST) -> bool:
    """Return whether an expression stands behind a minus, calls of methods in between."""
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return True
        node = getattr(node, "parent", None)
    return False


def _is_pair(better: str, worse: str) -> bool:
    """Return whether two names differ in one word, which is of such a pair."""
    one, other = _words(better), _words(worse)
    return any(
        len(one & goods) == 1 and len(other & bads) == 1 and one - goods == other - bads for goods, bads in PAIRS
    )


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[_.\d]+", name.lower()))
