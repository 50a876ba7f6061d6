"""The cross-encoder that is trained: MiniLM's encoder under BERT's head with one logit."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.models.checkpoint import WEIGHTS, read_settings, read_weights
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.bert import Bert, BertConfig, BertHead
from backlight.models.pairs import PairReader
from backlight.models.tokens import Tokenizer
from backlight.tensor.tensor import Tensor
from backlight.training.run_folder import write_atomically

SPREAD = 0.02  # standard deviation of new weights, as BERT's own


def starting_model(source: Path, max_length: int, seed: int) -> CrossEncoder:
    """Return an encoder under a head of random weights, or a model trained before as it is.

    Args:
        source: the folder of what training starts from.
        max_length: tokens of a pair that are read; the longer of the two texts is cut.
        seed: of the head's weights.
    """
    config, weights = BertConfig.of(read_settings(source / "config.json")), read_weights(source)
    head = weights if "classifier.weight" in weights else _head(config.hidden_size, seed)
    return CrossEncoder(
        name="reranker",
        encoder=Bert(config, weights),
        head=BertHead(config, head, 1),
        reader=PairReader(Tokenizer(source, max_length)),
    )


def weights_of(model: CrossEncoder) -> dict[str, Tensor]:
    """Return all weights that a model computes with: the head's names begin with `head.`."""
    return model.encoder.parameters() | {f"head.{name}": weight for name, weight in model.head.parameters().items()}


def scores_of(model: CrossEncoder, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return the logit of each pair, without recording; pairs of like lengths are run together."""
    read = model.read(pairs)
    order = sorted(range(len(pairs)), key=lambda place: len(read[place]))
    found = np.empty(len(pairs), np.float32)
    found[order] = model.scores_of([read[place] for place in order])
    return found


def write_model(model: CrossEncoder, source: Path, folder: Path) -> None:
    """Write a model as BertForSequenceClassification in Hugging Face's layout, with the source's tokeniser."""
    settings = read_settings(source / "config.json") | {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
        "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
    }
    settings.pop("_name_or_path", None)
    head = {name if "classifier" in name else f"bert.{name}": one for name, one in model.head.parameters().items()}
    weights = {f"bert.{name}": one for name, one in model.encoder.state_dict().items()} | head
    arrays = {name: np.ascontiguousarray(one.detach().numpy()) for name, one in weights.items()}
    write_atomically(folder / WEIGHTS, save(arrays, {"format": "pt"}))
    shutil.copy(source / "tokenizer.json", folder / "tokenizer.json")
    write_atomically(folder / "config.json", (json.dumps(settings, indent=1) + "\n").encode())


def _head(size: int, seed: int) -> dict[str, np.ndarray]:
    """Return the weights of an starting_model head."""
    rng = np.random.default_rng([seed, size])
    return {
        "pooler.dense.weight": rng.normal(0, SPREAD, (size, size)).astype(np.float32),
        "pooler.dense.bias": np.zeros(size, np.float32),
        "classifier.weight": rng.normal(0, SPREAD, (1, size)).astype(np.float32),
        "classifier.bias": np.zeros(1, np.float32),
    }
