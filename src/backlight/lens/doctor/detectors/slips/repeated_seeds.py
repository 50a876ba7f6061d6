"""A seed that is set in each step: noise, dropout and samples are the same each time.

NOTE [The same randomness again]
The state of the generator at a step of an optimizer is that of the step before, though random numbers were drawn in
between and a line set the seed: what was drawn is the same. Five steps of one optimizer in a row, one setting in each.
If the state was put back after the draws (`fork_rng`), the step meets another state than the last draw left. L-BFGS
wants a loss that does not change between its calls, and is left alone.
"""

import zlib
from types import FrameType, FunctionType

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

DRAWS = {"randn", "randn_like", "rand", "rand_like", "randint", "randperm", "normal", "bernoulli", "dropout", "rrelu"}
DRAWS |= {"multinomial", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax", "uniform", "exponential"}
STEPS, LOOKS = 5, 60


class RepeatedSeeds(Detector):
    """Finds them (see NOTE [The same randomness again])."""

    calls = frozenset(DRAWS)

    def __init__(self, watch):
        super().__init__(watch)
        self.seeded: tuple[Place, object] | None = None  # since the last step
        self.settings = 0
        self.drawn: tuple[Instruction, int] | None = None  # the last draw since the seed, and the state that it left
        self.last: WeakIdDict[tuple[int, int]] = WeakIdDict()  # optimizers -> state at the last step, steps in a row
        self.looks = 0

    def begin(self) -> None:
        """Watch the setting of seeds."""
        generator = self.engine.module.Generator
        if isinstance(vars(generator).get("manual_seed"), FunctionType):  # backlight's, under whatever name of module
            self.watch.after(generator, "manual_seed", self._set)
        else:
            self.watch.after(self.engine.module, "manual_seed", self._set)

    def _set(self, frame: FrameType, out: object, args: tuple, kwargs: dict) -> None:
        place = place_of_frame(frame)
        if place is not None and out is self.engine.module.default_generator:
            self.seeded, self.drawn = (place, out.initial_seed()), None
            self.settings += 1

    def called(self, call: Call) -> None:
        """Note a draw after a seed was set."""
        if self.seeded is not None and self.looks < LOOKS and call.kwargs.get("generator") is None:
            self.drawn = Instruction(call.code, call.lasti), self._state()

    def _state(self) -> int:
        return zlib.crc32(self.engine.array(self.engine.module.get_rng_state()).tobytes())

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Compare the state with that of the last step."""
        seeded, drawn, settings = self.seeded, self.drawn, self.settings
        self.seeded = self.drawn = None
        self.settings = 0
        if self.looks >= LOOKS or type(optimizer).__name__ == "LBFGS":
            return
        if seeded is None or drawn is None or settings != 1:
            self.last[optimizer] = 0, 0
            return
        self.looks += 1
        state = self._state()
        before, times = self.last.get(optimizer, (0, 0))
        if state != drawn[1]:
            self.last[optimizer] = 0, 0
            return
        times = times + 1 if state == before else 1
        self.last[optimizer] = state, times
        if times == STEPS:
            line, seed = seeded
            self.report(
                "seed-set-in-each-step",
                line,
                f"{brief(line)} set the seed to {seed} before each of the last {STEPS} steps at {brief(place)}.",
                f"So {brief_at(drawn[0])} draws the same numbers in each step.",
            )
