"""What looks for mistakes while a program runs: watchers that may also patch the Python interface of an engine.

NOTE [A detector]
A session makes one detector of each kind for each engine. It gets the engine's events (it is a `Watcher`), may
patch names of `engine.module` through `session.patch` in `begin`, adds what it finds with `session.add`, and looks at
what is left in `end`, when nothing is watched or patched any more. It must be sure: a healthy program gives no finding.
"""

from backlight.dispatch.observers import Watcher
from backlight.lens.doctor.session import Session
from backlight.lens.engines import Engine


class Detector(Watcher):
    """See NOTE [A detector]."""

    def __init__(self, session: Session, engine: Engine):
        self.session = session
        self.engine = engine

    def begin(self) -> None:
        """The block begins: patch what has to be patched."""

    def end(self, problem: BaseException | None) -> None:
        """The block has ended, by `problem` if there is one: look at what is left."""
