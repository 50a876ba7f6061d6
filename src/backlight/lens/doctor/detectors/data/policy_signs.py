"""Policies that learn the opposite: the loss rises with the reward, or falls with the entropy that it is to keep.

NOTE [The sign of a policy's loss]
The score function's loss is -log p(action) · weight, where the weight is a return or an advantage and is named so. The
product's gradient and the sign that the log-probability has in it say which way the loss goes. An entropy of the same
policy is a bonus: the loss falls when it rises. Both are reported if three backwards have the other sign.
"""

import ast
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import maker_of
from backlight.lens.doctor.graph import Node, is_computed, sequence_of
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.source import spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

REWARDS = re.compile(r"(?:^|_)(?:rewards?|returns?|rets?|advantages?|advs?|adv|gains?|gae|rtg)(?:_|\d|$)|^[RGA]$")
KEEPS = {"sum", "squeeze", "unsqueeze", "view", "reshape", "flatten", "stack", "cat", "exp", "clamp", "getitem"}
KEEPS |= {"__getitem__", "gather", "sub", "neg", "mean"}
BACKWARDS = 3


class PolicySigns(Detector):
    """Finds them (see NOTE [The sign of a policy's loss])."""

    calls = frozenset({*KEEPS, "mul"})

    def __init__(self, watch):
        super().__init__(watch)
        self.signs: WeakIdDict[int] = WeakIdDict()  # log-probabilities and what is computed of them -> sign
        self.products: dict[int, tuple[Instruction, int, str]] = {}  # sequence numbers -> line, sign, weight's name
        self.entropies: dict[int, Instruction] = {}
        self.names: dict[Instruction, str | None] = {}
        self.times: dict[Instruction, int] = {}
        self.wrong: dict[Instruction, tuple[str, bool]] = {}
        self.right: set[Instruction] = set()
        self.scored = False  # whether a log-probability was taken since the last backward

    def begin(self) -> None:
        """Watch log_prob and entropy of all distributions."""
        module = self.engine.module.distributions
        for kind in {one for one in vars(module).values() if isinstance(one, type)}:
            if issubclass(kind, module.Distribution):
                for name, listener in (("log_prob", self._scored), ("entropy", self._spread)):
                    if name in vars(kind):
                        self.watch.after(kind, name, listener)

    def _scored(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if self.engine.is_tensor(out) and is_computed(out):
            self.signs[out] = 1
            self.scored = True

    def _spread(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        line = maker_of(frame)
        if line is not None and self.scored and self.engine.is_tensor(out) and is_computed(out):
            self.entropies[sequence_of(out.grad_fn)] = line

    def called(self, call: Call) -> None:
        """Follow log-probabilities into products."""
        if not len(self.signs):
            return
        inputs, out, name = self.watch.inputs, call.out, self.watch.name
        if not self.engine.is_tensor(out) or not is_computed(out):
            return
        known = [self.signs.get(one) for one in inputs]
        sign = next((one for one in known if one is not None), None)
        if sign is None:
            return
        if name == "mul" and len(inputs) == 2 and None in known:
            line = Instruction(call.code, call.lasti)
            if line not in self.names:
                self.names[line] = _reward(line)
            if self.names[line] is not None:
                self.products[sequence_of(out.grad_fn)] = line, sign, self.names[line]
            return
        if name == "neg" or (name == "sub" and known[0] is None):
            sign = -sign
        elif name == "mul":
            number = next((one for one in call.args if isinstance(one, (int, float))), 1)
            sign = -sign if number < 0 else sign
        self.signs[out] = sign

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Look at the sign with which a product or an entropy comes into the loss."""
        if not (self.products or self.entropies) or not node.next_functions or not grad_outputs:
            return
        number = sequence_of(node)
        product, entropy = self.products.pop(number, None), self.entropies.pop(number, None)
        if (product is None and entropy is None) or grad_outputs[0] is None:
            return
        values = self.values(grad_outputs[0])
        if values is None or not values.any():
            return
        up, down = bool((values > 0).any()), bool((values < 0).any())
        if up == down:
            return
        line = product[0] if product is not None else entropy
        if (up if product is None or product[1] > 0 else down) and line not in self.right:
            self.wrong[line] = (product[2], False) if product is not None else ("the entropy", True)
        else:
            self.right.add(line)
            self.wrong.pop(line, None)

    def ended(self, run: Run) -> None:
        """Count a backward."""
        self.products.clear()
        self.scored = False
        self.entropies.clear()
        for line, (name, entropy) in self.wrong.items():
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == BACKWARDS:
                self._report(line, name, entropy)
        self.wrong.clear()

    def _report(self, line: Instruction, name: str, entropy: bool) -> None:
        if entropy:
            self.report(
                "reward-minimised",
                place_of(line),
                f"The entropy of {brief_at(line)} has a positive sign in the loss, which is minimised, in "
                f"{BACKWARDS} backwards.",
                title="the loss makes the policy's entropy smaller",
                cause="The entropy is added to the loss, where it is to be subtracted.",
                cure="Subtract it: loss = policy_loss - weight * entropy.",
            )
            return
        self.report(
            "reward-minimised",
            place_of(line),
            f"log-probability times {name}, at {brief_at(line)}, has a positive sign in the loss, which is "
            f"minimised, in {BACKWARDS} backwards: actions of a high {name} become less likely.",
        )


def _reward(line: Instruction) -> str | None:
    """Return the name of a product's other factor, if it is that of a reward."""
    node = spot_of(line).expression
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for side in (node.right, node.left):
        names = [inner.id for inner in ast.walk(side) if isinstance(inner, ast.Name)]
        names += [inner.attr for inner in ast.walk(side) if isinstance(inner, ast.Attribute)]
        found = next((one for one in names if REWARDS.search(one)), None)
        if found is not None:
            return None if any(isinstance(inner, ast.USub) for inner in ast.walk(side)) else found
    return None
