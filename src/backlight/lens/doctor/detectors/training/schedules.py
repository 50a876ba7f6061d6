"""Learning rates that stop a training: zero, vanished long before the end, or of a schedule of another length.

NOTE [When a learning rate is wrong]
Warm-up begins at 0 and decays end near it: one step of 0 is normal, and few tiny ones. Ten steps of 0 in a row are not.
A decay is a mistake if a scheduler has brought the rate to a thousandth of its largest value, and half of all steps or
more were made at less than a hundredth of it. A rate that was above 0 before and rises again was
0 between two schedules. A schedule of known length is one if the optimizer made that many steps,
and the scheduler a third of them or fewer; or if the scheduler made that many several times over.
"""

import ast
import linecache
from dataclasses import dataclass, field
from types import CodeType, FrameType

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions, maker_of
from backlight.lens.doctor.evidence import name_of, short
from backlight.lens.doctor.graph import Optimizer
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_at, place_of, place_of_frame
from backlight.lens.doctor.source import Spot, parsed, span, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

ZEROS, LEAST = 10, 12
SMALL, TINY = 1e-2, 1e-3
LENGTHS = ("total_steps", "T_max")  # attributes that say for how many steps a schedule is made
COUNTING = {"StepLR", "MultiStepLR", "ExponentialLR", "MultiplicativeLR", "LambdaLR", "LinearLR", "PolynomialLR"}
COUNTING |= {"CosineAnnealingLR"}


@dataclass(slots=True)
class Rates:
    """The learning rates of one optimizer.

    Args:
        name, made: the optimizer's.
        steps: that it made.
        most, last: the largest and the last rate.
        zeros: steps of 0 in a row.
        small: steps at less than `SMALL` of the largest.
        place: its step.
    """

    name: str
    made: Instruction | None
    steps: int = 0
    most: float = 0.0
    last: float = 0.0
    zeros: int = 0
    small: int = 0
    place: Place | None = None
    reported: bool = False
    fell_at: Place | None = None  # where a fall to 0 was reported


@dataclass(slots=True)
class Schedule:
    """A scheduler: its kind, lines, how often it was stepped, for how many steps it is made."""

    kind: str
    made: Instruction | None
    optimizer: int
    length: int | None = None
    steps: int = 0
    place: Place | None = None
    line: Instruction | None = None
    codes: list[CodeType] = field(default_factory=list)
    before: int = 0  # steps of the optimizer when it was made
    steps_between: int = 0  # steps of the optimizer between its first step and its last


class Schedules(Detector):
    """Follows learning rates (see NOTE [When a learning rate is wrong])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.rates: WeakIdDict[Rates] = WeakIdDict(outlived=OUTLIVED)
        self.schedules: WeakIdDict[Schedule] = WeakIdDict(outlived=OUTLIVED)
        self.of: dict[int, Rates] = {}  # ids of optimizers -> the last of such an id

    def begin(self) -> None:
        """Watch the making and the steps of schedulers."""
        module = self.engine.module.optim.lr_scheduler
        base = module.LRScheduler
        self.watch.after(base, "__init__", self._made)
        for kind in {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)}:
            if "step" in vars(kind):
                self.watch.after(kind, "step", self._stepped)

    def _made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        optimizer = args[1] if len(args) > 1 else kwargs.get("optimizer")
        one = Schedule(type(args[0]).__name__, maker_of(frame), id(optimizer))
        rates = self.rates.get(optimizer)
        one.before = 0 if rates is None else rates.steps
        self.schedules[args[0]] = one

    def _stepped(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        known, place = self.schedules.get(args[0]), place_of_frame(frame)
        if known is None or place is None or (known.made is not None and _is_at(frame, known.made)):
            return
        known.steps += 1
        known.place, known.line = place, maker_of(frame)
        state = vars(args[0])
        known.length = next((state[name] for name in LENGTHS if isinstance(state.get(name), int)), None)
        known.codes = [code for one in state.get("lr_lambdas", ()) if (code := getattr(one, "__code__", None))]

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note the rate of a step."""
        rates = self.rates.get(optimizer)
        if rates is None:
            made = self.watch.detectors[Constructions].optimizers.get(optimizer, (0, None))[1]
            rates = self.rates[optimizer] = Rates(name_of(optimizer), made)
            self.of[id(optimizer)] = rates
        lr = max((float(group.get("lr", 1.0)) for group in optimizer.param_groups), default=1.0)
        rates.steps += 1
        rates.most, rates.last, rates.place = max(rates.most, lr), lr, place
        rates.small += lr < SMALL * rates.most
        if lr > 0 and rates.fell_at is not None:
            self.session.drop("BL739", rates.fell_at)
            rates.fell_at = None
        rates.zeros = rates.zeros + 1 if lr == 0 and any(grad is not None for grad in grads) else 0
        if rates.zeros >= ZEROS and not rates.reported:
            rates.reported = True
            reported = self._report_zero(optimizer, rates, place)
            rates.fell_at = reported if rates.most > 0 else None

    def _schedule_of(self, optimizer: Optimizer) -> Schedule | None:
        known = [one for _, one in self.schedules.items() if one.optimizer == id(optimizer)]
        return known[-1] if known else None

    def _report_zero(self, optimizer: Optimizer, rates: Rates, place: Place | None) -> Place | None:
        schedule = self._schedule_of(optimizer)
        seen = f"{rates.name}.step() at {brief(place)} ran {rates.zeros} times in a row with a learning rate of 0."
        if schedule is None:
            made = None if rates.made is None else place_of(rates.made)
            self.report("learning-rate-zero", made or place, seen, cure="give the optimizer a learning rate above 0")
            return made or place
        made = None if schedule.made is None else place_of(schedule.made)
        divided = next((spot for code in schedule.codes if (spot := _floor_division(code)) is not None), None)
        evidence = [seen, f"{schedule.kind}, made at {brief(made)}, sets it."]
        where, cause, cure, corrected = made, None, None, None
        if schedule.codes:
            where = place_at(schedule.codes[0], schedule.codes[0].co_firstlineno)
            evidence.append(f"The function at {brief(where)} returned 0 for each of these steps.")
            cause = "the scheduler's factor for the learning rate is 0"
            cure = "start above 0: (step + 1) / warmup"
        if divided is not None:
            where = divided.place
            cause = "// is integer division: the factor is 0 until the steps reach the divisor"
            cure = "use / and count from one: (step + 1) / warmup"
            corrected = _true_division(divided)
        self.report("learning-rate-zero", where or place, *evidence, cause=cause, cure=cure, corrected=corrected)
        return where or place

    def end(self, problem: BaseException | None) -> None:
        """Judge what schedules did over the whole run."""
        if problem is not None:
            return
        for _, one in self.schedules.histories():
            rates = self.of.get(one.optimizer)
            if rates is None or rates.reported or rates.steps < LEAST:
                continue
            if one.steps == 0:
                self._look_at_unused(one, rates)
                continue
            steps = rates.steps - one.before
            if rates.last <= TINY * rates.most and 2 * rates.small >= steps and one.kind in COUNTING:
                self._report_vanished(one, rates)
            elif one.length is not None and one.length > 3 and abs(steps - one.length) <= 1 and 3 * one.steps <= steps:
                self._report_length(one, rates, f"the optimizer made {steps} steps, the scheduler {one.steps}", False)
            elif one.kind == "CosineAnnealingLR" and one.length and one.steps >= 3 * one.length and one.steps == steps:
                seen = f"the scheduler made {one.steps} steps, so the learning rate falls and rises repeatedly"
                self._report_length(one, rates, seen, True)

    def _look_at_unused(self, one: Schedule, rates: Rates) -> None:
        """Report a scheduler whose variable the program steps nowhere, also not where this run did not come."""
        spot = None if one.made is None else spot_of(one.made)
        statement = None if spot is None else spot.statement
        if not isinstance(statement, ast.Assign) or statement.value is not spot.expression:
            return
        name = spelled(statement.targets[0])
        reads = [node for node in ast.walk(spot.tree) if spelled(node) == name and isinstance(node.ctx, ast.Load)]
        if name is not None and not reads:
            self.report(
                "scheduler-never-steps",
                spot.place,
                f"{rates.name} made {rates.steps - one.before} steps after {name}, a {one.kind}, was made; "
                f"{name} is never used.",
            )

    def _report_vanished(self, one: Schedule, rates: Rates) -> None:
        each = one.steps >= rates.steps - one.before - 1
        often = "as often as the optimizer: after every batch" if each else f"{one.steps} times"
        nested = one.line is not None and len(list(spot_of(one.line).around(ast.For))) > 1
        cure = "make the schedule longer: use the real number of training steps"
        if each:
            moved = (
                "move scheduler.step() out of the loop over batches"
                if nested
                else "call scheduler.step() once per epoch"
            )
            cure = f"{moved}, if the schedule counts epochs; or make it longer, if it counts batches"
        self.report(
            "learning-rate-vanishes",
            one.place,
            f"{rates.name}'s learning rate fell from {short(rates.most)} to {short(rates.last)}; {rates.small} of its "
            f"{rates.steps} steps had less than a hundredth of the initial rate.",
            f"scheduler.step() at {brief(one.place)} ran {often}; the {one.kind} was made at "
            f"{brief_at(one.made) if one.made else 'an unknown line'}.",
            cause="the schedule counts epochs, but it is stepped for each batch" if each else None,
            cure=cure,
        )

    def _report_length(self, one: Schedule, rates: Rates, seen: str, repeats: bool) -> None:
        made = brief_at(one.made) if one.made is not None else "an unknown line"
        self.report(
            "schedule-of-another-length",
            one.place,
            f"The {one.kind} made at {made} is for {one.length} steps; {seen}.",
            f"The learning rate ended at {short(rates.last)}; its largest value was {short(rates.most)}.",
            cause="the schedule counts epochs, but it is stepped for each batch"
            if repeats
            else "the schedule counts batches, but it is stepped once per epoch",
            cure="call scheduler.step() once per epoch, or give it the total number of batches"
            if repeats
            else "call scheduler.step() after each optimizer.step()",
        )


def _is_at(frame: FrameType, made: Instruction) -> bool:
    line = maker_of(frame)
    return line == made


def _floor_division(code: CodeType) -> Spot | None:
    """Return the one `//` in a function."""
    lines = tuple(linecache.getlines(code.co_filename))
    tree = parsed(lines)
    own = [node for node in ast.walk(tree or ast.Module(body=[])) if _is_of(node, code)]
    found = [node for one in own for node in ast.walk(one) if _divides(node)]
    return Spot(code.co_filename, code.co_name, span(found[0])) if len(found) == 1 else None


def _is_of(node: ast.AST, code: CodeType) -> bool:
    functions = (ast.FunctionDef, ast.Lambda)
    return isinstance(node, functions) and node.lineno == code.co_firstlineno


def _divides(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)


def _true_division(spot: Spot) -> str | None:
    """`return step // warmup` → `return step / warmup`."""
    node = spot.expression
    if not isinstance(node, ast.BinOp) or node.lineno != node.end_lineno:
        return None
    left, right = node.left, node.right
    between = spot.lines[node.lineno - 1].encode()[left.end_col_offset : right.col_offset]
    if between.strip() != b"//":
        return None
    return spot.edited((node.lineno, left.end_col_offset, right.col_offset, " / "))
