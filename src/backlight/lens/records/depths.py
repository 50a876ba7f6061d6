"""Gradients by depth: how large they are at each distance from the root, and whether they vanish or explode on the way.

NOTE [Vanished and exploding]
A gradient has vanished where it, and all further from the root, is smaller than the rounding error of the largest one
before: `eps` of its dtype times that (float32's for halves, whose optimizers keep float32). An update with it changes
nothing beside one with the others. It explodes where it is 10,000 times the largest at the first levels below the root.
Ops are judged, not parameters: a bias that a normalisation takes out again has a gradient of rounding errors alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from backlight.lens.records.nodes import OP, Backward, Node

EPS = {"float64": 2.0**-52}
EPS_FLOAT32 = 2.0**-23
GREW, BEGINNING = 1e4, 3  # times the largest norm at so many levels below the root
VANISHED, EXPLODING = "vanished", "exploding"


@dataclass(slots=True)
class Level:
    """The largest gradient that arrived at an op at one distance (in edges) from the root.

    Args:
        node: the node at which it arrived.
        broken: whether a NaN or an infinity arrived there.
    """

    depth: int
    node: int
    norm: float
    broken: bool = False


@dataclass(slots=True)
class Depths:
    """Gradients by depth after one backward.

    Args:
        word: VANISHED, EXPLODING or "".
        at: the index in `levels` from which `word` applies.
    """

    levels: list[Level]
    word: str = ""
    at: int | None = None


def depths_of(nodes: Sequence[Node], backward: Backward) -> Depths:
    """Return the gradients of a backward by depth."""
    arrived = {step.node: step.arrived for step in backward.steps}
    depth: dict[int, int] = {}
    for step in backward.steps:  # users fire before what they read
        here = depth.setdefault(step.node, 0)
        for one in nodes[step.node].inputs:
            depth[one] = max(depth.get(one, 0), here + 1)
    best: dict[int, Level] = {}
    for node, summary in arrived.items():
        if nodes[node].kind != OP or summary is None or summary.norm is None:
            continue
        level = Level(depth[node], node, summary.norm, bool(summary.nans or summary.infs))
        known = best.get(level.depth)
        if known is None or (level.broken, level.norm) > (known.broken, known.norm):
            best[level.depth] = level
    levels = [best[one] for one in sorted(best)]
    return _judged(levels, nodes)


def eps_of(dtype: str) -> float:
    """Return the relative size below which a gradient is lost in rounding next to the largest one."""
    return EPS.get(dtype, EPS_FLOAT32)


def _judged(levels: list[Level], nodes: Sequence[Node]) -> Depths:
    norms = [one.norm for one in levels]
    if len(levels) <= BEGINNING:
        return Depths(levels)
    first = max(norms[:BEGINNING])
    grown = next((at for at, one in enumerate(levels) if first and (one.broken or one.norm >= GREW * first)), None)
    if grown is not None and any(norm >= GREW * first for norm in norms):
        return Depths(levels, EXPLODING, grown)
    before = list(accumulate(norms, max))
    after = list(accumulate(norms[::-1], max))[::-1]
    dtype = nodes[levels[0].node].outputs[0].dtype if nodes[levels[0].node].outputs else ""
    for at in range(1, len(levels) - 1):
        if after[at] < eps_of(dtype) * before[at - 1]:
            return Depths(levels, VANISHED, at)
    return Depths(levels)
