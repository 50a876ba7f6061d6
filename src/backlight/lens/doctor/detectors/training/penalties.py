"""Penalties on weights that are constants: computed from `.data`, detached copies, or under no_grad().

NOTE [What a constant penalty is]
Numbers that are computed from parameters alone, outside of the graph, by squares, norms and sums, and that are added to
a loss which then has a backward: the sum has another value and the same gradient.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

COPIES = {"data", "detach"}
MEASURES = {"pow", "square", "abs", "norm", "vector_norm", "sum", "mean", "mul", "add", "sqrt", "radd"}


class Penalties(Detector):
    """Follows weights into losses (see NOTE [What a constant penalty is])."""

    calls = frozenset(COPIES | MEASURES)

    def __init__(self, watch):
        super().__init__(watch)
        self.weights: WeakIdDict[tuple[Instruction, str]] = WeakIdDict()  # what is computed of weights -> line, op
        self.sums: WeakIdDict[tuple[Instruction, str, Instruction]] = WeakIdDict()  # losses with such a constant
        self.done: set[Instruction] = set()

    def called(self, call: Call) -> None:
        """Follow a weight."""
        out = call.out
        if not self.engine.is_tensor(out):
            return
        inputs = self.watch.inputs
        if out.requires_grad:
            if out.dim() == 0 and is_computed(out):
                self._look_at_sum(call, inputs)
            return
        name, line = self.watch.name, Instruction(call.code, call.lasti)
        kind = self.engine.module.nn.Parameter
        if len(inputs) == 1 and isinstance(inputs[0], kind) and inputs[0].requires_grad:
            if name in COPIES or not self.engine.module.is_grad_enabled():
                self.weights[out] = line, call.name
            return
        known = [self.weights.get(one) for one in inputs]
        if known and all(one is not None for one in known) and name in MEASURES and out is not inputs[0]:
            self.weights[out] = known[0]

    def _look_at_sum(self, call: Call, inputs: list) -> None:
        if self.watch.name not in ("add", "radd"):
            return
        for one in inputs:
            known = self.weights.get(one) if one.dim() == 0 else None
            if known is not None:
                self.sums[call.out] = *known, Instruction(call.code, call.lasti)
            elif (before := self.sums.get(one)) is not None:
                self.sums[call.out] = before

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a loss that holds such a constant."""
        line, name, added = self.sums.get(tensor, (None, "", None))
        if line is None or line in self.done:
            return
        self.done.add(line)
        how = f".{name}" if name == "data" else f"{name}()"
        self.report(
            "penalty-is-constant",
            place_of(line),
            f"{brief_at(line)} takes weights out of the graph by {how}; a number computed only from them is added to "
            f"the loss at {brief_at(added)}, which backward() at {brief(place)} starts from.",
        )
