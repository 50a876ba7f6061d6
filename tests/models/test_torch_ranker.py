"""Models that PyTorch runs score as transformers does, and are explained by the same calls as our own."""

import json
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
import transformers
from beside_transformers import random_model
from hypothesis import given
from hypothesis import strategies as st
from tiny_bert import SIZES, edited, relative_error, write_bert, write_cross_encoder, write_tokenizer
from tiny_qwen3 import write_qwen3

from backlight.adapters.padded_batches import (
    CALL,
    CELLS,
    PaddedBatch,
    Padding,
    cheapest_cuts,
    padded_batches,
    pair_numbers,
)
from backlight.adapters.torch_ranker import TorchRanker
from backlight.errors import GraphError, InputError
from backlight.explain.methods.gradients import saliency
from backlight.explain.methods.registry import METHODS
from backlight.explain.reranker import ENGINES, Reranker
from backlight.models.pairs import DOCUMENT, PairBatch
from backlight.models.ranker import load_ranker
from backlight.models.scoring import BASELINES
from backlight.models.tokens import Batch

PAIRS = [
    ("how do plants make food", "green plants make food from sunlight, water and air."),
    ("a leaf", "unlike cells"),
    ("green " * 12, "food from the leaf " * 12),
    ("the cell", "water"),
]
FOREIGN = {
    "Albert": {**SIZES, "embedding_size": 16},
    "XLMRobertaXL": {**SIZES, "max_position_embeddings": 33, "pad_token_id": 0, "type_vocab_size": 2},
    "Funnel": {"vocab_size": SIZES["vocab_size"], "d_model": 24, "n_head": 3, "d_head": 8, "block_sizes": [1, 1]},
    "XLNet": {"vocab_size": SIZES["vocab_size"], "d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 40},
    "GPT2": {"vocab_size": SIZES["vocab_size"], "n_embd": 24, "n_layer": 2, "n_head": 3, "pad_token_id": 0},
}


SEGMENTS = {"Albert", "Funnel", "XLNet", "XLMRobertaXL"}  # families that tell segments apart


def write_foreign(folder, family: str, **settings):
    """Write a classifier of a family that backlight's own engine does not run."""
    config = getattr(transformers, f"{family}Config")(**FOREIGN[family] | {"num_labels": 1} | settings)
    random_model(getattr(transformers, f"{family}ForSequenceClassification"), config).save_pretrained(folder)
    write_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 32}))
    return folder


def alone(folder, pairs, *masks, segments: bool = True) -> np.ndarray:
    """Return the logit of each pair by transformers' ordinary call, one at a time."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    found = []
    for number, pair in enumerate(pairs):
        inputs = {"input_ids": torch.tensor(pair.ids)[None]}
        if segments:
            inputs["token_type_ids"] = torch.tensor(pair.type_ids)[None]
        if masks:
            inputs["attention_mask"] = torch.tensor(masks[number])[None].long()
        with torch.no_grad():
            found.append(model(**inputs).logits.item())
    return np.array(found)


def test_both_engines_give_the_same_scores_and_slopes(tmp_path):
    folder = write_cross_encoder(tmp_path)
    ours, theirs = load_ranker(folder), TorchRanker(folder)
    batch = PairBatch.of(ours.read(PAIRS))
    assert [pair.ids.tolist() for pair in theirs.read(PAIRS)] == [pair.ids.tolist() for pair in batch.pairs]
    assert relative_error(theirs.score(batch)[None], ours.score(batch)[None]) < 1e-5
    (our_scores, our_slopes), (scores, slopes) = ours.gradients(batch), theirs.gradients(batch)
    assert relative_error(scores[None], our_scores[None]) < 1e-5
    assert relative_error(slopes, our_slopes) < 1e-5
    assert np.array_equal(theirs.embed(batch), ours.embed(batch))
    for name in ("name", "score_name", "max_tokens", "highest_score"):
        assert getattr(theirs, name) == getattr(ours, name)
    np.testing.assert_allclose(theirs.activate(scores), ours.activate(scores))


def test_both_engines_show_the_same_inside(tmp_path):
    folder = write_cross_encoder(tmp_path)
    batch = PairBatch.of(load_ranker(folder).read(PAIRS))
    ours, theirs = (engine(folder).inside(batch, slopes=True) for engine in (load_ranker, TorchRanker))
    for mine, expected in zip([*ours.states, *ours.state_slopes], [*theirs.states, *theirs.state_slopes], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-3, atol=1e-5)
    layers = [*ours.attentions, *ours.attention_slopes], [*theirs.attentions, *theirs.attention_slopes]
    for mine, expected in zip(*layers, strict=True):
        for one, other in zip(mine, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_attentions_are_shown_though_the_ordinary_model_has_none(tmp_path):
    ranker = TorchRanker(write_cross_encoder(tmp_path))
    assert ranker.model.module.config._attn_implementation == "sdpa"
    (pair,) = ranker.read(PAIRS[:1])
    inside = ranker.inside(PairBatch.of([pair]))
    assert len(inside.attentions) == SIZES["num_hidden_layers"]
    assert inside.attentions[0][0].shape == (SIZES["num_attention_heads"], len(pair), len(pair))
    np.testing.assert_allclose(inside.attentions[1][0].sum(-1), 1, rtol=1e-5)
    assert inside.state_slopes is None
    assert ranker.model.module.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("family", FOREIGN)
def test_foreign_models_score_as_in_transformers(tmp_path, family):
    folder = write_foreign(tmp_path, family)
    ranker = TorchRanker(folder)
    pairs = ranker.read(PAIRS)
    assert max(len(pair) for pair in pairs) == ranker.max_tokens == 32
    expected = alone(folder, pairs, segments=family in SEGMENTS)
    np.testing.assert_allclose(ranker.score(PairBatch.of(pairs)), expected, rtol=1e-4, atol=1e-5)
    scores, slopes = ranker.gradients(PairBatch.of(pairs))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    company = PairBatch.of(pairs).by_pair(slopes)[1]
    assert relative_error(company, ranker.gradients(PairBatch.of(pairs[1:2]))[1]) < 1e-4


def test_foreign_models_are_explained_by_all_but_the_methods_that_follow_our_layers(tmp_path):
    reranker = Reranker.from_pretrained(write_foreign(tmp_path, "Albert"), engine="torch")
    score = reranker.predict(PAIRS[0], activation="identity")
    for method in set(METHODS) - {"decompx"}:
        found = reranker.explain(*PAIRS[0], method=method)
        assert found.score == pytest.approx(score, rel=1e-4), method
        assert any(word.value for word in found.document.words), method
    with pytest.raises(InputError, match="decompx must follow every step"):
        reranker.explain(*PAIRS[0], method="decompx")


@pytest.mark.parametrize("method", ["saliency", "integrated-gradients", "attention-rollout", "attention-x-gradient"])
def test_both_engines_explain_alike(tmp_path, method):
    folder = write_cross_encoder(tmp_path)
    ours, theirs = (
        Reranker.from_pretrained(folder, engine=engine).explain(*PAIRS[0], method=method) for engine in ENGINES
    )
    values = [[word.value for side in (one.query, one.document) for word in side.words] for one in (ours, theirs)]
    np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-4)


def test_what_a_head_reads_is_found(tmp_path):
    first = TorchRanker(write_cross_encoder(tmp_path / "bert"))
    last = TorchRanker(write_foreign(tmp_path / "gpt2", "GPT2"))
    batch = PairBatch.of(first.read(PAIRS[:2]))
    assert [row.tolist() for row in first.read_weights(batch)] == [[1] + [0] * (n - 1) for n in batch.lengths]
    assert [row.tolist() for row in last.read_weights(batch)] == [[0] * (n - 1) + [1] for n in batch.lengths]


def test_baselines_are_those_of_both_engines(tmp_path):
    folder = write_cross_encoder(tmp_path)
    ours, theirs = load_ranker(folder), TorchRanker(folder)
    for name in BASELINES:
        np.testing.assert_allclose(theirs.baseline(name), ours.baseline(name), rtol=1e-6)


@pytest.mark.parametrize("family", ["Albert", "XLNet", "GPT2"])
def test_leaving_tokens_out_is_a_mask(tmp_path, family):
    folder = write_foreign(tmp_path, family)
    ranker = TorchRanker(folder)
    (pair,) = ranker.read(PAIRS[:1])
    keep = np.ones(len(pair), bool)
    keep[pair.of_side(DOCUMENT)[1:4]] = False
    (expected,) = alone(folder, [pair], keep, segments=family in SEGMENTS)
    batch = PairBatch.of([pair.kept(keep)])
    assert ranker.score(batch).item() == pytest.approx(expected, rel=1e-4)
    assert ranker.gradients(batch)[1].shape == (keep.sum(), 16 if family == "Albert" else 24)


def test_models_that_read_padding_run_one_length_at_a_time(tmp_path):
    padded = TorchRanker(write_foreign(tmp_path / "albert", "Albert"))
    apart = TorchRanker(write_foreign(tmp_path / "xlnet", "XLNet"))
    assert not padded._padding_counts and apart._padding_counts


def test_a_prompt_is_read_with_this_engine_too(tmp_path):
    folder = write_qwen3(tmp_path, architecture="Qwen3ForSequenceClassification", num_labels=1, pad_token_id=0)
    ours, theirs = load_ranker(folder), TorchRanker(folder, instruction=None)
    batch = PairBatch.of(ours.read(PAIRS))
    np.testing.assert_allclose(theirs.score(batch), ours.score(batch), rtol=1e-4, atol=1e-5)
    assert relative_error(theirs.gradients(batch)[1], ours.gradients(batch)[1]) < 1e-4
    assert np.array_equal(theirs.read(PAIRS)[2].ids, batch.pairs[2].ids)


def test_weights_get_no_gradient_and_the_model_is_left_as_it_was(tmp_path):
    ranker = TorchRanker(write_cross_encoder(tmp_path))
    before = {name: weight.clone() for name, weight in ranker.model.module.state_dict().items()}
    ranker.gradients(PairBatch.of(ranker.read(PAIRS)))
    assert all(weight.grad is None and not weight.requires_grad for weight in ranker.model.module.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in ranker.model.module.state_dict().items())
    modules = [*ranker.model.module.modules()]
    assert not any(module._forward_hooks or module._backward_hooks or module._forward_pre_hooks for module in modules)


def test_a_score_that_ignores_its_embeddings_is_an_error(tmp_path):
    ranker = TorchRanker(write_cross_encoder(tmp_path))
    batch = PairBatch.of(ranker.read(PAIRS[:1]))
    with torch.no_grad():
        ranker.model.module.classifier.weight.zero_()
    assert not ranker.gradients(batch)[1].any(), "zero everywhere, which the explanations refuse"
    with pytest.raises(GraphError, match="must not be zero everywhere"):
        saliency(ranker, batch.pairs)


def test_a_model_of_encoder_and_decoder_has_gradients(tmp_path):
    config = transformers.BartConfig(
        vocab_size=SIZES["vocab_size"], d_model=24, encoder_layers=1, decoder_layers=1, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=40, decoder_ffn_dim=40, num_labels=1, eos_token_id=3,
    )  # fmt: skip
    random_model(transformers.BartForSequenceClassification, config).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    ranker = TorchRanker(tmp_path)
    batch = PairBatch.of(ranker.read(PAIRS))
    np.testing.assert_allclose(ranker.score(batch), alone(tmp_path, batch.pairs, segments=False), rtol=1e-4, atol=1e-5)
    scores, gradients = ranker.gradients(batch)
    np.testing.assert_allclose(scores, ranker.score(batch), rtol=1e-5, atol=1e-6)
    assert all(np.abs(one).max() > 0 for one in batch.by_pair(gradients))


def test_a_model_whose_layers_join_tokens_shows_no_inside(tmp_path):
    ranker = TorchRanker(write_foreign(tmp_path, "Funnel"))
    with pytest.raises(InputError, match="the layers of FunnelForSequenceClassification must work on the tokens"):
        ranker.inside(PairBatch.of(ranker.read(PAIRS[:1])))


def test_what_needs_backlights_engine_says_so(tmp_path):
    ranker = TorchRanker(write_cross_encoder(tmp_path))
    with pytest.raises(InputError, match="this needs a model on backlight's own engine"):
        ranker.pair_scores(PairBatch.of(ranker.read(PAIRS)))


def test_a_head_that_would_be_drawn_at_random_is_refused(tmp_path, capfd):
    transformers.utils.logging.enable_progress_bar()
    with pytest.raises(InputError, match=r"a sequence classifier, and lack .*classifier\.weight: .* at random"):
        TorchRanker(write_bert(tmp_path))
    assert capfd.readouterr() == ("", ""), "transformers says nothing beside it"
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_folders_that_transformers_cannot_load_are_named(tmp_path):
    folder = write_cross_encoder(tmp_path)
    edited(folder, model_type="newest")
    with pytest.raises(InputError, match="transformers cannot load a sequence classifier from"):
        TorchRanker(folder)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    folder = write_cross_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r'transformers is missing: pip install "backlight\[torch\]"'):
        TorchRanker(folder)


def test_the_engine_is_chosen_by_name(tmp_path):
    folder = write_foreign(tmp_path, "Albert")
    with pytest.raises(InputError, match='engine="torch"'):
        Reranker.from_pretrained(folder)
    reranker = Reranker.from_pretrained(folder, engine="torch")
    scores = reranker.predict(PAIRS, activation="identity", windows=None)
    np.testing.assert_allclose(scores, alone(folder, reranker.scorer.read(PAIRS)), rtol=1e-4, atol=1e-5)
    ranking = reranker.rank(PAIRS[0][0], [document for _, document in PAIRS], explain=1)
    assert ranking.documents[0].attribution.document.words


def test_a_rectangle_has_each_token_in_the_column_of_its_position(tmp_path):
    batch = PairBatch.of(load_ranker(write_cross_encoder(tmp_path)).read(PAIRS))
    keep = np.ones(len(batch.pairs[0]), bool)
    keep[2:4] = False
    batch = PairBatch.of([batch.pairs[0].kept(keep), *batch.pairs[1:]])
    for left in (False, True):
        part = PaddedBatch.of(batch, np.array([1, 0]), pad=99, left=left)
        width = len(keep)
        first, second = np.flatnonzero(part.mask[0]), np.flatnonzero(part.mask[1])
        start = (width - len(batch.pairs[1])) * left
        assert first.tolist() == list(range(start, start + len(batch.pairs[1])))
        assert second.tolist() == np.flatnonzero(keep).tolist()
        assert (part.ids[0] == 99).sum() == width - len(batch.pairs[1]) and 99 not in part.ids[1]
        assert np.array_equal(part.ids[part.rows, part.columns], batch.ids[part.tokens])


def test_rectangles_hold_each_pair_once(tmp_path):
    pairs = load_ranker(write_cross_encoder(tmp_path)).read(PAIRS * 3)
    batch = PairBatch.of(pairs)
    for apart in (False, True):
        parts = [part for (part,) in padded_batches(batch, Padding(apart=apart))]
        assert sorted(np.concatenate([part.sequences for part in parts]).tolist()) == list(range(len(pairs)))
        assert len(parts) < len(pairs)
        for part in parts:
            lengths = [len(pairs[number]) for number in part.sequences]
            assert not apart or max(lengths) == min(lengths)
    assert sum(part.mask.sum() for (part,) in padded_batches(batch, Padding())) == len(batch.ids)


def cost_of(cuts, spans):
    """Return the cells of rectangles and of their calls; endless, if one has too many."""
    sizes = [(end - start) * spans[end - 1] for start, end in cuts]
    most = max(size if end - start > 1 else 0 for size, (start, end) in zip(sizes, cuts))
    return sum(sizes) + CALL * len(cuts) if most <= CELLS else np.inf


@given(st.lists(st.integers(1, 1500), min_size=1, max_size=9), st.booleans())
def test_rectangles_cost_no_more_than_any_other_cuts(spans, apart):
    spans = np.sort(spans)
    places = range(1, len(spans))
    every = [
        list(pairwise([0, *inner, len(spans)])) for count in range(len(spans)) for inner in combinations(places, count)
    ]
    allowed = [cuts for cuts in every if not apart or all(spans[a] == spans[b - 1] for a, b in cuts)]
    found = cheapest_cuts(spans)
    if apart:
        batch = Batch(*[np.concatenate([np.arange(span) for span in spans])] * 3, tuple(spans.tolist()))
        groups = pair_numbers(batch, Padding(apart=True))
        found = [(int(numbers[0]), int(numbers[-1]) + 1) for numbers in groups]
    assert found in allowed
    assert cost_of(found, spans) == min(cost_of(cuts, spans) for cuts in allowed)


@pytest.mark.parametrize("layer", [None, 0, 1, 2])
def test_both_engines_give_the_same_gradients_of_a_layer(tmp_path, layer):
    folder = write_cross_encoder(tmp_path)
    batch = PairBatch.of(load_ranker(folder).read(PAIRS))
    ours, theirs = (engine(folder).state_gradients(batch, layer) for engine in (load_ranker, TorchRanker))
    inside = TorchRanker(folder).inside(batch, slopes=True)
    chosen = 1 if layer is None else layer
    assert (ours.layer, ours.layers) == (theirs.layer, theirs.layers) == (chosen, 2)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-5, atol=1e-6)
    for found in (ours, theirs):
        np.testing.assert_allclose(found.states, inside.states[chosen], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found.gradients, inside.state_slopes[chosen], rtol=1e-3, atol=1e-5)


def test_a_layers_gradients_need_no_second_model(tmp_path):
    ranker = TorchRanker(write_cross_encoder(tmp_path))
    ranker.state_gradients(PairBatch.of(ranker.read(PAIRS)))
    assert "_eager" not in vars(ranker)
    with pytest.raises(InputError, match="layer must be from 0 to 2, got 3"):
        ranker.state_gradients(PairBatch.of(ranker.read(PAIRS)), 3)


def test_a_model_whose_layers_join_tokens_has_no_states_of_a_layer(tmp_path):
    ranker = TorchRanker(write_foreign(tmp_path, "Funnel"))
    with pytest.raises(InputError, match="the layers of FunnelForSequenceClassification must work on the tokens"):
        ranker.state_gradients(PairBatch.of(ranker.read(PAIRS[:1])))
