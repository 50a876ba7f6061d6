"""Where the values of two runs diverge: in the forward, in the backward, or in the optimizer's step.

NOTE [Rounding or a real difference]
Every op rounds, and hands on what its inputs were already off by. So a node is compared with what reaches it: its
relative error may be some roundings of its own (`ROUNDINGS`, in eps of the dtype with fewer digits) and a multiple
(`GROWTH`) of the largest relative error among its inputs. What is beyond that is a jump: the node itself computes
something else. In the backward the inputs are the gradients of the nodes that read it, and the values that their
derivatives read.

* A sum may cancel: a gradient that is zero in theory is all rounding. Where the inputs have no fewer elements than the
  result, and the op is no product, the error is also held against the inputs' size.
* Adam divides each gradient by its size, so that one that is all rounding moves its parameter as far as any
  other. Where at most half of the parameters jump in the step, that is taken for the reason.
* A derivative that chooses by sign or by size (relu, max) jumps for each element whose choice differs: among values
  that are off by r, about a share r of them, so that the error is the root of that.
* A pair of nodes whose values differ while all that reads them agrees was not the same node: it is left out.

The first jump in the order of the forward, else of the backward, else of the step, is where the runs diverge.
"""

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from backlight.lens.differences.deviation import Deviation, deviation, rms
from backlight.lens.pictures.boxes import is_plumbing
from backlight.lens.records.nodes import LEAF, Node, Step, Summary, users_of
from backlight.lens.records.record import Record

FORWARD, BACKWARD, STEP = "forward", "backward", "step"
HALF = 2.0**-10  # eps of float16: types with as few digits or fewer are summed in another one
ROUNDINGS, ROUNDINGS_OF_HALVES = 16, 3
GROWTH = 5
AGREES = 8  # eps: what is not further apart was surely computed from the same
PRODUCTS = {"×", "÷", "mul", "div", "xⁿ", "exp", "log", "√"}
CHOOSING = ("Relu", "LeakyRelu", "Max", "Min", "Abs", "Clamp", "Hardtanh", "Threshold", "Sort", "Topk", "Adaptive")


@dataclass(frozen=True)
class Point:
    """One place at which the values of two runs were compared.

    Args:
        phase: FORWARD, BACKWARD or STEP.
        before, after: ids of the node.
        deviation: of its output, of its incoming gradient, or of the parameter after the step.
        reached: the largest relative deviation of its inputs.
        jump: whether its deviation is larger than rounding and the deviation of its inputs explain.
        cancelled: whether it is small because terms cancel, so that its deviation is only their rounding.
        by: in the backward, the node whose derivative gave the gradient, if known.
    """

    phase: str
    before: int
    after: int
    deviation: Deviation
    reached: float
    jump: bool
    cancelled: bool = False
    by: int | None = None


@dataclass
class Divergence:
    """Whether and where the values of two runs diverge (see NOTE [Rounding or a real difference]).

    Args:
        points: all compared values, in the order of forward, backward and step.
        tolerance: the relative deviation that counts as the same; None: one per dtype (`TOLERANCES`).
    """

    points: list[Point] = field(default_factory=list)
    tolerance: float | None = None

    @property
    def status(self) -> str:
        """What was found: "same" bit for bit, "close" within the tolerance, "differ", or "unknown": none compared."""
        if not self.points:
            return "unknown"
        if all(point.deviation.exact for point in self.points):
            return "same"
        return "differ" if any(self.exceeds(point) for point in self.points) else "close"

    @property
    def jumps(self) -> list[Point]:
        """The points at which something else is computed, the first one first."""
        return [point for point in self.points if point.jump]

    @property
    def first(self) -> Point | None:
        """Where the runs diverge: the first jump; without one, where the errors that grew exceed the tolerance."""
        return next(iter(self.jumps), None) or next(filter(self.exceeds, self.points), None)

    def exceeds(self, point: Point) -> bool:
        """Return whether a point is off by more than the tolerance."""
        limit = point.deviation.tolerance if self.tolerance is None else self.tolerance
        return point.deviation.relative > limit and not point.cancelled

    def worst(self, phase: str) -> Point | None:
        """Return the point of a phase that is off the most, what cancels left out."""
        points = [point for point in self.points if point.phase == phase and not point.cancelled]
        return max(points, key=lambda point: point.deviation.relative, default=None)


def divergence(
    before: Record, after: Record, pairs: Sequence[tuple[int, int]], tolerance: float | None, backward: int
) -> Divergence:
    """Compare the values of matched nodes.

    Args:
        pairs: ids of nodes that are in both.
        tolerance: the relative deviation that counts as the same; None: one per dtype.
        backward: the number of the backward whose gradients are compared.
    """
    walk = _Comparison(before, after, sorted(pairs, key=lambda pair: pair[1]), backward)
    forward = walk.forward()
    points = [*forward.values(), *walk.backward(forward)]
    return Divergence([*points, *walk.step(points)], tolerance)


class _Comparison:
    """Two records whose nodes are matched."""

    def __init__(self, before: Record, after: Record, pairs: Sequence[tuple[int, int]], backward: int):
        engines = before.engine != after.engine
        self.records = before, after
        self.outputs = slice(1 if engines else None)  # one engine may have outputs that are only for its backward
        self.pairs = [
            (was, now) for was, now in pairs if not (engines and is_plumbing(after.nodes[now]))
        ]  # each engine has its own views
        self.after_of = dict(self.pairs)
        self.before_of = {now: was for was, now in self.pairs}
        self.sources = [[node.inputs for node in record.nodes] for record in self.records]
        self.users = [users_of(record.nodes) for record in self.records]
        self.steps = [_steps_of(record, backward) for record in self.records]

    def forward(self) -> dict[int, Point]:
        """Return what the outputs are off by, by the node after."""
        points: dict[int, Point] = {}
        for was, now in self.pairs:
            one, other = (record.nodes[id] for record, id in zip(self.records, (was, now)))
            outputs = list(zip(one.outputs[self.outputs], other.outputs[self.outputs]))
            apart = [found for found in (deviation(*pair) for pair in outputs) if found is not None]
            if not apart:
                continue
            worst = max(apart, key=lambda found: (found.relative, not found.exact))
            given = self._nearest(self.sources, was, now, points)
            reached = max((points[id].deviation.relative for id in given), default=0.0)
            inputs = [self.records[1].nodes[id].outputs[0] for id in given]
            points[now] = _point(FORWARD, was, now, worst, reached, other.outputs[0], inputs, other)
        return self._without_mispaired(points)

    def _without_mispaired(self, points: dict[int, Point]) -> dict[int, Point]:
        for now in [now for now, point in points.items() if point.jump]:
            readers = [points[id] for id in self._nearest(self.users, self.before_of[now], now, points)]
            if readers and all(reader.deviation.units < AGREES for reader in readers):
                del points[now]
        return points

    def backward(self, forward: Mapping[int, Point]) -> Iterator[Point]:
        """Yield what the gradients are off by, from the last node to the first."""
        found: dict[int, Point] = {}
        for was, now in reversed(self.pairs):
            grads = [_arrived(steps.get(id)) for steps, id in zip(self.steps, (was, now))]
            if grads[0] is None and grads[1] is None:
                continue
            apart = deviation(*grads) if None not in grads else Deviation(math.inf, math.inf, 1.0)
            if apart is None:
                continue
            users = self._nearest(self.users, was, now, found)
            reached = max((found[id].deviation.relative for id in users), default=0.0)
            reached = max([reached, *self._read_by(users, now, forward)])
            given = [_arrived(self.steps[1].get(id)) for id in users]
            size = grads[1] or grads[0]
            point = _point(BACKWARD, was, now, apart, reached, size, [one for one in given if one], None)
            found[now] = self._with_culprit(point, users)
        yield from found.values()

    def _read_by(self, users: Collection[int], now: int, forward: Mapping[int, Point]) -> Iterator[float]:
        """Yield what the values are off by that the derivatives of nodes read; for a choice the root of it."""
        nodes = self.records[1].nodes
        for user in users:
            read = {user, now, *self._nearest(self.sources, self.before_of[user], user, forward)}
            off = max((forward[id].deviation.relative for id in read if id in forward), default=0.0)
            yield math.sqrt(off) if nodes[user].type.startswith(CHOOSING) else off

    def _with_culprit(self, point: Point, users: Collection[int]) -> Point:
        """Name the node whose derivative handed on something else: of several the one whose gradients differ most."""
        nodes = [record.nodes[id] for record, id in zip(self.records, (point.before, point.after))]
        if not point.jump or not users or nodes[0].hooks != nodes[1].hooks:
            return point

        def off(user: int) -> float:
            one, other = (steps.get(id) for steps, id in zip(self.steps, (self.before_of[user], user)))
            both = zip(one.outgoing, other.outgoing) if one and other else ()
            apart = (deviation(*pair) for pair in both if None not in pair)
            return max((found.relative for found in apart if found is not None), default=0.0)

        return replace(point, by=max(users, key=off))

    def step(self, points: Sequence[Point]) -> list[Point]:
        """Return what parameters are off by after the optimizer's step."""
        found: list[Point] = []
        if not all(map(_holds_updates, self.records)):
            return found
        reached: dict[int, float] = {}
        noise = {point.after for point in points if point.cancelled}
        for point in points:
            reached[point.after] = max(reached.get(point.after, 0.0), point.deviation.relative)
        for was, now in self.pairs:
            one, other = (record.nodes[id] for record, id in zip(self.records, (was, now)))
            if one.kind != LEAF or (one.updated is None and other.updated is None):
                continue
            apart = Deviation(math.inf, math.inf, 1.0)
            if one.updated is not None and other.updated is not None:
                apart = deviation(one.updated, other.updated)
            if apart is not None:
                size = other.updated or other.outputs[0]
                found.append(_point(STEP, was, now, apart, reached.get(now, 0.0), size, [], other))
        few = 2 * sum(point.jump for point in found) <= len(found)
        finite = [math.isfinite(point.deviation.relative) for point in found]
        return [
            _cancelled(point) if known and (point.after in noise or (few and point.jump)) else point
            for point, known in zip(found, finite)
        ]

    def _nearest(self, links: Sequence, was: int, now: int, known: Collection[int]) -> list[int]:
        """Return the nearest nodes along links that are known, of both records, by their ids after."""
        found = dict.fromkeys(_through(links[1], now, known))
        befores = _Mapped(known, self.after_of)
        found |= dict.fromkeys(self.after_of[id] for id in _through(links[0], was, befores))
        return list(found)


class _Mapped(NamedTuple):
    """Ids before whose id after is known."""

    known: Collection[int]
    after_of: Mapping[int, int]

    def __contains__(self, was: object) -> bool:
        return self.after_of.get(was) in self.known


def _through(links: Sequence[Sequence[int]], start: int, known: Container[int]) -> Iterator[int]:
    """Yield the nearest known nodes along links; others are seen through."""
    waiting, seen = list(links[start]), set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in known:
            yield one
        else:
            waiting += links[one]


def _point(
    phase: str,
    was: int,
    now: int,
    apart: Deviation,
    reached: float,
    out: Summary,
    inputs: Sequence[Summary],
    node: Node | None,
) -> Point:
    """Return a point, judged by what reached it."""
    roundings = ROUNDINGS_OF_HALVES if apart.eps >= HALF else ROUNDINGS
    allowed = roundings * apart.eps + GROWTH * reached
    if apart.relative <= allowed:
        return Point(phase, was, now, apart, reached, jump=False)
    product = node is not None and node.label in PRODUCTS
    terms = [] if product else [rms(one) * one.size / max(out.size, 1) for one in inputs if one.size >= out.size]
    cancelled = apart.absolute <= allowed * max(terms, default=0.0)
    return Point(phase, was, now, apart, reached, not cancelled, cancelled)


def _holds_updates(record: Record) -> bool:
    """Return whether a record says what optimizers wrote, or would say so."""
    return any(node.updated or any(one.fingerprint for one in node.outputs) for node in record.nodes)


def _cancelled(point: Point) -> Point:
    return replace(point, jump=False, cancelled=True)


def _steps_of(record: Record, number: int) -> dict[int, Step]:
    runs = record.backwards
    return {step.node: step for step in runs[number].steps} if -len(runs) <= number < len(runs) else {}


def _arrived(step: Step | None) -> Summary | None:
    return None if step is None else step.arrived
