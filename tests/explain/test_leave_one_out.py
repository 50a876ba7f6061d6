"""The default explanation: measured values are what plain scoring gives, estimates are labelled, budgets kept."""

import time

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder

from backlight.errors import InputError
from backlight.explain.faithfulness.saved_choice import SavedChoice, write_choice
from backlight.explain.methods import leave_one_out as module
from backlight.explain.methods.ablation import text_without
from backlight.explain.methods.leave_one_out import leave_one_out
from backlight.explain.reranker import Reranker
from backlight.explain.words import is_mark, phrase_runs

QUERY = "how long until I get my refund"
TEXT = "Refunds are paid within ten days. Send unworn shoes back in their box, and keep the receipt until then."


def bi_encoder():
    return Reranker(real_ranker())


def deleted(text, word):
    return text_without(text, [(word.start, word.end)])


def predicted(reranker, *pair):
    return float(reranker.predict(pair, activation="identity"))


def test_every_word_has_the_effect_that_deleting_it_has():
    reranker = bi_encoder()
    made = reranker.explain(QUERY, TEXT, words=1000)
    full = predicted(reranker, QUERY, TEXT)
    for word in made.query.words:
        assert (
            word.value == word.effect == pytest.approx(full - predicted(reranker, deleted(QUERY, word), TEXT), abs=1e-5)
        )
    for word in made.document.words:
        assert (
            word.value == word.effect == pytest.approx(full - predicted(reranker, QUERY, deleted(TEXT, word)), abs=1e-5)
        )
    assert made.estimate is None
    assert made.document.strongest(1)[0].text == "Refunds"


@pytest.mark.parametrize("stride", [None, 12])
def test_a_word_of_a_few_windows_has_the_effect_that_deleting_it_from_the_document_has(stride):
    """The windows after the word move up, and another one may be the best then."""
    reranker = Reranker(cross_encoder(max_position_embeddings=40))
    document = (
        "the leaf of a green cell , " * 4
        + "plants make food from sunlight , water and air . " * 2
        + "unlike cells ! " * 4
    )
    made = reranker.explain("how do plants make food", document, words=1000, stride=stride)
    full = float(reranker.predict([("how do plants make food", document)], activation="identity", stride=stride)[0])
    assert full == pytest.approx(made.score, abs=1e-6)
    texts = [deleted(document, word) for word in made.document.words]
    pairs = [("how do plants make food", text) for text in texts]
    without = reranker.predict(pairs, activation="identity", stride=stride)
    effects = np.array([word.effect for word in made.document.words], float)
    np.testing.assert_allclose(effects, full - without, atol=1e-5)
    assert made.passes > 2 * len(effects)


def test_a_number_of_words_is_measured_and_the_others_are_labelled_as_estimates():
    made = bi_encoder().explain(QUERY, TEXT, words=8, check=False)
    measured = [word for text in (made.query, made.document) for word in text.words if word.effect is not None]
    assert len(measured) == 8 == made.settings["measured"]
    assert len([word for word in made.document.words if word.effect is not None]) == 5
    assert made.estimate == "deletion-gradient"
    assert all(word.effect is not None for word in made.document.strongest(5))
    assert not any(is_mark(word.text) for word in measured)


def test_a_budget_too_small_for_a_word_shows_what_one_deletion_gave_and_says_so(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    (made,) = leave_one_out(real_ranker(), real_ranker().read([(QUERY, TEXT)]), budget=0.5)
    assert made.settings["measured"] == 0
    assert made.estimate == "deletion-gradient"
    assert all(word.effect is None for word in made.document.words)
    assert any(word.value for word in made.document.words)


def test_a_budget_that_is_large_measures_all_words():
    (made,) = leave_one_out(real_ranker(), real_ranker().read([(QUERY, TEXT)]), budget=600.0)
    assert all(word.effect is not None for text in (made.query, made.document) for word in text.words)


def test_words_that_act_together_are_found():
    """Two halves of a name: a score that needs one of them only."""

    ranker = cross_encoder()
    original = type(ranker).score

    class EitherScorer(type(ranker)):
        def score(self, batch, inputs_embeds=None):
            if inputs_embeds is not None:
                return original(self, batch, inputs_embeds)
            return np.array([float("green" in p.document or "plants" in p.document) for p in batch.pairs], np.float32)

    either = EitherScorer(**{name: getattr(ranker, name) for name in ranker.__dataclass_fields__})
    pairs = either.read([("leaf", "the green plants make food")])
    (made,) = leave_one_out(either, pairs, scores=np.ones(1, np.float32), budget=600.0)
    best = made.together[0]
    assert [word.text for word in best.words] == ["green", "plants"]
    assert (best.effect, best.alone) == (1.0, 0.0)


def test_a_document_that_is_the_query_is_measured_though_its_gradient_is_zero():
    made = bi_encoder().explain(QUERY, QUERY)
    assert all(word.effect is not None for word in made.document.words)
    assert made.document.strongest(1)[0].value > 0
    part = bi_encoder().explain(QUERY, QUERY, words=2)
    assert part.estimate == "none"
    assert sum(word.value == 0 for word in part.document.words) >= len(part.document.words) - 2


@pytest.mark.parametrize("unit, expected", [("span", "unworn shoes back"), ("sentence", TEXT.split(". ")[0] + ".")])
def test_a_unit_may_be_a_phrase_or_a_sentence(unit, expected):
    reranker = bi_encoder()
    made = reranker.explain(QUERY, TEXT, unit=unit, words=100)
    texts = [word.text for word in made.document.words]
    assert any(expected in text or text in expected for text in texts)
    assert all(word.effect is not None for word in made.document.words)
    one = made.document.words[0]
    effect = predicted(reranker, QUERY, TEXT) - predicted(reranker, QUERY, deleted(TEXT, one))
    assert one.value == pytest.approx(effect, abs=1e-5)


def test_phrases_end_at_function_words_and_marks():
    words = ["the", "old", "lighthouse", "keeper", "of", "Brest", ",", "who", "slept"]
    assert [" ".join(words[run]) for run in phrase_runs(words)] == [
        "the",
        "old lighthouse keeper",
        "of",
        "Brest",
        ",",
        "who",
        "slept",
    ]


def test_options_that_cannot_be_are_refused():
    pairs = real_ranker().read([(QUERY, TEXT)])
    for options, said in (
        ({"words": 0}, "words must be 1 or more, got 0"),
        ({"budget": 0.0}, "budget must be a number of seconds above 0"),
        ({"unit": "letter"}, "unit must be one of word, span, sentence"),
        ({"by": "air"}, "by must be one of"),
        ({"estimate": "magic"}, "estimate must be one of deletion-gradient"),
        ({"estimate": "saliency:steps=3"}, "with options of saliency, got steps=3"),
    ):
        with pytest.raises(InputError, match=said):
            leave_one_out(real_ranker(), pairs, **options)


def test_many_pairs_are_measured_in_one_call_as_alone():
    ranker = real_ranker()
    pairs = ranker.read([(QUERY, TEXT), ("unworn shoes", TEXT), (QUERY, "Bread rises with yeast.")])
    together = leave_one_out(ranker, pairs, words=8)
    for made, pair in zip(together, pairs):
        (alone,) = leave_one_out(ranker, [pair], words=8)
        values = [[word.value for word in one.document.words] for one in (made, alone)]
        assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_the_default_budget_leaves_time_for_one_round_at_least():
    began = time.monotonic()
    ranking = bi_encoder().rank(QUERY, [TEXT] * 3, explain=3)
    assert time.monotonic() - began < 600
    for one in ranking.documents:
        assert sum(word.effect is not None for word in one.attribution.document.words) >= 5


def test_the_choice_that_is_kept_with_a_model_orders_its_words(tmp_path):
    folder = write_cross_encoder(tmp_path)
    assert Reranker.from_pretrained(folder).explain(QUERY, TEXT, words=2).estimate == "deletion-gradient"
    write_choice(folder, SavedChoice("layer-gradient-x-activation", {"layer": 1}))
    chosen = Reranker.from_pretrained(folder)
    assert chosen.explain(QUERY, TEXT, words=2).estimate == "layer-gradient-x-activation:layer=1"
    assert chosen.explain(QUERY, TEXT, words=2, estimate="saliency").estimate == "saliency"


def test_no_estimate_is_larger_than_the_strongest_words_that_were_measured():
    made = bi_encoder().explain(QUERY, TEXT, words=8, estimate="saliency", check=False)
    for text, first in ((made.document, 5), (made.query, 3)):
        by_size = sorted(text.words, key=lambda word: -abs(word.value))
        assert all(word.effect is not None for word in by_size[:first])
        assert any(word.value for word in text.words if word.effect is None)
