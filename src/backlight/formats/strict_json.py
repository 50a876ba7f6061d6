"""Plain data from files: JSON that is read strictly, and bounds that the fields of a dataclass state.

NOTE [Strict JSON]
A file that may be damaged, or made to do harm, is read as JSON of RFC 8259 and nothing else: UTF-8 without lone
surrogates, no NaN and no infinity (also none written as 1e999), no name twice in one object, no number of thousands of
digits, no nesting so deep that the reader's stack ends. `backlight.formats.schema.validated` then checks what it says.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from backlight.errors import InputError

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
LARGEST = 2**63 - 1  # of PyTorch's sizes and indices


@dataclass(frozen=True)
class Bounds:
    """What a number may be, in an `Annotated` field: at least `ge`, more than `gt`, at most `le`.

    Args:
        words: the same for a message: "must be …".
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    words: str = ""


Whole = Annotated[int, Bounds(-LARGEST - 1, le=LARGEST)]
Count = Annotated[int, Bounds(0, le=LARGEST)]
Positive = Annotated[int, Bounds(1, le=LARGEST)]
AtLeast0 = Annotated[float, Bounds(0)]


def parse_json(content: bytes | str, *, finite: bool = True) -> object:
    """Return what a JSON text says (see NOTE [Strict JSON]).

    Args:
        finite: whether numbers must be; else NaN and Infinity are read as Python writes them.

    Raises:
        ValueError: it is no such text; the message says where and why.
    """
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    try:
        found = json.loads(
            raw.decode("utf-8"),
            parse_constant=_no_constant if finite else float,
            parse_float=_finite if finite else float,
            object_pairs_hook=_without_doubles,
        )
        if SURROGATE.search(raw):
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as problem:
        raise ValueError(f"it must be UTF-8, and byte {problem.start} is not") from None
    except UnicodeEncodeError:
        raise ValueError("a text in it has half of a surrogate pair, which is no character") from None
    return found


def read_json_file(file: Path) -> object:
    """Return what a JSON file says (see NOTE [Strict JSON]).

    Raises:
        InputError: it cannot be read, or is no such JSON.
    """
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    try:
        return parse_json(content)
    except ValueError as problem:
        raise InputError(f"{file} is not JSON: {problem}") from problem


def _no_constant(text: str):
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is beyond the numbers of float64")
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {double[:40]!r} twice")
    return found
