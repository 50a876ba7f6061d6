"""One training run, as a configuration says, recorded from the first step to the last."""

from collections.abc import Callable
from dataclasses import dataclass

from backlight.errors import InputError
from backlight.graph.modes import no_grad
from backlight.nn import Module
from backlight.ops.cross_entropy import cross_entropy
from backlight.optim import SGD, Adam, AdamW, Optimizer
from backlight.tensor.random import Generator, manual_seed
from backlight.training.config import OptimizerConfig, TrainingConfig
from backlight.training.images import Batches, Images, images_of
from backlight.training.networks import network
from backlight.training.recorder import Recorder
from backlight.training.run_folder import RunFolder, jsonable

MAY_CHANGE = {"out", "epochs", "record_every", "checkpoint_every"}  # when a run is resumed
TESTED_AT_ONCE = 1000  # images in one pass of an evaluation


@dataclass(frozen=True)
class Run:
    """A run that is ready: `go` trains until the end, or until Ctrl-C."""

    config: TrainingConfig
    model: Module
    recorder: Recorder
    batches: Batches
    test: Images

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        return self.config.epochs * len(self.batches)

    def go(self, seen: Callable[[dict], None] = lambda record: None) -> None:
        """Train.

        Args:
            seen: called with each record (of a step, or of an evaluation) as it is written.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; a checkpoint has been written.
        """
        recorder = self.recorder
        with recorder:
            for _ in recorder.epochs(self.config.epochs):
                for images, labels in recorder.batches(self.batches):
                    record = self._step(images, labels)
                    if record is not None:
                        seen(record)
                seen(recorder.evaluation(**evaluate(self.model, self.test)))

    def _step(self, images, labels) -> dict | None:
        scores = self.model(images)
        loss = cross_entropy(scores, labels)
        self.recorder.optimizer.zero_grad()
        loss.backward()
        self.recorder.optimizer.step()
        hits = scores._data.argmax(1) == labels._data
        return self.recorder.step(loss, samples=len(labels), accuracy=hits.mean())


def prepare(config: TrainingConfig, existing: str = "refuse") -> Run:
    """Load the data, make the model and open the run folder.

    Args:
        existing: what to do if the folder holds a run, see `Recorder`.

    Raises:
        InputError: the data are missing, the folder cannot be used, or a run that is resumed had other settings.
    """
    if existing == "resume":
        _check_same(config, RunFolder(config.out))
    training, test = images_of(config.data)
    manual_seed(config.seed)
    model = network(config.model)
    recorder = Recorder(
        config.out,
        model,
        optimizer_of(config.optimizer, model),
        config={"training": config.as_dict()},
        every=config.record_every,
        checkpoint_every=config.checkpoint_every,
        existing=existing,
    )
    batches = Batches(training, config.batch_size, Generator().manual_seed(config.seed))
    return Run(config, model, recorder, batches, test)


def _check_same(config: TrainingConfig, folder: RunFolder) -> None:
    """Raise if the run in a folder had other settings than these, but for those that may change on the way."""
    before, now = folder.config().get("training", {}), jsonable(config.as_dict())
    for name in before.keys() - MAY_CHANGE:
        if before[name] != now[name]:
            raise InputError(
                f"{name} must be as in the run that is resumed, {before[name]!r}, got {now[name]!r}: change it back, "
                "or begin another run"
            )


def optimizer_of(config: OptimizerConfig, model: Module) -> Optimizer:
    """Return the optimizer that a configuration names, over the model's parameters."""
    if config.name == "sgd":
        options = {"momentum": config.momentum, "nesterov": config.nesterov}
        return SGD(model.parameters(), lr=config.lr, weight_decay=config.weight_decay, **options)
    kind = {"adam": Adam, "adamw": AdamW}[config.name]
    return kind(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)


def evaluate(model: Module, images: Images) -> dict[str, float]:
    """Return the mean loss and the share of images whose class is found, with the model in evaluation mode."""
    loss, hits = 0.0, 0
    model.eval()
    with no_grad():
        for start in range(0, len(images), TESTED_AT_ONCE):
            part = slice(start, start + TESTED_AT_ONCE)
            scores, labels = model(images.images[part]), images.labels[part]
            loss += cross_entropy(scores, labels, reduction="sum").item()
            hits += int((scores._data.argmax(1) == labels._data).sum())
    model.train()
    return {"loss": loss / len(images), "accuracy": hits / len(images)}
