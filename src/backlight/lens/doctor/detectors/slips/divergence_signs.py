"""Terms of a loss with the wrong sign: a divergence that is maximised, a policy's entropy that is minimised.

NOTE [A term that falls without a bound]
The divergence of a normal distribution is -(1 + log σ² - μ² - σ²) / 2, and its minus is easily lost. What a loss adds
up is followed as terms with signs. x - exp(x), and log(v) - v, have no lower bound: a loss with such a
sum, times what is positive, falls the further the farther the distribution is from the normal one. The sum itself is
followed through reductions, signs and further sums to the backward.

NOTE [A policy's entropy]
What entropy() of a distribution returns is followed in the same way. With a positive factor in what is minimised the
policy becomes sure of itself. It is a policy if the program samples, and the loss has a log-probability that was taken
from it: where labels are scored, or a probability is only printed, a small entropy may be what is wanted.
"""

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector, numbers_of
from backlight.lens.doctor.graph import Optimizer, Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SUMS = {"add", "sub", "rsub"}
KEEPS = {"sum", "mean", "view", "reshape", "squeeze", "flatten", "stack", "cat"}
SCALES = {"mul", "div", "true_divide"}
MOST, TWICE, WALKS = 8, 2, 10


@dataclass(slots=True)
class Policy:
    """A distribution, and the nodes of the log-probabilities that were taken from it."""

    scores: set[int] = field(default_factory=set)  # sequence numbers


@dataclass(frozen=True, slots=True)
class Found:
    """A sum without a bound, or an entropy.

    Args:
        line: the sum's, or the one that called entropy().
        sign: the one that it has by now.
        policy: whose entropy it is.
        added: the line that added it to something else.
    """

    line: Instruction
    sign: int
    policy: Policy | None = None
    added: Instruction | None = None

    def times(self, sign: int, added: Instruction | None = None) -> "Found":
        """Return it with another sign, added to something."""
        return Found(self.line, self.sign * sign, self.policy, self.added or added)


Term = tuple  # (node's number, output's), ("exp", term), ("log", term), ("mul", number, term), ("pow", number, term)


class DivergenceSigns(Detector):
    """Finds them (see NOTE [A term that falls without a bound])."""

    calls = frozenset({*SUMS, *KEEPS, *SCALES, "exp", "log", "pow", "square", "neg"})

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[Term] = WeakIdDict()  # what exp, log, a power or a multiple is of
        self.sums: WeakIdDict[frozenset[tuple[Term, int]]] = WeakIdDict()
        self.found: WeakIdDict[Found] = WeakIdDict()  # tensors with such a sum in them
        self.times: dict[Instruction, int] = {}
        self.policies: WeakIdDict[Policy] = WeakIdDict()  # distributions
        self.drawn = False  # whether the program samples
        self.walks = 0

    def begin(self) -> None:
        """Watch distributions."""
        self.after_methods_of_distributions(sample=self._drawn, log_prob=self._scored, entropy=self._entropy)

    def _policy(self, distribution: Any) -> Policy:
        known = self.policies.get(distribution)
        if known is None:
            known = self.policies[distribution] = Policy()
        return known

    def _drawn(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        self.drawn = True

    def _scored(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if self.engine.is_tensor(out) and is_computed(out):
            self._policy(args[0]).scores.add(sequence_of(self.engine.node_of(out)[0]))

    def _entropy(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        user = next(users_frames(frame), None)
        if user is not None and self.engine.is_tensor(out) and is_computed(out):
            self.found[out] = Found(Instruction(user.f_code, user.f_lasti), 1, self._policy(args[0]))

    def called(self, call: Call) -> None:
        """Follow terms."""
        name, out = self.watch.name, call.out
        if not self.watch.inputs or not self.engine.is_tensor(out) or not is_computed(out):
            return
        if name not in SUMS and any(out is one for one in self.watch.inputs):
            return
        number = next((one for one in call.args[1:] if isinstance(one, (int, float))), None)
        source = self.watch.inputs[0]
        if name in ("exp", "log"):
            self.made[out] = name, self._term(source)
        elif name in ("pow", "square"):
            self.made[out] = "pow", 2 if number is None else number, self._term(source)
        elif name in SUMS:
            self._add(call, out)
        elif source in self.found and (len(self.watch.inputs) == 1 or name in ("stack", "cat")):
            self.found[out] = self.found.get(source).times(_sign_of(name, call))
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
            self.found[out] = self.found.get(known).times(1 if factor > 0 else -1)

    def _has(self, loss: Tensor, numbers: set[int]) -> bool:
        """Return whether a loss was computed by one of some nodes; looked for a few times only."""
        self.walks += 1
        nodes = nodes_behind([self.engine.node_of(loss)[0]]) if self.walks <= WALKS else ()
        return any(type(node).__name__ != "AccumulateGrad" and sequence_of(node) in numbers for node in nodes)

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
                alone = all(other in self.found for other in self.watch.inputs)
                self.found[out] = self.found.get(one).times(sign, None if alone else Instruction(call.code, call.lasti))
            known = self.sums.get(one) or {(self._term(one), 1)}
            terms |= {(term, own * sign) for term, own in known}
        if out in self.found or len(terms) > MOST:
            return
        self.sums[out] = frozenset(terms)
        sign = _has_no_bound(terms)
        if sign:
            self.found[out] = Found(Instruction(call.code, call.lasti), sign)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look at what is minimised."""
        found = self.found.get(tensor)
        if found is None or found.sign < 0 or any(_maximises(one) for one in self.watch.optimizers.alive()):
            return
        line, policy = found.line, found.policy
        if policy is not None and not (self.drawn and policy.scores and self._has(tensor, policy.scores)):
            return
        self.times[line] = self.times.get(line, 0) + 1
        if self.times[line] != TWICE:
            return
        seen = f"The loss of backward() at {brief(place)} adds what {brief_at(line)} returned with a positive factor."
        if policy is not None:
            self.report("entropy-minimised", place_of(found.added or line), seen)
        else:
            self.report(
                "divergence-maximised",
                place_of(line),
                seen,
                "That sum is x - exp(x) plus further terms: it has no lower bound.",
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
    numbers = numbers_of(call)
    return -1 if name in SCALES and numbers and numbers[0] < 0 else 1
