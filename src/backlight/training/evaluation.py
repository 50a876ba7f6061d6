"""What a model reaches on images that it does not learn from, and which epoch was the best at it."""

import json
from collections.abc import Iterable
from pathlib import Path

from safetensors.numpy import save

from backlight.engine.grad_mode import no_grad
from backlight.nn import Module
from backlight.ops.loss.cross_entropy import cross_entropy
from backlight.serialization.safe import load_file
from backlight.training.images import Images
from backlight.training.run_folder import jsonable, write_atomically

TESTED_AT_ONCE = 1000  # images in one pass of an evaluation


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


class Best:
    """The best evaluation so far, and how many came after it.

    Args:
        by: "loss", of which less is better, or another measure, of which more is.
        records: the evaluations of a run that is taken up.
    """

    def __init__(self, by: str, records: Iterable[dict] = ()):
        self.by = by
        self.record: dict | None = None
        self.since = 0
        for record in records:
            self.note(record)

    def note(self, record: dict) -> bool:
        """Take in an evaluation, and tell whether it is better than all before; one that is not finite never is."""
        value = record["evaluation"][self.by]
        better = value is not None and value == value and (self.record is None or self._beats(value))
        self.record, self.since = (record, 0) if better else (self.record, self.since + 1)
        return better

    def _beats(self, value: float) -> bool:
        best = self.record["evaluation"][self.by]
        return value < best if self.by == "loss" else value > best


def save_weights(file: Path, model: Module, record: dict) -> None:
    """Write a model's weights under their names in `state_dict`, with what they reached as the file's metadata."""
    arrays = {name: tensor.detach().contiguous().numpy() for name, tensor in model.state_dict().items()}
    reached = jsonable({name: record[name] for name in ("step", "epoch", "evaluation")})
    write_atomically(file, save(arrays, {"reached": json.dumps(reached)}))  # one text: of several the order is random


def evaluate_weights(file: Path, model: Module, images: Images) -> dict[str, float]:
    """Return what the weights in a file reach; the model keeps its own."""
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights = load_file(file)
    try:
        model.load_state_dict(weights)
        return evaluate(model, images)
    finally:
        model.load_state_dict(own)
