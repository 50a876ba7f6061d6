"""A small fused cross-encoder with random weights, as the built-in reranker is one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch_file
from tiny_bert import edited, write_cross_encoder

from backlight.models.encoders.families import FUSED
from backlight.models.pairs import Pair
from reranker.fusion import set_texts_apart

FUSION = {"cosine_weight": 3.0, "gate": -1.0, "gate_width": 0.5}


def write_fused(folder: Path, *, seed: int = 0, spread: float = 0.05, cosine_weight: float = 3.0, **settings) -> Path:
    """Write a folder with a fused cross-encoder: a joint stream that differs a little from the other one.

    Args:
        spread: of these differences.
        cosine_weight: of the cosine in the score.
    """
    write_cross_encoder(folder, seed=seed, **settings)
    weights, rng = load_file(folder / "model.safetensors"), np.random.default_rng(seed)
    for name in [name for name in weights if name.startswith("bert.") and "word_embeddings" not in name]:
        if "pooler" not in name:
            moved = rng.normal(0, spread, weights[name].shape).astype(np.float32)
            weights["bert.similarity." + name.removeprefix("bert.")] = weights[name] + moved
    numbers = {name: np.array([one], np.float32) for name, one in (FUSION | {"cosine_weight": cosine_weight}).items()}
    save_file(weights | numbers, folder / "model.safetensors")
    set_texts_apart(folder / "tokenizer.json")
    return edited(folder, model_type=FUSED, architectures=["BertFusedReranker"])


def reference_parts(folder: Path, pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    """Return what PyTorch makes of each pair by a folder's plain weights: the logit, and what the cosine adds."""
    joint = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    weights = load_torch_file(folder / "model.safetensors")
    own = {name.removeprefix("bert.similarity."): one for name, one in weights.items() if ".similarity." in name}
    words = "embeddings.word_embeddings.weight"
    alone = transformers.BertModel(joint.config, add_pooling_layer=False).eval()
    alone.load_state_dict(own | {words: weights[f"bert.{words}"]}, strict=False)
    weight, gate, width = (weights[name].item() for name in FUSION)
    found = []
    for pair in pairs:
        ids, segments = torch.tensor(pair.ids), torch.tensor(pair.type_ids)
        query = int((segments == 0).sum())
        seen = torch.arange(len(ids)) != query  # a cross-encoder reads no second [CLS]
        with torch.no_grad():
            logit = joint(ids[seen][None], token_type_ids=segments[seen][None]).logits[0, 0]
            texts = [alone(part[None]).last_hidden_state[0].mean(0) for part in (ids[:query], ids[query:])]
            cosine = torch.cosine_similarity(*texts, dim=0)
            found.append((logit.item(), (weight * cosine * torch.sigmoid((logit - gate) / width)).item()))
    return found
