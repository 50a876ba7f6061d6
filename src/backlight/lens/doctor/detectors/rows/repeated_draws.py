"""Random numbers that are the same each time they are drawn: a generator that is made, or seeded, anew at each call.

NOTE [The same draw each time]
A line draws the very same numbers whenever it runs, five steps in a row, and they go with rows that change: noise or a
mask of the shape of a batch, combined with it number by number; or indices that pick a batch out of more rows, drawn
anew in each step. Numbers that a program keeps on purpose do neither: random features and projections enter products
of matrices, evaluation runs without gradients, rows that are made by a seed of their own differ from row to row, and
an order of all rows may be the same in each epoch. L-BFGS wants a loss that stays the same, and is left alone.
Arrays of NumPy are looked at if the function that makes a tensor of them makes a generator, too.
"""

import ast
import math
from dataclasses import dataclass, field
from types import FrameType

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector, checksum_of
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Optimizer, Tensor, is_parameter
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, users_frames
from backlight.lens.doctor.source import spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

DRAWS = {"randn", "randn_like", "rand", "rand_like", "randint", "randint_like", "normal", "bernoulli", "uniform"}
DRAWS |= {"randperm", "exponential"}
INDICES = {"randint", "randperm"}
ARRAYS = {"from_numpy", "tensor", "as_tensor"}
SAME = {"lt", "gt", "le", "ge", "float", "to", "mul", "div", "sub", "add", "neg", "double", "bool", "long", "unsqueeze"}
SAME |= {"getitem", "__getitem__", "slice", "logical_not", "rsub", "pow", "sqrt", "view", "reshape", "expand"}
MIXES = {"add", "sub", "mul", "div", "where", "masked_fill", "lerp"}
CHOOSES = {"getitem", "__getitem__", "index_select", "index"}
SEEDS = {"manual_seed", "seed", "default_rng", "RandomState"}
LEAST, STEPS, DATA, LINES = 8, 5, 3, 200


@dataclass(slots=True)
class Drawn:
    """What one line draws.

    Args:
        checksum, shape: of the numbers.
        varies: whether it drew others, too.
        times, draws: how often it drew, in all and since the last backward.
        data: checksums of the rows that they were combined with.
        picks: how many rows of how many they picked.
        used: whether they were used since the last backward.
        steps: in how many backwards.
        most: how often it drew before one backward.
    """

    line: Instruction
    checksum: int
    shape: tuple[int, ...]
    varies: bool = False
    times: int = 0
    draws: int = 0
    data: set[int] = field(default_factory=set)
    picks: tuple[int, int] | None = None
    used: bool = False
    steps: int = 0
    most: int = 0


class RepeatedDraws(Detector):
    """Finds them (see NOTE [The same draw each time])."""

    calls = frozenset({*DRAWS, *ARRAYS, *SAME, *MIXES, *CHOOSES})

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[Instruction, Drawn] = {}
        self.drawn: WeakIdDict[Drawn] = WeakIdDict()  # also what is computed of the numbers alone
        self.seeds: dict[Instruction, bool] = {}  # lines that make tensors of arrays -> whether they seed, too

    def begin(self) -> None:
        """Watch PyTorch's from_numpy, which makes no event."""
        if self.engine.name == "torch":
            self.watch.after(self.engine.module, "from_numpy", self._of_array)

    def _of_array(self, frame: FrameType, out: Tensor, args: tuple, kwargs: dict) -> None:
        user = next(users_frames(frame), None)
        if user is not None:
            self._draw(Instruction(user.f_code, user.f_lasti), "from_numpy", out)

    def called(self, call: Call) -> None:
        """Note what is drawn, and what it goes with."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not self.engine.is_tensor(out):
            return
        if name in DRAWS or name in ARRAYS:
            self._draw(Instruction(call.code, call.lasti), name, out)
            return
        if not len(self.drawn):
            return
        found = [(one, known) for one in inputs if (known := self.drawn.get(one)) is not None]
        if not found:
            return
        tensor, known = max(found, key=lambda pair: pair[1].times)  # what was drawn once is data
        others = [one for one in inputs if self.drawn.get(one) is not known]
        if not others:
            if name in SAME and not out.requires_grad:
                self.drawn[out] = known
        elif self.engine.module.is_grad_enabled():
            self._goes_with(name, known, tensor, others, out)

    def _draw(self, line: Instruction, name: str, out: Tensor) -> None:
        known = self.lines.get(line)
        if known is None:
            if out.numel() < LEAST or len(self.lines) >= LINES or (name in ARRAYS and not self._seeds(line)):
                return
        elif known.varies:
            return
        values = self.values(out)
        if values is None:
            return
        checksum, shape = checksum_of(values), tuple(out.shape)
        if known is None:
            known = self.lines[line] = Drawn(line, checksum, shape)
        elif known.checksum != checksum or known.shape != shape:
            known.varies = True
            return
        known.draws += 1
        known.times += 1
        self.drawn[out] = known

    def _seeds(self, line: Instruction) -> bool:
        """Return whether the function around a line makes or seeds a generator."""
        if line not in self.seeds:
            scope = spot_of(line).scope
            self.seeds[line] = isinstance(scope, ast.FunctionDef) and _seeding(scope) is not None
        return self.seeds[line]

    def _goes_with(self, name: str, known: Drawn, tensor: Tensor, others: list, out: Tensor) -> None:
        rows = others[0]
        if name in CHOOSES and rows.dim() and tensor.dim() == 1 and not tensor.dtype.is_floating_point:
            if tensor.numel() < rows.shape[0] and not is_parameter(rows):
                known.picks, known.used = (tensor.numel(), rows.shape[0]), True
        elif name in MIXES and tensor.dim() and tensor.dim() == rows.dim() and tensor.shape[0] == rows.shape[0]:
            if rows.shape == out.shape and not is_parameter(rows):
                known.used = True
                values = self.values(rows) if len(known.data) < DATA else None
                if values is not None:
                    known.data.add(checksum_of(values))

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over: count the lines whose numbers it used."""
        for known in self.lines.values():
            if known.varies or not known.draws:
                continue
            known.steps = known.steps + 1 if known.used else 0
            known.most = max(known.most, known.draws)
            whole = known.picks is not None or len(known.data) >= DATA
            if known.steps >= STEPS and whole:
                known.varies = True
                self._report(known)
            known.draws, known.used = 0, False

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Let L-BFGS alone."""
        if type(optimizer).__name__ == "LBFGS":
            for known in self.lines.values():
                known.varies = True

    def _report(self, known: Drawn) -> None:
        spot = spot_of(known.line)
        seeding = None if spot.tree is None else _seeding(spot.scope)
        place = place_of(known.line) if seeding is None else spot.at(seeding).place
        numbers = math.prod(known.shape)
        often = "" if known.most < 2 else f", {known.most} times in a step"
        what = "go with rows that differ from step to step"
        if known.picks is not None:
            what = f"pick {counted(known.picks[0], 'row')} of {known.picks[1]}, which are always the same"
        seeded = "" if seeding is None else f" {brief(place)} gives the generator its seed again each time."
        self.report(
            "seed-set-in-each-step",
            place,
            f"{brief_at(known.line)} drew the same {numbers} numbers in each of the last {known.steps} steps{often}; "
            f"they {what}.{seeded}",
            title="a generator begins anew each time: it draws the same numbers again and again",
            cause="The generator is made, or gets its seed, in a function that runs in each step.",
            cure="Make the generator once, before the loop or in __init__, and let it go on from draw to draw.",
        )


def _seeding(scope: ast.AST) -> ast.AST | None:
    """Return the call by which a function makes or seeds a generator."""
    for one in ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ():
        if not isinstance(one, ast.Call):
            continue
        name = one.func.attr if isinstance(one.func, ast.Attribute) else spelled(one.func)
        if name in SEEDS and (one.args or one.keywords):
            return one
    return None
