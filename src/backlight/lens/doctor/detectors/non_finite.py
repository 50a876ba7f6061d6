"""Where the first NaN or infinity comes from, forward and backward.

NOTE [Which NaN is reported]
An op that returns NaN or an infinity though none went in has made it. Many are no mistake: masks of -inf, an inf that
vanishes in exp, a NaN that is chosen away. So a NaN of the forward is reported only if a backward starts from it, or if
it was recorded and nothing ever made finite numbers of it; an infinity, if a backward starts from it; a gradient's, if
it got into `.grad`. What comes after the first is a consequence and is not reported. A GradScaler begins with a large
factor, skips steps that overflow, and halves it: its gradients are reported if `SKIPPED` backwards in a row overflow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from backlight.dispatch.numerical_hazards import Cause, cause_of, op_name_of
from backlight.dispatch.observers import COMPILED, Call, Run
from backlight.kernels.reduction.summaries import NAN, nonfinite_kinds
from backlight.lens.doctor.corrections.safe_inputs import cause_of_removed, removal, safe_line
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.scalers import Scalers
from backlight.lens.doctor.evidence import path_from, short
from backlight.lens.doctor.graph import Node, Tensor, is_computed
from backlight.lens.doctor.places import brief, brief_at, place_of, place_of_node
from backlight.lens.doctor.weak_id_dict import WeakIdDict, keep_newest
from backlight.lens.records.record import Place

GIVEN = {"masked_fill", "full", "full_like", "fill", "new_full", "where", "empty", "empty_like", "new_empty", "pad"}
LOOKS = {"isnan", "isinf", "isfinite", "nan_to_num", "__repr__", "__format__", "allclose", "isclose", "equal"}
VIEWS = {"view", "reshape", "transpose", "permute", "getitem", "squeeze", "unsqueeze", "flatten", "detach", "data", "T"}
VIEWS |= {"expand", "contiguous", "chunk", "split", "unbind", "narrow", "select", "requires_grad_", "mT", "view_as"}
RISKY = {"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "div", "reciprocal", "pow", "norm", "vector_norm"}
RISKY |= {"acos", "asin", "atan2", "std", "var", "cdist", "exp", "arccos", "arcsin"}
INSIDE = Cause(
    "an op inside the compiled code made it: the doctor sees only its inputs and outputs",
    "run the program once without torch.compile: the doctor then names the op and its line",
)
PASSING = {"neg", "mul", "view", "reshape", "expand", "unsqueeze", "squeeze", "transpose", "permute", "t"}
ONLY_MOVE = {f"{name}Backward0" for name in ("T", "View", "UnsafeView", "Transpose", "Permute", "Unsqueeze")}
MOST_ORIGINS, MOST_RISKS = 100, 10_000
SKIPPED = 20  # by then the usual factor of 2 ** 16 is below 1


@dataclass(slots=True)
class NonFiniteOrigin:
    """A NaN or an infinity that an op made.

    Args:
        kind: "NaN" or "inf".
        name: the op's.
        evidence: what went in, where it came out.
        parent: the infinity that it was made of.
        recorded: whether the result has a graph.
        handled: whether an op made finite numbers of it.
    """

    kind: str
    name: str
    code: CodeType
    lasti: int
    evidence: str
    cause: Cause
    parent: "NonFiniteOrigin | None" = None
    recorded: bool = False
    handled: bool = False


@dataclass(slots=True)
class NonFiniteGradient:
    """A gradient that a node made NaN or infinite out of finite ones."""

    kind: str
    node: str
    place: Place | None
    evidence: list[str]
    cause: Cause
    op: str = ""
    made: Place | None = None  # the line of the op whose slope is infinite
    then: list[str] = field(default_factory=list)


class NonFinite(Detector):
    """Follows NaN and infinity (see NOTE [Which NaN is reported])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.non_finite: WeakIdDict[tuple[NonFiniteOrigin | None, str]] = WeakIdDict()  # tensors -> origin, kind
        self.origins: list[NonFiniteOrigin] = []
        self.risks: dict[int, str] = {}  # nodes -> what was risky about their inputs
        self.bad_gradient: NonFiniteGradient | None = None
        self.root_is_finite = True
        self.reported = False
        self.overflows, self.overflowed = 0, False  # of backwards of scaled losses, in a row; whether this one did

    def called(self, call: Call) -> None:
        """Look at what an op returns."""
        name = self.watch.name
        if name in LOOKS or call.name in LOOKS:
            self._handle(call)
            return
        outs = [one for one in self.watch.outs if one.is_floating_point()]
        if not outs or (name in VIEWS and not self.non_finite):
            return
        if name in RISKY:
            self._note_risk(call, name, outs[0])
        inputs = self.watch.inputs
        bad_inputs = [known for one in inputs if (known := self.non_finite.get(one)) is not None]
        bad = [(one, kind) for one in outs if (kind := self._kind(one)) is not None]
        if not bad:
            for known in bad_inputs:
                if known[0] is not None:
                    known[0].handled = True
            return
        inputs = [one for one in inputs if all(one is not out for out in outs)] or inputs
        for out, kind in bad:
            self.non_finite[out] = self._new_origin(call, name, kind, inputs, bad_inputs, out), kind

    def _handle(self, call: Call) -> None:
        """A program that looks for NaN knows of it."""
        for one in self.watch.inputs:
            origin, _ = self.non_finite.get(one, (None, None))
            if origin is not None and not call.name.startswith("__"):
                origin.handled = True

    def _new_origin(
        self, call: Call, name: str, kind: str, inputs: list, bad_inputs: list, out: Any
    ) -> NonFiniteOrigin | None:
        """Return what made a tensor NaN or infinite; None if that was given, not made."""
        origins = [one[0] for one in bad_inputs if one[0] is not None]
        for origin in origins:
            if origin.kind == kind:
                return origin
        kinds = {one[1] for one in bad_inputs} | {found for one in inputs if (found := self._kind(one)) is not None}
        if kind in kinds or not inputs or name in GIVEN or call.name.startswith("__set"):
            return origins[0] if origins else None
        values = [None if one is out else self.values(one) for one in inputs]
        compiled = call.name.startswith(COMPILED)
        cause = INSIDE if compiled else cause_of(name, values, kind.lower(), out=self.values(out))
        what = f"{name} at {brief_at(call)} returned {_count(self.values(out), kind)}"
        inputs = "its input contained an infinity." if "inf" in kinds else "its inputs were finite."
        evidence = f"{what}; {cause.seen or inputs}"
        origin = NonFiniteOrigin(kind, name, call.code, call.lasti, evidence, cause, origins[0] if origins else None)
        origin.recorded = out.requires_grad
        self.origins.append(origin)
        del self.origins[:-MOST_ORIGINS]
        return origin

    def _kind(self, tensor: Tensor) -> str | None:
        """Return "NaN" or "inf" if a tensor holds one, NaN first; None if all is finite."""
        if not tensor.is_floating_point():
            return None
        values = self.values(tensor)
        return None if values is None else kind_of(values)

    def _note_risk(self, call: Call, name: str, out: Any) -> None:
        """Note inputs at which the derivative of an op is not finite, in case its gradient is not finite."""
        if not is_computed(out):
            return
        values = [self.values(one) if self.engine.is_tensor(one) else one for one in call.args]
        result = self.values(out)
        seen = cause_of(name, values, "derivative", out=result).seen
        if seen:
            self.risks[self.engine.key_of(out.grad_fn)] = seen
            keep_newest(self.risks, MOST_RISKS)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a backward that starts from NaN or infinity."""
        kind = self._kind(tensor)
        if kind is None:
            return
        self.root_is_finite = False
        origin, _ = self.non_finite.get(tensor, (None, kind))
        if self.session.has({"BL703"}):  # gradients that add up lead anywhere
            self.reported = True
        if origin is not None and not self.reported:
            self.reported = True
            self._report_origin(origin, f"The loss at {brief(place)} is {kind}.")

    def _report_origin(self, origin: NonFiniteOrigin, *more: str) -> None:
        origin.handled = True
        first = origin.parent if origin.parent is not None else origin
        self.report(
            "nan-in-forward" if origin.kind == "NaN" else "infinite-loss",
            place_of(first),
            first.evidence,
            *([origin.evidence] if origin is not first else []),
            *more,
            title=f"{first.name} made {first.kind} from finite numbers",
            cause=first.cause.cause,
            cure=first.cause.cure,
            corrected=safe_line(place_of(first), first.name, outside=first.kind == "NaN"),
            path=path_from("loss", f"{origin.name} at {brief_at(origin)}") if more else (),
        )

    def started(self, run: Run) -> None:
        """Begin to look for the first gradient that is not finite."""
        self.bad_gradient = None
        self.overflows, self.overflowed = self.overflows if self.overflowed else 0, False

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Note the first node that makes a gradient NaN or infinite, and the next that makes NaN of infinity."""
        if not grad_inputs or not self.root_is_finite or self.reported or node.__class__.__name__ in ONLY_MOVE:
            return
        made = self._worst(grad_inputs)
        if made is None or (self.bad_gradient is not None and (self.bad_gradient.kind == "NaN" or made == "inf")):
            return
        if self.bad_gradient is None and self._worst(grad_outputs) is None:
            self.bad_gradient = self._note_gradient(run, node, made, grad_outputs, grad_inputs)
        elif self.bad_gradient is not None and made == "NaN" and not self.bad_gradient.then:
            place = place_of_node(self.engine, node)
            where = "" if place is None else f" at {brief(place)}"
            self.bad_gradient.then.append(f"{node.name()}{where} made NaN of it (0 · inf).")

    def _worst(self, gradients: Iterable) -> str | None:
        kinds = {self._kind(one) for one in gradients if one is not None}
        return "NaN" if "NaN" in kinds else "inf" if "inf" in kinds else None

    def _note_gradient(
        self, run: Run, node: Node, kind: str, grad_outputs: Sequence, grad_inputs: Sequence
    ) -> NonFiniteGradient:
        place = place_of_node(self.engine, node)
        arrived = self.values(grad_outputs[0]) if grad_outputs and grad_outputs[0] is not None else None
        outgoing = next(self.values(one) for one in grad_inputs if one is not None and self._kind(one) is not None)
        chosen_away = _zero_where_bad(arrived, outgoing)
        source = self._source_of(node) if chosen_away else node
        op = op_name_of(source.name())
        cause = cause_of_removed(run, node, op) if chosen_away else cause_of(op, (), "derivative")
        where = "" if place is None else f" (made at {brief(place)})"
        evidence = [f"{node.name()}{where} got a finite gradient and returned {_count(outgoing, kind)}."]
        if chosen_away:
            evidence.append(f"The incoming gradient was 0: {removal(cause)}, and 0 · inf is NaN.")
        risk = self.risks.get(self.engine.key_of(source))
        if risk:
            evidence.append(risk)
        made = place if source is node else place_of_node(self.engine, source)
        if source is not node and made is not None:
            evidence.append(f"{op} at {brief(made)} made the infinity that it is multiplied with.")
        return NonFiniteGradient(kind, node.name(), place, evidence, cause, op, made)

    def _source_of(self, node: Node) -> Node:
        """Return the op that made the infinity of a product, which has no derivative that is infinite itself."""
        if op_name_of(node.name()) != "mul":
            return node
        behind = [inner for inner, _ in node.next_functions if inner is not None]
        for one in behind:
            if self.engine.key_of(one) in self.risks:
                return one
            if op_name_of(one.name()) in PASSING:
                behind += [inner for inner, _ in one.next_functions if inner is not None]
        return node

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Report a spoilt gradient when it gets into `.grad`."""
        if self.bad_gradient is None or self.reported:
            return
        kind = self._kind(arrived)
        if kind is None or self._is_skipped():
            return
        self.reported = True
        bad_gradient, name = self.bad_gradient, self.watch.flow.name_of(tensor)
        self.report(
            "nan-gradient" if kind == "NaN" else "infinite-gradient",
            bad_gradient.place or place_of(run),
            *bad_gradient.evidence,
            *bad_gradient.then,
            f"{name}.grad has {_count(self.values(arrived), kind)}.",
            title=f"the gradient of {name} is {kind}: it comes from {bad_gradient.node}",
            cause=bad_gradient.cause.cause,
            cure=bad_gradient.cause.cure,
            corrected=safe_line(bad_gradient.made, bad_gradient.op),
            corrected_at=bad_gradient.made,
            path=path_from("loss", bad_gradient.node, name),
        )

    def _is_skipped(self) -> bool:
        """Count an overflow of a scaled loss, once a backward; return whether the GradScaler will see to it."""
        if self.watch.detectors[Scalers].of_run is None:
            return False
        self.overflows += not self.overflowed
        self.overflowed = True
        return self.overflows < SKIPPED

    def ended(self, run: Run) -> None:
        """Forget the run."""
        self.root_is_finite = True
        self.bad_gradient = None

    def end(self, problem: BaseException | None) -> None:
        """Report NaNs that were recorded and never made finite."""
        if self.reported:
            return
        for origin in self.origins:
            if origin.kind == "NaN" and origin.recorded and not origin.handled:
                self._report_origin(origin)
                return


def kind_of(values: np.ndarray) -> str | None:
    """Return "NaN" or "inf" if there is one among the values, else None."""
    kinds = nonfinite_kinds(values)
    return "NaN" if kinds & NAN else "inf" if kinds else None


def _count(values: np.ndarray, kind: str) -> str:
    """Return how many of the values are NaN or infinite, and where the first is."""
    bad = np.isnan(values) if kind == "NaN" else np.isinf(values)
    number = int(bad.sum())
    if number == 0:
        return kind
    if values.ndim == 0:
        return short(float(values))
    first = [int(one) for one in np.argwhere(bad)[0]]
    return f"{number} × {kind} among {values.size} (the first at {first})"


def _zero_where_bad(arrived: np.ndarray | None, outgoing: np.ndarray) -> bool:
    """Return whether the gradient that arrived is 0 wherever the outgoing one is NaN."""
    if arrived is None or arrived.shape != outgoing.shape:
        return False
    bad = np.isnan(outgoing)
    return bool(bad.any() and not arrived[bad].any())
