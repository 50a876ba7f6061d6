"""Warnings that a program gives, turned into findings; they are shown as they would have been without the doctor.

NOTE [Seeing warnings that are not shown]
Filters in front of all others let the warnings that the doctor knows reach `warnings.showwarning` every time, also when
the program adds filters of its own. Whether such a warning is then shown is decided by the others, as Python would have
decided.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

from backlight.engine.provenance import PACKAGE
from backlight.lens.doctor.rule_index import messages, rule_of_message
from backlight.lens.doctor.source import spot_of_frame

ADDING = ("filterwarnings", "simplefilter")


class WarningCapture:
    """Calls `found(rule, text, spot)` of each warning that the doctor knows (NOTE [Seeing warnings …])."""

    def __init__(self, found: Callable, engines: tuple):
        self.found = found
        self.modules = [engine.module for engine in engines]
        self.shown: set = set()

        self.adding: dict[str, Callable] = {}
        self.always: list[bool] = []
        self.own: list = []  # its filters
        self.listens = False
        self.block: warnings.catch_warnings | None = None
        self.left: tuple | None = None  # what the program made of filters and of showing, once it is over

    def begin(self) -> None:
        """Listen."""
        self.show = warnings.showwarning
        self.always = [module.is_warn_always_enabled() for module in self.modules]
        for module in self.modules:
            module.set_warn_always(True)
        self.block = warnings.catch_warnings()
        self.block.__enter__()
        before = list(warnings.filters)
        for pattern in messages(errors=False):
            warnings.filterwarnings("always", message=f"(?s:.*)(?:{pattern})")
        self.own = [one for one in warnings.filters if one not in before]
        self.listens = True
        warnings.showwarning = self.intercept
        self.adding = {name: getattr(warnings, name) for name in ADDING}
        for name, add in self.adding.items():
            setattr(warnings, name, self._behind_own(add))

    def end(self) -> None:
        """Leave all as it was, with what the program added; may be repeated where it was interrupted."""
        for name, add in self.adding.items():
            setattr(warnings, name, add)
        if self.block is not None:
            if self.left is None and self.listens:
                self.left = self.others(), warnings.showwarning
            self.block.__exit__(None, None, None)
            if self.left is not None:
                kept, show = self.left
                warnings.filters[:] = kept
                if show != self.intercept:
                    warnings.showwarning = show
        for module, before in zip(self.modules, self.always):
            module.set_warn_always(before)

    def _behind_own(self, add: Callable) -> Callable:
        """Return a stand-in for `filterwarnings` or `simplefilter`: what it adds comes behind the doctor's filters."""

        @functools.wraps(add)
        def adding(*args, **kwargs):
            listening = all(one in warnings.filters for one in self.own)
            add(*args, **kwargs)
            if listening:
                warnings.filters[:] = [*self.own, *self.others()]

        return adding

    def others(self) -> list:
        """Return the filters that are not the doctor's."""
        return [one for one in warnings.filters if one not in self.own]

    def intercept(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, file=None, line=None
    ) -> None:
        """Take a warning in, and show it if it would have been shown."""
        rule, spot = rule_of_message(str(message), error=False), spot_of_frame(sys._getframe(1))
        if spot is not None and filename.startswith(PACKAGE):  # seen from where PyTorch is watched
            filename, lineno = spot.file, spot.line
        if rule is not None:
            self.found(rule, str(message), spot)
            if not self.wanted(message, category, filename, lineno):
                return
        self.show(message, category, filename, lineno, file, line)

    def wanted(self, message: Warning | str, category: type[Warning], filename: str, lineno: int) -> bool:
        """Return whether the program's own filters show a warning; raise it if they make it an error."""
        action = self.action(str(message), category, filename, lineno)
        if action == "error":
            raise message
        key: tuple[Any, ...] = (str(message), category)
        key += {"default": (filename, lineno), "module": (filename,)}.get(action, ())
        new = key not in self.shown
        self.shown.add(key)
        return action == "always" or (action in ("default", "module", "once") and new)

    def action(self, text: str, category: type[Warning], filename: str, lineno: int) -> str:
        """Return what the other filters say of a warning."""
        module = filename.removesuffix(".py")
        for action, pattern, kind, where, line in self.others():
            if (
                (pattern is None or pattern.match(text))
                and issubclass(category, kind)
                and (where is None or where.match(module))
                and line in (0, lineno)
            ):
                return action
        return warnings.defaultaction
