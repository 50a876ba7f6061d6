"""`lens.doctor`: a block or a function under the doctor."""

import functools
import sys
from collections.abc import Callable, Iterable

from backlight.kernels.state_blocks import Block
from backlight.lens.doctor.errors.engine_warnings import diagnose_warning
from backlight.lens.doctor.errors.exceptions import diagnose
from backlight.lens.doctor.report import Report, describe
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot
from backlight.lens.doctor.warning_capture import WarningCapture
from backlight.lens.engines import Engine, loaded_engines


class Visit(Block):
    """A context manager and decorator; see `doctor`.

    Args:
        annotate: whether an exception gets what was found of it as a note, so that a traceback ends in cause and cure.
    """

    def __init__(
        self, *, strict: bool = False, notes: bool = False, engines: Iterable[Engine] | None, annotate: bool = True
    ):
        self.options = {"strict": strict, "notes": notes, "engines": engines}
        self.annotate = annotate
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
        self.report = Report(self.session)
        return self.report

    def _block_restore(self, done: set) -> None:
        problem = self._block_problem
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
        """Return the function, run under the doctor each time: what is found goes to stderr."""

        @functools.wraps(function)
        def visited(*args, **kwargs):
            visit = Visit(**self.options)
            with visit as visited.report:
                out = function(*args, **kwargs)
            if visited.report.findings:
                print(visited.report, file=sys.stderr)
            return out

        visited.report = None
        return visited


def doctor(
    function: Callable | None = None, *, strict: bool = False, notes: bool = False, engines: Iterable | None = None
):
    """Look for mistakes in the use of gradients while a block or a function runs.

    Args:
        function: what to run under the doctor each time that it is called; without it, use `with` or `@`.
        strict: also find writes that no engine counts, through `.data` and NumPy, by fingerprints of saved tensors.
        notes: also report what is legal and often misunderstood.
        engines: what to watch; by default every engine that the program has loaded.

    Returns:
        A context manager that gives a `Report`, which fills while the block runs; or the decorated function, whose
        `report` is that of its last call.
    """
    visit = Visit(strict=strict, notes=notes, engines=engines)
    return visit if function is None else visit(function)
