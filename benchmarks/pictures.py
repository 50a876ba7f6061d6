"""Pictures of benchmarks as SVG files that are legible on light and on dark pages."""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape

from measure import FLOOR, OURS, RIVAL

WIDTH, LEFT, RIGHT, TOP, LINE, BOTTOM = 800, 270, 70, 34, 20, 34
PANEL, GAP = 200, 34  # height of a growth panel, and between two
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.faint { fill: #57606a } .rule { stroke: #d0d7de } .even { stroke: #57606a; stroke-dasharray: 4 3 }
.good { fill: #1a7f37 } .bad { fill: #bc4c00 } .spread { stroke: #24292f; stroke-width: 1.2 }
.asked { stroke: #8250df; stroke-width: 2 } .asked-key { fill: #8250df }
.ours { stroke: #0969da; fill: none; stroke-width: 2 } .theirs { stroke: #bc4c00; fill: none; stroke-width: 2 }
.ours-key { fill: #0969da } .theirs-key { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .rule { stroke: #3d444d } .even { stroke: #9198a1 }
.good { fill: #3fb950 } .bad { fill: #f0883e } .spread { stroke: #e6edf3 }
.asked { stroke: #bc8cff } .asked-key { fill: #bc8cff }
.ours { stroke: #58a6ff } .theirs { stroke: #f0883e } .ours-key { fill: #58a6ff } .theirs-key { fill: #f0883e } }
"""


def ratio_picture(title: str, rows: Sequence[Mapping]) -> str:
    """Return our time over each rival's as bars from 1, on a scale of powers of two; whiskers are quartiles."""
    lines = [
        (_label(row, name), ratio, _asked(row, name))
        for row in rows
        for name, ratio in row["ratios"].items()
        if name not in (FLOOR, "nothing")
    ]
    extremes = [value for _, ratio, asked in lines for value in (*ratio, asked or 1)]
    low = 2.0 ** math.floor(math.log2(min([*extremes, 0.5])))
    high = 2.0 ** math.ceil(math.log2(max([*extremes, 2.0])))

    def across(value: float) -> float:
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    height = TOP + LINE * len(lines) + BOTTOM
    drawn = [f'<text x="{WIDTH / 2:.0f}" y="16" text-anchor="middle">{escape(title)}</text>']
    for power in range(round(math.log2(low)), round(math.log2(high)) + 1):
        x, kind = across(2.0**power), "rule" if power else "even"
        drawn.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - BOTTOM + 2}"/>')
        drawn.append(f'<text class="faint" x="{x:.1f}" y="{height - 16}" text-anchor="middle">{2.0**power:g} ×</text>')
    for number, (label, ratio, asked) in enumerate(lines):
        drawn.append(_bar(label, ratio, asked, TOP + number * LINE, across))
    drawn.append(
        f'<text class="faint" x="8" y="{height - 16}">backlight’s time over it '
        f'<tspan class="asked-key">| asked</tspan></text>'
    )
    return _svg(height, f"{title}: backlight's time over its rivals'", drawn)


def _label(row: Mapping, rival: str) -> str:
    return row["row"] if rival == RIVAL else f"{row['row']}: {rival.removeprefix('torch, ')}"


def _asked(row: Mapping, rival: str) -> float | None:
    found = [bar["at_most"] for bar in row["bars"] if bar["of"] == "time" and rival in bar["against"]]
    return found[0] if found else None


def _bar(label: str, ratio: Sequence[float], asked: float | None, y: float, across) -> str:
    low, middle, high = ratio
    left, right = sorted((across(1), across(middle)))
    kind, centre = "good" if middle <= 1 else "bad", y + LINE / 2
    parts = [
        f'<text x="{LEFT - 8}" y="{centre + 4:.1f}" text-anchor="end">{escape(label)}</text>',
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{max(right - left, 1):.1f}" height="{LINE - 8}"/>',
        f'<line class="spread" x1="{across(low):.1f}" x2="{across(high):.1f}" y1="{centre}" y2="{centre}"/>',
        f'<text x="{WIDTH - RIGHT + 12}" y="{centre + 4:.1f}">{middle:.2f}</text>',
    ]
    if asked is not None:
        x = across(asked)
        parts.append(f'<line class="asked" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + LINE - 1}"/>')
    return "".join(parts)


def growth_picture(rows: Sequence[Mapping]) -> str:
    """Return time and peak memory over the size, both axes logarithmic: a line of panels for each kind of work."""
    kinds: dict[str, list] = {}
    for row in rows:
        kind, size, unit = re.fullmatch(r"(\D+?),? (?:batch )?([\d,]+) ?(.*)", row["row"]).groups()
        what = unit or "in a batch"
        kinds.setdefault(f"{kind}, {what}", []).append((float(size.replace(",", "")), row))
    drawn, y = [], TOP
    for kind, points in kinds.items():
        for column, (name, read) in enumerate(MEASURES.items()):
            lines = {who: [(size, read(row, who)) for size, row in points if _has(row, name, who)] for who in BOTH}
            drawn.append(_panel(f"{kind}: {name}", lines, 62 + column * 370, y))
        y += PANEL + GAP
    names = "  ".join(f'<tspan class="{kind}-key">— {name}</tspan>' for name, kind in BOTH.items())
    key = f'<text x="62" y="16">{names}</text>'
    return _svg(y, "time and peak memory as the size grows", [key, *drawn])


BOTH = {OURS: "ours", RIVAL: "theirs"}
MEASURES = {
    "ms": lambda row, who: row["seconds"][who][1] * 1e3,
    "MiB at the peak": lambda row, who: row["memory"][who]["peak"],
}


def _has(row: Mapping, measure: str, who: str) -> bool:
    return who in (row["seconds"] if measure == "ms" else row["memory"])


def _panel(title: str, lines: Mapping[str, list], left: float, top: float) -> str:
    points = [point for line in lines.values() for point in line]
    if not points:
        return ""
    wide, high = 300, PANEL - 50
    sizes, values = ([math.log10(point[axis]) for point in points] for axis in (0, 1))
    ticks = _decades(min(values), max(values))
    low, top_value = min(*ticks, *values), max(*ticks, *values)

    def place(size: float, value: float) -> tuple[float, float]:
        across = (math.log10(size) - min(sizes)) / ((max(sizes) - min(sizes)) or 1)
        up = (math.log10(value) - low) / ((top_value - low) or 1)
        return left + across * wide, top + 20 + (1 - up) * high

    parts = [f'<text x="{left}" y="{top + 6}">{escape(title)}</text>']
    for tick in ticks:
        _, y = place(points[0][0], 10**tick)
        parts.append(f'<line class="rule" x1="{left}" x2="{left + wide}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="faint" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_plain(10**tick)}</text>')
    for size in sorted({size for size, _ in points}):
        x, _ = place(size, points[0][1])
        parts.append(f'<text class="faint" x="{x:.1f}" y="{top + high + 38}" text-anchor="middle">{size:,.0f}</text>')
    for who, line in lines.items():
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        parts.append(f'<polyline class="{BOTH[who]}" points="{path}"/>')
        parts += [
            '<circle class="{}-key" cx="{:.1f}" cy="{:.1f}" r="3"/>'.format(BOTH[who], *place(*point)) for point in line
        ]
    return "".join(parts)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.3g}"


def _decades(low: float, high: float) -> list[float]:
    """Return the powers of ten around logarithms; where they span less than one, steps of 1, 2 and 5 too.

    >>> _decades(0.3, 2.7)
    [0, 1, 2, 3]
    """
    if high - low > 1:
        return list(range(math.floor(low), math.ceil(high) + 1))
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps = [math.log10(part) + power for power in powers for part in (1, 2, 5)]
    inside = [step for step in steps if low - 0.4 <= step <= high + 0.4]
    return inside or [low, high]


def _svg(height: float, label: str, parts: Sequence[str]) -> str:
    frame = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame}><style>{STYLE}</style>{"".join(parts)}</svg>\n'
