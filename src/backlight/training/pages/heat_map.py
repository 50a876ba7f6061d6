"""Layers over steps as a heat map, an SVG that takes its colours from the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from backlight.training.pages.charts import BOTTOM, RIGHT, TOP, WIDTH, Mark, brief, mark_at, short, svg_of

COLUMNS = 120  # most columns
LEVELS = 24  # shades
LEFT = 150  # the room for names
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
    mean = _geometric if scale == LOG else _arithmetic
    return Grid(
        list(rows),
        [(steps[start], steps[min(start + size, count) - 1]) for start in starts],
        [[mean(values[start : start + size]) for start in starts] for values in rows.values()],
    )


def _known(values: Sequence[float | None]) -> list[float] | float | None:
    """Return those values that are known; None if none is, inf if one is not finite."""
    known = [value for value in values if value is not None]
    if not all(map(math.isfinite, known)):
        return math.inf
    return known or None


def _arithmetic(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if isinstance(known, list) else known


def _geometric(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    if not isinstance(known, list):
        return known
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
        f'<text class="tick" x="{LEFT}" y="{bottom + 17:.0f}">step {grid.columns[0][0]:,.0f}</text>'
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{bottom + 17:.0f}" text-anchor="end">step {last:,.0f}</text>'
    )
    hover = {
        "kind": "map",
        "box": [LEFT, TOP, WIDTH - RIGHT, bottom],
        "names": grid.names,
        "columns": grid.columns,
        "values": [[_json_value(value) for value in values] for values in grid.values],
        "share": scale == SHARE,
    }
    drawn = [_names(grid.names, row), _cells(grid, row, scale), _marked(grid, bottom, mark), ends]
    return svg_of(round(bottom + BOTTOM), label, "".join(drawn), hover)


def _json_value(value: float | None) -> float | str | None:
    return value if value is None else brief(value) if math.isfinite(value) else "not finite"


def _marked(grid: Grid, bottom: float, mark: Mark | None) -> str:
    """Return the mark, at the column in which its step is, or after which it is."""
    if mark is None:
        return ""
    column = sum(first <= mark.step for first, _ in grid.columns) - 1
    wide = (WIDTH - LEFT - RIGHT) / len(grid.columns)
    return mark_at(LEFT + (column + 0.5) * wide, bottom, mark.text)


def _cells(grid: Grid, row: float, scale: str) -> str:
    """Return the cells as one path for each shade."""
    wide = (WIDTH - LEFT - RIGHT) / len(grid.columns)
    shade = _shades(grid, scale)
    levels: dict[str, list[str]] = {}
    for number, values in enumerate(grid.values):
        for column, value in enumerate(values):
            if value is not None:
                left, top = LEFT + column * wide, TOP + number * row
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
        f'<text class="layer" x="{LEFT - 8}" y="{TOP + number * row + row / 2 + 3:.0f}" text-anchor="end">'
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
