"""Where in the user's code a node was made: kept as (code, lasti), turned into file and line only on demand."""

import linecache
import os
import sys
from types import CodeType, FrameType

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
GENERATED = "<backlight "


USER_FILES: set[str] = set()  # file names known not to be backlight's own
_own_files: set[str] = set()  # file names known to be


class _Latest:
    """The user's code object that last called an op: comparing with it is cheaper than looking up its file name."""

    __slots__ = ("code",)

    def __init__(self):
        self.code = None


latest = _Latest()


def user_frame(frame: FrameType):
    """Return `frame`, or the nearest one further out that is not backlight's own code."""
    while True:
        filename = frame.f_code.co_filename
        if filename not in _own_files:
            if filename in USER_FILES:
                return frame
            if not filename.startswith((PACKAGE, GENERATED)):
                USER_FILES.add(filename)
                return frame
            _own_files.add(filename)
        if frame.f_back is None:
            return frame
        frame = frame.f_back


def frame_of(code: CodeType):
    """Return the innermost frame of this thread that runs a code object."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def user_place(depth: int = 1):
    """Return (code, lasti) of the nearest frame that is not backlight's own."""
    frame = user_frame(sys._getframe(depth))
    return frame.f_code, frame.f_lasti


def line_number(code: CodeType, lasti: int) -> int:
    """Return the line of the instruction at `lasti`."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end:
            return number if number is not None else line
    return line


def describe_place(code: CodeType | None, lasti: int) -> str:
    """Return `file:line: source`, as far as known."""
    if code is None:
        return "an unknown line"
    number = line_number(code, lasti)
    source = linecache.getline(code.co_filename, number).strip()
    return f"{code.co_filename}:{number}" + (f": {source}" if source else "")
