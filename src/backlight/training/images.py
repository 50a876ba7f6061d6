"""The images that a configuration can name, as tensors in shuffled batches, and what a model reaches on them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.data.sampler import BatchSampler, RandomSampler
from backlight.data.vision import KMNIST, MNIST, FashionMNIST
from backlight.engine.grad_mode import no_grad
from backlight.errors import InputError
from backlight.nn import Module
from backlight.ops.loss.cross_entropy import cross_entropy
from backlight.serialization.safe import load_file
from backlight.tensor.creation import from_numpy
from backlight.tensor.generators import Generator
from backlight.tensor.random_factories import randperm
from backlight.tensor.tensor import Tensor
from backlight.training.components import CLASSES, SIDE
from backlight.training.config import DataConfig
from backlight.training.run_folder import jsonable, write_atomically

FILES = {"fashion-mnist": FashionMNIST, "mnist": MNIST, "kmnist": KMNIST}
SYNTHETIC_TRAINING, SYNTHETIC_TEST = 2000, 500


@dataclass(frozen=True)
class Images:
    """Images in [0, 1] and their classes.

    Shapes: images (count, 1, 28, 28), labels (count,)
    """

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def images_of(config: DataConfig) -> tuple[Images, Images]:
    """Return the images to learn from and those to test with.

    Raises:
        RuntimeError: the files of a dataset are not to be found; the message says how to get them.
        ValueError: they are damaged, or hold images of another size.
    """
    if config.name == "synthetic":
        return _synthetic(config.samples or SYNTHETIC_TRAINING)
    return _from_files(config, train=True), _from_files(config, train=False)


def _from_files(config: DataConfig, train: bool) -> Images:
    found = FILES[config.name](config.root, train=train)
    most = config.samples if train and config.samples else len(found)
    pixels = found.data.numpy()[:most, None]  # (count, 1, 28, 28), bytes
    if pixels.shape[2:] != (SIDE, SIDE):
        raise InputError(f"images must be {SIDE} × {SIDE} pixels, got {pixels.shape[2]} × {pixels.shape[3]}")
    return Images(from_numpy(pixels.astype(np.float32) / np.float32(255)), found.targets[:most])


def _synthetic(count: int) -> tuple[Images, Images]:
    """Return noisy copies of ten random patterns, always the same: made up, and so labelled in the run's config."""
    draws = np.random.default_rng(0)
    patterns = draws.random((CLASSES, 1, SIDE, SIDE), np.float32)
    made = []
    for size in (count, SYNTHETIC_TEST):
        labels = draws.integers(0, CLASSES, size)
        noise = draws.random((size, 1, SIDE, SIDE), np.float32)
        made.append(Images(from_numpy(0.3 * patterns[labels] + 0.7 * noise), from_numpy(labels)))
    return made[0], made[1]


def held_out(images: Images, share: float, seed: int) -> tuple[Images, Images]:
    """Return the images that stay to learn from, and those held out: a share of them drawn by the seed.

    Raises:
        InputError: one of the two would be empty.
    """
    count = round(share * len(images))
    if not 0 < count < len(images):
        raise InputError(
            f"data.validation must leave images on both sides, got {share} of {len(images)} images: {count} of them"
        )
    order = randperm(len(images), generator=Generator().manual_seed(seed))._data
    rest, taken = np.sort(order[count:]), np.sort(order[:count])
    pixels, labels = images.images._data, images.labels._data
    return tuple(Images(from_numpy(pixels[part]), from_numpy(labels[part])) for part in (rest, taken))


class Batches:
    """Batches of images in a new random order each time they are iterated over.

    Args:
        generator: where the order comes from.
    """

    def __init__(self, images: Images, size: int, generator: Generator):
        self.images = images
        self.generator = generator
        self.sampler = BatchSampler(RandomSampler(images, generator=generator), size, drop_last=False)

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        pixels, labels = self.images.images._data, self.images.labels._data
        for indices in self.sampler:
            yield from_numpy(pixels[indices]), from_numpy(labels[indices])


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
        best = None if self.record is None else self.record["evaluation"][self.by]
        beats = best is None or (value is not None and (value < best if self.by == "loss" else value > best))
        better = value is not None and value == value and beats
        self.record, self.since = (record, 0) if better else (self.record, self.since + 1)
        return better


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
