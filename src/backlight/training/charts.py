"""Curves and heat maps as SVG that takes its colours from the page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 24
MOST_POINTS = 500  # of a curve; more are averaged in groups
COLUMNS = 120  # most columns of a heat map
ROW = 18  # height of a heat map's row
LEVELS = 24  # shades of a heat map
EVALUATED = ("evaluated", "tested")  # the looks of curves of which each point is marked
SMOOTH_FROM = 40  # points from which a curve is also drawn smooth


@dataclass(frozen=True)
class Series:
    """A curve: its name, its points with None where nothing is known, its class in the page's style."""

    name: str
    points: Sequence[tuple[float, float | None]]
    look: str = "first"
    smooth: bool = False


def curves(series: Sequence[Series], label: str, *, zero: bool = False) -> str:
    """Return curves over steps as one SVG, or nothing if no point is known.

    The vertical axis leaves room for all but the most extreme values of long curves, which run out of the picture.

    Args:
        label: what the picture shows, for those who cannot see it.
        zero: begin the vertical axis at zero.
    """
    known = [(x, y) for one in series for x, y in one.points if y is not None]
    if not known:
        return ""
    last = max(x for x, _ in known)
    low, high = _limits([y for _, y in known], zero)
    ticks = nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = x / (last or 1), (y - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    frame = f"{LEFT - 5} {TOP - 5} {WIDTH - LEFT - RIGHT + 10} {HEIGHT - TOP - BOTTOM + 10}"
    x, y, width, height = frame.split()
    drawn = "".join(_curve(one, place) for one in series)
    inside = f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{frame}">{drawn}</svg>'  # it clips
    return _svg(HEIGHT, label, _axes(ticks, last, place) + inside)


def _limits(values: list[float], zero: bool) -> tuple[float, float]:
    ordered = sorted(values)
    extreme = len(ordered) // 50 if len(ordered) >= SMOOTH_FROM else 0
    low, high = (min(0.0, ordered[0]) if zero else ordered[extreme]), ordered[-1 - extreme if zero else -1]
    return (low, high) if high > low else (low - (abs(low) or 1) * 0.05, high + (abs(high) or 1) * 0.05)


def nice_ticks(low: float, high: float) -> list[float]:
    """Return three to seven round numbers from about `low` to about `high`.

    >>> nice_ticks(0.13, 2.31)
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    """
    rough = (high - low) / 4
    power = 10 ** math.floor(math.log10(rough))
    apart = min((factor * power for factor in (1, 2, 2.5, 5, 10)), key=lambda size: abs(size - rough))
    first, last = math.floor(low / apart), math.ceil(high / apart)
    return [round(number * apart, 12) for number in range(first, last + 1)]


def short(value: float) -> str:
    """Return a number in few characters: 12,300 as 12.3k.

    >>> [short(value) for value in (0, 0.25, 1500, 60000, 0.0000123)]
    ['0', '0.25', '1.5k', '60k', '1.2e-5']
    """
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1000:
        return f"{value / 1000:.3g}k"
    if size >= 0.001 or not size:
        return f"{value:.4g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


def _axes(ticks: list[float], last: float, place: Callable) -> str:
    lines = []
    for tick in ticks:
        _, y = place(0, tick)
        lines.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 3.5:.1f}" text-anchor="end">{short(tick)}</text>')
    return "".join(lines) + _steps_below(last, HEIGHT)


def _steps_below(last: float, height: float) -> str:
    """Return the labels of the horizontal axis: the first step, the one in the middle, the last."""
    across = WIDTH - LEFT - RIGHT
    marks = [(0, "start", "0"), (0.5, "middle", short(last / 2)), (1, "end", f"step {last:,.0f}")]
    return "".join(
        f'<text class="tick" x="{LEFT + share * across:.0f}" y="{height - 7}" text-anchor="{anchor}">{text}</text>'
        for share, anchor, text in marks
    )


def _curve(one: Series, place: Callable) -> str:
    points = _thinned(one.points)
    known = [y for _, y in points if y is not None]
    if one.look in EVALUATED or len(known) < 2:
        spots = [place(x, y) for x, y in points if y is not None]
        line = _line(points, place, f"line {one.look}") if len(known) > 1 else ""
        return line + "".join(f'<circle class="spot {one.look}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in spots)
    if not one.smooth or len(known) < SMOOTH_FROM:
        return _line(points, place, f"line {one.look}")
    return _line(points, place, f"line faint {one.look}") + _line(_smoothed(points), place, f"line {one.look}")


def _line(points: Sequence, place: Callable, css_class: str) -> str:
    path, pen = [], "M"
    for x, y in points:
        if y is None:
            pen = "M"
            continue
        path.append("{}{:.1f} {:.1f}".format(pen, *place(x, y)))
        pen = "L"
    return f'<path class="{css_class}" d="{"".join(path)}"/>'


def _thinned(points: Sequence[tuple]) -> list[tuple]:
    """Return at most `MOST_POINTS` points, each the mean of a group; a group with an unknown one is unknown."""
    size = math.ceil(len(points) / MOST_POINTS)
    if size <= 1:
        return list(points)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], mean_of([y for _, y in group])) for group in groups]


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if one is None."""
    return None if any(value is None for value in values) else sum(values) / len(values)


def _smoothed(points: list[tuple]) -> list[tuple]:
    """Return each point as the mean of those around it: at the beginning, where much changes, of fewer."""
    reach = max(2, len(points) // 40)
    smooth = []
    for place, (x, y) in enumerate(points):
        around = min(reach, place)
        near = [value for _, value in points[place - around : place + around + 1] if value is not None]
        smooth.append((x, None if y is None else sum(near) / len(near)))
    return smooth


def heat_map(rows: dict[str, Sequence[float | None]], last: float, label: str) -> str:
    """Return positive values as shades, on a scale of powers of ten from the smallest to the largest.

    Args:
        rows: for each name its values, as many for each, from the first step to the last; None is left blank.
    """
    size = math.ceil(max(map(len, rows.values())) / COLUMNS)
    grid = {
        name: [_logarithm(values[start : start + size]) for start in range(0, len(values), size)]
        for name, values in rows.items()
    }
    known = [value for values in grid.values() for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    columns = max(map(len, grid.values()))
    left, height = 150, len(grid) * ROW + TOP + BOTTOM
    wide = (WIDTH - left - RIGHT) / columns
    levels: dict[int, list[str]] = {}
    for number, values in enumerate(grid.values()):
        for column, value in enumerate(values):
            if value is not None:
                level = round((LEVELS - 1) * (value - low) / ((high - low) or 1))
                corner = f"M{left + column * wide:.2f} {TOP + number * ROW}"
                levels.setdefault(level, []).append(f"{corner}h{wide + 0.3:.2f}v{ROW - 2}h-{wide + 0.3:.2f}z")
    shades = [
        f'<path class="shade" style="--share:{level / (LEVELS - 1):.3f}" d="{"".join(cells)}"/>'
        for level, cells in sorted(levels.items())
    ]
    names = [
        f'<text class="layer" x="{left - 8}" y="{TOP + number * ROW + ROW / 2 + 3:.0f}" text-anchor="end">'
        f"{escape(_fitting(name))}</text>"
        for number, name in enumerate(grid)
    ]
    ends = (
        f'<text class="tick" x="{left}" y="{height - 7}">0</text>'
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{height - 7}" text-anchor="end">step {last:,.0f}</text>'
    )
    return _svg(height, label, "".join([*names, *shades, ends]))


def _fitting(name: str) -> str:
    return name if len(name) <= 22 else f"…{name[-21:]}"


def _logarithm(values: Sequence[float | None]) -> float | None:
    """Return the mean of log₁₀ of those values that are known and positive."""
    logarithms = [math.log10(value) for value in values if value]
    return sum(logarithms) / len(logarithms) if logarithms else None


def _svg(height: float, label: str, content: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{content}</svg>'
