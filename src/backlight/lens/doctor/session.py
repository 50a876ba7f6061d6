"""One run under the doctor: what it found, which engines it watches, what it has changed and puts back."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from backlight.kernels.state_blocks import Block, Several
from backlight.lens.doctor.corrections.scopes import names_exist
from backlight.lens.doctor.coverage import Coverage, CoverageCounter
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.engine_watch import EngineWatch
from backlight.lens.engines import Engine, Guarded
from backlight.lens.finding import NOTE, Finding
from backlight.lens.records.record import Place

MISSING = object()
Kind = TypeVar("Kind", bound=Detector)


class Session:
    """Findings of one block, and the detectors that add to them.

    Args:
        strict: also compare saved tensors with checksums of their original values, one pass over each.
        notes: also report legal code that is often misunderstood.
        engines: the engines to watch.

    Attributes:
        watches: one for each engine, with its detectors.
    """

    def __init__(self, *, strict: bool = False, notes: bool = False, engines: Iterable[Engine] = ()):
        self.strict = strict
        self.notes = notes
        self.engines = tuple(engines)
        self.watches: list[EngineWatch] = []
        self._found: dict[tuple, Finding] = {}
        self._undo = Several()
        self._patches: list[_Patched] = []
        self._patched = Several()

    @property
    def findings(self) -> list[Finding]:
        """What was found, in the order in which it was first seen; notes only if they were requested."""
        return [found for found in self._found.values() if self.notes or found.level != NOTE]

    @property
    def coverage(self) -> Coverage:
        """What was recorded of the program so far."""
        return Coverage.of(one.coverage() for one in self.each(CoverageCounter))

    def add(self, finding: Finding) -> None:
        """Keep a finding. One of the same rule at the same line counts as the same, seen once more."""
        place = finding.place
        at = finding.corrected_at or place
        if finding.corrected and at is not None and not names_exist(finding.corrected, at):
            finding = dataclasses.replace(finding, corrected=None, corrected_at=None)
        key = (finding.rule, finding.title) if place is None else (finding.rule, place.file, place.line)
        present = self._found.get(key)
        if present is not None:
            finding = dataclasses.replace(present, times=present.times + finding.times)
        self._found[key] = finding

    def replace(self, findings: Iterable[Finding]) -> None:
        """Put findings in the place of those that are shown, in their order."""
        new, shown = iter(findings), self.findings
        self._found = {key: next(new) if found in shown else found for key, found in self._found.items()}

    def has(self, rules: Iterable[str]) -> bool:
        """Return whether one of some rules was found, by their ids."""
        wanted = set(rules)
        return any(found.rule in wanted for found in self._found.values())

    def drop(self, rule: str, place: Place | None) -> Finding | None:
        """Forget a finding that another one at the same line says better, and return it."""
        return None if place is None else self._found.pop((rule, place.file, place.line), None)

    def discard(self, rules: Iterable[str]) -> None:
        """Forget the findings of some rules, by their ids: another one is the reason of all."""
        unwanted = set(rules)
        self._found = {key: found for key, found in self._found.items() if found.rule not in unwanted}

    def begin(self) -> None:
        """Watch the engines, each with all detectors (NOTE [A detector])."""
        for engine in self.engines:
            watch = EngineWatch(self, engine)
            self.watches.append(watch)
            self._undo.enter(engine.observe(Guarded(watch, partial(watch.failed.__setitem__, EngineWatch.__name__))))
            watch.begin()

    def each(self, kind: type[Kind]) -> list[Kind]:
        """Return the detectors of a kind, one of each engine."""
        return [watch.detectors[kind] for watch in self.watches]

    def end(self, problem: BaseException | None = None) -> None:
        """Stop watching, put back what was patched, and let detectors look at what is left."""
        self.stop()
        for watch in self.watches:
            watch.end(problem)
            for name, failure in watch.failed.items():
                warnings.warn(f"the doctor's {name} failed and stopped: {failure!r}", stacklevel=3)

    def stop(self) -> None:
        """Stop watching, and put back what was patched; may be repeated where it was interrupted."""
        self._patched.leave()
        self._undo.leave()

    def pause(self) -> None:
        """Put back what was patched, until `resume`."""
        self._patched.leave()

    def resume(self) -> None:
        """Patch it again."""
        for one in self._patches:
            self._patched.enter(one)

    def patch(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of `owner.name` until the session ends."""
        self._patches.append(_Patched(owner, name, make))
        self._patched.enter(self._patches[-1])


class _Patched(Block):
    """A block in which `make(original)` stands in the place of an attribute."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]):
        self.owner, self.name, self.make = owner, name, make

    def _block_state(self):
        return vars(self.owner).get(self.name, MISSING)

    def _block_change(self, own: Any) -> None:
        original = getattr(self.owner, self.name) if own is MISSING or callable(own) else own
        setattr(self.owner, self.name, self.make(original))

    def _block_restore(self, own: Any) -> None:
        if own is not MISSING:
            setattr(self.owner, self.name, own)
        elif self.name in vars(self.owner):
            delattr(self.owner, self.name)
