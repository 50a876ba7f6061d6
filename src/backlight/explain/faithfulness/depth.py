"""A model's weights from its head down to its embeddings, and copies of a model that may be changed."""

import copy
import re
from dataclasses import replace

from backlight.errors import InputError
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.scoring import PairScorer
from backlight.tensor.tensor import Tensor

LAYER = re.compile(r"(?:^|\.)layers?\.(\d+)\.")  # how the families name the weights of a layer


def is_native(ranker) -> bool:
    """Return whether a model runs on backlight's own engine, which alone lets its weights be changed."""
    return isinstance(ranker, PairScorer) and hasattr(ranker, "encoder")


def changeable(ranker):
    """Return a copy of a model whose weights may be changed: the given one stays as it is.

    Raises:
        InputError: the model is of another engine.
    """
    if not is_native(ranker):
        raise InputError(f"{ranker.name} must run on backlight's engine for its weights to be changed, and does not")
    parts = {"encoder": copy.deepcopy(ranker.encoder)}
    if isinstance(ranker, CrossEncoder):
        parts["head"] = copy.deepcopy(ranker.head)
    return replace(ranker, **parts)


def weights_by_depth(ranker) -> list[tuple[str, dict[str, Tensor]]]:
    """Return a model's weights in groups from the top down: "head", "layer 5", … "layer 0", "embeddings".

    The head holds what belongs to no layer and is no embedding: a last norm too. A bi-encoder may have none.
    """
    found: dict[str, dict[str, Tensor]] = {"head": {}}
    if isinstance(ranker, CrossEncoder):
        found["head"] = {f"head.{name}": weight for name, weight in ranker.head.parameters().items()}
    layers: dict[int, dict[str, Tensor]] = {}
    embeddings = {}
    for name, weight in ranker.encoder.parameters().items():
        layer = LAYER.search(name)
        group = layers.setdefault(int(layer[1]), {}) if layer else embeddings if "embed" in name else found["head"]
        group[name] = weight
    found |= {f"layer {number}": layers[number] for number in sorted(layers, reverse=True)}
    return [(title, group) for title, group in [*found.items(), ("embeddings", embeddings)] if group]
