"""The advantage of an actor-critic that is not detached: the policy's loss then also moves the critic.

NOTE [Which weights are constants]
Log-probabilities of actions that were drawn are weighted by an advantage, which is a constant for the policy. It is
none by mistake if it requires grad, and the parameters behind it are fitted by a squared error of their own in the
same backward: then the product's gradient works against that fit.
"""

import ast
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.corrections.lines import ATOMS, insert, parenthesised
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Node, Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import Instruction, brief, brief_at
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SQUARES = {"pow", "square", "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"}
CHOOSES = {"gather", "getitem", "__getitem__", "index_select", "take_along_dim"}
KEEPS = {"neg", "sum", "squeeze", "unsqueeze", "view", "reshape", "flatten", "stack", "cat", "exp", "sub", "clamp"}
KEEPS |= CHOOSES
SCORES = {"log_softmax", "log"}
LIKELIHOODS = {"cross_entropy", "nll_loss"}  # of each sample
ON_THE_WAY = ("Sub", "Rsub", "Div", "Mul", "Squeeze", "Unsqueeze", "View", "Reshape", "Stack", "Cat", "Select", "Slice")
BACKWARDS, DEEP, NEAR = 3, 5000, 30


@dataclass(slots=True)
class Product:
    """A line that multiplies log-probabilities by what requires grad: in how many backwards that was wrong."""

    spot: Spot
    weight: str | None
    corrected: str | None
    numbers: dict[int, int] = field(default_factory=dict)  # sequence numbers since the last backward -> leaves
    squared: Instruction | None = None
    times: int = 0


class PolicyWeights(Detector):
    """Finds them (see NOTE [Which weights are constants])."""

    calls = frozenset({"mul", *SQUARES, *KEEPS, *SCORES, *LIKELIHOODS})

    def __init__(self, watch):
        super().__init__(watch)
        self.scores: WeakIdDict[None] = WeakIdDict()  # log-probabilities of all actions
        self.chosen: WeakIdDict[None] = WeakIdDict()  # those of drawn ones, and what was computed of them
        self.products: dict[Instruction, Product] = {}
        self.squares: dict[int, tuple[int, Instruction]] = {}  # sequence numbers -> leaves behind, line

    def begin(self) -> None:
        """Watch log_prob of all distributions."""
        module = self.engine.module.distributions
        base = module.Distribution
        for kind in {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)}:
            if "log_prob" in vars(kind):
                self.watch.after(kind, "log_prob", self._scored)

    def _scored(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        value = args[1] if len(args) > 1 else kwargs.get("value")
        if self.engine.is_tensor(value) and not value.requires_grad and self.engine.is_tensor(out):
            self.chosen[out] = None

    def called(self, call: Call) -> None:
        """Follow log-probabilities into products; note squares."""
        name, out = self.watch.name, call.out
        if not self.engine.is_tensor(out) or not is_computed(out):
            return
        inputs = self.watch.inputs
        if name in SCORES:
            self.scores[out] = None
        elif name in LIKELIHOODS:
            if out.dim():
                self.chosen[out] = None
        elif name in SQUARES:
            if self.products or len(self.chosen):
                self._squared(call, inputs[0])
        elif not len(self.chosen) and not len(self.scores):
            return
        elif name == "mul":
            self._multiplied(call, inputs)
        elif any(one in self.chosen for one in inputs) or (
            name in CHOOSES and inputs and inputs[0] in self.scores and inputs[0].dim() > 1
        ):
            self.chosen[out] = None

    def _squared(self, call: Call, error: Tensor) -> None:
        leaves = self.watch.flow.of(error).leaves
        if leaves and error.requires_grad:
            self.squares[sequence_of(call.out.grad_fn)] = leaves, Instruction(call.code, call.lasti)

    def _multiplied(self, call: Call, inputs: list) -> None:
        if len(inputs) != 2 or (inputs[0] in self.chosen) == (inputs[1] in self.chosen):
            if any(one in self.chosen for one in inputs):
                self.chosen[call.out] = None
            return
        score, weight = inputs if inputs[0] in self.chosen else inputs[::-1]
        self.chosen[call.out] = None
        flow = self.watch.flow
        leaves = flow.of(weight).leaves
        if not is_computed(weight) or not leaves or leaves == flow.of(score).leaves or not _is_residual(weight.grad_fn):
            return
        line = Instruction(call.code, call.lasti)
        known = self.products.get(line)
        if known is None:
            known = self.products[line] = Product(*_detached(spot_of(line, frame_of(call.code)), score, weight))
        known.numbers[sequence_of(call.out.grad_fn)] = leaves

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look whether a product and the squares of the same parameters are behind one loss."""
        waiting = [one for one in self.products.values() if one.numbers]
        if waiting and self.squares and is_computed(tensor):
            behind = {sequence_of(one) for one in islice(nodes_behind([tensor.grad_fn]), DEEP) if one.next_functions}
            fitted = {leaves: line for number, (leaves, line) in self.squares.items() if number in behind}
            for one in waiting:
                line = next((fitted.get(leaves) for number, leaves in one.numbers.items() if number in behind), None)
                if line is not None:
                    one.times, one.squared = one.times + 1, line
                    if one.times == BACKWARDS:
                        self._report(one)
        for one in waiting:
            one.numbers.clear()
        self.squares.clear()

    def _report(self, one: Product) -> None:
        weight = one.weight or "the factor"
        same = [other for other in self.products.values() if other.spot.place == one.spot.place]
        self.report(
            "advantage-not-detached",
            one.spot.place,
            f"{weight} at {brief(one.spot.place)} weights log-probabilities and requires grad.",
            f"Its parameters are fitted at {brief_at(one.squared)}, {BACKWARDS} times in the same backward.",
            cure=f"Weight by a constant: {one.weight}.detach()." if one.weight else None,
            corrected=one.corrected if len(same) == 1 else None,  # of two products in a line it would correct one
        )


def _is_residual(root: Node) -> bool:
    """Return whether a weight is returns - critic(states), which fits a critic; perhaps normalised or stacked."""
    for node in islice(nodes_behind([root], lambda one: not one.name().startswith(ON_THE_WAY)), NEAR):
        inner = [one for one, _ in node.next_functions]
        if node.name().startswith(("Sub", "Rsub")) and any(one is None or _adds_constant(one) for one in inner):
            return True
    return False


def _adds_constant(node: Node) -> bool:
    return node.name().startswith("Add") and any(one is None for one, _ in node.next_functions)


def _detached(spot: Spot, score: Tensor, weight: Tensor) -> tuple[Spot, str | None, str | None]:
    """Return a product's spot, what it calls the weight, and the line with it detached."""
    node = spot.expression
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    for side, other in (sides, sides[::-1]) if sides else ():
        if spot.value(side) is not weight and spot.value(other) is not score:
            continue
        line = spot.lines[side.end_lineno - 1].encode()
        closed = line[side.end_col_offset :].startswith(b")") and parenthesised(spot, side)
        if not isinstance(side, ATOMS) and not closed:
            break
        text = spot.edited(insert(side.end_lineno, side.end_col_offset + closed, ".detach()"))
        name = f"({spot.text(side)})" if closed else spot.text(side)
        return spot.without_frame(), name, text
    return spot.without_frame(), None, None
