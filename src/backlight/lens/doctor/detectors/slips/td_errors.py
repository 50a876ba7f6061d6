"""The squared error of temporal differences, r + gamma · V(next) - V(now), whose target carries a gradient.

NOTE [A bootstrapped target]
What makes a difference of two outputs one of temporal differences: data of a batch is added to a discounted output, by
a factor from 0.8 to below 1, and another output of the same parameters is subtracted. Pairs, views and autoencoders
have no such sum. It is a mistake if the difference is squared in a loss while both outputs have their graphs.
Losses that get output and target apart are looked at in training/loss_arguments.py.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

VIEWS = {"squeeze", "unsqueeze", "view", "reshape", "flatten"}
LEAST_DISCOUNT, DEEP = 0.8, 5000


@dataclass(frozen=True, slots=True)
class Target:
    """Data plus a discounted output: the line, and the sequence number of the output's node."""

    line: Instruction
    output: int


class TdErrors(Detector):
    """Finds them (see NOTE [A bootstrapped target])."""

    calls = frozenset({"mul", "add", "sub", "pow", "square", *VIEWS})

    def __init__(self, watch):
        super().__init__(watch)
        self.discounted: WeakIdDict[int] = WeakIdDict()  # -> sequence number of the output
        self.targets: WeakIdDict[Target] = WeakIdDict()
        self.errors: WeakIdDict[Target] = WeakIdDict()
        self.squares: dict[int, tuple[Instruction, Instruction]] = {}  # sequence numbers -> lines of target and square
        self.done: set[Instruction] = set()

    def called(self, call: Call) -> None:
        """Follow an output to its discount, to the data, to the difference, to the square."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out) or not is_computed(out):
            return
        line = Instruction(call.code, call.lasti)
        if name == "mul":
            self._multiplied(call, line, inputs, out)
        elif name in VIEWS:
            for table in (self.discounted, self.targets, self.errors):
                if inputs[0] in table:
                    table[out] = table.get(inputs[0])
        elif name == "add" and len(inputs) == 2:
            for data, value in (inputs, inputs[::-1]):
                if value in self.discounted and not data.requires_grad and data.dim():
                    self.targets[out] = Target(line, self.discounted.get(value))
        elif name == "sub" and len(inputs) == 2:
            self._subtracted(*inputs, out)
        elif name == "square" or (name == "pow" and 2 in call.args[1:]):
            self._squared(line, inputs[0], out)

    def _multiplied(self, call: Call, line: Instruction, inputs: list, out: Tensor) -> None:
        value = next((one for one in inputs if is_computed(one)), None)
        others = [one for one in call.args if one is not value]
        if value is None or not others:
            self._squared(line, inputs[0], out)  # error * error
        elif value in self.discounted and not getattr(others[0], "requires_grad", False):
            self.discounted[out] = self.discounted.get(value)
        elif self._is_discount(others[0]):
            self.discounted[out] = sequence_of(value.grad_fn)

    def _is_discount(self, factor: Tensor | float) -> bool:
        """Return whether a factor is gamma, or gamma where an episode goes on and 0 where it is done."""
        if isinstance(factor, float):
            return LEAST_DISCOUNT <= factor < 1
        values = None if not self.engine.is_tensor(factor) or factor.requires_grad else self.values(factor)
        if values is None or values.dtype.kind != "f" or not values.size:
            return False
        gamma = values.max()
        return bool(LEAST_DISCOUNT <= gamma < 1 and np.all((values == gamma) | (values == 0)))

    def _subtracted(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        for target, output in ((left, right), (right, left)):
            known, flow = self.targets.get(target), self.watch.flow
            if known is None or not is_computed(output) or output in self.targets:
                continue
            if flow.of(target).leaves == flow.of(output).leaves and sequence_of(output.grad_fn) != known.output:
                self.errors[out] = known

    def _squared(self, line: Instruction, error: Tensor, out: Tensor) -> None:
        known = self.errors.get(error)
        if known is not None:
            self.squares[sequence_of(out.grad_fn)] = known.line, line

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report the squares that a loss is made of."""
        if self.squares and is_computed(tensor):
            behind = {sequence_of(one) for one in islice(nodes_behind([tensor.grad_fn]), DEEP) if one.next_functions}
            for number in behind & self.squares.keys():
                self._report(*self.squares[number])
        self.squares.clear()

    def _report(self, target: Instruction, square: Instruction) -> None:
        if target not in self.done:
            self.done.add(target)
            self.report(
                "bootstrapped-target",
                place_of(target),
                f"The error that is squared at {brief_at(square)} is data plus a discounted output, made at "
                f"{brief_at(target)}, minus another output of the same parameters; both require grad.",
                "The gradient also moves the target.",
            )
