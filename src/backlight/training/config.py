"""The configuration of `backlight train`: a TOML or JSON file, checked setting by setting before anything runs."""

import dataclasses
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from backlight.errors import InputError
from backlight.formats.strict_json import parse_json

MODELS = ("mlp", "cnn")
DATASETS = ("fashion-mnist", "mnist", "kmnist", "synthetic")
OPTIMIZERS = ("sgd", "adam", "adamw", "adagrad", "rmsprop", "adamax", "nadam", "radam")
MEASURES = ("accuracy", "loss")


@dataclass(frozen=True)
class ModelConfig:
    """The network.

    Args:
        kind: "mlp" or "cnn".
        sizes: units of each hidden layer of an MLP; channels of each block of a CNN.
        dropout: the share of values dropped before the last layer.
    """

    kind: str = "mlp"
    sizes: tuple[int, ...] = (256, 128)
    dropout: float = 0.0


@dataclass(frozen=True)
class DataConfig:
    """The images.

    Args:
        name: a dataset, or "synthetic": noisy patterns made on the spot, to try things without data.
        root: the folder that holds the dataset's files.
        samples: at most so many of the training images; 0 for all. Of synthetic ones it says how many are made.
        validation: the share of the training images that is held out to choose by, drawn by the run's seed.
    """

    name: str = "fashion-mnist"
    root: str = "data"
    samples: int = 0
    validation: float = 0.0


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer and its options; `momentum` is SGD's and RMSprop's, `nesterov` SGD's."""

    name: str = "adam"
    lr: float = 0.001
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0


@dataclass(frozen=True)
class ScheduleConfig:
    """How the learning rate changes from `optimizer.lr` on; NOTE [Schedules] in training/components.py says more.

    Args:
        by: "step" or "epoch": when the rate changes, and the unit of all counts here; "auto" is as usual for the name.
        warmup: so many steps (or epochs) in which the rate first rises evenly.
        min_lr: where cosine and linear end, and the least that reduce_on_plateau goes down to.
        step_size: the rate is multiplied by `gamma` every so many; step's.
        milestones: it is multiplied by `gamma` at each of these, counted from the beginning of the run; multistep's.
        gamma: the factor of step, multistep and exponential.
        pct_start: the share of the run in which the rate rises; onecycle's.
        div_factor: the first rate is `optimizer.lr` divided by it; onecycle's.
        final_div_factor: the last rate is the first divided by it; onecycle's.
        factor: what the rate is multiplied by when the validation loss stays; reduce_on_plateau's.
        patience: how many epochs it may stay; reduce_on_plateau's.
    """

    name: str = "constant"
    by: str = "auto"
    warmup: int = 0
    min_lr: float = 0.0
    step_size: int = 0
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 10000.0
    factor: float = 0.1
    patience: int = 10

    @property
    def by_step(self) -> bool:
        """Whether the rate changes at each step, and not at each epoch."""
        return self.by == "step" or (self.by == "auto" and self.name in BY_STEP)


BY_STEP = ("constant", "linear", "cosine", "onecycle")
ENDING = ("linear", "cosine", "onecycle")  # those that are planned from the number of epochs
SCHEDULE_OPTIONS = {
    "constant": {"warmup"},
    "linear": {"warmup", "min_lr"},
    "cosine": {"warmup", "min_lr"},
    "step": {"warmup", "step_size", "gamma"},
    "multistep": {"warmup", "milestones", "gamma"},
    "exponential": {"warmup", "gamma"},
    "onecycle": {"pct_start", "div_factor", "final_div_factor"},
    "reduce_on_plateau": {"factor", "patience", "min_lr"},
}


@dataclass(frozen=True)
class TrainingConfig:
    """All of a run.

    Args:
        out: the run folder.
        record_every: of so many steps one is recorded.
        checkpoint_every: steps from one checkpoint to the next.
        accumulate: how many batches make one step: as one batch as large, in the memory of a small one.
        clip_grad_norm: the most that the norm of all gradients may be; 0 for no bound.
        label_smoothing: the share of a label that is spread evenly over all classes.
        best_by: what makes the weights of an epoch the best, on the validation images: "accuracy" or "loss".
        patience: end after so many epochs in which the validation became no better; 0 for never.
    """

    out: str = "runs/first"
    seed: int = 0
    epochs: int = 5
    batch_size: int = 64
    record_every: int = 20
    checkpoint_every: int = 500
    accumulate: int = 1
    clip_grad_norm: float = 0.0
    label_smoothing: float = 0.0
    best_by: str = "accuracy"
    patience: int = 0
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)

    def as_dict(self) -> dict:
        """Return the settings as plain values, as a file would hold them."""
        return dataclasses.asdict(self)


Kind = TypeVar("Kind")
LARGEST = 1 << 16  # bytes of a file; the parser's time grows with the square of a key's dots


def read_config(file: Path | str, changes: Sequence[str] = ()) -> TrainingConfig:
    """Return what a TOML or JSON file says; what it leaves out has its default.

    Args:
        changes: settings in place of the file's, each as `optimizer.lr=0.1`.

    Raises:
        InputError: the file cannot be read, or says something that cannot be used.
    """
    file = Path(file)
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    if len(content) > LARGEST:
        raise InputError(f"{file} must be settings, of {LARGEST:,} bytes or less, and has {len(content):,}")
    try:
        found = parse_json(content) if file.suffix == ".json" else tomllib.loads(content.decode("utf-8"))
    except RecursionError as problem:
        raise InputError(
            f"{file} must be nested less deeply: no setting has more than one table around it"
        ) from problem
    except ValueError as problem:  # both kinds of parser, and bytes that are no text
        raise InputError(f"{file} is not {'JSON' if file.suffix == '.json' else 'TOML'}: {problem}") from problem
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold an object, got {type(found).__name__}")
    try:
        return config_of(with_changes(found, changes))
    except InputError as problem:
        with_these = "".join(f" --set {change}" for change in changes)
        raise InputError(f"{file}{with_these}: {problem}") from None


def config_of(found: dict) -> TrainingConfig:
    """Return the settings in a dict.

    Raises:
        InputError: one is unknown, or has a value that cannot be used.
    """
    config = _read(TrainingConfig, found, "")
    check_config(config)
    return config


def with_changes(found: dict, changes: Sequence[str]) -> dict:
    """Return settings with some changed, each given as `optimizer.lr=0.1`; what is no TOML value is a text.

    Raises:
        InputError: a change has no `=` or no name, or its place is taken by something that is no table.

    >>> with_changes({"optimizer": {"name": "sgd"}}, ["optimizer.lr=0.1", "out=runs/b"])
    {'optimizer': {'name': 'sgd', 'lr': 0.1}, 'out': 'runs/b'}
    """
    changed = {name: dict(value) if isinstance(value, dict) else value for name, value in found.items()}
    for change in changes:
        path, equals, text = change.partition("=")
        *tables, name = (part.strip() for part in path.split("."))
        if not equals or not name:
            raise InputError(f"--set must be given a setting and its value, like optimizer.lr=0.1, got {change!r}")
        table = changed
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(f"{part} must be a table to hold {path}, got {table!r}")
        table[name] = _value_of(text.strip())
    return changed


def _value_of(text: str) -> object:
    """Return what a text means in TOML, or the text itself."""
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text


def as_toml(config: TrainingConfig) -> str:
    """Return all settings as a TOML file that says the same."""
    settings = config.as_dict()
    lines = [f"{name} = {_written(value)}" for name, value in settings.items() if not isinstance(value, dict)]
    for name, table in settings.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]", *(f"{entry} = {_written(value)}" for entry, value in table.items())]
    return "\n".join(lines) + "\n"


def _written(value: object) -> str:
    """Return a value as TOML writes it: as JSON does, as far as settings go."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(kind: type[Kind], found: object, path: str) -> Kind:
    """Return a dataclass of the settings in `found`, which stand under `path`."""
    if not isinstance(found, dict):
        raise InputError(f"{path} must be a table, got {found!r}")
    fields = {one.name: one for one in dataclasses.fields(kind)}
    values = {}
    for name, value in found.items():
        full = f"{path}.{name}".lstrip(".")
        if name not in fields:
            raise InputError(f"there is no setting {full}: there are {', '.join(fields)}")
        values[name] = _converted(fields[name].type, value, full)
    return kind(**values)


def _converted(kind: type, value: object, path: str) -> object:
    """Return a value as the kind that its setting has."""
    if dataclasses.is_dataclass(kind):
        return _read(kind, value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == tuple[int, ...]:
        is_valid = isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
        require(is_valid, path, "be a list of whole numbers", value)
        return tuple(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    require(fits, path, f"be {NAMES[kind]}", value)
    return value


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def require(holds: bool, path: str, rule: str, value: object) -> None:
    """Raise unless a setting keeps a rule.

    Raises:
        InputError: it does not.
    """
    if not holds:
        raise InputError(f"{path} must {rule}, got {list(value) if isinstance(value, tuple) else value!r}")


def check_config(config: TrainingConfig) -> None:
    """Raise unless all settings can be used, each and together.

    Raises:
        InputError: one cannot.
    """
    for path, holds, rule in _rules(config):
        require(holds, path, rule, attrgetter(path)(config))


Rules = Iterator[tuple[str, bool, str]]  # the setting, whether it keeps the rule, the rule
WITH_MOMENTUM = ("sgd", "rmsprop")


def _rules(config: TrainingConfig) -> Rules:
    for name in ("epochs", "batch_size", "record_every", "checkpoint_every", "accumulate"):
        yield name, getattr(config, name) >= 1, "be 1 or more"
    yield "seed", 0 <= config.seed < 2**63, "be 0 or more, below 2^63"
    yield "out", bool(config.out.strip()), "name a folder"
    yield "clip_grad_norm", 0 <= config.clip_grad_norm < inf, "be 0 (none) or more"
    yield "label_smoothing", 0 <= config.label_smoothing < 1, "be in [0, 1)"
    yield "best_by", config.best_by in MEASURES, f"be one of {', '.join(MEASURES)}"
    yield "patience", config.patience >= 0, "be 0 (never) or more"
    model, data = config.model, config.data
    yield "model.kind", model.kind in MODELS, f"be one of {', '.join(MODELS)}"
    yield "model.sizes", all(size >= 1 for size in model.sizes), "hold numbers of 1 or more"
    yield "model.sizes", model.kind != "cnn" or 1 <= len(model.sizes) <= 4, "hold one to four numbers for a cnn"
    yield "model.dropout", 0 <= model.dropout < 1, "be in [0, 1)"
    yield "data.name", data.name in DATASETS, f"be one of {', '.join(DATASETS)}"
    yield "data.samples", data.samples >= 0, "be 0 (all) or more"
    yield "data.validation", 0 <= data.validation < 1, "be in [0, 1), a share of the images"
    yield from _rules_of_optimizer(config.optimizer)
    yield from _rules_of_schedule(config.schedule, config.optimizer)
    yield from _rules_of_several(config)


def _rules_of_optimizer(optimizer: OptimizerConfig) -> Rules:
    name, momentum = optimizer.name, optimizer.momentum
    yield "optimizer.name", name in OPTIMIZERS, f"be one of {', '.join(OPTIMIZERS)}"
    yield "optimizer.lr", 0 < optimizer.lr < inf, "be a number above 0"
    yield "optimizer.weight_decay", 0 <= optimizer.weight_decay < inf, "be 0 or more"
    yield "optimizer.momentum", 0 <= momentum < 1, "be in [0, 1)"
    only = f"be left out: only {' and '.join(WITH_MOMENTUM)} have it"
    yield "optimizer.momentum", name in WITH_MOMENTUM or not momentum, only
    yield "optimizer.nesterov", name == "sgd" or not optimizer.nesterov, "be left out: only sgd has it"
    yield "optimizer.momentum", momentum > 0 or not optimizer.nesterov, "be above 0 with nesterov"


def _rules_of_schedule(schedule: ScheduleConfig, optimizer: OptimizerConfig) -> Rules:
    yield "schedule.name", schedule.name in SCHEDULE_OPTIONS, f"be one of {', '.join(SCHEDULE_OPTIONS)}"
    yield "schedule.by", schedule.by in ("auto", "step", "epoch"), "be one of auto, step, epoch"
    _refuse_options_of_others(schedule)
    yield "schedule.warmup", schedule.warmup >= 0, "be 0 or more"
    yield "schedule.patience", schedule.patience >= 0, "be 0 or more"
    least = 1 if schedule.name == "step" else 0
    yield "schedule.step_size", schedule.step_size >= least, f"be {least} or more"
    yield "schedule.min_lr", 0 <= schedule.min_lr <= optimizer.lr, f"be in [0, {optimizer.lr}], optimizer.lr"
    yield "schedule.gamma", 0 < schedule.gamma <= 1, "be in (0, 1]"
    yield "schedule.factor", 0 < schedule.factor < 1, "be in (0, 1)"
    yield "schedule.pct_start", 0 < schedule.pct_start < 1, "be in (0, 1)"
    yield "schedule.div_factor", 1 <= schedule.div_factor < inf, "be 1 or more"
    yield "schedule.final_div_factor", 1 <= schedule.final_div_factor < inf, "be 1 or more"
    if schedule.name == "multistep":
        given, first = list(schedule.milestones), schedule.warmup + 1
        ascends = bool(given) and given == sorted(set(given)) and given[0] >= first
        yield "schedule.milestones", ascends, f"hold ascending numbers from {first} on"


def _refuse_options_of_others(schedule: ScheduleConfig) -> None:
    """Raise if an option was set that the schedule has not; one that has its default says nothing."""
    plain = ScheduleConfig()
    for option in set().union(*SCHEDULE_OPTIONS.values()) - SCHEDULE_OPTIONS[schedule.name]:
        value = getattr(schedule, option)
        owners = ", ".join(name for name, options in SCHEDULE_OPTIONS.items() if option in options)
        rule = f"be left out for {schedule.name}: it is for {owners}"
        require(value == getattr(plain, option), f"schedule.{option}", rule, value)


def _rules_of_several(config: TrainingConfig) -> Rules:
    schedule, is_held_out = config.schedule, config.data.validation > 0
    rule = "be left out, or data.validation be above 0: what was held out tells when to end"
    yield "patience", is_held_out or not config.patience, rule
    is_plateau = schedule.name == "reduce_on_plateau"
    rule = "be another, or data.validation be above 0: it goes by the loss of what was held out"
    yield "schedule.name", is_held_out or not is_plateau, rule
    yield "schedule.by", not is_plateau or schedule.by != "step", "be epoch for reduce_on_plateau"
    is_in_time = schedule.by_step or schedule.warmup < config.epochs
    yield "schedule.warmup", is_in_time, f"be less than the {config.epochs} epochs"
