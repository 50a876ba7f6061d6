"""A scorer says what its score reads, which embeddings stand for no word, and how a score builds up."""

import dataclasses

import numpy as np
import pytest
import transformers
from beside_transformers import arrays_of, random_model
from model_folders import CASES, write_reranker
from tiny_bert import cross_encoder, edited, real_ranker, write_cross_encoder

from backlight.errors import InputError
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.encoder import Cut, Trace
from backlight.models.encoders.qwen3 import Qwen3, Qwen3Config, Qwen3Head
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker

PAIRS = [
    ("how do plants make food", "green plants make food from sunlight, water and air."),
    ("a leaf", "unlike cells"),
]


def test_a_scorer_says_what_its_score_reads():
    (pair,) = tiny_pairs()[:1]
    (weights,) = cross_encoder().read_weights(PairBatch.of([pair]))
    assert weights.tolist() == [1.0] + [0.0] * (len(pair) - 1)
    pairs = real_ranker().read(PAIRS[:2])
    rows = real_ranker().read_weights(PairBatch.of(pairs))
    assert [row.tolist() for row in rows] == [[1 / length] * length for pair in pairs for length in pair.lengths]


@pytest.mark.parametrize("pooling", ["cls", "lasttoken", "mean", "mean_sqrt_len_tokens"])
def test_what_a_score_reads_is_all_that_it_depends_on(pooling):
    ranker = dataclasses.replace(real_ranker(), pooling=pooling)
    batch = PairBatch.of(ranker.read(PAIRS[:2]))
    read = np.concatenate(ranker.read_weights(batch)) > 0
    last = ranker.inside(batch, slopes=True).state_slopes[-1]
    assert np.array_equal(last.any(axis=1), read)


def test_maxima_read_no_token_as_a_whole():
    ranker = dataclasses.replace(real_ranker(), pooling="max")
    with pytest.raises(InputError, match="pooling must read whole states, got max"):
        ranker.read_weights(PairBatch.of(ranker.read(PAIRS)))


def test_baselines_are_embeddings_that_stand_for_no_word():
    ranker = real_ranker()
    words = ranker.encoder.state_dict()["embeddings.word_embeddings.weight"].numpy()
    ids = {"pad": 0, "mask": 103}
    assert {use: ranker.tokenizer.id_of(use) for use in ids} == ids
    for use, number in ids.items():
        assert np.array_equal(ranker.baseline(use), words[number])
    assert np.array_equal(ranker.baseline("zero"), np.zeros_like(words[0]))
    np.testing.assert_allclose(ranker.baseline("average"), words.mean(0, dtype=np.float64), rtol=1e-5, atol=1e-7)
    with pytest.raises(InputError, match="baseline must be one of zero, pad, mask, average, got blank"):
        ranker.baseline("blank")


def test_a_tokenizer_without_a_mask_says_so(tmp_path):
    folder = write_cross_encoder(tmp_path)
    text = (folder / "tokenizer.json").read_text().replace("[MASK]", "[HIDE]")
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(InputError, match=r"the tokenizer must have a mask token, and it knows no \[MASK\]"):
        load_ranker(folder).baseline("mask")
    (folder / "tokenizer_config.json").write_text('{"mask_token": {"content": "[HIDE]"}}')
    assert load_ranker(folder).tokenizer.id_of("mask") == 4


def test_a_score_after_a_layer_is_that_of_a_model_that_ends_there(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path, num_hidden_layers=3))
    batch = PairBatch.of(ranker.read(PAIRS))
    found = ranker.build_up(batch)
    assert len(found) == 4
    for layers in (1, 2, 3):
        shorter = load_ranker(edited(tmp_path, num_hidden_layers=layers))
        np.testing.assert_allclose(found[layers], shorter.score(batch), rtol=1e-5, atol=1e-6)


def test_states_between_layers_are_normalised_as_the_last_ones_are():
    sizes = {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    config = transformers.Qwen3Config(vocab_size=80, num_hidden_layers=2, intermediate_size=40, **sizes)
    weights, batch = arrays_of(random_model(transformers.Qwen3ForCausalLM, config)), PairBatch.of(tiny_pairs())
    scorers = []
    for layers in (1, 2):
        ours = Qwen3Config.of(config.to_dict() | {"num_hidden_layers": layers, "layer_types": None})
        head = Qwen3Head(ours, weights, answers=(7, 5))
        scorers.append(CrossEncoder("tiny", Qwen3(ours, weights), head, cross_encoder().reader))
    shorter, whole = scorers
    np.testing.assert_allclose(whole.build_up(batch)[1], shorter.score(batch), rtol=1e-5, atol=1e-6)


def tiny_pairs():
    return cross_encoder().read(PAIRS)


@pytest.mark.parametrize("kind", CASES)
def test_a_layers_gradients_are_those_of_the_inside(tmp_path, kind):
    ranker = load_ranker(write_reranker(tmp_path, kind))
    batch = PairBatch.of(ranker.read(PAIRS))
    inside = ranker.inside(batch, slopes=True)
    for layer in range(len(inside.states)):
        found = ranker.state_gradients(batch, layer)
        assert (found.layer, found.layers) == (layer, len(inside.states) - 1)
        np.testing.assert_allclose(found.scores, inside.scores, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.states, inside.states[layer], rtol=1e-3, atol=1e-4)
        size = np.abs(inside.state_slopes[layer]).max()
        np.testing.assert_allclose(found.gradients, inside.state_slopes[layer], rtol=1e-3, atol=1e-4 * size)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "lasttoken"])
def test_a_layers_gradients_are_those_of_the_inside_however_texts_are_pooled(pooling):
    ranker = dataclasses.replace(real_ranker(), pooling=pooling)
    batch = PairBatch.of(ranker.read(PAIRS))
    inside = ranker.inside(batch, slopes=True)
    for layer in (0, 3, 6):
        found = ranker.state_gradients(batch, layer)
        size = np.abs(inside.state_slopes[layer]).max()
        np.testing.assert_allclose(found.gradients, inside.state_slopes[layer], rtol=1e-3, atol=1e-4 * size)
        np.testing.assert_allclose(found.states, inside.states[layer], rtol=1e-3, atol=1e-4)


def test_half_of_the_layers_is_the_default_and_others_are_refused():
    ranker, batch = real_ranker(), PairBatch.of(real_ranker().read(PAIRS))
    assert ranker.state_gradients(batch).layer == 3
    for layer in (-1, 7):
        with pytest.raises(InputError, match=f"layer must be from 0 to 6, got {layer}"):
            ranker.state_gradients(batch, layer)


def test_nothing_below_the_layer_is_recorded_and_no_attention_is_laid_out():
    ranker, batch = cross_encoder(), PairBatch.of(tiny_pairs())
    cut = Cut(1)
    scores = ranker.pair_scores(batch, None, cut)
    assert cut.states.is_leaf and cut.states.requires_grad
    reached, waiting = set(), [scores.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [before for before, _ in node.next_functions]
    names = [node.name() for node in reached]
    assert sum("AccumulateGrad" in name for name in names) == 1
    softmax = [node._saved_result.shape for node in reached if "Softmax" in node.name()]
    assert all(len(shape) == 2 for shape in softmax)  # (heads, tokens), of the one token that is read
    trace = Trace()
    whole = ranker.pair_scores(batch, None, trace)
    assert not whole.requires_grad and len(trace.attentions) == 2
