"""The folder of a run: its files, each written atomically.

NOTE [A run folder]
    config.json                         what was run: settings, the model as printed, the optimizer
    metrics.jsonl                       a line for each recorded step and for each evaluation
    checkpoints/step-00000500.safetensors   all that is needed to go on from a step (see training/checkpoint.py)
    best.safetensors                    the weights of the best epoch, where images were held out to tell
    report.html                         the page (see training/report.py)
Files are written under a temporary name and renamed; lines are appended one write each. A process that is
killed leaves at most one line cut short, which is dropped when the run is taken up.
"""

import json
import math
import os
from dataclasses import dataclass, field, fields
from pathlib import Path

from backlight.errors import InputError
from backlight.formats.strict_json import AtLeast0, Count, parse_json, read_json_file
from backlight.system.lazy_import import function_later

CONFIG, METRICS, REPORT, BEST = "config.json", "metrics.jsonl", "report.html", "best.safetensors"
CHECKPOINTS = "checkpoints"
CONFIG_KINDS = {"model": str, "optimizer": str, "schedule": str, "layers": dict, "parameters": int, "training": dict}


validated = function_later("backlight.formats.schema", "validated")
ByLayer = dict[str, AtLeast0 | None]


@dataclass
class Found:
    """The first value that was not finite."""

    step: Count
    what: str
    layer: str | None
    kind: str
    why: str | None


@dataclass
class RunLine:
    """A line of metrics.jsonl: a step or an evaluation, without the metrics that a program named."""

    step: Count
    seconds: AtLeast0 | None = None
    epoch: Count | None = None
    loss: float | None = None
    lr: float | None = None
    on: str | None = None
    evaluation: dict[str, float | None] | None = None
    gradient: AtLeast0 | None = None
    gradient_norms: ByLayer = field(default_factory=dict)
    gradient_ratios: ByLayer = field(default_factory=dict)
    update_norms: ByLayer = field(default_factory=dict)
    update_ratios: ByLayer = field(default_factory=dict)
    zero_gradients: ByLayer = field(default_factory=dict)
    dead_units: ByLayer = field(default_factory=dict)
    first_not_finite: Found | None = None


RUN_FIELDS = frozenset(one.name for one in fields(RunLine))


def object_of(line: bytes | str, source: str) -> dict:
    """Return the JSON object that a line holds.

    Args:
        source: the file and the line's number, for errors.

    Raises:
        InputError: it holds something else.
    """
    try:
        found = parse_json(line)
    except ValueError as problem:
        raise InputError(f"{source} is not JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise InputError(f"{source} must hold a JSON object, got {type(found).__name__}")
    return found


def run_line(line: bytes, source: str) -> dict:
    """Return a line of metrics.jsonl as it is, once it has been checked.

    Raises:
        InputError: it is no step and no evaluation, or a value is of another kind.
    """
    found = object_of(line, source)
    validated(RunLine, {name: one for name, one in found.items() if name in RUN_FIELDS}, source, complete=False)
    if ("loss" in found) == (found.get("evaluation") is not None):
        raise InputError(f"{source} must hold the loss of a step, or an evaluation")
    if "loss" in found and found.get("seconds") is None:
        raise InputError(f"{source} must hold the seconds of its step")
    if "loss" not in found and found.get("epoch") is None:
        raise InputError(f"{source} must hold the epoch of its evaluation")
    for name, value in found.items():
        if name not in RUN_FIELDS and not (value is None or type(value) in (int, float)):
            raise InputError(f"{source}: $.{name[:40]}: expected a number or null, got {type(value).__name__}")
    return found


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that whoever reads it, at any moment, finds the old content or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    with open(temporary, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, file)


def jsonable(value: object):
    """Return a value as JSON can hold it: None for numbers that are not finite, its text for what JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(entry) for entry in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


class RunFolder:
    """A run's files (see NOTE [A run folder])."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.checkpoints = self.path / CHECKPOINTS

    def holds_a_run(self) -> bool:
        """Return whether there are metrics or checkpoints in it."""
        return (self.path / METRICS).exists() or self.checkpoint() is not None

    def make(self) -> None:
        """Create the folder.

        Raises:
            InputError: that is not possible.
        """
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"cannot make the run folder {self.path}: {problem.strerror}") from problem
        for left in self.checkpoints.glob(".step-*"):
            left.unlink(missing_ok=True)  # a write that was cut short

    def clear(self) -> None:
        """Remove the metrics, the weights and the page of an earlier run, and nothing else."""
        for file in [*(self.path / name for name in (METRICS, REPORT, BEST)), *self._checkpoint_files()]:
            file.unlink(missing_ok=True)

    def write_config(self, config: dict) -> None:
        """Write config.json."""
        text = json.dumps(jsonable(config), indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path / CONFIG, text.encode())

    def config(self) -> dict:
        """Return what config.json says: nothing, if it is missing.

        Raises:
            InputError: it is no JSON object, or a value in it is of another kind.
        """
        file = self.path / CONFIG
        found = read_json_file(file) if file.is_file() else {}
        if not isinstance(found, dict):
            raise InputError(f"{file} must hold a JSON object, got {type(found).__name__}")
        for name, kind in CONFIG_KINDS.items():
            if name in found and not (found[name] is None or type(found[name]) is kind):
                raise InputError(f"{file}: {name} must be {kind.__name__}, got {type(found[name]).__name__}")
        return {name: value for name, value in found.items() if value is not None}

    # --- metrics ---------------------------------------------------------------------------------------------------

    def append(self, record: dict) -> None:
        """Add a line to metrics.jsonl."""
        line = json.dumps(jsonable(record), ensure_ascii=False, allow_nan=False) + "\n"
        with open(self.path / METRICS, "ab", buffering=0) as out:
            out.write(line.encode())

    def records(self) -> list[dict]:
        """Return the lines of metrics.jsonl, without one that was cut short.

        Raises:
            InputError: a line is damaged.
        """
        file = self.path / METRICS
        lines = file.read_bytes().split(b"\n")[:-1] if file.is_file() else []
        return [run_line(line, f"{file}, line {number}") for number, line in enumerate(lines, 1)]

    def evaluations(self, on: str | None = None) -> list[dict]:
        """Return the records of evaluations, or of those on the data of that name."""
        found = [one for one in self.records() if "evaluation" in one]
        return [one for one in found if one.get("on") == on] if on else found

    def go_back_to(self, step: int, epoch: int) -> None:
        """Drop the lines after `step`, and of evaluations at it in `epoch`: those will be made again."""

        def stays(one: dict) -> bool:
            return one["step"] < step or (one["step"] == step and ("loss" in one or one["epoch"] < epoch))

        kept = [json.dumps(one, ensure_ascii=False) + "\n" for one in self.records() if stays(one)]
        write_atomically(self.path / METRICS, "".join(kept).encode())

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def _checkpoint_files(self) -> list[Path]:
        return sorted(self.checkpoints.glob("step-*.safetensors"))

    def checkpoint(self) -> Path | None:
        """Return the last checkpoint, if there is one."""
        return next(reversed(self._checkpoint_files()), None)

    def checkpoint_at(self, step: int) -> Path:
        """Return where the checkpoint of a step belongs."""
        return self.checkpoints / f"step-{step:08d}.safetensors"

    def keep_last(self, count: int) -> None:
        """Remove all checkpoints but the last ones."""
        for file in self._checkpoint_files()[:-count]:
            file.unlink(missing_ok=True)
