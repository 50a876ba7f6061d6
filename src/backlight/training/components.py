"""The networks, the optimizers and the learning rate schedules that a configuration can name.

NOTE [Schedules]
A schedule changes the rate after each step of the optimizer or after each epoch. All its counts are in that unit. A
warm-up of n raises the rate evenly: lr / (n + 1), 2 lr / (n + 1), … and lr at the step after it. The schedule proper
begins there: linear and cosine take what is left of the run for their way down to min_lr, which they would reach one
step after the last; step counts from there. Only milestones count from the beginning of the run.
"""

from itertools import pairwise

from backlight import nn
from backlight.errors import InputError
from backlight.nn import Module
from backlight.optim import SGD, Adagrad, Adam, Adamax, AdamW, NAdam, Optimizer, RAdam, RMSprop
from backlight.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from backlight.training.config import ModelConfig, OptimizerConfig, ScheduleConfig, TrainingConfig

SIDE = 28  # of an image, in pixels
CLASSES = 10


def network(config: ModelConfig) -> nn.Module:
    """Return the network, with first weights drawn from the default generator.

    Shapes: (batch, 1, 28, 28) -> (batch, 10)
    """
    return MAKERS[config.kind](config)


def _mlp(config: ModelConfig) -> nn.Module:
    """Return hidden layers with ReLU between them."""
    sizes = [SIDE * SIDE, *config.sizes]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, *_dropout(config), nn.Linear(sizes[-1], CLASSES))


def _cnn(config: ModelConfig) -> nn.Module:
    """Return blocks of a 3×3 convolution, ReLU and a halving by the largest of 2×2, then one linear layer."""
    channels, side = [1, *config.sizes], SIDE
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        side //= 2
    return nn.Sequential(*layers, nn.Flatten(), *_dropout(config), nn.Linear(channels[-1] * side * side, CLASSES))


def _dropout(config: ModelConfig) -> list[nn.Module]:
    return [nn.Dropout(config.dropout)] if config.dropout else []


MAKERS = {"mlp": _mlp, "cnn": _cnn}


KINDS = {kind.__name__.lower(): kind for kind in (SGD, Adam, AdamW, Adagrad, RMSprop, Adamax, NAdam, RAdam)}


def optimizer_of(config: OptimizerConfig, model: Module) -> Optimizer:
    """Return the optimizer that a configuration names, over the model's parameters."""
    options = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.name in ("sgd", "rmsprop"):
        options["momentum"] = config.momentum
    if config.name == "sgd":
        options["nesterov"] = config.nesterov
    return KINDS[config.name](model.parameters(), **options)


def schedule_of(config: TrainingConfig, optimizer: Optimizer, steps_an_epoch: int) -> LRScheduler | None:
    """Return the schedule that a configuration names (see NOTE [Schedules]): None if the rate stays.

    Raises:
        InputError: the warm-up is as long as the run.
    """
    schedule = config.schedule
    length = config.epochs * (steps_an_epoch if schedule.by_step else 1)
    if schedule.name == "reduce_on_plateau":
        return ReduceLROnPlateau(optimizer, factor=schedule.factor, patience=schedule.patience, min_lr=schedule.min_lr)
    if schedule.name == "onecycle":
        return _onecycle(config, optimizer, length)
    if schedule.warmup >= length:
        raise InputError(f"schedule.warmup must be less than the {length} steps of the run, got {schedule.warmup}")
    if not schedule.warmup:
        return _proper(schedule, optimizer, config.optimizer.lr, length)
    start = 1 / (schedule.warmup + 1)
    rising = LinearLR(optimizer, start_factor=start, total_iters=schedule.warmup)
    proper = _proper(schedule, optimizer, config.optimizer.lr, length - schedule.warmup)
    return rising if proper is None else SequentialLR(optimizer, [rising, proper], [schedule.warmup])


def _proper(schedule: ScheduleConfig, optimizer: Optimizer, lr: float, length: int) -> LRScheduler | None:
    """Return what follows the warm-up, over so many steps."""
    if schedule.name == "linear":
        return LinearLR(optimizer, start_factor=1.0, end_factor=schedule.min_lr / lr, total_iters=length)
    if schedule.name == "cosine":
        return CosineAnnealingLR(optimizer, T_max=length, eta_min=schedule.min_lr)
    if schedule.name == "step":
        return StepLR(optimizer, schedule.step_size, schedule.gamma)
    if schedule.name == "multistep":
        return MultiStepLR(optimizer, [place - schedule.warmup for place in schedule.milestones], schedule.gamma)
    return ExponentialLR(optimizer, schedule.gamma) if schedule.name == "exponential" else None


def _onecycle(config: TrainingConfig, optimizer: Optimizer, length: int) -> LRScheduler:
    """Return one cycle up to the configured rate; it moves the momentum too where the optimizer has one."""
    schedule = config.schedule
    if schedule.pct_start * length <= 1:
        raise InputError(
            f"schedule.pct_start must leave more than one of the {length} steps of the run for the rise, got "
            f"{schedule.pct_start}"
        )
    return OneCycleLR(
        optimizer,
        max_lr=config.optimizer.lr,
        total_steps=length,
        pct_start=schedule.pct_start,
        cycle_momentum=config.optimizer.momentum > 0 or "betas" in optimizer.defaults,
        div_factor=schedule.div_factor,
        final_div_factor=schedule.final_div_factor,
    )
