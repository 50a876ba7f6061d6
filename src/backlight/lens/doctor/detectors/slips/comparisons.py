"""Comparisons of predictions that mean something else: (n, 1) with (n,), scores with 0.5, probabilities with 0.

NOTE [A comparison that broadcasts]
(n, 1) against (n,) makes a table of n × n. It is a mistake if one side was computed from parameters and the other from
none, and the column was not made for it by unsqueeze or an index: then each prediction is compared with each target.
Differences in a loss are looked at in losses.py.

NOTE [A threshold of another scale]
Scores that binary_cross_entropy_with_logits was trained with are compared with 0.5 while they lie outside of 0 to 1,
or what a sigmoid returned is compared with 0, which it never reaches.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector, numbers_of
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

ORDERS = {"gt", "ge", "lt", "le"}
COLUMNS = {"unsqueeze", "getitem", "__getitem__", "index", "expand", "None"}
KEEPS = {"squeeze", "view", "reshape", "flatten", "cpu", "detach", "to", "float", "getitem", "__getitem__", "select"}
LOGITS = "binary_cross_entropy_with_logits"
HALF = 0.5


class Comparisons(Detector):
    """Finds them (see NOTE [A comparison that broadcasts], NOTE [A threshold of another scale])."""

    calls = frozenset({"eq", "ne", "sigmoid", LOGITS, *ORDERS, *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.probabilities: WeakIdDict[Instruction] = WeakIdDict()  # what sigmoid returned, and views of it
        self.scored: dict[int, Instruction] = {}  # leaves behind scores -> the line of their loss
        self.done: set[Instruction] = set()

    def called(self, call: Call) -> None:
        """Look at a comparison, a difference, a loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        line = Instruction(call.code, call.lasti)
        if name == "sigmoid":
            self.probabilities[out] = line
        elif name in KEEPS:
            if inputs[0] in self.probabilities and out is not inputs[0]:
                self.probabilities[out] = self.probabilities.get(inputs[0])
        elif name == LOGITS:
            if is_computed(inputs[0]):
                self.scored[self.watch.flow.of(inputs[0]).leaves] = line
        elif name in ORDERS:
            self._look_at_threshold(call, line, inputs)
        elif name in ("eq", "ne") and len(inputs) == 2:
            table = self._table(*inputs)
            if table is not None:
                self._report_table(line, table)

    def _table(self, left: Tensor, right: Tensor) -> str | None:
        """Return the two shapes, if predictions and targets broadcast to a table."""
        flow = self.watch.flow
        for column, row in ((left, right), (right, left)):
            if row.dim() != 1 or column.dim() != 2 or column.shape[1] != 1:
                continue
            if row.shape[0] != column.shape[0] or row.shape[0] < 2:
                continue
            one, other = flow.of(column), flow.of(row)
            predicted = one if one.leaves else other
            if bool(one.leaves) != bool(other.leaves) and (predicted is other or one.name not in COLUMNS):
                return f"{list(left.shape)} against {list(right.shape)}"
        return None

    def _report_table(self, line: Instruction, table: str) -> None:
        if line not in self.done:
            self.done.add(line)
            self.report(
                "comparison-broadcasts",
                place_of(line),
                f"The comparison at {brief_at(line)} is of {table}: it compares all pairs.",
            )

    def _look_at_threshold(self, call: Call, line: Instruction, inputs: list) -> None:
        number = next(iter(numbers_of(call)), None)
        if number is None or line in self.done or len(inputs) != 1:
            return
        given = inputs[0]
        if number == 0 and given in self.probabilities:
            made = self.probabilities.get(given)
            self.done.add(line)
            self.report(
                "threshold-of-another-scale",
                place_of(line),
                f"The output of sigmoid at {brief_at(made)} is compared with 0 at {brief_at(line)}; it is always "
                f"above 0.",
                title="probabilities are compared with 0",
                cure="Compare probabilities with 0.5, or the scores with 0.",
            )
        loss = self.scored.get(self.watch.flow.of(given).leaves) if number == HALF else None
        values = self.values(given) if loss is not None and given not in self.probabilities else None
        if values is not None and values.size and (values.min() < 0 or values.max() > 1):
            self.done.add(line)
            self.report(
                "threshold-of-another-scale",
                place_of(line),
                f"Values from {short(float(values.min()))} to {short(float(values.max()))} are compared with 0.5 at "
                f"{brief_at(line)}: scores, not probabilities.",
                f"The same parameters are trained with {LOGITS} at {brief_at(loss)}, which applies a sigmoid itself.",
            )
