"""What `backlight train` is told: a TOML or JSON file, checked entry by entry before anything runs."""

import dataclasses
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import InputError

MODELS = ("mlp", "cnn")
DATASETS = ("fashion-mnist", "mnist", "kmnist", "synthetic")
OPTIMIZERS = ("sgd", "adam", "adamw")


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
    """

    name: str = "fashion-mnist"
    root: str = "data"
    samples: int = 0


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer and its options; `momentum` and `nesterov` are SGD's."""

    name: str = "adam"
    lr: float = 0.001
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0


@dataclass(frozen=True)
class TrainingConfig:
    """All of a run.

    Args:
        out: the run folder.
        record_every: of so many steps one is recorded.
        checkpoint_every: steps from one checkpoint to the next.
    """

    out: str = "runs/first"
    seed: int = 0
    epochs: int = 5
    batch_size: int = 64
    record_every: int = 20
    checkpoint_every: int = 500
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)

    def as_dict(self) -> dict:
        """Return the settings as plain values, as a file would hold them."""
        return dataclasses.asdict(self)


def read_config(file: Path | str) -> TrainingConfig:
    """Return what a TOML or JSON file says; what it leaves out has its default.

    Raises:
        InputError: the file cannot be read, or says something that cannot be used.
    """
    file = Path(file)
    try:
        content = file.read_bytes()
        found = json.loads(content) if file.suffix == ".json" else tomllib.loads(content.decode("utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    except ValueError as problem:  # both kinds of parser, and bytes that are no text
        raise InputError(f"{file} is not {'JSON' if file.suffix == '.json' else 'TOML'}: {problem}") from problem
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold an object, got {type(found).__name__}")
    try:
        return config_of(found)
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from None


def config_of(found: dict) -> TrainingConfig:
    """Return the settings in a dict.

    Raises:
        InputError: one is unknown, or has a value that cannot be used.
    """
    config = _read(TrainingConfig, found, "")
    _check_choice("model.kind", config.model.kind, MODELS)
    _check_choice("data.name", config.data.name, DATASETS)
    _check_choice("optimizer.name", config.optimizer.name, OPTIMIZERS)
    for name in ("epochs", "batch_size", "record_every", "checkpoint_every"):
        _check(getattr(config, name) >= 1, name, "be 1 or more", getattr(config, name))
    _check(0 <= config.seed < 2**63, "seed", "be 0 or more, below 2^63", config.seed)
    _check(bool(config.out.strip()), "out", "name a folder", config.out)
    _check_model(config.model)
    _check(config.data.samples >= 0, "data.samples", "be 0 (all) or more", config.data.samples)
    _check_optimizer(config.optimizer)
    return config


def _check_model(model: ModelConfig) -> None:
    _check(all(size >= 1 for size in model.sizes), "model.sizes", "hold numbers of 1 or more", list(model.sizes))
    if model.kind == "cnn":
        _check(1 <= len(model.sizes) <= 4, "model.sizes", "hold one to four numbers for a cnn", list(model.sizes))
    _check(0 <= model.dropout < 1, "model.dropout", "be in [0, 1)", model.dropout)


def _check_optimizer(optimizer: OptimizerConfig) -> None:
    _check(0 < optimizer.lr < float("inf"), "optimizer.lr", "be a number above 0", optimizer.lr)
    _check(optimizer.weight_decay >= 0, "optimizer.weight_decay", "be 0 or more", optimizer.weight_decay)
    _check(0 <= optimizer.momentum < 1, "optimizer.momentum", "be in [0, 1)", optimizer.momentum)
    if optimizer.name != "sgd":
        _check(not optimizer.momentum, "optimizer.momentum", "be left out: only sgd has it", optimizer.momentum)
        _check(not optimizer.nesterov, "optimizer.nesterov", "be left out: only sgd has it", "true")
    elif optimizer.nesterov:
        _check(optimizer.momentum > 0, "optimizer.momentum", "be above 0 with nesterov", optimizer.momentum)


def _read(kind: type, found, path: str):
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


def _converted(kind, value, path: str):
    """Return a value as the kind that its setting has."""
    if dataclasses.is_dataclass(kind):
        return _read(kind, value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == tuple[int, ...]:
        whole = isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
        _check(whole, path, "be a list of whole numbers", value)
        return tuple(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    _check(fits, path, f"be {NAMES[kind]}", value)
    return value


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _check_choice(path: str, value: str, choices: tuple[str, ...]) -> None:
    _check(value in choices, path, f"be one of {', '.join(choices)}", value)


def _check(holds: bool, path: str, rule: str, value) -> None:
    if not holds:
        raise InputError(f"{path} must {rule}, got {value!r}")
