"""The cross-encoder that is trained: any encoder of BERT's kind under a head with one logit."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.engine.grad_mode import no_grad
from backlight.errors import InputError
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import WEIGHTS
from backlight.models.conversion import COPIED
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.bert import BertHead
from backlight.models.encoders.encoder import EncoderConfig
from backlight.models.encoders.families import FUSED, Family, family_of
from backlight.models.encoders.two_streams import COSINE, GATE, GATE_WIDTH, SIMILARITY
from backlight.models.fused import FusedCrossEncoder
from backlight.models.pairs import PairReader
from backlight.models.quantised import KEY
from backlight.models.ranker import READ_TYPOS, load_ranker, model_settings, tokenizer_of
from backlight.models.tokens import Tokenizer
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor
from backlight.training.run_folder import write_atomically

SPREAD = 0.02  # standard deviation of new weights, as BERT's own
HEAD = "head."  # before the names of the head's weights
POOLING = ("bert", FUSED)  # kinds of model whose pooler is a part of the encoder


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A cross-encoder with weights that can be trained, and how its folder is written.

    Args:
        scorer: the cross-encoder.
        source: the folder that it was read from, whose tokenizer and settings are written with it.
        family: what its architecture is.
        new_head: whether the head has random weights, since the source is a bi-encoder.
    """

    scorer: CrossEncoder
    source: Path
    family: Family
    new_head: bool

    def parameters(self) -> dict[str, Tensor]:
        """Return all weights that are computed with; the head's names begin with `head.`."""
        head = {f"{HEAD}{name}": weight for name, weight in self.scorer.head.parameters().items()}
        return self.scorer.encoder.parameters() | head

    @property
    def frozen(self) -> set[str]:
        """The names of the weights that are not trained: those that a fused score's cosine is made of."""
        if not isinstance(self.scorer, FusedCrossEncoder):
            return set()
        own = {name for name in self.parameters() if name.startswith(SIMILARITY)}
        return own | {self.scorer.encoder.words, *(HEAD + name for name in (COSINE, GATE, GATE_WIDTH))}

    def trained(self) -> dict[str, Tensor]:
        """Return the weights that are trained, by the names of `parameters()`."""
        frozen = self.frozen
        return {name: weight for name, weight in self.parameters().items() if name not in frozen}

    def load(self, weights: dict[str, Tensor | np.ndarray]) -> None:
        """Take over weights by the names of `parameters()`."""
        with no_grad():
            for name, weight in self.parameters().items():
                given = weights[name]
                weight.copy_(from_numpy(given) if isinstance(given, np.ndarray) else given)

    def copied(self) -> dict[str, np.ndarray]:
        """Return a copy of all weights, by the names of `parameters()`."""
        return {name: weight.detach().numpy().copy() for name, weight in self.parameters().items()}

    @property
    def last_layer(self) -> str:
        """The name of the layer that gives the logit, in `parameters()`."""
        named = getattr(self.scorer.encoder.config, "head", None)
        return HEAD + (named[2] if named else "classifier")

    def fold(self, scale: float, offset: float) -> None:
        """Make each logit `scale · logit + offset`, by the weights of the last layer."""
        found = self.parameters()
        with no_grad():
            if isinstance(self.scorer, FusedCrossEncoder):
                for name in (COSINE, GATE, GATE_WIDTH):
                    found[HEAD + name].mul_(scale)
                found[HEAD + GATE].add_(offset)
            weight, bias = found[f"{self.last_layer}.weight"], found[f"{self.last_layer}.bias"]
            weight.mul_(scale)
            bias.mul_(scale).add_(offset)

    def write(self, folder: Path) -> None:
        """Write the model in Hugging Face's layout: float32 weights, settings and the source's tokenizer."""
        architecture = self.family.classifiers[0]
        settings = model_settings(self.source) | {
            "architectures": [architecture],
            "id2label": {"0": "LABEL_0"},
            "label2id": {"LABEL_0": 0},
            "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
        }
        for name in ("_name_or_path", "sbert_ce_default_activation_function", "num_labels", KEY, READ_TYPOS):
            settings.pop(name, None)
        arrays = {name: np.ascontiguousarray(one.detach().numpy()) for name, one in self._named(settings).items()}
        write_atomically(folder / WEIGHTS, save(arrays, {"format": "pt"}))
        copied = [name for name in COPIED if not (self.new_head and name == "sentence_bert_config.json")]
        for name in copied:  # that of a bi-encoder says how many tokens of one text are read
            if (self.source / name).is_file() and (self.source / name).resolve() != (folder / name).resolve():
                shutil.copyfile(self.source / name, folder / name)
        write_atomically(folder / "config.json", (json.dumps(settings, indent=1) + "\n").encode())

    def _named(self, settings: dict) -> dict[str, Tensor]:
        """Return the weights by the names that the family's checkpoints with a classifier give them."""
        prefix = self.scorer.encoder.config.prefix
        inside = "pooler." if settings["model_type"] in POOLING else None  # BERT's pooler is a part of its encoder
        head = {
            f"{prefix}{name}" if inside and name.startswith(inside) else name: weight
            for name, weight in self.scorer.head.parameters().items()
        }
        return {f"{prefix}{name}": weight for name, weight in self.scorer.encoder.state_dict().items()} | head


def starting_model(source: Path, max_length: int | None = None, seed: int = 0) -> TrainedModel:
    """Return the cross-encoder in a folder as it is, or the encoder of a bi-encoder under a head of random weights.

    Args:
        source: the folder of what training starts from.
        max_length: tokens of a pair that are read; the longer of the two texts is cut. As many as the model reads by
            default.
        seed: of a new head's weights.

    Raises:
        InputError: the model is of an architecture whose head backlight does not train.
    """
    settings = model_settings(source)
    family = family_of(source, settings)
    if family.answering:
        raise InputError(f"the model to train must be an encoder, got {settings['model_type']} in {source}")
    found = load_ranker(source, "reranker")
    encoder = found.encoder
    longest = min(max_length or encoder.config.max_tokens, encoder.config.max_tokens)
    if isinstance(found, BiEncoder):  # its own limit is that of one text
        head, tokenizer = _new_head(family, encoder.config, source, seed), Tokenizer(source, longest)
    else:
        head, tokenizer = found.head, tokenizer_of(source, longest)
    kind = FusedCrossEncoder if isinstance(found, FusedCrossEncoder) else CrossEncoder
    scorer = kind(name="reranker", encoder=encoder, head=head, reader=PairReader(tokenizer))
    model = TrainedModel(scorer, source, family, isinstance(found, BiEncoder))
    for weight in model.trained().values():
        weight.requires_grad_()
    return model


def scores_of(scorer: CrossEncoder | BiEncoder, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return the raw score of each pair, without recording; pairs of like lengths are run together; (pairs,)."""
    read = scorer.read(pairs)
    order = sorted(range(len(pairs)), key=lambda place: len(read[place]))
    found = np.empty(len(pairs), np.float32)
    found[order] = scorer.scores_of([read[place] for place in order])
    return found


def _new_head(family: Family, config: EncoderConfig, source: Path, seed: int) -> BertHead:
    """Return a head of random weights."""
    if family.head is not BertHead:
        raise InputError(f"a new head must be BERT's, not that of the model in {source}: start from a cross-encoder")
    size, rng = config.hidden_size, np.random.default_rng([seed, config.hidden_size])
    dense, _, out = config.head
    arrays = {
        f"{dense}.weight": rng.normal(0, SPREAD, (size, size)).astype(np.float32),
        f"{dense}.bias": np.zeros(size, np.float32),
        f"{out}.weight": rng.normal(0, SPREAD, (1, size)).astype(np.float32),
        f"{out}.bias": np.zeros(1, np.float32),
    }
    return BertHead(config, arrays, 1)
