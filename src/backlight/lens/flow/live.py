"""A recorder's run in the terminal: kept up to date where that can be, else a line now and then."""

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TextIO

from backlight.adapters.rich_live import Line, can_show, shown_live
from backlight.lens.flow.history import History
from backlight.report.numbers import clock, number, sparkline
from backlight.training.step_meter import said_of

WINDOW = 32  # records that a sparkline shows
MOST_LAYERS = 20
SECONDS = 30.0  # without a terminal, a line comes at the latest after this time
GROWTH = 1.5  # and at steps that are so many times those of the line before
GLOW, BAD = "#c97a06", "bold red"
HALF = 0.5  # the share of dead units from which they are shown in red


@contextmanager
def live(history: History, listeners: list, out: TextIO) -> Iterator[None]:
    """Show a recorded run in the terminal while the block runs.

    Args:
        history: the recorded steps.
        listeners: a list of functions called with each new record.
        out: a terminal or a text file.
    """
    picture = Picture(history) if can_show(out) else None
    shown = nullcontext() if picture is None else shown_live(out, picture.draw)
    show = PlainLines(out).show if picture is None else picture.show
    with shown:
        listeners.append(show)
        try:
            yield
        finally:
            listeners.remove(show)


class PlainLines:
    """Lines at steps that are ever further apart, and at the first NaN or inf."""

    def __init__(self, out: TextIO):
        self._out, self._next, self._due = out, 0, time.monotonic() + SECONDS

    def show(self, record: dict) -> None:
        """Print a line, if it is time for one."""
        found = record.get("first_not_finite")
        if found is None and record["step"] < self._next and time.monotonic() < self._due:
            return
        self._next = max(record["step"] + 1, round(record["step"] * GROWTH))
        self._due = time.monotonic() + SECONDS
        print(_in_short(record), *([said_of(found)] if found else []), sep="\n", file=self._out, flush=True)


def _in_short(record: dict) -> str:
    rates = ", ".join(f"{rate:.3g}" for rate in dict.fromkeys(record["lr"]))
    ratios = [ratio for ratio in record["update_ratios"].values() if ratio and math.isfinite(ratio)]
    dead = max(record["dead_units"].items(), key=lambda one: one[1], default=("", 0.0))
    parts = [
        f"step {record['step']:,}",
        f"loss {number(record['loss'])}" if record["loss"] is not None else "",
        *(f"{name} {value:.4g}" for name, value in record["metrics"].items()),
        f"gradient {_short(record['gradient'])}",
        f"update/weight {min(ratios):.1e} to {max(ratios):.1e}" if ratios else "",
        f"lr {rates}" if rates else "",
        f"dead units {dead[1]:.0%} of {dead[0]}" if dead[1] else "",
    ]
    return "  ".join(filter(None, parts))


class Picture:
    """The run at a glance: numbers, and for each layer the course of its gradient and what it is moved by."""

    def __init__(self, history: History):
        self._history = history
        self._losses: deque = deque(maxlen=WINDOW)
        self._norms: dict[str, deque] = {}

    def show(self, record: dict) -> None:
        """Take in a record; the picture is drawn several times a second."""
        self._losses.append(record["loss"])
        for layer, norm in record["gradient_norms"].items():
            self._norms.setdefault(layer, deque(maxlen=WINDOW)).append(norm)

    def draw(self) -> list[Line]:
        """Return the picture as things stand, as lines of styled pieces."""
        record = self._history.last
        if record is None:
            return [[("the first step runs", "dim")]]
        lines = [self._numbers(record)]
        if any(loss is not None for loss in self._losses):
            lines.append([("loss  ", "dim"), (sparkline(self._losses), GLOW)])
        if self._history.found is not None:
            lines.append([(said_of(self._history.found), BAD)])
        return [*lines, *self._layers(record)]

    def _numbers(self, record: dict) -> Line:
        shown = {
            "step": f"{record['step']:,}",
            "loss": None if record["loss"] is None else number(record["loss"]),
            **{name: f"{value:.4g}" for name, value in record["metrics"].items()},
            "lr": ", ".join(f"{rate:.3g}" for rate in dict.fromkeys(record["lr"])) or None,
            "gradient": _short(record["gradient"]),
            "time": clock(record["seconds"]),
        }
        return [
            piece for name, value in shown.items() if value for piece in ((f"{name} ", "dim"), (f"{value}  ", "bold"))
        ]

    def _layers(self, record: dict) -> list[Line]:
        types, names = self._history.about["layers"], list(self._norms)
        shown = names[:MOST_LAYERS]
        wide = min(34, max((len(f"{name} {types.get(name, '')}") for name in shown), default=0))
        head = f"{'':{wide}}  {'gradient norm':{WINDOW}}  {'now':>9}  {'update/w':>9}  dead"
        lines: list[Line] = [[(head, "dim")]]
        for name in shown:
            dead, called = record["dead_units"].get(name), f"{name} {types.get(name, '')}"
            called = called if len(called) <= wide else f"…{called[1 - wide :]}"
            lines.append(
                [
                    (f"{called:{wide}}  ", ""),
                    (f"{sparkline(self._norms[name], log=True):{WINDOW}}  ", GLOW),
                    (f"{_short(record['gradient_norms'].get(name)):>9}  ", ""),
                    (f"{_short(record['update_ratios'].get(name)):>9}  ", ""),
                    ("" if dead is None else f"{dead:4.0%}", BAD if dead and dead >= HALF else "dim"),
                ]
            )
        if len(names) > MOST_LAYERS:
            lines.append([(f"and {len(names) - MOST_LAYERS} layers more", "dim")])
        return lines


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.2e}"
