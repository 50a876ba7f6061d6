"""What the lines of a run's metrics.jsonl and of a recorder's flow file hold: the schema that they are read against."""

from dataclasses import dataclass, field, fields
from typing import Literal

from backlight.errors import InputError
from backlight.formats.strict_json import AtLeast0, Count, parse_json
from backlight.system.lazy_import import function_later

Number = float | Literal["nan", "inf", "-inf"] | None
Size = AtLeast0 | Literal["nan", "inf", "-inf"] | None
ByLayer = dict[str, Size]
validated = function_later("backlight.formats.schema", "validated")


@dataclass
class Found:
    """The first value that was not finite."""

    step: Count
    what: str
    layer: str | None
    kind: str
    why: str | None


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
    """Another line of a flow file: a step (see NOTE [A flow file] in lens/flow/history.py)."""

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
    gradient_norms: dict[str, AtLeast0 | None] = field(default_factory=dict)
    gradient_ratios: dict[str, AtLeast0 | None] = field(default_factory=dict)
    update_norms: dict[str, AtLeast0 | None] = field(default_factory=dict)
    update_ratios: dict[str, AtLeast0 | None] = field(default_factory=dict)
    zero_gradients: dict[str, AtLeast0 | None] = field(default_factory=dict)
    dead_units: dict[str, AtLeast0 | None] = field(default_factory=dict)
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
