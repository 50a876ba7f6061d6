"""Model folders of each family, with the family's own tokenizer."""

from pathlib import Path

import tokenizers
import transformers
from beside_transformers import random_model
from tiny_bert import VOCABULARY
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}


WORDS = SIZES | {"max_position_embeddings": 70}


LETTERS = SIZES | {"max_position_embeddings": 130}


DISTILBERT = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": 64}


BYTES = sorted(ByteLevel.alphabet())


MARKED = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def numbered(pieces: list[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces)}


def words(tokenizer: type, **options):
    return tokenizer(vocab=numbered(VOCABULARY), **options)


def without_segments():
    """Return BERT's tokenizer, whose files keep segments from the model."""
    return words(transformers.BertTokenizer, model_input_names=["input_ids", "attention_mask"])


def roberta():
    return transformers.RobertaTokenizer(vocab=numbered(MARKED + BYTES), merges=[])


def sentence_pieces(tokenizer: type):
    """Return a tokenizer over ▁ and letters, the rarer the longer."""
    pieces = [*MARKED, "▁", "▁plants", "▁food", "▁the", "▁leaf", *"abcdefghijklmnopqrstuvwxyzGU.,!"]
    return tokenizer(vocab=[(piece, -1.0 - number / 10) for number, piece in enumerate(pieces)])


def modernbert():
    """Return a tokenizer over bytes that tells segments of which the model reads nothing."""
    made = tokenizers.Tokenizer(BPE(numbered(VOCABULARY[:5] + BYTES), []))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    read = ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_input_names=read, **names)


CASES = {
    "bert": (lambda: words(transformers.BertTokenizer), WORDS),
    "bert, no segments": (without_segments, WORDS),
    "electra": (lambda: words(transformers.ElectraTokenizer), WORDS | {"embedding_size": 16}),
    "distilbert": (lambda: words(transformers.DistilBertTokenizer), DISTILBERT),
    "roberta": (roberta, LETTERS | {"type_vocab_size": 1}),
    "xlm-roberta": (lambda: sentence_pieces(transformers.XLMRobertaTokenizer), WORDS | {"type_vocab_size": 1}),
    "camembert": (lambda: sentence_pieces(transformers.CamembertTokenizer), WORDS | {"type_vocab_size": 1}),
    "modernbert": (modernbert, LETTERS | {"local_attention": 16, "pad_token_id": 0}),
}


def write_reranker(folder: Path, case: str) -> Path:
    """Write a folder with a cross-encoder of random weights and its tokenizer, as save_pretrained does."""
    made, settings = CASES[case]
    tokenizer = made()
    kind = case.partition(",")[0]
    config = transformers.AutoConfig.for_model(kind, vocab_size=len(tokenizer), num_labels=1, **settings)
    random_model(transformers.AutoModelForSequenceClassification.from_config, config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
