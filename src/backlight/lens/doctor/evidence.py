"""How evidence names things: the user's variables, lines of source, numbers."""

import io
import sys
import tokenize
from collections.abc import Mapping, Sequence
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

from backlight.lens.doctor.places import users_frames
from backlight.lens.engines import Engine
from backlight.lens.records.record import Place

COPIED = sys.version_info < (3, 13)  # whether `frame.f_locals` is a copy, which the frame keeps
HELD_BY_FRAME = 3  # references to it then: the frame's, ours, the count's


def name_in(frame: FrameType | None, value: Any) -> str | None:
    """Return the user's variable that holds a value, in a frame or those outside of it."""
    for inner in users_frames(frame):
        name = _local_name(inner, value) or _name_among(inner.f_globals, value)
        if name is not None:
            return name
    return None


def name_of(value: Any) -> str:
    """Return the user's variable that holds a value, or its class."""
    return name_in(sys._getframe(1), value) or type(value).__name__


def owned_name(tensor: Any, engine: Engine) -> str | None:
    """Return a parameter's name as that of a part of a module that a variable holds: `old.weight`."""
    for frame in users_frames(sys._getframe(1)):
        for space in (frame.f_globals, frame.f_locals):
            name = _owned_among(dict(space), tensor, engine.module.nn.Module)
            if name is not None:
                return name
    return None


def _owned_among(names: dict[str, Any], tensor: Any, kind: type) -> str | None:
    for name, value in names.items():
        if isinstance(value, kind) and name.isidentifier():
            for path, parameter in value.named_parameters():
                if parameter is tensor:
                    return f"{name}.{path}"
    return None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return a frame's local variables, and let go of the copy that looking has made, as `_local_name` does."""
    names = frame.f_locals
    found = dict(names)
    if COPIED and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(names) <= HELD_BY_FRAME:
        names.clear()
    return found


def _local_name(frame: FrameType, value: Any) -> str | None:
    """Return the local variable that holds a value, and let go of the copy of all locals that looking has made.

    Before Python 3.13 a function's frame keeps that copy, and with it what the program deletes later. It is emptied
    unless something else has it, from `locals()`.
    """
    names = frame.f_locals
    found = _name_among(names, value)
    if COPIED and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(names) <= HELD_BY_FRAME:
        names.clear()
    return found


def _name_among(names: Mapping[str, Any], value: Any) -> str | None:
    return next((name for name, held in list(names.items()) if held is value and name.isidentifier()), None)


def code_of(place: Place) -> str:
    """Return a line without its comment."""
    text = place.text
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                return text[: token.start[1]].rstrip()
    except (tokenize.TokenError, SyntaxError):
        return text
    return text


def replaced(text: str, old: str, new: str) -> str | None:
    """Return a line with one piece of it replaced; None unless it stands there once."""
    return text.replace(old, new) if text.count(old) == 1 else None


def path_from(*steps: str) -> tuple[str, ...]:
    """Return the path from a loss, as findings show it: `loss ← MulBackward0 ← w`."""
    return steps[0], *(f"← {step}" for step in steps[1:])


def short(number: float) -> str:
    """Return a number in a few digits."""
    return f"{number:.4g}"


def counted(count: int, thing: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
