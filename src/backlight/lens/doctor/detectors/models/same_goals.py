"""Generators that are trained towards what their discriminator is trained towards: both call the samples false.

NOTE [Two that agree]
A discriminator learns from samples cut off from the generator, with one target for all of them, and from data with
another one. The generator's own step sends samples through the same discriminator and has to want the other target. It
is a mistake if it wants the same one: then the optimizer of the generator alone makes its samples easier to tell. A
discriminator that is trained with turned labels is no mistake, if the generator's target is turned, too.
"""

from dataclasses import dataclass

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Optimizer, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.records.record import Place

LOSSES = {"binary_cross_entropy_with_logits", "binary_cross_entropy", "mse_loss"}
THRICE, MIDDLE, LOOKS = 3, 0.5, 40


@dataclass(frozen=True, slots=True)
class Goal:
    """A loss with one target for all rows: which parameters its output was computed of, and which get a gradient."""

    line: Instruction
    target: float
    values: int
    graph: int


class SameGoals(Detector):
    """Finds them (see NOTE [Two that agree])."""

    calls = frozenset(LOSSES)

    def __init__(self, watch):
        super().__init__(watch)
        self.goals: list[Goal] = []  # since the last step of an optimizer
        self.against: dict[int, tuple[Goal, int]] = {}  # discriminators' parameters -> the goal for samples, theirs
        self.data: dict[int, float] = {}  # discriminators' parameters -> the target of data
        self.times: dict[Instruction, int] = {}
        self.looks = 0

    def called(self, call: Call) -> None:
        """Note a loss whose target is one number."""
        inputs = self.watch.inputs
        if self.looks >= LOOKS or len(inputs) < 2 or not is_computed(inputs[0]) or inputs[1].requires_grad:
            return
        values = self.values(inputs[1])
        if values is None or not values.size or (values != values.flat[0]).any():
            return
        graph, flow = 0, self.watch.flow
        for leaf in flow.leaves_of([self.engine.node_of(inputs[0])[0]]):
            graph |= flow.of(leaf).leaf.bit
        line, target = Instruction(call.code, call.lasti), float(values.flat[0])
        self.goals.append(Goal(line, target, flow.of(inputs[0]).leaves, graph))

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Tell from who learns whose goal it was."""
        goals, self.goals = self.goals, []
        if not goals or self.looks >= LOOKS:
            return
        self.looks += 1
        flow, own = self.watch.flow, 0
        for param in params:
            leaf = flow.leaf_of(param)
            own |= leaf.bit if leaf is not None else 0
        for goal in goals:
            if not own:
                continue
            if goal.graph & own == goal.graph:  # the discriminator's step
                others = goal.values & ~goal.graph
                if others:
                    self.against[goal.graph] = goal, others
                else:
                    self.data[goal.graph] = goal.target
            elif goal.graph & own == own:
                self._look(goal, own, place)

    def _look(self, goal: Goal, own: int, place: Place | None) -> None:
        judge = goal.graph & ~own
        known, samples = self.against.get(judge, (None, 0))
        of_data = self.data.get(judge)
        if known is None or of_data is None or samples & own != own:
            return
        wrong = (goal.target - MIDDLE) * (known.target - MIDDLE) > 0 > (of_data - MIDDLE) * (known.target - MIDDLE)
        self.times[goal.line] = self.times.get(goal.line, 0) + 1 if wrong else 0
        if self.times[goal.line] == THRICE:
            self.report(
                "generator-helps-discriminator",
                place_of(goal.line),
                f"The discriminator's step wants {short(known.target)} for samples, at {brief_at(known.line)}, and "
                f"{short(of_data)} for data.",
                f"The loss at {brief_at(goal.line)}, of which the step at {brief(place)} changes the generator alone, "
                f"wants {short(goal.target)} for samples, too.",
            )
