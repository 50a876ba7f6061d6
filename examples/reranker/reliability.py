"""A reliability diagram: how often a score that reads "60 %" is right, as an SVG that stands alone.

Source: DeGroot, Fienberg, The Comparison and Evaluation of Forecasters, 1983, doi:10.2307/2987588.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

Bins = Sequence[tuple[float, float, int]]  # as backlight.training.reranker.measures.reliability returns them
SIZE, LEFT, BOTTOM, EDGE = 470, 52, 44, 24
LARGEST = 9.0  # radius of the fullest bin's point
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5d646b }
.rule { stroke: #c4c9ce; stroke-width: 0.6 } .true { stroke: #5d646b; stroke-dasharray: 5 4 }
.one { fill: none; stroke: #8c959f; stroke-width: 1; opacity: 0.45 }
.all { fill: none; stroke: #2f6fb0; stroke-width: 2.2 } .bin { fill: #2f6fb0; fill-opacity: 0.55 }
@media (prefers-color-scheme: dark) { text { fill: #a9b1b8 } .rule { stroke: #4a5157 } .true { stroke: #a9b1b8 }
.all { stroke: #6aa9e6 } .bin { fill: #6aa9e6 } }
</style>"""


def reliability_svg(collections: Mapping[str, Bins]) -> str:
    """Return the diagram: a thin line a collection, a thick one of all pairs, whose points grow with their number.

    Args:
        collections: the bins of each collection, by its name.
    """
    drawn = [*_axes(), *(_line(bins, "one", name) for name, bins in collections.items())]
    together = pooled(collections.values())
    drawn.append(_line(together, "all", "all collections"))
    most = max(count for *_, count in together)
    for mean, share, count in together:
        (x, y), radius = _place(mean, share), max(2.0, LARGEST * math.sqrt(count / most))
        said = f"said {mean:.0%}, right {share:.0%}: {count:,} pairs"
        drawn.append(f'<circle class="bin" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{said}</title></circle>')
    label = "share of right passages by the probability that the model gives them"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" role="img" '
        f'aria-label="{label}">{STYLE}{"".join(drawn)}</svg>\n'
    )


def pooled(collections: Sequence[Bins]) -> list[tuple[float, float, int]]:
    """Return the bins of several collections' pairs together, by tenths of the probability.

    >>> pooled([[(0.25, 0.0, 1)], [(0.21, 1.0, 3), (0.95, 1.0, 2)]])
    [(0.22, 0.75, 4), (0.95, 1.0, 2)]
    """
    tenths: dict[int, list[tuple[float, float, int]]] = {}
    for bins in collections:
        for one in bins:
            tenths.setdefault(min(int(one[0] * 10), 9), []).append(one)
    return [_merged(tenths[number]) for number in sorted(tenths)]


def _merged(bins: Bins) -> tuple[float, float, int]:
    count = sum(one[2] for one in bins)
    mean, share = (sum(one[part] * one[2] for one in bins) / count for part in (0, 1))
    return mean, share, count


def _place(probability: float, share: float) -> tuple[float, float]:
    across, up = SIZE - LEFT - EDGE, SIZE - BOTTOM - EDGE
    return LEFT + probability * across, SIZE - BOTTOM - share * up


def _line(bins: Bins, look: str, name: str) -> str:
    points = " ".join("{:.1f},{:.1f}".format(*_place(mean, share)) for mean, share, _ in bins)
    return f'<polyline class="{look}" points="{points}"><title>{escape(name)}</title></polyline>'


def _axes() -> list[str]:
    drawn = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), (right, top) = _place(tick, tick), _place(1, 1)
        drawn.append(f'<line class="rule" x1="{LEFT}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
        drawn.append(f'<text x="{x:.1f}" y="{SIZE - BOTTOM + 18}" text-anchor="middle">{tick:.0%}</text>')
    (x, y), middle = _place(0, 0), _place(0.5, 0.5)
    drawn.append(f'<line class="true" x1="{x:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{top:.1f}"/>')
    drawn.append(
        f'<text x="{middle[0]:.0f}" y="{SIZE - 8}" text-anchor="middle">probability that the model gives</text>'
    )
    drawn.append(
        f'<text transform="translate(12 {middle[1]:.0f}) rotate(-90)" text-anchor="middle">share that is right</text>'
    )
    return drawn
