"""Which settings of a run can be used, and which go together."""

from backlight.errors import InputError
from backlight.training.settings import (
    DATASETS,
    MEASURES,
    MODELS,
    OPTIMIZERS,
    SCHEDULE_OPTIONS,
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
)

WITH_MOMENTUM = ("sgd", "rmsprop")


def require(holds: bool, path: str, rule: str, value) -> None:
    """Raise unless a setting keeps a rule.

    Raises:
        InputError: it does not.
    """
    if not holds:
        raise InputError(f"{path} must {rule}, got {value!r}")


def check_config(config: TrainingConfig) -> None:
    """Raise unless all settings can be used, each and together.

    Raises:
        InputError: one cannot.
    """
    for name in ("epochs", "batch_size", "record_every", "checkpoint_every", "accumulate"):
        require(getattr(config, name) >= 1, name, "be 1 or more", getattr(config, name))
    require(0 <= config.seed < 2**63, "seed", "be 0 or more, below 2^63", config.seed)
    require(bool(config.out.strip()), "out", "name a folder", config.out)
    require(0 <= config.clip_grad_norm < float("inf"), "clip_grad_norm", "be 0 (none) or more", config.clip_grad_norm)
    require(0 <= config.label_smoothing < 1, "label_smoothing", "be in [0, 1)", config.label_smoothing)
    _require_choice("best_by", config.best_by, MEASURES)
    require(config.patience >= 0, "patience", "be 0 (never) or more", config.patience)
    _check_model(config.model)
    _check_data(config.data)
    _check_optimizer(config.optimizer)
    _check_schedule(config.schedule, config.optimizer)
    _check_together(config)


def _require_choice(path: str, value: str, choices: tuple[str, ...]) -> None:
    require(value in choices, path, f"be one of {', '.join(choices)}", value)


def _check_model(model: ModelConfig) -> None:
    _require_choice("model.kind", model.kind, MODELS)
    require(all(size >= 1 for size in model.sizes), "model.sizes", "hold numbers of 1 or more", list(model.sizes))
    if model.kind == "cnn":
        require(1 <= len(model.sizes) <= 4, "model.sizes", "hold one to four numbers for a cnn", list(model.sizes))
    require(0 <= model.dropout < 1, "model.dropout", "be in [0, 1)", model.dropout)


def _check_data(data: DataConfig) -> None:
    _require_choice("data.name", data.name, DATASETS)
    require(data.samples >= 0, "data.samples", "be 0 (all) or more", data.samples)
    require(0 <= data.validation < 1, "data.validation", "be in [0, 1), a share of the images", data.validation)


def _check_optimizer(optimizer: OptimizerConfig) -> None:
    _require_choice("optimizer.name", optimizer.name, OPTIMIZERS)
    require(0 < optimizer.lr < float("inf"), "optimizer.lr", "be a number above 0", optimizer.lr)
    decay = optimizer.weight_decay
    require(0 <= decay < float("inf"), "optimizer.weight_decay", "be 0 or more", decay)
    require(0 <= optimizer.momentum < 1, "optimizer.momentum", "be in [0, 1)", optimizer.momentum)
    if optimizer.name not in WITH_MOMENTUM:
        owners = " and ".join(WITH_MOMENTUM)
        rule = f"be left out: only {owners} have it"
        require(not optimizer.momentum, "optimizer.momentum", rule, optimizer.momentum)
    if optimizer.name != "sgd":
        require(not optimizer.nesterov, "optimizer.nesterov", "be left out: only sgd has it", optimizer.nesterov)
    elif optimizer.nesterov:
        require(optimizer.momentum > 0, "optimizer.momentum", "be above 0 with nesterov", optimizer.momentum)


def _check_schedule(schedule: ScheduleConfig, optimizer: OptimizerConfig) -> None:
    _require_choice("schedule.name", schedule.name, tuple(SCHEDULE_OPTIONS))
    _require_choice("schedule.by", schedule.by, ("auto", "step", "epoch"))
    _refuse_options_of_others(schedule)
    counted = {"warmup": 0, "patience": 0, "step_size": 1 if schedule.name == "step" else 0}
    for name, least in counted.items():
        require(getattr(schedule, name) >= least, f"schedule.{name}", f"be {least} or more", getattr(schedule, name))
    lowest = f"be in [0, {optimizer.lr}], optimizer.lr"
    require(0 <= schedule.min_lr <= optimizer.lr, "schedule.min_lr", lowest, schedule.min_lr)
    require(0 < schedule.gamma <= 1, "schedule.gamma", "be in (0, 1]", schedule.gamma)
    require(0 < schedule.factor < 1, "schedule.factor", "be in (0, 1)", schedule.factor)
    require(0 < schedule.pct_start < 1, "schedule.pct_start", "be in (0, 1)", schedule.pct_start)
    for name in ("div_factor", "final_div_factor"):
        require(
            1 <= getattr(schedule, name) < float("inf"), f"schedule.{name}", "be 1 or more", getattr(schedule, name)
        )
    if schedule.name == "multistep":
        given, least = list(schedule.milestones), schedule.warmup + 1
        is_valid = bool(given) and given == sorted(set(given)) and given[0] >= least
        require(is_valid, "schedule.milestones", f"hold ascending numbers from {least} on", given)


def _refuse_options_of_others(schedule: ScheduleConfig) -> None:
    """Raise if an option was set that the schedule has not; one that has its default says nothing."""
    plain = ScheduleConfig()
    for option in set().union(*SCHEDULE_OPTIONS.values()) - SCHEDULE_OPTIONS[schedule.name]:
        value = getattr(schedule, option)
        if value != getattr(plain, option):
            owners = ", ".join(name for name, options in SCHEDULE_OPTIONS.items() if option in options)
            value = list(value) if isinstance(value, tuple) else value
            raise InputError(
                f"schedule.{option} must be left out for {schedule.name}: it is for {owners}, got {value!r}"
            )


def _check_together(config: TrainingConfig) -> None:
    held_out = config.data.validation > 0
    rule = "be left out, or data.validation be above 0: what was held out tells when to end"
    require(held_out or not config.patience, "patience", rule, config.patience)
    rule = "be another, or data.validation be above 0: it goes by the loss of what was held out"
    require(held_out or config.schedule.name != "reduce_on_plateau", "schedule.name", rule, config.schedule.name)
    if config.schedule.name == "reduce_on_plateau":
        require(config.schedule.by != "step", "schedule.by", "be epoch for reduce_on_plateau", config.schedule.by)
    if not config.schedule.by_step:
        rule = f"be less than the {config.epochs} epochs"
        require(config.schedule.warmup < config.epochs, "schedule.warmup", rule, config.schedule.warmup)
