"""Units that stay equal: weights that begin equal in all rows and get equal gradients, or zeros that stay zero.

NOTE [What symmetry is]
If all rows of a weight are equal, and the rows of its gradient are equal in several backwards in a row, the units of
the layer compute the same for ever: it has one unit. A weight of zeros whose gradient is exactly zero each time never
leaves zero. Output layers that begin at zero get a different gradient in each row, and are no such case.
"""

from dataclasses import dataclass

import numpy as np

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector, any_nonzero
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import counted, short
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict, keep_newest

IN_A_ROW, LOOKS = 4, 40
FILLS = {"fill_", "zero_", "constant_", "zeros_", "ones_", "full_", "eye_"}


@dataclass(slots=True)
class Rows:
    """A weight: how many backwards in a row its rows and those of its gradient were equal."""

    equal: int = 0
    zero: int = 0
    looks: int = 0


class Symmetry(Detector):
    """Compares the rows of weights (see NOTE [What symmetry is])."""

    calls = frozenset(FILLS)

    def __init__(self, watch):
        super().__init__(watch)
        self.rows: WeakIdDict[Rows] = WeakIdDict()
        self.filled: dict[int, Instruction] = {}  # memory -> the line that filled it with one value
        self.found: dict[tuple, list] = {}  # line -> names, shapes, kinds

    def called(self, call: Call) -> None:
        """Note what is filled."""
        tensor = call.args[0] if call.args else call.kwargs.get("tensor")
        if self.engine.is_tensor(tensor) and self.watch.is_plain(tensor) and tensor.dim() > 1:
            self.filled[self.engine.memory_of(tensor)[0]] = Instruction(call.code, call.lasti)
            keep_newest(self.filled, 1000)

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Compare rows."""
        if not self.watch.is_plain(tensor) or tensor.dim() < 2 or tensor.shape[0] < 2:
            return
        known = self.rows.get(tensor)
        if known is None:
            known = self.rows[tensor] = Rows()
        if known.looks >= LOOKS or (known.looks >= 2 and not known.equal and not known.zero):
            return
        known.looks += 1
        values, grads = self.values(tensor), self.values(arrived)
        if values is None or grads is None:
            return
        equal = _equal_rows(values) and _equal_rows(grads)
        moves = any_nonzero(grads)
        known.equal = known.equal + 1 if equal and moves else 0
        known.zero = known.zero + 1 if not moves and not any_nonzero(values) else 0
        if known.equal == IN_A_ROW or known.zero == IN_A_ROW:
            self._note(tensor, "equal" if known.equal == IN_A_ROW else "zero", values)

    def _note(self, tensor: Tensor, kind: str, values: np.ndarray) -> None:
        memory = self.engine.memory_of(tensor)[0]
        made = self.watch.detectors[Constructions].parameters.get(tensor, (None,))[0]
        line = self.filled.get(memory) or made
        name, shape = self.watch.flow.name_of(tensor), tuple(tensor.shape)
        self.found.setdefault((line, kind), []).append((name, shape, float(values.flat[0])))

    def end(self, problem: BaseException | None) -> None:
        """Report layers, those of one line together."""
        kinds = {kind for _, kind in self.found}
        for (line, kind), members in self.found.items():
            if kind == "zero" and "equal" in kinds:
                continue  # what lies behind equal units
            name, shape, value = members[0]
            others = "" if len(members) == 1 else f" (and {len(members) - 1} more)"
            if kind == "equal":
                seen = (
                    f"All {shape[0]} rows of {name}{others} are equal, and so are those of its gradient, in {IN_A_ROW} "
                    f"backwards in a row; the first value is {short(value)}."
                )
                title = f"all {shape[0]} units of {name} are the same and stay the same"
            else:
                seen = (
                    f"{name}{others} is 0, and its gradient was exactly 0 in {counted(IN_A_ROW, 'backward')} in a row."
                )
                title = f"{name} is 0 and gets a gradient of 0"
            self.report("equal-units", None if line is None else place_of(line), seen, title=title)


def _equal_rows(values: np.ndarray) -> bool:
    return bool(np.all(values[1] == values[0]) and np.all(values == values[:1]))
