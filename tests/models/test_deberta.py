"""DeBERTa gives what transformers gives, whatever terms its attention has, and says what it cannot read."""

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
from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

from backlight.autograd import grad
from backlight.autograd.gradcheck import gradgradcheck
from backlight.errors import InputError
from backlight.models.encoders.bert import BertHead
from backlight.models.encoders.deberta import Deberta, DebertaConfig, distance_bias, relative_rows
from backlight.models.encoders.families import family_of
from backlight.tensor.creation import tensor

SIZES = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}
VERSION_3 = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}
PLAIN = {"relative_attention": False, "norm_rel_ebd": "none", "position_biased_input": True}
OPTIONS = {
    "version 3": {},
    "keys of distances alone": {"pos_att_type": ["c2p"]},
    "queries of distances alone": {"pos_att_type": "p2c"},
    "own projections of distances": {"share_att_key": False},
    "own keys of distances alone": {"share_att_key": False, "pos_att_type": "c2p"},
    "no term with distances": {"pos_att_type": []},
    "terms that are off but counted": PLAIN,
    "plain attention": PLAIN | {"pos_att_type": None},
    "no buckets, distances cut": {"position_buckets": -1, "max_relative_positions": 5, "norm_rel_ebd": "none"},
    "buckets over fewer distances": {"position_buckets": 8, "max_relative_positions": 10},
    "positions and segments added": {"position_biased_input": True, "type_vocab_size": 2},
    "narrow embeddings": {"embedding_size": 16, "position_biased_input": True, "type_vocab_size": 3},
    "a convolution": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "a wide convolution in groups over one layer": {"conv_kernel_size": 5, "conv_groups": 3, "num_hidden_layers": 1},
    "other activations": {"hidden_act": "relu", "pooler_hidden_act": "tanh", "num_labels": 3},
}


def settings_of(**options) -> dict:
    return SIZES | VERSION_3 | {"num_labels": 1} | options


def both(**options):
    """Return transformers' model and our encoder and head with the same weights."""
    config = transformers.DebertaV2Config(**settings_of(**options))
    model = random_model(transformers.DebertaV2ForSequenceClassification, config)
    weights, ours = arrays_of(model), DebertaConfig.of(config.to_dict())
    return model, Deberta(ours, weights), BertHead(ours, weights, config.num_labels)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_all_that_is_computed_equals_transformers(options):
    model, encoder, head = both(**options)
    batch = random_batch(SIZES["vocab_size"], max(encoder.config.type_vocab_size, 1))
    ours, theirs = in_ours(encoder, head, batch), in_theirs(model, batch, token_type_ids=batch.type_ids)
    check_same(ours, theirs)
    assert relative_error(ordinary_logits(encoder, head, batch).numpy().T, theirs.logits.T) < 1e-5
    assert set(encoder.state_dict()) | set(head.parameters()) == {
        name.removeprefix("deberta.") for name in arrays_of(model)
    }


@pytest.mark.parametrize("name", ["version 3", "positions and segments added", "a convolution", "plain attention"])
def test_tokens_left_out_are_as_tokens_that_a_mask_hides(name):
    model, encoder, head = both(**OPTIONS[name])
    batch = random_batch(SIZES["vocab_size"], max(encoder.config.type_vocab_size, 1))
    left_out = some_left_out(batch)
    assert 4 <= left_out.sum() <= 12
    theirs = in_theirs(model, batch, left_out, token_type_ids=batch.type_ids)
    check_same(in_ours(encoder, head, without(batch, left_out)), theirs)


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (4, 32), (8, 10), (32, 128), (64, 513), (7, 100)])
def test_buckets_are_those_of_transformers_at_every_distance(buckets, farthest):
    far = 2 * farthest
    rows = relative_rows(far, buckets, buckets, farthest)
    row = torch.empty(1, far + 1, 1)
    expected = build_relative_position(row, row, buckets, farthest)[0].numpy()  # row i has the distances i, …, i − far
    assert np.array_equal(rows[: far + 1], np.clip(expected[0][::-1] + buckets, 0, 2 * buckets - 1))
    assert np.array_equal(rows[far:], np.clip(expected[:, 0] + buckets, 0, 2 * buckets - 1))


def test_without_buckets_far_distances_are_one():
    assert relative_rows(4, 3, 0, 3).tolist() == [0, 0, 1, 2, 3, 4, 5, 5, 5]


@pytest.mark.parametrize("positions", [[0], [0, 1], [0, 1, 2, 3, 4], [3, 4, 9], [5]])
def test_each_pair_of_tokens_gets_the_terms_of_its_distance(positions):
    rng, positions = np.random.default_rng(0), np.array(positions)
    query, key = rng.normal(size=(2, 2, len(positions), 3))
    keys, queries = rng.normal(size=(2, 12, 2, 3))  # (distances, heads, dim)
    rows = relative_rows(int(np.ptp(positions)), 6, 0, 6)
    found = distance_bias(*(tensor(array) for array in (query, key, keys, queries)), rows, positions)
    for i, j in np.ndindex(len(positions), len(positions)):
        row = np.clip(positions[i] - positions[j] + 6, 0, 11)
        expected = (query[:, i] * keys[row]).sum(1) + (key[:, j] * queries[row]).sum(1)
        np.testing.assert_allclose(found.numpy()[:, i, j], expected, rtol=1e-6)


def test_scores_are_differentiable_twice():
    _, encoder, _ = both(**OPTIONS["a convolution"], num_hidden_layers=1, hidden_size=12)
    wide = {name: weight.numpy().astype(np.float64) for name, weight in encoder.state_dict().items()}
    encoder = Deberta(encoder.config, wide)
    batch = random_batch(SIZES["vocab_size"], lengths=(3, 2))
    leaf = encoder.embed_words(batch.ids).detach().requires_grad_()
    assert gradgradcheck(lambda words: encoder(batch, words, wanted=batch.starts)[:, :2], [leaf])


def test_slopes_of_slopes_equal_pytorchs():
    model, encoder, head = both()
    batch = random_batch(SIZES["vocab_size"], lengths=(6,))
    leaf = encoder.embed_words(batch.ids).detach().requires_grad_()
    (slopes,) = grad(head(encoder(batch, leaf, wanted=batch.starts)).sum(), [leaf], create_graph=True)
    (ours,) = grad((slopes**2).sum(), [leaf])
    words = torch.tensor(leaf.detach().numpy())[None].requires_grad_()
    (slopes,) = torch.autograd.grad(model(inputs_embeds=words).logits.sum(), [words], create_graph=True)
    (theirs,) = torch.autograd.grad((slopes**2).sum(), [words])
    assert relative_error(ours.numpy(), theirs[0].numpy()) < 1e-4


def test_a_text_may_be_longer_than_the_positions_if_only_distances_count():
    model, encoder, head = both()
    batch = random_batch(SIZES["vocab_size"], lengths=(50, 3))
    assert relative_error(ordinary_logits(encoder, head, batch).numpy().T, model_logits(model, batch).T) < 1e-5
    _, encoder, _ = both(position_biased_input=True)
    with pytest.raises(InputError, match="at most 32 tokens, got 50"):
        encoder(batch)


def model_logits(model, batch) -> np.ndarray:
    alone = [model(torch.tensor(part)[None]).logits.detach().numpy() for part in batch.parts(batch.ids)]
    return np.concatenate(alone)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"vocab_size": None}, "config.json must say vocab_size, and does not: it is not a DeBERTa's"),
        ({"hidden_size": "24"}, "hidden_size must be a whole number, 1 or more, got '24'"),
        ({"num_attention_heads": 5}, "hidden_size must be a multiple of num_attention_heads, got 24 and 5"),
        ({"attention_head_size": 4}, "attention_head_size must be 8, as hidden_size asks for, got 4"),
        ({"pooler_hidden_size": 12}, "pooler_hidden_size must be 24, as hidden_size asks for, got 12"),
        ({"pooler_hidden_act": "maxout"}, "pooler_hidden_act must be one of gelu"),
        ({"pos_att_type": "c2p|p2p"}, "pos_att_type must be c2p, p2c, both or neither, got c2p, p2p"),
        ({"position_buckets": 1}, "position_buckets must be 2 or more, .* 32 relative positions, got 1"),
        ({"position_buckets": 62}, "position_buckets must be 2 or more, .* 32 relative positions, got 62"),
        ({"conv_kernel_size": 4}, "conv_kernel_size must be odd, got 4"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, "hidden_size must be a multiple of conv_groups, got 24 and 5"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        DebertaConfig.of(settings_of(**settings))


def test_missing_and_misshapen_weights_are_named():
    _, encoder, _ = both()
    weights = {name: weight.numpy() for name, weight in encoder.state_dict().items()}
    missing = "encoder.layer.1.attention.self.key_proj.bias"
    with pytest.raises(InputError, match=rf"must hold {missing} \(or deberta\.{missing}\).* not a DeBERTa's"):
        Deberta(encoder.config, {name: array for name, array in weights.items() if name != missing})
    with pytest.raises(InputError, match=r"rel_embeddings\.weight must have the shape \(8, 24\) .* got \(3, 24\)"):
        Deberta(encoder.config, weights | {"encoder.rel_embeddings.weight": np.zeros((3, 24), np.float32)})


def test_the_family_is_known_by_its_model_type():
    settings = {"model_type": "deberta-v2", "architectures": ["DebertaV2ForSequenceClassification"]}
    family = family_of("folder", settings)
    assert (family.config, family.encoder, family.head) == (DebertaConfig, Deberta, BertHead)
    assert family.has_head(settings) and not family.has_head({"architectures": ["DebertaV2Model"]})
