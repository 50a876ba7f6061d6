"""Qwen3 gives what transformers gives, scores by yes against no, and says what it cannot read."""

import numpy as np
import pytest
import torch
import transformers
from beside_transformers import (
    arrays_of,
    check_same,
    in_ours,
    in_theirs,
    ordinary_logits,
    random_batch,
    random_model,
    some_left_out,
    without,
)
from tiny_bert import relative_error

from backlight.autograd import grad
from backlight.autograd.gradcheck import gradgradcheck
from backlight.errors import InputError
from backlight.models.encoders.families import family_of
from backlight.models.encoders.qwen3 import Qwen3, Qwen3Config, Qwen3Head

YES, NO = 7, 5
SIZES = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 32,
}
SLIDING = {"use_sliding_window": True, "sliding_window": 4}
OPTIONS = {
    "as published": {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    "a head of its own": {"tie_word_embeddings": False},
    "biases": {"attention_bias": True},
    "a head for each": {"num_key_value_heads": 4},
    "one head for all": {"num_key_value_heads": 1, "head_dim": 6},
    "one layer": {"num_hidden_layers": 1},
    "another activation": {"hidden_act": "gelu_pytorch_tanh", "rms_norm_eps": 1e-3},
    "upper layers that slide": SLIDING | {"max_window_layers": 1},
    "lower layers that slide": SLIDING | {"layer_types": ["sliding_attention", "full_attention"]},
}


def both(**options):
    """Return transformers' model and our encoder and head with the same weights."""
    config = transformers.Qwen3Config(**SIZES | options)
    model = random_model(transformers.Qwen3ForCausalLM, config)
    weights, ours = arrays_of(model), Qwen3Config.of(config.to_dict())
    return model, Qwen3(ours, weights), Qwen3Head(ours, weights, answers=(YES, NO))


def yes_against_no(output, lasts):
    logits = output.logits[torch.arange(len(lasts)), lasts]
    return logits[:, [YES]] - logits[:, [NO]]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_all_that_is_computed_equals_transformers(options):
    model, encoder, head = both(**options)
    batch = random_batch(SIZES["vocab_size"])
    theirs = in_theirs(model, batch, logits_of=yes_against_no)
    check_same(in_ours(encoder, head, batch), theirs)
    assert relative_error(ordinary_logits(encoder, head, batch).T, theirs.logits.T) < 1e-5
    names = {name.removeprefix("model.") for name in arrays_of(model)} - {"lm_head.weight"}
    assert set(encoder.state_dict()) == names


@pytest.mark.parametrize("name", ["as published", "upper layers that slide", "lower layers that slide"])
def test_tokens_left_out_are_as_tokens_that_a_mask_hides(name):
    model, encoder, head = both(**OPTIONS[name])
    batch = random_batch(SIZES["vocab_size"])
    left_out = some_left_out(batch)
    assert 4 <= left_out.sum() <= 12
    theirs = in_theirs(model, batch, left_out, yes_against_no)
    rest = without(batch, left_out)
    check_same(in_ours(encoder, head, rest), theirs)
    assert relative_error(ordinary_logits(encoder, head, rest).T, theirs.logits.T) < 1e-5


def test_a_classifier_reads_the_last_token():
    config = transformers.Qwen3Config(**SIZES, num_labels=3, pad_token_id=0)
    model = random_model(transformers.Qwen3ForSequenceClassification, config)
    weights, ours = arrays_of(model), Qwen3Config.of(config.to_dict())
    encoder, head = Qwen3(ours, weights), Qwen3Head(ours, weights, 3)
    batch = random_batch(SIZES["vocab_size"])
    alone = [model(torch.tensor(part)[None]).logits.numpy() for part in batch.parts(batch.ids)]
    assert relative_error(ordinary_logits(encoder, head, batch), np.concatenate(alone)) < 1e-5


def test_a_classifier_made_from_yes_and_no_scores_the_same():
    model, encoder, head = both()
    rows = model.lm_head.weight.numpy()
    classifier = Qwen3Head(encoder.config, {"score.weight": rows[[YES]] - rows[[NO]]}, 1)
    batch = random_batch(SIZES["vocab_size"])
    assert np.array_equal(ordinary_logits(encoder, classifier, batch), ordinary_logits(encoder, head, batch))


def test_the_score_is_the_log_odds_of_yes_against_no():
    model, encoder, head = both()
    batch = random_batch(SIZES["vocab_size"], lengths=(6,))
    chances = model(torch.tensor(batch.ids)[None]).logits[0, -1].softmax(0).numpy()
    expected = np.log(chances[YES] / chances[NO])
    assert ordinary_logits(encoder, head, batch).item() == pytest.approx(expected, rel=1e-5)


def test_tokens_do_not_look_ahead():
    _, encoder, _ = both()
    batch = random_batch(SIZES["vocab_size"], lengths=(8,))
    leaf = encoder.embed_words(batch.ids).detach().requires_grad_()
    (slopes,) = grad(encoder(batch, leaf, wanted=[4]).sum(), [leaf])
    assert slopes.numpy()[:5].any(axis=1).all() and not slopes.numpy()[5:].any()


@pytest.mark.parametrize("name", ["one layer", "upper layers that slide"])
def test_scores_are_differentiable_twice(name):
    _, encoder, _ = both(**OPTIONS[name], hidden_size=8)
    wide = {name: weight.numpy().astype(np.float64) for name, weight in encoder.state_dict().items()}
    encoder = Qwen3(encoder.config, wide)
    batch = random_batch(SIZES["vocab_size"], lengths=(5,))
    leaf = encoder.embed_words(batch.ids).detach().requires_grad_()
    assert gradgradcheck(lambda words: encoder(batch, words, wanted=[4])[:, :2], [leaf])


def test_slopes_of_slopes_equal_pytorchs():
    model, encoder, head = both()
    batch = random_batch(SIZES["vocab_size"], lengths=(6,))
    leaf = encoder.embed_words(batch.ids).detach().requires_grad_()
    (slopes,) = grad(head(encoder(batch, leaf, wanted=[5])).sum(), [leaf], create_graph=True)
    (ours,) = grad((slopes**2).sum(), [leaf])
    words = torch.tensor(leaf.detach().numpy())[None].requires_grad_()
    score = yes_against_no(model(inputs_embeds=words), torch.tensor([5])).sum()
    (slopes,) = torch.autograd.grad(score, [words], create_graph=True)
    (theirs,) = torch.autograd.grad((slopes**2).sum(), [words])
    assert relative_error(ours.numpy(), theirs[0].numpy()) < 1e-4


def test_settings_of_older_files_are_understood():
    settings = SIZES | {"rope_theta": 1_000_000, "rope_scaling": None, "sliding_window": None}
    config = Qwen3Config.of(settings)
    assert (config.rope_theta, config.windows) == (1e6, (None, None))
    assert Qwen3Config.of(settings | {"max_position_embeddings": 40960}).max_tokens == 8192
    assert config.max_tokens == 32


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"head_dim": None}, "config.json must say head_dim, and does not: it is not a Qwen3's"),
        ({"hidden_size": 0}, "hidden_size must be a whole number, 1 or more, got 0"),
        ({"num_key_value_heads": 3}, "num_attention_heads must be a multiple of num_key_value_heads, got 4 and 3"),
        ({"head_dim": 5}, "head_dim must be even, got 5"),
        ({"hidden_act": "maxout"}, "hidden_act must be one of gelu"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_type must be default, got yarn"),
        ({"layer_types": ["full_attention"]}, "layer_types must say .* for each of 2 layers"),
        ({"layer_types": ["full_attention", "chunked"]}, "layer_types must say full_attention or sliding_attention"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window must be 1 or more where layers slide"),
        (SLIDING | {"sliding_window": 0, "max_window_layers": 0}, "sliding_window must be 1 or more .* got 0"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        Qwen3Config.of(SIZES | settings)


def test_what_cannot_be_used_is_named():
    _, encoder, _ = both()
    weights = {name: weight.numpy() for name, weight in encoder.state_dict().items()}
    missing = "layers.1.self_attn.q_norm.weight"
    with pytest.raises(InputError, match=rf"must hold {missing} \(or model\.{missing}\).* not a Qwen3's"):
        Qwen3(encoder.config, {name: array for name, array in weights.items() if name != missing})
    with pytest.raises(InputError, match=r"must hold lm_head\.weight"):
        Qwen3Head(encoder.config, weights, answers=(YES, NO))
    with pytest.raises(InputError, match=r"yes and no must be among the 40 tokens of one logit, got \(7, 40\)"):
        Qwen3Head(encoder.config, weights, answers=(YES, 40))
    with pytest.raises(InputError, match="at most 32 tokens, got 33"):
        encoder(random_batch(SIZES["vocab_size"], lengths=(33,)))


def test_the_family_is_known_by_its_model_type():
    family = family_of("folder", {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})
    assert (family.config, family.encoder, family.head) == (Qwen3Config, Qwen3, Qwen3Head)
    assert family.has_head({"architectures": ["Qwen3ForCausalLM"]})
    assert family.has_head({"architectures": ["Qwen3ForSequenceClassification"]})
    assert not family.has_head({"architectures": ["Qwen3Model"]})
