"""Values of a graph that are written into parameters, where their graph ends: `p.data = made`, vector_to_parameters."""

from dataclasses import dataclass

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.flow import Leaf
from backlight.lens.doctor.graph import Tensor, is_parameter
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place


@dataclass(slots=True)
class Write:
    """A write into a parameter: its line, the leaves that the values were computed from."""

    line: Instruction
    leaves: int


class Written(Detector):
    """Remembers writes into parameters; EmptySteps reports them where they leave an optimizer without gradients."""

    calls = frozenset({"data=", "data", "copy"})

    def __init__(self, watch):
        super().__init__(watch)
        self.writes: WeakIdDict[Write] = WeakIdDict()

    def called(self, call: Call) -> None:
        """Note a write, and what the new values depend on."""
        if call.name not in ("data=", "copy_") and not (call.name == "data" and len(call.args) == 2):
            return
        target, value = (call.args[0], call.args[1]) if len(call.args) > 1 else (None, None)
        if self.engine.is_tensor(target) and self.engine.is_tensor(value) and is_parameter(target):
            flow = self.watch.flow
            own = flow.leaf_of(target)
            leaves = flow.of(value).leaves & ~(own.bit if own is not None else 0)
            if leaves:
                self.writes[target] = Write(Instruction(call.code, call.lasti), leaves)

    def reason(self, holds: str, leaves: list[Leaf | None], place: Place | None) -> Finding | None:
        """Return the finding of values that were computed from an optimizer's leaves and written into others."""
        flow, held = self.watch.flow, self.watch.optimised()
        for leaf in flow.leaves:
            tensor: Tensor | None = leaf.tensor()
            write = None if tensor is None or not leaf.reached or id(tensor) in held else self.writes.get(tensor)
            if write is None:
                continue
            sources = [one for one in leaves if one is not None and not one.reached and one.bit & write.leaves]
            if sources:
                names = [flow.name_of(source) for one in sources if (source := one.tensor()) is not None]
                return rule("written-into-parameters").found(
                    place_of(write.line),
                    f"Values computed from {', '.join(names[:4])} were written into {flow.name_of(tensor)} at "
                    f"{brief_at(write.line)}.",
                    f"The gradient of backward() ends there: .grad of the parameters in {holds} is None at "
                    f"{brief(place)}.",
                )
        return None
