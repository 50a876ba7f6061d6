"""What a `lens.Recorder` has seen: a bounded number of steps in memory, all of them in a file.

NOTE [A flow file]
JSON lines. The first says what was trained: "format", "engine", "title", "model", "parameters", "layers" (name →
class), "optimizers". Each other line is a step: "step", "seconds", "loss", "lr" (a number for each parameter group),
"metrics", "gradient" (the norm of all), for each name in `BY_LAYER` a dict by layer, and "first_not_finite" in the
step that brought the first NaN or inf. What was not finite is the string "nan", "inf" or "-inf"; what there was none
of is null. A line that was cut short at the end is no line.
"""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from backlight.errors import InputError
from backlight.formats.strict_json import AtLeast0, Count
from backlight.training.run_folder import Found, object_of, validated
from backlight.training.step_meter import BY_LAYER

FORMAT = 1
DIGITS = 7
ABSENT, BROKEN = np.float32(np.nan), np.float32(np.inf)  # how "none" and "not finite" are kept
Number = float | Literal["nan", "inf", "-inf"] | None
Size = AtLeast0 | Literal["nan", "inf", "-inf"] | None
ByLayer = dict[str, Size]


@dataclass
class FlowAbout:
    """The first line of a flow file: what was trained."""

    lens: Literal["flow"]
    format: Literal[1]
    engine: str
    title: str
    model: str
    parameters: Count
    layers: dict[str, str]
    optimizers: list[str]


@dataclass
class FlowStep:
    """Another line of a flow file: a step (see NOTE [A flow file])."""

    step: Count
    seconds: AtLeast0
    loss: Number
    lr: list[Number]
    metrics: dict[str, Number]
    gradient: Size
    gradient_norms: ByLayer = field(default_factory=dict)
    gradient_ratios: ByLayer = field(default_factory=dict)
    update_norms: ByLayer = field(default_factory=dict)
    update_ratios: ByLayer = field(default_factory=dict)
    zero_gradients: ByLayer = field(default_factory=dict)
    dead_units: ByLayer = field(default_factory=dict)
    first_not_finite: Found | None = None


class History:
    """The steps of a run, thinned to at most `keep`; the kept steps are unchanged.

    Args:
        about: the first line of a flow file, which says what was trained.
        keep: the maximum number of points in memory; beyond it, every second one is dropped, and half as many are taken
            from then on.
    """

    def __init__(self, about: dict, keep: int = 1000):
        self.about, self.keep = about, keep
        self.points: list[dict] = []  # what a step has but for its layers
        self.stride, self.count = 1, 0
        self.last: dict | None = None  # the last step in full, whether it was kept or not
        self.found: dict | None = None  # the first value that was not finite
        self._columns: dict[str, dict[str, int]] = {name: {} for name in BY_LAYER}
        self._rows: dict[str, list[np.ndarray]] = {name: [] for name in BY_LAYER}

    def append(self, record: dict) -> None:
        """Take a step in."""
        self.last, self.found = record, self.found or record.get("first_not_finite")
        if self.count % self.stride == 0:
            self.points.append({name: value for name, value in record.items() if name not in BY_LAYER})
            for name, rows in self._rows.items():
                rows.append(self._row(name, record.get(name, {})))
        self.count += 1
        if len(self.points) > self.keep:
            self.points = self.points[::2]
            self._rows = {name: rows[::2] for name, rows in self._rows.items()}
            self.stride *= 2

    def _row(self, quantity: str, values: dict) -> np.ndarray:
        columns = self._columns[quantity]
        row = np.full(max(len(columns), len(values)), ABSENT, np.float32)
        for name, value in values.items():
            place = columns.setdefault(name, len(columns))
            if place >= len(row):
                row = np.append(row, np.full(place + 1 - len(row), ABSENT, np.float32))
            if value is not None:
                row[place] = value if math.isfinite(value) else BROKEN
        return row

    def by_layer(self, quantity: str) -> dict[str, list[float | None]]:
        """Return one of `BY_LAYER` as a list for each layer: a value for each of `points`, None where there is none."""
        rows = self._rows[quantity]
        return {
            name: [None if place >= len(row) or np.isnan(row[place]) else float(row[place]) for row in rows]
            for name, place in self._columns[quantity].items()
        }

    def clear(self) -> None:
        """Forget all steps."""
        self.__init__(self.about, self.keep)


def line_of(record: dict) -> str:
    """Return a step, or what was trained, as a line of a flow file."""
    return json.dumps(_jsonable(record), ensure_ascii=False, allow_nan=False) + "\n"


def _jsonable(value: object):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): _jsonable(one) for name, one in value.items()}
    return [_jsonable(one) for one in value] if isinstance(value, (list, tuple)) else value


def _number(value: object):
    return float(value) if isinstance(value, str) else value


def _step_of(line: dict) -> dict:
    """Return a line with its strings for NaN and inf as numbers again."""
    numbers = {name: _number(line[name]) for name in ("loss", "gradient") if name in line}
    by_layer = {name: {one: _number(value) for one, value in line.get(name, {}).items()} for name in BY_LAYER}
    metrics = {name: _number(value) for name, value in line.get("metrics", {}).items()}
    return {**line, **numbers, **by_layer, "metrics": metrics, "lr": [_number(rate) for rate in line.get("lr", [])]}


def read_history(path: Path | str, *, keep: int = 1000, until: int | None = None) -> History:
    """Read a flow file (see NOTE [A flow file]).

    Args:
        keep: the maximum number of points in memory.
        until: the last step to read; None for all.

    Raises:
        InputError: it is not a flow file.
    """
    try:
        with open(path, "rb") as lines:
            return _history_in(lines, path, keep, until)
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror}") from problem
    except InputError as problem:
        raise InputError(f"{path} must be a file that a lens.Recorder wrote, and is not: {problem}") from problem


def _history_in(lines: BinaryIO, path: Path | str, keep: int, until: int | None) -> History:
    about = object_of(next(lines, b""), "line 1")
    if about.get("lens") != "flow" or about.get("format") != FORMAT:
        raise InputError(f"its first line has no format {FORMAT}")
    validated(FlowAbout, about, "line 1")
    history, last = History(about, keep), -1
    for number, line in enumerate(lines, 2):
        if not line.endswith(b"\n"):
            break
        found = object_of(line, f"line {number}")
        validated(FlowStep, found, f"line {number}", complete=False)
        if found["step"] <= last:
            raise InputError(f"line {number}: $.step must be above {last}, got {found['step']}")
        last = found["step"]
        if until is None or last <= until:
            history.append(_step_of(found))
    return history


class FlowFile:
    """A flow file that is being written; each step is appended in one write."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    def begin(self, about: dict) -> None:
        """Write a new file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(line_of(about), encoding="utf-8")
        except OSError as problem:
            raise InputError(f"cannot write {self.path}: {problem.strerror}") from problem

    def go_back_to(self, step: int) -> None:
        """Drop the lines after a step, and one that was cut short."""
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with open(self.path, encoding="utf-8") as lines, open(temporary, "w", encoding="utf-8") as out:
            out.write(next(lines))
            out.writelines(line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step)
        os.replace(temporary, self.path)

    def append(self, record: dict) -> None:
        """Add a step."""
        with open(self.path, "ab", buffering=0) as out:
            out.write(line_of(record).encode())
