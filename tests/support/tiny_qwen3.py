"""A small Qwen3 with random weights and a byte-level tokenizer, written to a folder as save_pretrained writes it."""

import json
from pathlib import Path

import safetensors.torch
import tokenizers
import torch
import transformers
from beside_transformers import random_model
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "how do plants make food from sunlight? green plants make food from light, water and air.",
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided.",
    'Note that the answer can only be "yes" or "no". system user assistant Instruct Query Document <: >',
    "Given a web search query, retrieve relevant passages that answer the query",
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_bytes_tokenizer(folder: Path) -> int:
    """Write a byte-level tokenizer built as Qwen3's is, trained on a few lines; return how many tokens it knows."""
    made = tokenizers.Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS * 3 + ["yes no"] * 9 + ["yes", "no"] * 9,
        trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    made.add_tokens(["<think>", "</think>"])
    made.save(str(folder / "tokenizer.json"))
    return made.get_vocab_size()


def write_qwen3(folder: Path, *, architecture: str = "Qwen3ForCausalLM", kind: torch.dtype = torch.float32, **settings):
    """Write a model folder; `settings` go into config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {
        "vocab_size": write_bytes_tokenizer(folder),
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 400,
        "tie_word_embeddings": True,
    }
    config = transformers.Qwen3Config(**sizes | settings, architectures=[architecture])
    model = random_model(getattr(transformers, architecture), config)
    weights = {name: weight.to(kind).clone() for name, weight in model.state_dict().items()}
    if config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return folder
