"""A small residual cross-encoder with random weights, as the built-in reranker is one."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tiny_bert import edited, write_cross_encoder

from backlight.models.encoders.families import RESIDUAL
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
