"""A divergence from a normal distribution that is maximised: 1 + log σ² - μ² - σ² without its minus.

NOTE [A term that falls without a bound]
What a loss adds up is followed as terms with signs. x - exp(x), and log(v) - v, have no lower bound: a loss with such a
sum, times what is positive, falls the further the farther the distribution is from the normal one. The sum itself is
followed through reductions, signs and further sums to the backward.
"""

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Optimizer, Tensor, is_computed, sequence_of
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SUMS = {"add", "sub", "rsub"}
KEEPS = {"sum", "mean", "view", "reshape", "squeeze", "flatten"}
SCALES = {"mul", "div", "true_divide"}
MOST, TWICE = 8, 2
Term = tuple  # (node's number, output's), ("exp", term), ("log", term), ("mul", number, term), ("pow", number, term)


class DivergenceSigns(Detector):
    """Finds them (see NOTE [A term that falls without a bound])."""

    calls = frozenset({*SUMS, *KEEPS, *SCALES, "exp", "log", "pow", "square", "neg"})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[Term] = WeakIdDict()  # what exp, log, a power or a multiple is of
        self.sums: WeakIdDict[frozenset[tuple[Term, int]]] = WeakIdDict()
        self.found: WeakIdDict[tuple[Instruction, int]] = WeakIdDict()  # tensors with such a sum -> its line, its sign
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Follow terms."""
        name, out = self.watch.name, call.out
        if not self.engine.is_tensor(out) or not is_computed(out) or any(out is one for one in self.watch.inputs):
            return
        number = next((one for one in call.args[1:] if isinstance(one, (int, float))), None)
        source = self.watch.inputs[0]
        if name in ("exp", "log"):
            self.made[out] = name, self._term(source)
        elif name in ("pow", "square"):
            self.made[out] = "pow", 2 if number is None else number, self._term(source)
        elif name in SUMS:
            self._add(call, out)
        elif source in self.found and len(self.watch.inputs) == 1:
            line, sign = self.found.get(source)
            self.found[out] = line, sign * _sign_of(name, call)
        elif name == "mul":
            self._multiply(call, out)

    def _multiply(self, call: Call, out: Tensor) -> None:
        """Note a multiple, and follow a sum times a constant tensor that is positive."""
        inputs = self.watch.inputs
        number = next((one for one in call.args if isinstance(one, (int, float))), None)
        if len(inputs) == 1 and number is not None:
            self.made[out] = "mul", number, self._term(inputs[0])
            return
        known = next((one for one in inputs if one in self.found), None)
        other = next((one for one in inputs if one is not known), None)
        factor = None if known is None or other is None or other.requires_grad else self.number(other)
        if factor:
            line, sign = self.found.get(known)
            self.found[out] = line, sign if factor > 0 else -sign

    def _term(self, tensor: Tensor) -> Term:
        known = self.made.get(tensor)
        if known is not None:
            return known
        if not is_computed(tensor):
            return "leaf", id(tensor)
        node, number = self.engine.node_of(tensor)
        return sequence_of(node), number

    def _add(self, call: Call, out: Tensor) -> None:
        terms: set[tuple[Term, int]] = set()
        signs = {"sub": (1, -1), "rsub": (-1, 1)}.get(self.watch.name, (1, 1))
        for one, sign in zip(call.args, signs):
            if not self.engine.is_tensor(one) or not one.requires_grad:
                continue
            if one in self.found:
                line, own = self.found.get(one)
                self.found[out] = line, own * sign
            known = self.sums.get(one) or {(self._term(one), 1)}
            terms |= {(term, own * sign) for term, own in known}
        if out in self.found or len(terms) > MOST:
            return
        self.sums[out] = frozenset(terms)
        sign = _has_no_bound(terms)
        if sign:
            self.found[out] = Instruction(call.code, call.lasti), sign

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look at what is minimised."""
        line, sign = self.found.get(tensor, (None, 0))
        if line is None or sign < 0 or any(_maximises(one) for one in self.watch.optimizers.alive()):
            return
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] == TWICE:
            self.report(
                "divergence-maximised",
                place_of(line),
                f"The loss of backward() at {brief(place)} has the sum at {brief_at(line)} with a positive factor.",
                "That sum is x - exp(x) and what is added to it: it has no lower bound.",
            )


def _has_no_bound(terms: set[tuple[Term, int]]) -> int:
    """Return 1 if a sum has x - exp(x) or log(v) - v, -1 for the same with the signs changed, 0 for neither."""
    for term, sign in terms:
        kind = term[0] if isinstance(term[0], str) else ""
        if kind == "exp" and (term[1], -sign) in terms:
            return -sign
        if kind == "log" and (term[1], -sign) in terms:
            return sign
    return 0


def _maximises(optimizer: Optimizer) -> bool:
    return any(group.get("maximize", False) for group in optimizer.param_groups)


def _sign_of(name: str, call: Call) -> int:
    if name == "neg":
        return -1
    numbers = [one for one in call.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
    return -1 if name in SCALES and numbers and numbers[0] < 0 else 1
