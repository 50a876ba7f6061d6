"""Which line is the user's: the innermost one outside of the engines, of Python's library and of installed packages."""

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from backlight.engine.provenance import GENERATED, PACKAGE, line_number
from backlight.lens.engines import Engine
from backlight.lens.records.record import Place

LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
NOT_FILES = (GENERATED, "<frozen", "<__array_function__", "<string>", "<@beartype")


class Located(Protocol):
    """What happened at an instruction of the user's program: a call, a backward, a cut."""

    code: CodeType
    lasti: int


class Instruction(NamedTuple):
    """An instruction of the user's program."""

    code: CodeType
    lasti: int


@lru_cache(maxsize=1024)
def is_users(filename: str) -> bool:
    """Return whether a file is the user's own."""
    return not filename.startswith((PACKAGE, *NOT_FILES)) and not filename.startswith(LIBRARIES)


def place_at(code: CodeType, line: int | None) -> Place:
    """Return a line of a code object."""
    number = line or code.co_firstlineno
    text = linecache.getline(code.co_filename, number).strip()
    return Place(code.co_filename, number, code.co_name, text)


def users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Give the user's frames that are running, the innermost first."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def place_of(event: Located) -> Place:
    """Return the line at which something happened."""
    return place_at(event.code, line_number(event.code, event.lasti))


def place_of_frame(frame: FrameType | None = None) -> Place | None:
    """Return the user's innermost line that is running, from `frame` outwards; None if no frame is the user's."""
    user = next(users_frames(frame or sys._getframe(1)), None)
    return None if user is None else place_at(user.f_code, user.f_lineno)


def place_of_node(engine: Engine, node: Any) -> Place | None:
    """Return the user's line that made a node."""
    line = engine.line_of(node)
    return None if line is None else Place(*line)


def brief(place: Place | None) -> str:
    """Return a line as evidence names it where several files may be meant: `train.py:12`."""
    return "an unknown line" if place is None else f"{place.file.rpartition('/')[2]}:{place.line}"


def brief_at(event: Located) -> str:
    """Return the line at which something happened as `brief` does."""
    return brief(place_of(event))


def shown(place: Place | None) -> str:
    """Return a line with its text: `line 3: h = a * 1`."""
    if place is None:
        return "an unknown line"
    return f"line {place.line}" + (f": {place.text}" if place.text else "")
