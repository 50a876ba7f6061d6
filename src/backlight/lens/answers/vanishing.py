"""Which gradients vanished on their way, and which ops made them small (NOTE [Vanished and exploding])."""

import math
from dataclasses import dataclass

from backlight.lens.answers.case import GraphPaths
from backlight.lens.answers.culprits import growth
from backlight.lens.pictures.boxes import is_plumbing
from backlight.lens.records.depths import eps_of
from backlight.lens.records.nodes import Summary

MOST_NAMED = 3


@dataclass(frozen=True)
class Vanished:
    """A gradient that fell below what its dtype can use.

    Args:
        start: the largest norm on its way.
        steps: over how many ops it fell.
        shrinking: types of ops that made it smaller, how often, and the geometric mean of their factors; first those
            that took most.
    """

    start: float
    steps: int
    shrinking: list[tuple[str, int, float]]


def vanished(paths: GraphPaths, grad: Summary) -> Vanished | None:
    """Return how a gradient vanished on its way from the root; None if it did not.

    The last op before it must have lost it already: else its own parts cancel, as those of a key's bias do.
    """
    ops = [node for node in paths.path()[:-1] if not is_plumbing(node)]
    norms = [one.norm for one in map(paths.incoming, (node.id for node in ops)) if one is not None and one.norm]
    if len(norms) < 2 or grad.norm is None:
        return None
    start = max(norms)
    if max(norms[-1], grad.norm) >= eps_of(grad.dtype) * start:
        return None
    return Vanished(start, len(ops), _shrinking(paths))


def _shrinking(paths: GraphPaths) -> list[tuple[str, int, float]]:
    logs: dict[str, list[float]] = {}
    for node, factor in growth(paths):
        logs.setdefault(node.type, []).append(math.log(factor) if factor > 0 else -math.inf)
    totals = sorted(logs.items(), key=lambda pair: sum(pair[1]))
    return [(name, len(some), math.exp(sum(some) / len(some))) for name, some in totals if sum(some) < 0][:MOST_NAMED]
