"""`lens.doctor`: a block or a function under the doctor, and the warnings that it gives, turned into findings.

NOTE [Seeing warnings that are not shown]
Filters in front of all others let the warnings that the doctor knows reach `warnings.showwarning` every time, also when
the program adds filters of its own. Whether such a warning is then shown is decided by the others, as Python would have
decided.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from backlight.engine.provenance import PACKAGE
from backlight.kernels.state_blocks import Block
from backlight.lens.doctor.errors.engine_warnings import diagnose_warning
from backlight.lens.doctor.errors.exceptions import diagnose
from backlight.lens.doctor.report import Report, describe
from backlight.lens.doctor.rule_index import messages, rule_of_message
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot, spot_of_frame
from backlight.lens.doctor.step_limit import StepLimit
from backlight.lens.engines import Engine, loaded_engines

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


class DoctorBlock(Block):
    """A context manager and decorator; see `doctor`.

    Args:
        annotate: whether to add the finding to the exception as a note, so that the traceback ends with cause and cure.
        limit: stops the program after a number of optimizer steps.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        notes: bool = False,
        engines: Iterable[Engine] | None,
        annotate: bool = True,
        limit: StepLimit | None = None,
    ):
        self.options = {"strict": strict, "notes": notes, "engines": engines}
        self.annotate = annotate
        self.limit = limit
        self.session: Session | None = None
        self.warnings: WarningCapture | None = None
        self.report: Report | None = None  # of the last block

    def _block_state(self) -> set:
        self.session = self.warnings = None
        return set()  # what has been done of leaving it

    def _block_change(self, done: set) -> Report:
        engines = self.options["engines"]
        watched = loaded_engines() if engines is None else engines
        self.report = None
        self.session = Session(**{**self.options, "engines": watched})
        self.warnings = WarningCapture(self._warned, self.session.engines)
        self.warnings.begin()
        self.session.begin()
        if self.limit is not None:
            for watch in self.session.watches:
                watch.listeners["stepped"].append(self.limit.stepped)
        self.report = Report(self.session)
        return self.report

    def _block_restore(self, done: set) -> None:
        problem = None if isinstance(self._block_problem, SystemExit) else self._block_problem  # a regular end
        try:
            if problem is not None and "diagnosed" not in done:
                done.add("diagnosed")
                self._diagnose(problem)
        finally:
            if self.session is not None:
                self.session.stop()
            if self.warnings is not None:
                self.warnings.end()
        if "ended" not in done and self.session is not None and self.report is not None:
            done.add("ended")
            self.session.end(problem)

    def _diagnose(self, problem: BaseException) -> None:
        """Keep what an exception is the sign of, and tell it."""
        found = diagnose(problem, self.session)
        if found is None:
            return
        self.session.add(found)
        if self.annotate:
            problem.add_note(describe(found))

    def _warned(self, rule: str, text: str, spot: Spot | None) -> None:
        """Keep what a warning of the engine is the sign of."""
        found = diagnose_warning(self.session, rule, text, spot)
        if found is not None:
            self.session.add(found)

    def __call__(self, function: Callable) -> Callable:
        """Return the function, run under the doctor each time: what is found, and in what, goes to stderr."""

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            block = DoctorBlock(**self.options)
            try:
                with block as wrapper.report:
                    return function(*args, **kwargs)
            finally:
                if wrapper.report is not None:
                    print(wrapper.report, file=sys.stderr)

        wrapper.report = None
        return wrapper


def doctor(
    function: Callable | None = None, *, strict: bool = False, notes: bool = False, engines: Iterable | None = None
):
    """Find mistakes with gradients while a block or a function runs.

    Args:
        function: the function to examine each time it is called; without it, use `with` or `@`.
        strict: also detect writes that bypass version counters (through `.data` and NumPy), by hashing saved tensors.
        notes: also report legal code that is often misunderstood.
        engines: the engines to watch; by default all that the program has loaded.

    Returns:
        A context manager that gives a `Report`, which is filled while the block runs; or the decorated function, whose
        `report` is that of its last call.
    """
    block = DoctorBlock(strict=strict, notes=notes, engines=engines)
    return block if function is None else block(function)
