"""What losses are given: targets that are no probabilities or signs, inputs that are no log-probabilities, a swap."""

import numpy as np

from backlight.dispatch.observers import Call
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.data.reach import Reach
from backlight.lens.doctor.detectors.slips.softmax_dims import SoftmaxDims
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Node, Tensor, is_computed, nodes_behind
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_node
from backlight.lens.doctor.source import spot_of

BINARY = {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
SIGNED = {"soft_margin_loss": 1, "hinge_embedding_loss": 1, "margin_ranking_loss": 2, "cosine_embedding_loss": 2}
LABELLED = {*BINARY, "cross_entropy", "nll_loss"}
SQUARES = {"mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"}
CALLS, OFF = 3, 0.1
VIEWS = ("Squeeze", "Unsqueeze", "View", "Reshape", "Expand", "Clone")


class LossArguments(Detector):
    """Looks at what losses are given."""

    calls = frozenset({*LABELLED, *SIGNED, *SQUARES, "kl_div", "poisson_nll_loss", "ctc_loss"})

    def __init__(self, watch):
        super().__init__(watch)
        self.no_logs: dict[Instruction, int] = {}  # lines of nll_loss -> calls with what is no log-probability
        self.done: set[tuple] = set()

    def called(self, call: Call) -> None:
        """Look at a loss."""
        name, args = self.watch.name, call.args
        if not args or not self.engine.is_tensor(args[0]):
            return
        place = SIGNED.get(name, 1)
        target = args[place] if len(args) > place else call.kwargs.get("target")
        if not self.engine.is_tensor(target):
            return
        if name in LABELLED:
            self._look_at_swap(call, name, args[0], target)
        if name in BINARY:
            self._look_at_binary(call, name, target)
        elif name in SIGNED:
            self._look_at_signs(call, name, target)
        elif name == "nll_loss":
            self._look_at_logs(call, args[0])
        elif name == "kl_div":
            self._look_at_divergence(call, args[0], target)
        elif name == "ctc_loss":
            self._look_at_ctc(call, args[0])
        elif name == "poisson_nll_loss":
            self._look_at_rates(call, args[0])
        elif name in SQUARES:
            self._look_at_bootstrap(call, name, args[0], target)
            self._look_at_bootstrap(call, name, target, args[0])

    def _report_once(self, slug: str, line: Instruction, *evidence: str, **words) -> None:
        if (slug, line) not in self.done:
            self.done.add((slug, line))
            self.report(slug, place_of(line), *evidence, **words)

    def _look_at_swap(self, call: Call, name: str, scores: Tensor, target: Tensor) -> None:
        if scores.requires_grad or not target.requires_grad:
            return
        spot = spot_of(call)
        corrected = None
        arguments = spot.call.args if spot.call is not None else []
        if len(arguments) >= 2:
            one, two = arguments[:2]
            corrected = spot.edited(replace(one, spot.text(two)), replace(two, spot.text(one)))
        self._report_once(
            "loss-arguments-swapped",
            Instruction(call.code, call.lasti),
            f"{name} was given an input that does not require grad, and a target that does.",
            title=f"{name} gets the target first and the model's output second",
            corrected=corrected,
        )

    def _look_at_binary(self, call: Call, name: str, target: Tensor) -> None:
        values = self.values(target)
        if values is None or not values.size or target.requires_grad:
            return
        least, most = float(values.min()), float(values.max())
        if least >= 0 and most <= 1:
            return
        cure = "map them to 0 and 1: (target + 1) / 2" if least == -1 and most == 1 else None
        if least == 1 and most == 2:
            cure = "count them from 0: target - 1"
        self._report_once(
            "target-not-probability",
            Instruction(call.code, call.lasti),
            f"{name} was given targets from {short(least)} to {short(most)}; it expects 0 to 1.",
            "Outside this range the loss has no lower bound: the larger the scores, the smaller the loss.",
            title=f"targets of {name} are not between 0 and 1",
            cure=cure,
        )

    def _look_at_signs(self, call: Call, name: str, target: Tensor) -> None:
        values = self.values(target)
        if values is None or not values.size or np.all(np.abs(values) == 1):
            return
        found = sorted({float(one) for one in np.unique(values)[:3]})
        cure = "map them: 2 * target - 1" if found == [0, 1] else None
        self._report_once(
            "target-not-sign",
            Instruction(call.code, call.lasti),
            f"{name} was given targets such as {', '.join(map(short, found))}; it expects 1 and -1.",
            title=f"targets of {name} are not 1 and -1",
            cure=cure,
        )

    def _look_at_logs(self, call: Call, scores: Tensor) -> None:
        if scores in self.watch.detectors[SoftmaxDims].normalised:
            return
        wanted = 1 if scores.dim() > 1 else 0
        values = self.values(scores)
        if values is None or not scores.requires_grad or not values.size or call.kwargs.get("reduction") == "none":
            return
        with silent_floats():
            sums = np.log(np.exp(values.astype(np.float64)).sum(axis=wanted))
        if not np.all(np.isfinite(sums)) or np.min(np.abs(sums)) <= OFF or (values.min() >= 0 and values.max() <= 1):
            return
        self._count_no_logs(call, "nll_loss", values, sums)

    def _look_at_ctc(self, call: Call, scores: Tensor) -> None:
        """Report scores that ctc_loss takes for log-probabilities: their exponentials do not add up to 1."""
        values = self.values(scores)
        if values is None or not is_computed(scores) or values.ndim < 2 or not values.size:
            return
        with silent_floats():
            sums = np.log(np.exp(values.astype(np.float64)).sum(axis=-1))
        if not np.all(np.isfinite(sums)) or np.median(np.abs(sums)) <= OFF:
            return
        self._count_no_logs(call, "ctc_loss", values, sums, cure="give ctc_loss scores.log_softmax(-1)")

    def _count_no_logs(self, call: Call, loss: str, values: np.ndarray, sums: np.ndarray, **words: str) -> None:
        """Report a line once it has given a loss such values some times; `sums`: logarithms of their sums."""
        line = Instruction(call.code, call.lasti)
        self.no_logs[line] = self.no_logs.get(line, 0) + 1
        if self.no_logs[line] == CALLS:
            self._report_once(
                "not-log-probabilities",
                line,
                f"{loss} was given values from {short(float(values.min()))} to {short(float(values.max()))}; their "
                f"exponentials add up to {short(float(np.exp(sums.flat[0])))} over the classes, not to 1.",
                title=f"{loss} of values that are not log-probabilities",
                **words,
            )

    def _look_at_divergence(self, call: Call, given: Tensor, target: Tensor) -> None:
        inputs, targets = self.values(given), self.values(target)
        log_target = call.kwargs.get("log_target", call.args[5] if len(call.args) > 5 else False)
        if inputs is None or targets is None or not inputs.size:
            return
        line = Instruction(call.code, call.lasti)
        if inputs.min() >= 0 and inputs.max() > 0:
            self._report_once(
                "not-log-probabilities",
                line,
                f"kl_div was given an input from {short(float(inputs.min()))} to {short(float(inputs.max()))}: "
                "probabilities. It expects their logarithms, which are never above 0.",
                title="kl_div of values that are not log-probabilities",
                cure="give kl_div log-probabilities first: log_softmax instead of softmax",
            )
        elif not log_target and targets.min() < 0:
            self._report_once(
                "not-log-probabilities",
                line,
                f"kl_div was given a target from {short(float(targets.min()))} to {short(float(targets.max()))}, "
                "without "
                "log_target=True.",
                title="kl_div of a target that is a logarithm",
                cause="the target is log-probabilities, and log_target=True is missing",
                cure="pass log_target=True, or give it probabilities: softmax instead of log_softmax",
            )

    def _look_at_rates(self, call: Call, given: Tensor) -> None:
        """Report a rate that poisson_nll_loss takes for a logarithm, and the other way round."""
        is_log = call.kwargs.get("log_input", call.args[2] if len(call.args) > 2 else True)
        values, bounded = self.values(given), self.watch.detectors[Reach].positive.get(given)
        if values is None or not values.size or not is_computed(given):
            return
        line = Instruction(call.code, call.lasti)
        if is_log and bounded is not None:
            self._report_once(
                "rate-taken-for-log",
                line,
                f"poisson_nll_loss was given the output of {bounded.name} at {brief_at(bounded.line)}, which is never "
                f"below 0: a rate. With log_input=True, the default, it expects the logarithm of the rate.",
                title="poisson_nll_loss gets a rate where it expects a logarithm",
                cure=f"Pass log_input=False, or remove {bounded.name} and let the model return the logarithm.",
            )
        elif not is_log and values.min() < 0:
            self._report_once(
                "rate-taken-for-log",
                line,
                f"poisson_nll_loss was given values from {short(float(values.min()))} to {short(float(values.max()))}, "
                "with log_input=False: a rate is never below 0.",
                title="poisson_nll_loss gets the logarithm of a rate where it expects the rate",
                cause="The model returns positive and negative numbers: only the logarithm of a rate can be negative.",
                cure="Remove log_input=False, or end the model in softplus or exp.",
            )

    def _look_at_bootstrap(self, call: Call, name: str, output: Tensor, target: Tensor) -> None:
        """Report a target of constant + number · the model's own output, with a graph."""
        if not (is_computed(output) and is_computed(target)):
            return
        flow = self.watch.flow
        known, other = flow.known(target), flow.known(output)
        if known is None or other is None or known.leaves != other.leaves or not known.leaves:
            return
        found = _sum_of_constant(target.grad_fn)
        if found is None or _sum_of_constant(output.grad_fn) is not None:  # both: two views of a residual model
            return
        node, scaled = found
        made = place_of_node(self.engine, node)
        if made is None:
            return
        first = _forward_line(self.engine, scaled, made)
        line = Instruction(call.code, call.lasti)
        if ("bootstrapped-target", line) in self.done:
            return
        self.done.add(("bootstrapped-target", line))
        came = "" if first is None else f", from what {brief(first)} computed"
        self.report(
            "bootstrapped-target",
            made,
            f"The target of {name} at {brief_at(line)} is a constant plus a multiple of the model's own "
            "output, made at "
            f"{brief(made)}{came}; it requires grad.",
            "The output and the target depend on the same parameters: the gradient also moves the target.",
        )


def _sum_of_constant(node: Node | None) -> tuple[Node, Node] | None:
    """Return the sum in constant + number · something that a graph ends in, views apart, and the product."""
    while node is not None and node.name().startswith(VIEWS) and len(node.next_functions) == 1:
        node = node.next_functions[0][0]
    scaled = _beside_constant(node, "Add")
    return None if _beside_constant(scaled, "Mul") is None else (node, scaled)


def _beside_constant(node: Node | None, name: str) -> Node | None:
    """Return what a node of that name combines with a constant; None if that is not what it does."""
    if node is None or not node.name().startswith(name):
        return None
    inner = [one for one, _ in node.next_functions if one is not None]
    return inner[0] if len(inner) == 1 else None


def _forward_line(engine, node, made):
    """Return the line outside of forward that the values behind a node come from."""
    for inner in nodes_behind([node]):
        place = place_of_node(engine, inner)
        if place is not None and place.function != "forward" and place.line != made.line:
            return place
    return None
