"""A record as one HTML page that stands alone: styles, script and data are in it, and it asks no network.

NOTE [The page's data]
The page holds one JSON text with the parts `record`, `picture` and, if there is one, `replay`. In `record`, what is
None or empty is left out, and a line of source is a number: its place in `places`, where each stands once. The script
puts back what is left out (lens/page/record.js). What a person wrote gets on the page as text only, never as HTML.
"""

import dataclasses
import json
import math
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from backlight.lens.nodes import Place, Summary
from backlight.lens.picture import picture_of
from backlight.lens.record import Record
from backlight.lens.render.tree import tree

HERE = Path(__file__).parent / "page"
SCRIPTS = (  # in this order: each may use at once what stands before it
    "elements",
    "numbers",
    "record",
    "ways",
    "picture",
    "faces",
    "scale",
    "place",
    "camera",
    "paint",
    "view",
    "search",
    "details",
    "keys",
    "replay",
    "page",
)
STYLES = ("page", "replay")
EMPTY = ("", [], {}, ())


def page_of(record: Record, *, by: str = "module", backward: int = -1, replay: bool = False) -> str:
    """Return a record as an HTML page.

    Args:
        by: how nodes are grouped, as in `picture_of`.
        backward: the number of the backward whose gradients are shown first; by default the last.
        replay: whether the page opens on the replay, at the beginning of the first backward.
    """
    picture = picture_of(record, by=by, backward=backward)
    places: dict[tuple, int] = {}
    data = {
        "record": _plain(record, places),
        "picture": picture.as_dict(),
        "replay": _replay(record, replay),
        "places": [dict(zip(("file", "line", "function", "text"), place)) for place in places],
    }
    return Template(_read("page.html")).substitute(
        title=escape(record.title or "graph"),
        versions=escape(" · ".join(f"{name} {version}" for name, version in record.versions.items())),
        style="\n".join(_read(f"{name}.css") for name in STYLES),
        script=script(),
        data=island(data),
        tree=escape(tree(picture, width=100, color=False)),
    )


def _replay(record: Record, opened: bool) -> dict:
    """Return the steps of the replay; what is empty is left out."""
    steps = record.replay().as_dict()["steps"]
    return {
        "open": opened,
        "steps": [{name: one for name, one in step.items() if one is not None and one not in EMPTY} for step in steps],
    }


def island(data) -> str:
    """Return data as JSON that may stand inside HTML: no text in it can end the element that it stands in."""
    told = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def script() -> str:
    """Return the page's script: its files, one after another."""
    return "\n".join(_read(f"{name}.js") for name in SCRIPTS)


@cache
def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _plain(value, places: dict[tuple, int]):
    """Return a part of a record as JSON has it (see NOTE [The page's data])."""
    if isinstance(value, Place):
        return places.setdefault((value.file, value.line, value.function, value.text), len(places))
    if isinstance(value, (list, tuple)):
        return [_plain(one, places) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one, places) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = _names_of(type(value))
    if not names:
        return value
    found = ((name, getattr(value, name)) for name in names)
    if isinstance(value, Summary):  # an empty tensor has values, and False is one
        return {name: _plain(one, places) for name, one in found if one is not None}
    return {name: _plain(one, places) for name, one in found if not (one is None or one is False or one in EMPTY)}


@cache
def _names_of(kind: type) -> list[str]:
    """Return the names of a dataclass's fields; none of other types."""
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
