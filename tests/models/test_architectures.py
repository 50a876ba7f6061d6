"""Sequence classifiers of transformers of each shape are scored and differentiated as PyTorch does it."""

import inspect

import numpy as np
import pytest
import torch
import transformers
from models_in_memory import PAIRS, bert_tokenizer, random_model

from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.models.pairs import PairBatch

SIZES = {  # settings by the names that configurations have for them
    32: ("hidden_size", "d_model", "n_embd", "dim", "embedding_size"),
    2: ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"),
    4: ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"),
    1: ("num_key_value_heads", "num_labels"),
    48: ("intermediate_size", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "hidden_dim", "n_inner", "dff"),
    8: ("head_dim", "d_kv", "attention_window"),
    64: ("max_position_embeddings", "n_positions"),
}
NO_WORDS = range(5)  # GPT-2 takes segments 0 and 1 from the same table, and a decoder starts with a special token
ENCODERS = "albert bert big_bird camembert data2vec-text deberta deberta-v2 distilbert electra esm fnet ibert"
ENCODERS += " longformer mobilebert modernbert mpnet nystromformer rembert roberta roformer xlm-roberta"
DECODERS = "bloom gemma gemma2 gpt2 gpt_bigcode gpt_neox llama mistral openai-gpt opt phi qwen2 qwen3 starcoder2"
BOTH = "bart mbart mt5 umt5"


def architecture(name: str, **settings):
    """Return a small sequence classifier with random weights."""
    tokenizer = bert_tokenizer()
    kind = type(transformers.AutoConfig.for_model(name))
    known = inspect.signature(kind).parameters.keys() | kind.attribute_map.keys()
    sizes = {own: size for size, names in SIZES.items() for own in names if own in known}
    config = kind(
        **{
            **sizes,
            "vocab_size": len(tokenizer),
            "num_labels": 1,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.sep_token_id,
            **settings,
        }
    )
    return random_model(transformers.AutoModelForSequenceClassification.from_config, config), tokenizer


def library_call(model, tokenizer, pair) -> torch.Tensor:
    """Return the logit of a pair as the library computes it."""
    takes = inspect.signature(model.forward).parameters
    inputs = tokenizer(*pair, return_tensors="pt")
    return model(**{key: value for key, value in inputs.items() if key in takes}).logits[0, 0]


@pytest.mark.parametrize("name", f"{ENCODERS} {DECODERS} {BOTH}".split())
def test_scores_and_gradients_are_those_of_the_library(name):
    """The gradient of a row of the table is the sum of those of its word, wherever the model reads it."""
    model, tokenizer = architecture(name)
    batch = PairBatch.of(Reranker.of(model, tokenizer=tokenizer).scorer.read(PAIRS))
    scores, gradients = Reranker.of(model, tokenizer=tokenizer).scorer.gradients(batch)
    part = model.get_encoder() if model.config.is_encoder_decoder else model
    layer = part.get_input_embeddings()
    layer.weight.requires_grad_()
    for texts, pair, score, found in zip(PAIRS, batch.pairs, scores, batch.by_pair(gradients), strict=True):
        expected = library_call(model, tokenizer, texts)
        assert score == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
        (slopes,) = torch.autograd.grad(expected, layer.weight)
        table = np.zeros(slopes.shape, np.float32)
        np.add.at(table, pair.ids, found * float(getattr(layer, "embed_scale", 1.0)))
        words = np.setdiff1d(pair.ids, NO_WORDS)
        assert np.abs(table[words] - slopes[words].numpy()).max() < 2e-5 * max(1.0, slopes.abs().max().item())


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_a_language_model_of_encoder_and_decoder_answers_with_its_first_token(name):
    tokenizer, sizes = bert_tokenizer(), {key: size for size, names in SIZES.items() for key in names}
    kind = getattr(transformers, f"{name}Config")
    known = inspect.signature(kind).parameters
    config = kind(
        **{key: size for key, size in sizes.items() if key in known},
        vocab_size=len(tokenizer),
        pad_token_id=0,
        eos_token_id=tokenizer.sep_token_id,
        decoder_start_token_id=0,
    )
    model = random_model(getattr(transformers, f"{name}ForConditionalGeneration"), config)
    prompt = "food: {query} leaf: {document} plant:"
    with pytest.raises(InputError, match="needs prompt=, a text with"):
        Reranker.of(model, tokenizer=tokenizer)
    reranker = Reranker.of(model, tokenizer=tokenizer, prompt=prompt, answers=("plant", "water"))
    batch = PairBatch.of(reranker.scorer.read(PAIRS))
    scores, gradients = reranker.scorer.gradients(batch)
    yes, no = tokenizer.convert_tokens_to_ids(["plant", "water"])
    for (query, document), score, found in zip(PAIRS, scores, batch.by_pair(gradients), strict=True):
        text = prompt.format(query=query, document=document) + tokenizer.sep_token  # as its tokenizer ends a text
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        leaf = model.get_encoder().get_input_embeddings()(ids).detach().requires_grad_()
        logits = model(inputs_embeds=leaf, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits[0, 0]
        expected = logits[yes] - logits[no]
        assert score == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(found, torch.autograd.grad(expected, leaf)[0][0].numpy(), atol=1e-5)
    assert reranker.explain(*PAIRS[0]).check is not None


def test_a_model_without_word_embeddings_is_named():
    with pytest.raises(InputError, match=r"Canine.* has no layer of word embeddings: give a function of pairs"):
        Reranker.of(architecture("canine")[0], tokenizer=bert_tokenizer())
