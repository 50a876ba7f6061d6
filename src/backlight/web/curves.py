"""Curves as SVG that reads on light and on dark pages: one line a method, named at its end."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 56, 214, 40, 50
LINE = 15  # least distance of two names
Place = Callable[[float, float], tuple[float, float]]  # of a share and a value in the picture
COLOURS = 6  # lines that have a colour of their own; the others are grey
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.faint { fill: #57606a } .rule { stroke: #d0d7de } .line { fill: none; stroke-width: 2; stroke-linejoin: round }
.l0 { stroke: #0969da } .l1 { stroke: #bc4c00 } .l2 { stroke: #1a7f37 } .l3 { stroke: #8250df } .l4 { stroke: #9a6700 }
.l5 { stroke: #bf3989 } .n0 { fill: #0969da } .n1 { fill: #bc4c00 } .n2 { fill: #1a7f37 } .n3 { fill: #8250df }
.n4 { fill: #9a6700 } .n5 { fill: #bf3989 } .grey { stroke: #8c959f; stroke-width: 1.2 } .tie { stroke: #d0d7de }
.control { stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .rule, .tie { stroke: #3d444d } .grey { stroke: #6e7681 }
.l0 { stroke: #58a6ff } .l1 { stroke: #f0883e } .l2 { stroke: #3fb950 } .l3 { stroke: #bc8cff } .l4 { stroke: #d29922 }
.l5 { stroke: #ff7bc5 } .n0 { fill: #58a6ff } .n1 { fill: #f0883e } .n2 { fill: #3fb950 } .n3 { fill: #bc8cff }
.n4 { fill: #d29922 } .n5 { fill: #ff7bc5 } }
"""


def curves(
    title: str, shares: Sequence[float], lines: Mapping[str, Sequence[float]], controls: Sequence[str] = ()
) -> str:
    """Return curves over shares of words, from 0 to 1.

    Args:
        shares: where the lines have values, rising.
        lines: the values of each by its name, the most important first: the first few have colours.
        controls: names of lines that are drawn dashed.
    """
    values = [value for line in lines.values() for value in line]
    ticks = _ticks(min([0.0, *values]), max([1e-9, *values]))

    def place(share: float, value: float) -> tuple[float, float]:
        across = LEFT + share * (WIDTH - LEFT - RIGHT)
        up = (value - ticks[0]) / (ticks[-1] - ticks[0])
        return across, HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    drawn = [f'<text x="{LEFT}" y="20">{escape(title)}</text>', *_axes(ticks, place)]
    for number, (name, line) in reversed(list(enumerate(lines.items()))):
        kind = f"l{number}" if number < COLOURS else "grey"
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in zip(shares, line))
        dashed = " control" if name in controls else ""
        drawn.append(f'<polyline class="line {kind}{dashed}" points="{path}"><title>{escape(name)}</title></polyline>')
    drawn += _names(lines, place)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><style>{STYLE}</style>{"".join(drawn)}</svg>'
    )


def _axes(ticks: Sequence[float], place: Place) -> list[str]:
    right = WIDTH - RIGHT
    drawn = []
    for tick in ticks:
        _, y = place(0, tick)
        drawn.append(f'<line class="rule" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for percent in range(0, 101, 20):
        x, _ = place(percent / 100, 0)
        drawn.append(f'<text class="faint" x="{x:.1f}" y="{HEIGHT - 30}" text-anchor="middle">{percent} %</text>')
    middle = (LEFT + right) / 2
    drawn.append(f'<text class="faint" x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle">words left out</text>')
    return drawn


def _names(lines: Mapping[str, Sequence[float]], place: Place) -> list[str]:
    """Return the name of each line, in the order of the lines half-way, with a tie from the line to it."""
    half = {name: line[len(line) // 2] for name, line in lines.items()}
    heights = [place(0, half[name])[1] for name in sorted(half, key=lambda name: -half[name])]
    drawn, before = [], -1e9
    start = min(heights[0], HEIGHT - BOTTOM - LINE * (len(heights) - 1)) if heights else 0
    for number, name in enumerate(sorted(half, key=lambda name: -half[name])):
        y = max(heights[number], before + LINE) if number else max(TOP, start)
        before, rank = y, list(lines).index(name)
        kind = f"n{rank}" if rank < COLOURS else "faint"
        drawn.append(f'<text class="{kind}" x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">{escape(name)}</text>')
    return drawn


def _ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers from below `low` to above `high`."""
    size = 10.0**-6
    while (high - low) / size > 6:
        size *= 2.5 if str(f"{size:e}")[0] == "2" else 2
    first, last = int(low // size), int(-(-high // size))
    return [round(number * size, 10) for number in range(first, last + 1)]
