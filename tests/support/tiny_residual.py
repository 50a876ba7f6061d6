"""A small residual cross-encoder with random weights, as the built-in reranker is one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch_file
from tiny_bert import edited, write_cross_encoder

from backlight.models.encoders.families import RESIDUAL
from backlight.models.pairs import Pair
from reranker.residual import ARCHITECTURE, set_texts_apart


def write_residual(folder: Path, *, seed: int = 0, spread: float = 0.05, **settings) -> Path:
    """Write a folder with a residual cross-encoder: a joint stream that differs a little from the other one.

    Args:
        spread: of these differences.
    """
    write_cross_encoder(folder, seed=seed, **settings)
    weights, rng = load_file(folder / "model.safetensors"), np.random.default_rng(seed)
    for name in [name for name in weights if name.startswith("bert.") and "word_embeddings" not in name]:
        if "pooler" not in name:
            moved = rng.normal(0, spread, weights[name].shape).astype(np.float32)
            weights["bert.similarity." + name.removeprefix("bert.")] = weights[name] + moved
    save_file(weights | {"cosine_weight": np.array([3.0], np.float32)}, folder / "model.safetensors")
    set_texts_apart(folder / "tokenizer.json")
    return edited(folder, model_type=RESIDUAL, architectures=[ARCHITECTURE])


def reference_parts(folder: Path, pairs: Sequence[Pair]) -> list[tuple[float, float, float]]:
    """Return what PyTorch makes of each pair with the plain weights of a folder: logit, the cosine's weight, cosine."""
    joint = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    weights = load_torch_file(folder / "model.safetensors")
    own = {name.removeprefix("bert.similarity."): one for name, one in weights.items() if ".similarity." in name}
    words = "embeddings.word_embeddings.weight"
    alone = transformers.BertModel(joint.config, add_pooling_layer=False).eval()
    alone.load_state_dict(own | {words: weights[f"bert.{words}"]}, strict=False)
    found = []
    for pair in pairs:
        ids, segments = torch.tensor(pair.ids)[None], torch.tensor(pair.type_ids)[None]
        with torch.no_grad():
            logit = joint(ids, token_type_ids=segments).logits[0, 0].item()
            texts = [alone(ids[segments == side][None]).last_hidden_state[0].mean(0) for side in (0, 1)]
        found.append((logit, weights["cosine_weight"].item(), torch.cosine_similarity(*texts, dim=0).item()))
    return found
