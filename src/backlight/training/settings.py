"""What can be set for a run of `backlight train`, with the defaults."""

import dataclasses
from dataclasses import dataclass, field

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
    """How the learning rate changes from `optimizer.lr` on; NOTE [Schedules] in training/schedules.py says more.

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
