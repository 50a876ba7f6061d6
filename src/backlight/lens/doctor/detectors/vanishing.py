"""Gradients that vanish on the way to the first layers: a profile by layer.

NOTE [What vanishing is]
The weights of one model are ordered as its forward first uses them. Gradients vanish if, in each of the first
backwards, they get smaller from nearly every layer to the one before it, and those of the first layers are less than a
hundred thousandth of those of the last. Residual and normalised networks stay far above that at any depth; a converged
network has small gradients in all layers; frozen layers have none and do not count.
"""

from typing import Any

import numpy as np

from backlight.dispatch.observers import Call, Run
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Module, Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of

LAYERS, ROWS = 6, 5  # at least so many weights, and so many backwards
TINY, ORDERED = 1e-5, 0.8
SQUASHING = {"sigmoid", "tanh"}


class Vanishing(Detector):
    """Compares the gradients of a model's layers (see NOTE [What vanishing is])."""

    calls = frozenset(SQUASHING)

    def __init__(self, watch):
        super().__init__(watch)
        self.profile: list[tuple[int, Tensor, float]] = []  # of the backward that runs: order, weight, gradient's norm
        self.in_a_row = 0
        self.backwards = 0
        self.reported = False
        self.squashed: dict[str, Instruction] = {}  # sigmoid, tanh -> the line that ran it last
        self.made: dict[str, Instruction | None] = {}  # -> the line that made the module which ran it

    def called(self, call: Call) -> None:
        """Note which op squashes values."""
        self.squashed[self.watch.name] = Instruction(call.code, call.lasti)
        self.made[self.watch.name] = self.watch.detectors[Constructions].line_of_layer()

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note the norm of a weight's gradient, in the first backwards."""
        if self.reported or self.backwards >= 4 * ROWS or tensor.dim() < 2 or before is not None:
            return
        leaf, square = self.watch.flow.leaf_of(tensor), self.square_of(arrived)
        if leaf is not None and leaf.bit and square is not None:
            with silent_floats():
                norm = float(np.sqrt(abs(square)))
            self.profile.append((leaf.bit.bit_length(), tensor, norm))

    def ended(self, run: Run) -> None:
        """Judge the profile of a backward."""
        profile, self.profile = sorted(self.profile, key=lambda one: one[0]), []
        self.backwards += bool(profile)
        if self.reported or len(profile) < LAYERS:
            return
        self.in_a_row = self.in_a_row + 1 if self._vanishes([norm for *_, norm in profile]) else 0
        if self.in_a_row == ROWS and self._are_one_model([tensor for _, tensor, _ in profile]):
            self.reported = True
            self._report(profile)

    def _vanishes(self, norms: list[float]) -> bool:
        if not np.all(np.isfinite(norms)) or not norms[-1]:
            return False
        shrinks = np.mean([first < second for first, second in zip(norms, norms[1:])])
        return max(norms[0], norms[1]) < TINY * norms[-1] and shrinks >= ORDERED

    def _are_one_model(self, weights: list) -> bool:
        def holds(module: Module) -> bool:
            own = {id(one) for one in module.parameters()}
            return all(id(one) in own for one in weights)

        return any(map(holds, self.watch.flow.modules.alive()))

    def _report(self, profile: list[tuple[int, Any, float]]) -> None:
        name_of = self.watch.flow.name_of
        step = max(1, len(profile) // 5)
        shown = [*profile[:-1:step], profile[-1]]
        listed = ", ".join(f"{name_of(tensor)} {short(norm)}" for _, tensor, norm in shown)
        first = self.watch.flow.leaf_of(profile[0][1])
        squashed = next(iter(self.squashed.items()), None)
        line = squashed[1] if squashed is not None else first.used
        cause, more = None, ()
        if squashed is not None:
            made = self.made.get(squashed[0])
            more = () if made is None else (f"The {squashed[0]} that ran last was created at {brief_at(made)}.",)
            most = {"sigmoid": "a quarter", "tanh": "one"}[squashed[0]]
            cause = f"each {squashed[0]} multiplies the gradient by its slope, which is {most} at most"
        self.report(
            "vanishing-gradient",
            None if line is None else place_of(line),
            f"The norms of gradients, from the first layer to the last: {listed}.",
            f"The first layer's is {short(profile[0][2] / profile[-1][2])} of the last one's, in each of {ROWS} "
            "backwards in a row.",
            *more,
            title=f"gradients vanish: {name_of(profile[0][1])} gets {short(profile[0][2] / profile[-1][2])} of what "
            f"{name_of(profile[-1][1])} gets",
            cause=cause,
        )
