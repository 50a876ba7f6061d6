"""Curves over steps, and layers over steps as a heat map: SVG that takes its colours from the page."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

WIDTH, HEIGHT = 760, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 24
MOST_POINTS = 500  # of a curve; more are averaged in groups
EVALUATED = ("evaluated", "tested")  # the looks of curves of which each point is marked
SMOOTH_FROM = 40  # points from which a curve is also drawn smooth


@dataclass(frozen=True)
class Series:
    """A curve: its name, its points with None where nothing is known, its class in the page's style."""

    name: str
    points: Sequence[tuple[float, float | None]]
    look: str = "first"
    smooth: bool = False


@dataclass(frozen=True)
class Mark:
    """A step to mark: what happened there, in a word."""

    step: float
    text: str


def curves(
    series: Sequence[Series],
    label: str,
    *,
    zero: bool = False,
    log: bool = False,
    mark: Mark | None = None,
    last: float | None = None,
) -> str:
    """Return curves over steps as one SVG, or nothing if no point is known.

    The vertical axis leaves room for all but the most extreme values of long curves, which run out of the picture.

    Args:
        label: what the picture shows, for those who cannot see it.
        zero: begin the vertical axis at zero.
        log: let the vertical axis be of powers of ten; what is not positive is left out.
        mark: a step to draw a line at.
        last: the last step of the horizontal axis; by default the last one of which something is known.
    """
    shown = list(series)
    if log:
        logs = ([(x, math.log10(y) if y and y > 0 else None) for x, y in one.points] for one in series)
        shown = [replace(one, points=points) for one, points in zip(series, logs)]
    known = [(x, y) for one in shown for x, y in one.points if y is not None]
    if not known:
        return ""
    last = max([x for x, _ in known] + ([mark.step] if mark else []) + ([last] if last else []))
    low, high = _limits([y for _, y in known], zero and not log)
    ticks = log_ticks(low, high) if log else nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = x / (last or 1), (y - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    frame = f"{LEFT - 5} {TOP - 5} {WIDTH - LEFT - RIGHT + 10} {HEIGHT - TOP - BOTTOM + 10}"
    x, y, width, height = frame.split()
    drawn = "".join(_curve(one, place) for one in shown)
    inside = f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{frame}">{drawn}</svg>'  # it clips
    marked = mark_at(place(mark.step, low)[0], HEIGHT - BOTTOM, mark.text) if mark else ""
    hover = {
        "kind": "curves",
        "box": [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM],
        "last": last,
        "series": [
            {"name": one.name, "points": [[x, brief(y)] for x, y in _thinned(one.points) if y is not None]}
            for one in series
        ],
    }
    return svg_of(HEIGHT, label, _axes(ticks, last, place, log) + inside + marked, hover)


def mark_at(x: float, bottom: float, text: str) -> str:
    """Return a line from the top down to `bottom`, with a word next to it."""
    anchor, label_x = ("end", x - 5) if x > WIDTH / 2 else ("start", x + 5)
    return (
        f'<line class="mark-line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>'
        f'<text class="mark-word" x="{label_x:.1f}" y="{TOP + 4}" text-anchor="{anchor}">{escape(text)}</text>'
    )


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


def log_ticks(low: float, high: float) -> list[float]:
    """Return logarithms of round numbers from about `low` to about `high`, which are logarithms too.

    >>> [short(10**tick) for tick in log_ticks(0.4, 2.1)]
    ['2', '5', '10', '20', '50', '100', '200']
    >>> [short(10**tick) for tick in log_ticks(-7.5, 2.5)]
    ['1e-8', '1e-6', '1e-4', '0.01', '1', '100', '10k']
    """
    if high - low > 2.5:
        apart = math.ceil((high - low) / 6)
        return [float(power) for power in range(apart * math.floor(low / apart), math.ceil(high) + apart, apart)]
    factors = (1, 2, 5) if high - low > 0.6 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    powers = range(math.floor(low), math.ceil(high) + 1)
    marks = [power + math.log10(factor) for power in powers for factor in factors]
    first = max((mark for mark in marks if mark <= low), default=low)
    end = min((mark for mark in marks if mark >= high), default=high)
    return [mark for mark in marks if first <= mark <= end]


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


LARGEST_POWER = 308.0  # of ten, that float64 holds


def _axes(ticks: list[float], last: float, place: Callable, log: bool) -> str:
    lines = []
    for tick in ticks:
        _, y = place(0, tick)
        lines.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        name = short(10 ** min(tick, LARGEST_POWER) if log else tick)
        lines.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 3.5:.1f}" text-anchor="end">{name}</text>')
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


def svg_of(height: float, label: str, content: str, hover: dict) -> str:
    """Return a picture; the page's script reads `hover` to tell the values under the pointer."""
    data = escape(json.dumps(hover, allow_nan=False, separators=(",", ":")))
    box, said = f"0 0 {WIDTH} {height}", escape(label)
    return f'<svg viewBox="{box}" role="img" aria-label="{said}" data-hover="{data}">{content}</svg>'


def brief(value: float | None) -> float | None:
    """Return a number with five digits: what a reader sees of it."""
    return None if value is None else float(f"{value:.5g}")


COLUMNS = 120  # most columns
LEVELS = 24  # shades
NAMES_RIGHT = 150  # where the names of rows end and the cells begin
ROW, LEAST_ROW, HIGH = 18, 5, 900  # heights of a row, and what the rows of many layers shall fit
NAME = 13  # the height of a name
LONGEST_NAME = 22
LOG, SHARE = "log", "share"  # how values become shades


@dataclass(frozen=True)
class Grid:
    """Values in columns: a number, None where nothing is known, inf where something was not finite."""

    names: list[str]
    columns: list[tuple[float, float]]  # the first and the last step of each
    values: list[list[float | None]]

    def limits(self) -> tuple[float, float] | None:
        """Return the smallest and the largest value above 0 that is finite."""
        known = [value for row in self.values for value in row if value and math.isfinite(value)]
        return (min(known), max(known)) if known else None


def grid_of(rows: dict[str, Sequence[float | None]], steps: Sequence[float], scale: str = LOG) -> Grid:
    """Return values in at most `COLUMNS` columns, each the mean of a group of steps: for LOG the geometric one."""
    count = max(map(len, rows.values()), default=0)
    size = math.ceil(count / COLUMNS) or 1
    starts = range(0, count, size)
    return Grid(
        list(rows),
        [(steps[start], steps[min(start + size, count) - 1]) for start in starts],
        [[_mean(values[start : start + size], scale) for start in starts] for values in rows.values()],
    )


def _mean(values: Sequence[float | None], scale: str) -> float | None:
    """Return the mean of those values that are known, for LOG the geometric one; inf if one is not finite."""
    known = [value for value in values if value is not None]
    if not known or not all(map(math.isfinite, known)):
        return math.inf if known else None
    if scale != LOG:
        return sum(known) / len(known)
    positive = [math.log10(value) for value in known if value > 0]
    return 10 ** (sum(positive) / len(positive)) if positive else 0.0


def heat_map(
    rows: dict[str, Sequence[float | None]],
    last: float,
    label: str,
    *,
    steps: Sequence[float] | None = None,
    scale: str = LOG,
    mark: Mark | None = None,
) -> str:
    """Return values as shades, or nothing if none is known.

    What is exactly 0 is a line, what is not finite a cross; where nothing is known, it is blank.

    Args:
        rows: for each name its values, as many for each.
        last: the last step.
        steps: of the values; by default 1, 2, …
        scale: LOG, powers of ten from the smallest to the largest, or SHARE, from 0 to 1.
        mark: a step to mark.
    """
    count = max(map(len, rows.values()), default=0)
    grid = grid_of(rows, range(1, count + 1) if steps is None else steps, scale)
    if not any(value is not None for row in grid.values for value in row):
        return ""
    row = max(LEAST_ROW, min(ROW, HIGH / len(grid.names)))
    bottom = TOP + len(grid.names) * row
    ends = (
        f'<text class="tick" x="{NAMES_RIGHT}" y="{bottom + 17:.0f}">step {grid.columns[0][0]:,.0f}</text>'
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{bottom + 17:.0f}" text-anchor="end">step {last:,.0f}</text>'
    )
    hover = {
        "kind": "map",
        "box": [NAMES_RIGHT, TOP, WIDTH - RIGHT, bottom],
        "names": grid.names,
        "columns": grid.columns,
        "values": [["not finite" if one == math.inf else brief(one) for one in values] for values in grid.values],
        "share": scale == SHARE,
    }
    drawn = [_names(grid.names, row), _cells(grid, row, scale), _marked(grid, bottom, mark), ends]
    return svg_of(round(bottom + BOTTOM), label, "".join(drawn), hover)


def _marked(grid: Grid, bottom: float, mark: Mark | None) -> str:
    """Return the mark, at the column in which its step is, or after which it is."""
    if mark is None:
        return ""
    column = sum(first <= mark.step for first, _ in grid.columns) - 1
    wide = (WIDTH - NAMES_RIGHT - RIGHT) / len(grid.columns)
    return mark_at(NAMES_RIGHT + (column + 0.5) * wide, bottom, mark.text)


def _cells(grid: Grid, row: float, scale: str) -> str:
    """Return the cells as one path for each shade."""
    wide = (WIDTH - NAMES_RIGHT - RIGHT) / len(grid.columns)
    shade = _shades(grid, scale)
    levels: dict[str, list[str]] = {}
    for number, values in enumerate(grid.values):
        for column, value in enumerate(values):
            if value is not None:
                left, top = NAMES_RIGHT + column * wide, TOP + number * row
                look = shade(value)
                levels.setdefault(look, []).append(_cell(look, left, top, wide, row))
    return "".join(f'<path class={look} d="{"".join(cells)}"/>' for look, cells in sorted(levels.items()))


def _cell(look: str, left: float, top: float, wide: float, row: float) -> str:
    high = row - min(2, row / 4)
    if look == '"zero"':
        return f"M{left:.2f} {top + high / 2:.1f}h{wide + 0.3:.2f}"
    box = f"M{left:.2f} {top:g}h{wide + 0.3:.2f}v{high:g}h-{wide + 0.3:.2f}z"
    return f"{box}l{wide:.2f} {high:g}m0 -{high:g}l-{wide:.2f} {high:g}" if look == '"broken"' else box


def _shades(grid: Grid, scale: str):
    """Return a function that gives the look of a value: its class, and how strong it is."""
    share, limits = scale == SHARE, grid.limits() or (1.0, 1.0)
    low, high = (0.0, 1.0) if share else map(math.log10, limits)

    def shade(value: float) -> str:
        if not math.isfinite(value):
            return '"broken"'
        if value == 0:
            return '"zero"'
        size = value if share else math.log10(value)
        level = round((LEVELS - 1) * min(max((size - low) / ((high - low) or 1), 0.0), 1.0))
        return f'"shade" style="--share:{level / (LEVELS - 1):.3f}"'

    return shade


def _names(names: list[str], row: float) -> str:
    apart = math.ceil(NAME / row)
    return "".join(
        f'<text class="layer" x="{NAMES_RIGHT - 8}" y="{TOP + number * row + row / 2 + 3:.0f}" text-anchor="end">'
        f"{escape(_fitting(name))}</text>"
        for number, name in enumerate(names)
        if number % apart == 0
    )


def _fitting(name: str) -> str:
    """Return a layer's name and class, or, where that is too long, the end of its name."""
    name = name if len(name) <= LONGEST_NAME else name.partition(" ")[0]
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def ends_of(rows: dict[str, Sequence[float | None]], scale: str) -> tuple[str, str]:
    """Return what the weakest and the strongest shade stand for."""
    limits = (0.0, 1.0) if scale == SHARE else grid_of(rows, range(1, 1 + max(map(len, rows.values())))).limits()
    if scale == SHARE:
        return "0 %", "100 %"
    return tuple(short(float(f"{one:.3g}")) for one in limits) if limits else ("", "")
