"""Shows warnings of PyTorch at the user's line while PyTorch is watched.

NOTE [Whose line a warning has]
A warning belongs to the line of the frame that called PyTorch's function. Where that is watched, a frame of ours stands
between. Such a warning is given anew, for the user's line: so the program's filters see the user's module, and what is
shown once for a line is shown once for each of the user's. (A program that opens `catch_warnings(record=True)` inside a
watch records them as they come.)
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType

HERE = str(Path(__file__).parent)
WATCHING = tuple(f"{HERE}/{name}.py" for name in ("torch_watching", "torch_calls", "torch_backward"))


def show_at_users_lines(torch: ModuleType, user_frame: Callable) -> Callable[[], None]:
    """Begin to show warnings at the user's lines; return what ends it."""
    others = warnings.showwarning
    between = (*WATCHING, torch.overrides.__file__)

    def showwarning(message, category, filename, lineno, file=None, line=None):
        frame = _caller(sys._getframe(1))
        if filename not in between or frame is None:
            others(message, category, filename, lineno, file, line)
            return
        _forget(frame, filename, message, category)
        user = user_frame(frame, torch)
        place = user.f_code.co_filename, user.f_lineno
        registry = user.f_globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, *place, user.f_globals.get("__name__"), registry)

    def end() -> None:
        if warnings.showwarning is showwarning:
            warnings.showwarning = others

    warnings.showwarning = showwarning
    return end


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return the nearest frame that is not of the module `warnings` itself."""
    while frame is not None and frame.f_code.co_filename == warnings.__file__:
        frame = frame.f_back
    return frame


def _forget(frame: FrameType | None, filename: str, message, category) -> None:
    """Forget that a warning was given at a line of ours."""
    getattr(warnings, "onceregistry", {}).pop((str(message), category), None)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    if frame is not None:
        frame.f_globals.get("__warningregistry__", {}).clear()
