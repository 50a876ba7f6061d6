"""A picture as one static SVG file, for documents and notebooks: light or dark as the reader has it."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from backlight.lens.pictures.boxes import Box, Group, Picture
from backlight.lens.pictures.labels import EDGE, LABEL_SIZE, LINE_HEIGHT, LINE_SIZE, title_of
from backlight.lens.pictures.place import Plan, Route, Spot, place
from backlight.lens.records.nodes import LEAF
from backlight.report.text import FONT, printable, text_element, width_of

MARGIN, BEAD_RADIUS, CLOSED_TITLE = 16.0, 3.5, 18.0
LIGHT = """.paper{fill:#fffdf9}text{fill:#1f1b15}.quiet{fill:#6b6355}.wire{stroke:#8a8172}.head{fill:#8a8172}
.leaf{fill:#dcf2d6;stroke:#4f9a55}.op{fill:#fdf0c2;stroke:#c39a1c}.given{fill:#efeae0;stroke:#a49a88}
.closed{fill:#f6efe0;stroke:#b9a77f}.open{fill:#b9a77f;fill-opacity:.08;stroke:#cfc4ac}.bead{fill:#fffdf9;stroke:#8a8172}
.root{stroke:#b3541e}.rootmark{fill:#b3541e}.halo{stroke:#fffdf9}"""
DARK = """.paper{fill:#14130f}text{fill:#ece6da}.quiet{fill:#a89e8c}.wire{stroke:#8d8474}.head{fill:#8d8474}
.leaf{fill:#1d3822;stroke:#63b36b}.op{fill:#3a3113;stroke:#cfa833}.given{fill:#2a2720;stroke:#8d8474}
.closed{fill:#2b2619;stroke:#85774f}.open{fill:#85774f;fill-opacity:.1;stroke:#4a4433}.bead{fill:#14130f;stroke:#a89e8c}
.root{stroke:#ff9d5c}.rootmark{fill:#ff9d5c}.halo{stroke:#14130f}"""
LOOKS = """.look-same{fill:#f3f0ea;stroke:#b9b1a2}.look-added{fill:#dcf2d6;stroke:#2e7d32;stroke-width:2}
.look-gone{fill:#fbe0dc;stroke:#b3261e;stroke-width:2;stroke-dasharray:5 3}
.look-changed{fill:#fdecc0;stroke:#b07406;stroke-width:2;stroke-dasharray:1.5 2}"""
DARK_LOOKS = """.look-same{fill:#24211b;stroke:#6f6758}.look-added{fill:#1d3822;stroke:#63b36b}
.look-gone{fill:#43201c;stroke:#ff8a80}.look-changed{fill:#40310c;stroke:#ffb545}"""
STYLE = (
    f"text{{font-family:{FONT}}}.wire{{fill:none}}.halo{{fill:none;stroke-width:4;stroke-linejoin:round}}"
    ".label{font-weight:600}.small{font-weight:400}.root{stroke-width:2.5}" + LIGHT
)


def svg(picture: Picture, plan: Plan | None = None) -> str:
    """Return a picture as SVG.

    Args:
        plan: where everything is; by default as it is at first.
    """
    plan = plan or place(picture)
    width, height = plan.width + 2 * MARGIN, plan.height + 2 * MARGIN
    parts = [_rect("open", plan.spots[f"g{number}"], 10.0) for number in plan.opened[1:]]
    parts += [_wire(route, plan.sideways) for route in plan.routes]
    for item, spot in plan.spots.items():
        if item[0] == "n":
            parts.append(_box(picture.part(item), spot))
        elif item[0] == "g" and int(item[1:]) not in plan.opened:
            parts.append(_closed(picture.part(item), spot))
    parts += [_bead(picture, route, plan.sideways) for route in plan.routes if route.link.beads]
    parts += [_heading(picture.groups[number], plan.spots[f"g{number}"]) for number in plan.opened[1:]]
    looks, dark_looks = (LOOKS, DARK_LOOKS) if any(box.look for box in picture.boxes) else ("", "")
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-MARGIN:g} {-MARGIN:g} {width:.1f} {height:.1f}"'
    label = quoteattr(printable(picture.title or "A graph: leaves above, what is computed from them beneath"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={label}>'
        f"<style>{STYLE}{looks}@media (prefers-color-scheme:dark){{{DARK}{dark_looks}}}</style>"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
        'markerUnits="userSpaceOnUse"><path class="head" d="M0,0.8L8,4L0,7.2z"/></marker></defs>'
        f'<rect class="paper" x="{-MARGIN:g}" y="{-MARGIN:g}" width="{width:.1f}" height="{height:.1f}" rx="8"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _rect(kind: str, spot: Spot, radius: float, inset: float = 0.0, more: str = "") -> str:
    return (
        f'<rect class="{kind}" x="{spot.x + inset:.1f}" y="{spot.y + inset:.1f}" width="{spot.width - 2 * inset:.1f}" '
        f'height="{spot.height - 2 * inset:.1f}" rx="{radius - inset:g}"{more}/>'
    )


def _words(x: float, y: float, text: str, size: float, kind: str, **more) -> str:
    wide = width_of(text, size) * (1.06 if "label" in kind else 1.0)
    return text_element(x, y, text, size, **{"class": kind}, textLength=f"{wide:.1f}", **more)


def _box(box: Box, spot: Spot) -> str:
    middle = spot.x + spot.width / 2
    kind = box.kind + (" root" if box.root else "") + _look(box.look)
    if box.bead:
        return (
            f"<g>{_note(box)}{_rect(box.kind + _look(box.look), spot, spot.height / 2)}"
            f"{_words(middle, spot.y + spot.height / 2 + 4, box.label, LINE_SIZE, 'small', text_anchor='middle')}</g>"
        )
    radius = 14.0 if box.kind == LEAF else 6.0
    parts = [_note(box), _rect(kind, spot, radius)]
    if box.root:
        parts.append(_words(middle, spot.y + spot.height + 13, "root", LINE_SIZE, "rootmark", text_anchor="middle"))
    parts.append(_words(middle, spot.y + 18, title_of(box), LABEL_SIZE, "label", text_anchor="middle"))
    return f"<g>{''.join(parts)}{_lines(box.lines, middle, spot.y + 24 + 0.7 * LINE_HEIGHT)}</g>"


def _look(look: str) -> str:
    """Return the class of what a comparison says of it."""
    return f" look-{look}" if look else ""


def _note(box: Box) -> str:
    return f"<title>{escape(printable(' · '.join([title_of(box), *box.lines])))}</title>"


def _closed(group: Group, spot: Spot) -> str:
    middle = spot.x + spot.width / 2
    kind = "closed" + _look(group.look)
    borders = _rect(kind, spot, 6.0) + _rect(kind, spot, 6.0, 3.0, ' fill="none"')
    title = _words(middle, spot.y + 20, group.title, LABEL_SIZE, "label", text_anchor="middle")
    return f"<g>{borders}{title}{_lines(group.lines, middle, spot.y + 23 + 0.8 * LINE_HEIGHT)}</g>"


def _lines(lines: Sequence[str], middle: float, y: float) -> str:
    return "".join(
        _words(middle, y + LINE_HEIGHT * number, line, LINE_SIZE, "quiet", text_anchor="middle")
        for number, line in enumerate(lines)
    )


def _heading(group: Group, spot: Spot) -> str:
    text = group.title if group.detail in group.title else f"{group.title} · {group.detail}"
    while width_of(text, LINE_SIZE) * 1.06 > max(spot.width - 2 * EDGE, 40.0):
        text = text[:-2] + "…"
    halo = _words(spot.x + EDGE, spot.y + CLOSED_TITLE, text, LINE_SIZE, "label halo")
    return halo + _words(spot.x + EDGE, spot.y + CLOSED_TITLE, text, LINE_SIZE, "label")


def _wire(route: Route, sideways: bool) -> str:
    points = route.points
    path = [f"M{_at(points[0], sideways)}"]
    for upper, lower in zip(points[1:-1:2], points[2:-1:2]):
        middle = (upper[1] + lower[1]) / 2
        curve = [_at(point, sideways) for point in (upper, (upper[0], middle), (lower[0], middle), lower)]
        path.append("L{}C{} {} {}".format(*curve))
    path.append(f"L{_at(points[-1], sideways)}")
    heavy = 1.2 + 0.5 * math.log2(len(route.link.wires))
    head = ' marker-end="url(#head)"' if route.head else ""
    return f'<path class="wire" stroke-width="{heavy:.2g}" d="{"".join(path)}"{head}/>'


def _at(point: tuple[float, float], sideways: bool) -> str:
    x, y = point[::-1] if sideways else point
    return f"{x:.1f},{y:.1f}"


def _bead(picture: Picture, route: Route, sideways: bool) -> str:
    """Draw what lies on a link: dots on its last curve."""
    upper, lower = route.points[-3], route.points[-2]
    parts, beads = [], route.link.beads
    for number, bead in enumerate(beads, 1):
        share = number / (len(beads) + 1)
        x, y = _on_curve(upper, lower, share)
        x, y = (y, x) if sideways else (x, y)
        name = f"<title>{escape(printable(picture.boxes[bead].label))}</title>"
        look = _look(picture.boxes[bead].look)
        parts.append(f'<circle class="bead{look}" cx="{x:.1f}" cy="{y:.1f}" r="{BEAD_RADIUS:g}">{name}</circle>')
    return "".join(parts)


def _on_curve(upper: Sequence[float], lower: Sequence[float], share: float) -> tuple[float, float]:
    """Return the point of the wire's curve at a share of its way."""
    rest, middle = 1 - share, (upper[1] + lower[1]) / 2
    weights = rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3
    x = (weights[0] + weights[1]) * upper[0] + (weights[2] + weights[3]) * lower[0]
    return x, weights[0] * upper[1] + (weights[1] + weights[2]) * middle + weights[3] * lower[1]
