"""Model folders damaged at random, and what becomes of them."""

import json
import random
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import tokenizers
from damage import damaged, described, one_line
from safetensors.numpy import save_file

from backlight.explain.reranker import Reranker
from backlight.models.encoders.bert import Bert, BertConfig, RobertaConfig
from backlight.models.encoders.deberta import Deberta, DebertaConfig
from backlight.models.encoders.modernbert import ModernBert, ModernBertConfig
from backlight.models.encoders.qwen3 import Qwen3, Qwen3Config

TEXT = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "yes", "no"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT, *"bcdefghij"]
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 40,
}
QUERY, DOCUMENTS = "the cat sat", ["a mat and the cat", "no cat saw a mat"]
HEAD = {"pooler.dense.weight": (8, 8), "pooler.dense.bias": (8,), "classifier.weight": (1, 8), "classifier.bias": (1,)}
LABEL = {"id2label": {"0": "LABEL_0"}, "sentence_transformers": {"activation_fn": "torch.nn.Sigmoid"}}
POOLING = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def _qwen3() -> tuple[dict, dict]:
    settings = {**SIZES, "model_type": "qwen3", "num_key_value_heads": 1, "head_dim": 4}
    settings |= {"architectures": ["Qwen3Model"], "rope_parameters": {"rope_theta": 1e6}}
    return settings, Qwen3.shapes_of(Qwen3Config.of(settings))


def _bert() -> tuple[dict, dict]:
    settings = {**SIZES, "model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_act": "gelu"}
    settings |= {"layer_norm_eps": 1e-12, "type_vocab_size": 2, "num_labels": 1, **LABEL}
    return settings, Bert.shapes_of(BertConfig.of(settings)) | HEAD


def _roberta() -> tuple[dict, dict]:
    settings = {**SIZES, "model_type": "roberta", "architectures": ["RobertaModel"], "type_vocab_size": 1}
    settings |= {"pad_token_id": 1}
    return settings, Bert.shapes_of(RobertaConfig.of(settings))


def _deberta() -> tuple[dict, dict]:
    settings = {**SIZES, "model_type": "deberta-v2", "architectures": ["DebertaV2ForSequenceClassification"], **LABEL}
    settings |= {"relative_attention": True, "position_buckets": 4, "pos_att_type": ["c2p", "p2c"]}
    return settings, Deberta.shapes_of(DebertaConfig.of(settings)) | HEAD


def _modernbert() -> tuple[dict, dict]:
    settings = {**SIZES, "model_type": "modernbert", "architectures": ["ModernBertModel"], "local_attention": 6}
    return settings, ModernBert.shapes_of(ModernBertConfig.of(settings))


FAMILIES: dict[str, Callable[[], tuple[dict, dict]]] = {
    "bert": _bert,
    "deberta": _deberta,
    "modernbert": _modernbert,
    "qwen3": _qwen3,
    "roberta": _roberta,
}
EMBEDDERS = {"roberta", "modernbert", "qwen3"}


def write_model(folder: Path, family: str = "bert", seed: int = 0, **changes) -> Path:
    """Write a tiny model folder; `changes` go into its config.json only."""
    folder.mkdir(parents=True, exist_ok=True)
    settings, shapes = FAMILIES[family]()
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    (folder / "config.json").write_text(json.dumps(settings | changes))
    save_file(arrays, folder / "model.safetensors")
    made = tokenizers.BertWordPieceTokenizer({piece: number for number, piece in enumerate(WORDS)})
    made.save(str(folder / "tokenizer.json"))
    texts = {
        "tokenizer_config.json": {"model_max_length": 32, "mask_token": "[MASK]", "model_input_names": ["input_ids"]},
        "sentence_bert_config.json": {"max_seq_length": 30, "do_lower_case": False},
    }
    if family in EMBEDDERS:
        texts |= {"modules.json": MODULES, "1_Pooling/config.json": POOLING}
        texts |= {"config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None}}
    for name, plain in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(plain))
    return folder


@cache
def _original(family: str, folder: Path) -> Path:
    return write_model(folder / f"original-{family}", family)


def use_model(folder: Path) -> Mapping:
    """Rank and explain with the model in a folder."""
    reranker = Reranker.from_pretrained(folder)
    ranking = reranker.rank(QUERY, DOCUMENTS, explain=1, method="saliency")
    scores = [ranked.score for ranked in ranking.documents]
    if not np.isfinite(scores).all():
        raise AssertionError(f"scores {scores}")
    return {"scores": scores}


def play_models(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Damage a file of a model folder; return what went wrong, if anything, and whether the model could be used."""
    original = _original(rng.choice(list(FAMILIES)), folder)
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    file = rng.choice([*files, copy / "config.json", copy / "config.json"])
    if file.suffix == ".json":
        kind, text = damaged(rng, file.read_text())
        file.write_text(text)
    else:
        kind = bytes_damaged(rng, file)
    try:
        use_model(copy)
    except ValueError as problem:
        trouble = one_line(problem)
    except Exception as problem:
        trouble = None if one_line_of_ours(problem) else f"ended in {described(problem)}"
    else:
        return "", True
    return (f"{kind} in {file.name} of {original.name}: {trouble}" if trouble else ""), False


def one_line_of_ours(problem: Exception) -> bool:
    """Tell whether an error is one of backlight's, which the command line shows in one line."""
    return one_line(problem) is None


def bytes_damaged(rng: random.Random, file: Path) -> str:
    """Damage a binary file; return how."""
    content = bytearray(file.read_bytes())
    if rng.random() < 0.3:
        file.write_bytes(content[: rng.randrange(len(content))])
        return "cut off"
    within = len(content) if rng.random() < 0.5 else min(len(content), 2000)  # what stands first is the header
    for _ in range(rng.choice([1, 1, 3, 20])):
        content[rng.randrange(within)] = rng.randrange(256)
    file.write_bytes(content)
    return "bytes"
