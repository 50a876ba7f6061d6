"""Warnings that a program gives, turned into findings; they are shown as they would have been without the doctor.

NOTE [Seeing warnings that nobody shows]
A filter in front of all others lets the warnings that the doctor knows reach `warnings.showwarning` every time. Whether
such a warning is then shown is decided by the filters behind it, as Python would have decided.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

from backlight.graph.provenance import PACKAGE
from backlight.lens.doctor.messages import WARNINGS, rule_of_warning
from backlight.lens.doctor.source import spot_of_frame


class Notices:
    """Tells `found(rule, text, spot)` of each warning that the doctor knows (NOTE [Seeing warnings …])."""

    def __init__(self, found: Callable, engines: tuple):
        self.found = found
        self.modules = [engine.module for engine in engines]
        self.behind: list = []
        self.shown: set = set()

    def __enter__(self):
        self.show = warnings.showwarning
        self.always = [module.is_warn_always_enabled() for module in self.modules]
        for module in self.modules:
            module.set_warn_always(True)
        self.block = warnings.catch_warnings()
        self.block.__enter__()
        self.behind = list(warnings.filters)
        for message in WARNINGS:
            warnings.filterwarnings("always", message=f"(?s:.*){message.pattern.pattern}")
        warnings.showwarning = self.hear
        return self

    def __exit__(self, *exc):
        self.block.__exit__(*exc)
        for module, before in zip(self.modules, self.always):
            module.set_warn_always(before)

    def hear(self, message, category, filename: str, lineno: int, file=None, line=None) -> None:
        """Take a warning in, and show it if it would have been shown."""
        rule, spot = rule_of_warning(str(message)), spot_of_frame(sys._getframe(1))
        if spot is not None and filename.startswith(PACKAGE):  # seen from where PyTorch is watched
            filename, lineno = spot.file, spot.line
        if rule is not None:
            self.found(rule, str(message), spot)
            if not self.wanted(message, category, filename, lineno):
                return
        self.show(message, category, filename, lineno, file, line)

    def wanted(self, message, category, filename: str, lineno: int) -> bool:
        """Tell whether the program's own filters show a warning; raise it if they make it an error."""
        action = self.action(str(message), category, filename, lineno)
        if action == "error":
            raise message
        key: tuple[Any, ...] = (str(message), category)
        key += {"default": (filename, lineno), "module": (filename,)}.get(action, ())
        new = key not in self.shown
        self.shown.add(key)
        return action == "always" or (action in ("default", "module", "once") and new)

    def action(self, text: str, category, filename: str, lineno: int) -> str:
        """Return what the filters behind ours say of a warning."""
        module = filename.removesuffix(".py")
        for action, pattern, kind, where, line in self.behind:
            if (
                (pattern is None or pattern.match(text))
                and issubclass(category, kind)
                and (where is None or where.match(module))
                and line in (0, lineno)
            ):
                return action
        return warnings.defaultaction
