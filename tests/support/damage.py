"""JSON texts damaged at random, and records of the lens: what becomes of one that was damaged."""

import copy
import json
import random
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from lens_programs import (
    accumulated_twice,
    hooked,
    retained,
    second_order,
    several_outputs,
    shared_leaf,
    softmax_regression,
    view_written,
)

import backlight
from backlight import lens
from backlight.errors import BacklightError
from backlight.lens.differences.diff import diff
from backlight.lens.records.reading import read_record

PROGRAMS = [
    accumulated_twice,
    hooked,
    retained,
    second_order,
    several_outputs,
    shared_leaf,
    softmax_regression,
    view_written,
]
MUST_REFUSE = frozenset({"renamed", "dropped field", "number as text", "number as truth", "cut values", "NaN", "twice"})
VALUES = [[], {}, "x", "nan", "", [1], [[]], {"a": 1}, None, True, 0, -1, 0.5, 1e308, 2**31, 2**63 - 1, 2**64, 10**30]
FREE = {"options", "modules", "unread", "versions"}  # objects whose names are the program's


def damaged(rng: random.Random, text: str) -> tuple[str, str]:
    """Return what was done to a JSON text, and the result."""
    if rng.random() < 0.15:
        return _bytes_damaged(rng, text)
    plain = json.loads(text)
    for _ in range(100):
        kind = _change(rng, plain)
        if kind is not None:
            return kind, json.dumps(plain)
    return "as it was", text


def _bytes_damaged(rng: random.Random, text: str) -> tuple[str, str]:
    place = rng.randrange(len(text))
    trick = rng.randrange(4)
    if trick == 0:
        return "cut off", text[:place]
    if trick == 1:
        return "a byte", text[:place] + chr(rng.randrange(32, 127)) + text[place + 1 :]
    if trick == 2:
        start = text.index("{", rng.randrange(max(1, text.rindex("{"))))
        return "twice", text[: start + 1] + '"twice": 1, "twice": 1, ' + text[start + 1 :]
    start = text.index(": ") + 2
    return "NaN", text[:start] + rng.choice(["NaN", "Infinity", "-Infinity", "1e999"]) + text[start + 1 :]


def _places(value, way=()) -> Iterator[tuple]:
    if way:
        yield way
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield from _places(inner, (*way, name))


def _change(rng: random.Random, plain) -> str | None:
    """Change one place; return what was done, None if that cannot be done there."""
    way = rng.choice(list(_places(plain)))
    holder = plain
    for part in way[:-1]:
        holder = holder[part]
    name, value = way[-1], holder[way[-1]]
    fixed = isinstance(holder, dict) and not FREE & set(way[:-1])
    number = type(value) in (int, float) and not FREE & set(way)
    trick = rng.choice(["rename", "drop", "text", "truth", "value", "number", "sign", "cut", "swap", "twin"])
    if trick == "rename" and fixed:
        holder[f"{name}_"] = holder.pop(name)
        return "renamed"
    if trick == "drop":
        del holder[name]
        return "dropped field" if fixed else "dropped entry"
    if trick == "text" and number:
        holder[name] = str(value)
        return "number as text"
    if trick == "truth" and number and "values" not in way:
        holder[name] = bool(value)
        return "number as truth"
    if trick == "value":
        holder[name] = copy.deepcopy(rng.choice(VALUES))
        return "another value"
    if trick == "number" and number:
        holder[name] = value + rng.choice([1, -1, 10, 0.5, 1e30, -1e30])
        return "another number"
    if trick == "sign" and number:
        holder[name] = -value
        return "another sign"
    if trick == "cut" and isinstance(value, list) and value:
        del value[rng.randrange(len(value)) :]
        return "cut values" if name == "values" else "cut list"
    if trick in ("swap", "twin") and isinstance(holder, list):
        other = rng.randrange(len(holder))
        if trick == "twin":
            holder.insert(name, copy.deepcopy(value))
        else:
            holder[name], holder[other] = holder[other], holder[name]
        return f"{trick} of entries"
    return None


@cache
def real_records() -> list[str]:
    """Return records of small programs, as JSON."""
    found = []
    for program in PROGRAMS:
        for values in ("summary", "full"):
            with lens.watch(engine="backlight", values=values) as watch, warnings.catch_warnings(action="ignore"):
                program(backlight)
            found.append(watch.record.to_json())
    return found


def trouble_with_record(text: str, original: str) -> tuple[str | None, bool]:
    """Read a record and use it; return what went wrong, if anything, and whether it was accepted."""
    try:
        record = read_record(text if text.lstrip().startswith("{") else "{" + text)
    except ValueError as problem:
        return one_line(problem), False
    except Exception as problem:
        return f"reading ended in {type(problem).__name__}: {problem}", False
    other = read_record(original)
    for name, use in _uses(record, other).items():
        try:
            use()
        except Exception as problem:
            return f"{name} ended in {described(problem)}", True
    return None, True


def _uses(record, other) -> dict[str, Callable]:
    return {
        "tree": record.tree,
        "svg": record.svg,
        "dot": record.dot,
        "page": lambda: record.html(replay=True),
        "replay": lambda: (record.replay().text(), record.replay().to_json()),
        "diff": lambda: _shown(diff(other, record)),
        "diff back": lambda: _shown(diff(record, other)),
        "why": lambda: [str(record.why(node.id)) for node in record.nodes[:8]],
        "saving": lambda: read_record(record.to_json()),
    }


def _shown(found) -> None:
    found.text(), found.text(details=True), found.to_json(), found.svg()


def one_line(problem: ValueError) -> str | None:
    said = str(problem)
    if not isinstance(problem, BacklightError):
        return f"refused by {described(problem)}"
    return None if said and "\n" not in said and len(said) < 1000 else f"refused in {said[:200]!r}"


def described(problem: BaseException) -> str:
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} at {Path(last.filename).name}:{last.lineno}: {str(problem)[:150]}"


def play_records(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage a record; return what went wrong, if anything, and whether it was accepted."""
    original = rng.choice(real_records())
    kind, text = damaged(rng, original)
    trouble, accepted = trouble_with_record(text, original)
    if trouble is None and accepted and kind in MUST_REFUSE:
        trouble = "was accepted"
    return (f"{kind}: {trouble}" if trouble else ""), accepted
