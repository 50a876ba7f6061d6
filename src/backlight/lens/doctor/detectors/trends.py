"""What goes wrong slowly: layers that are dead, gradients that explode.

NOTE [How long is long]
A dead layer's outputs were all zero in each of many steps, from the first to the last. A gradient explodes if its norm
grew at least tenfold from one backward to the next, several times in a row, to something that no healthy training has.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call, Run
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Module, Tensor
from backlight.lens.doctor.places import Instruction, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

LONG, FEW = 20, 8
GROWTH, HUGE, IN_A_ROW = 10.0, 1e8, 3


@dataclass(slots=True)
class Layer:
    """The calls of one activation: how many, and whether all were zero so far."""

    calls: int = 0
    dead: bool = True
    shape: tuple[int, ...] = ()


class Trends(Detector):
    """Follows activations and norms over steps (see NOTE [How long is long])."""

    calls = frozenset({"relu"})

    def __init__(self, watch):
        super().__init__(watch)
        self.layers: dict[tuple[Instruction, str], Layer] = {}
        self.paths: list[str] = []
        self.norms: WeakIdDict[list[float]] = WeakIdDict()  # leaf -> gradient norms of the growth that goes on
        self.reported = False

    def entered(self, module: Module, path: str) -> None:
        """Note which module runs."""
        self.paths.append(path)

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note that it ended."""
        if self.paths:
            self.paths.pop()

    def called(self, call: Call) -> None:
        """Look at what a rectifier returns."""
        if not self.engine.is_tensor(call.out) or not call.out.requires_grad:
            return
        path = self.paths[-1] if self.paths else ""
        layer = self.layers.setdefault((Instruction(call.code, call.lasti), path), Layer())
        layer.calls += 1
        if not layer.dead:
            return
        values = self.values(call.out)
        layer.shape = tuple(call.out.shape)
        layer.dead = values is not None and values.size >= FEW and not np.any(values)

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Follow the norm of a leaf's gradient."""
        values = None if self.reported else self.values(arrived)
        if values is None:
            return
        with silent_floats():
            norm = abs(np.vdot(values, values)) ** 0.5
        norms = self.norms.get(tensor)
        self.norms[tensor] = norms = [*norms, norm] if norms and norm >= GROWTH * norms[-1] > 0 else [norm]
        if len(norms) > IN_A_ROW and norm > HUGE:
            self.reported = True
            name = self.watch.flow.name_of(tensor)
            listed = " → ".join(short(one) for one in norms[-5:])
            seen = f"The norm of {name}.grad in {len(norms)} backwards in a row: {listed}."
            self.report("exploding-gradient", place_of(run), seen)

    def end(self, problem: BaseException | None) -> None:
        """Report dead layers."""
        for (line, path), layer in self.layers.items():
            if layer.dead and layer.calls >= LONG:
                name = f"relu of {path}" if path else "relu"
                self.report(
                    "dead-relu",
                    place_of(line),
                    f"{name} returned zeros only in all of its {layer.calls} calls; the last result had shape "
                    f"{layer.shape}. No gradient passes it.",
                )
