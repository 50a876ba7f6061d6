"""A record as one self-contained HTML page: styles, script and data are in it, and it needs no network.

NOTE [The page's data]
The page holds one JSON text with the parts `record`, `picture`, `depths` and `replay`. What is None or empty is left
out, and numbers have seven figures. A line of source, and a summary of a tensor, is a number: its place in `places` or
`summaries`, where each stands once: outgoing and incoming gradients of an edge are the same. The script puts back
what is left out (lens/pictures/page/record.js). What a person wrote gets on the page as text only, never as HTML.
"""

import dataclasses
import math
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from backlight.lens.pictures.boxes import gc_paused
from backlight.lens.pictures.picture import Picture, picture_of
from backlight.lens.pictures.text import tree
from backlight.lens.records.depths import depths_of
from backlight.lens.records.nodes import Place, Recorded, Summary
from backlight.lens.replays.replay import NOTHING
from backlight.report.page import TOKENS, data_script, filled, joined, json_island

HERE = Path(__file__).parent / "page"
SCRIPTS = (  # in this order: each may use at once what stands before it
    *("elements", "numbers", "record", "ways", "picture", "faces", "scale", "place", "camera"),
    *("paint", "notes", "view", "depths", "search", "details", "keys", "replay", "page"),
)
STYLES = ("page", "replay", "depths")
MOST_REPLAYED = 1000  # nodes of a record whose replay comes with every page
EMPTY = (None, "", [], {}, ())
AS_THEY_ARE = {str, int, bool, type(None)}


class PagedBox(NamedTuple):
    """What the page needs of a picture's box: the rest it draws by itself."""

    id: int
    group: int
    bead: bool
    look: str
    mask: bool


@gc_paused
def page_of(
    record: Recorded,
    *,
    by: str = "module",
    backward: int = -1,
    replay: bool = False,
    picture: Picture | None = None,
) -> str:
    """Return a record as an HTML page.

    Args:
        by: how nodes are grouped, as in `picture_of`.
        backward: the number of the backward whose gradients are shown first; by default the last.
        replay: whether the page opens on the replay, at the beginning of the first backward.
        picture: the record's picture, if it has been made; the boxes of a comparison have a `look`.
    """
    picture = picture or picture_of(record, by=by, backward=backward)
    spots = [PagedBox(box.id, box.group, box.bead, box.look, box.mask) for box in picture.boxes]
    tables = Tables()
    data = {
        "record": tables.plain(record),
        "picture": tables.plain(dataclasses.replace(picture, boxes=spots)),
        "depths": [tables.plain(depths_of(record.nodes, one)) for one in record.backwards],
        "replay": _replay(record, replay, tables),
        **tables.as_dict(),
    }
    return filled(
        HERE / "page.html",
        title=escape(record.title or "graph"),
        versions=escape(" · ".join(f"{name} {version}" for name, version in record.versions.items())),
        style=joined(TOKENS, *(HERE / f"{name}.css" for name in STYLES)),
        script=data_script(*(HERE / f"{name}.js" for name in SCRIPTS)),
        data=json_island(data),
        nothing="" if record.nodes else f'<p class="nothing">{NOTHING.capitalize()}.</p>\n',
        tree=escape(tree(picture, width=100, color=False)),
    )


def _replay(record: Recorded, opened: bool, tables: "Tables") -> dict:
    """Return the steps of the replay; a large record has them only on request."""
    if len(record.nodes) > MOST_REPLAYED and not opened:
        return {"left_out": len(record.nodes)}
    return {"open": opened, "steps": tables.plain(record.replay().steps)}


class Tables:
    """What stands many times in a record, once each, and numbered."""

    def __init__(self):
        self.places: dict[tuple, int] = {}
        self.summaries: dict[str, tuple[int, dict]] = {}

    def plain(self, value: object):
        """Return a part of a record or of a picture as JSON has it (see NOTE [The page's data])."""
        kind = type(value)
        if kind in AS_THEY_ARE:
            return value
        if isinstance(value, float):
            return float(f"{value:.7g}") if math.isfinite(value) else str(value)
        if kind is list or isinstance(value, tuple):
            return [self.plain(one) for one in value]
        if kind is dict:
            return {name: self.plain(one) for name, one in value.items()}
        if kind is Place:
            return self.places.setdefault((value.file, value.line, value.function, value.text), len(self.places))
        if kind is Summary:
            fields = {name: self.plain(getattr(value, name)) for name in _names_of(Summary)}
            known = {name: one for name, one in fields.items() if one is not None}
            number, _ = self.summaries.setdefault(repr(known), (len(self.summaries), known))
            return number
        fields = [(name, getattr(value, name)) for name in _names_of(kind)]
        return {name: self.plain(one) for name, one in fields if one not in EMPTY} if fields else value

    def as_dict(self) -> dict:
        """Return the tables as lists."""
        return {
            "places": [dict(zip(("file", "line", "function", "text"), place)) for place in self.places],
            "summaries": [summary for _, summary in self.summaries.values()],
        }


@cache
def _names_of(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
