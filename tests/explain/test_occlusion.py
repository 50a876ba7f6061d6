"""Occlusion is what the score loses without a word or a sentence, however it is left out; checked by its definition."""

import numpy as np
import pytest
import torch
import transformers
from captum.attr import FeatureAblation
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder
from tiny_qwen3 import write_qwen3

from backlight.adapters.torch_ranker import TorchRanker
from backlight.errors import GraphError, InputError
from backlight.explain.methods import ablation
from backlight.explain.methods.ablation import score_groups, text_without
from backlight.explain.methods.occlusion import occlusion, occlusion_by_sentence
from backlight.explain.parts import sentence_parts, word_parts
from backlight.explain.sentences import sentence_spans
from backlight.models.pairs import DOCUMENT, QUERY, PairBatch
from backlight.models.ranker import load_ranker

PAIRS = [
    ("how do plants make food", "Green plants make food. The leaf is unlike water, sunlight and air."),
    ("a leaf", "unlike cells"),
    ("green air", "food from the leaf. " * 5),
]


def read(ranker=None, pairs=PAIRS):
    return (ranker or cross_encoder()).read(pairs)


def values_of(found):
    return np.array([word.value for text in (found.query, found.document) for word in text.words])


def score(ranker, *texts):
    return float(ranker.score(PairBatch.of(ranker.read([texts])))[0])


def words(text):
    return [word.text for word in text.words]


def test_a_mask_gives_what_captum_gives_for_the_attention_mask(tmp_path):
    ranker = load_ranker(write_cross_encoder(tmp_path))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    for pair in read(ranker):
        parts = word_parts(pair)
        features = torch.zeros(1, len(pair), dtype=torch.long)
        for number, part in enumerate(parts, 1):
            features[0, list(part.tokens)] = number
        inputs = {"input_ids": torch.tensor(pair.ids)[None], "token_type_ids": torch.tensor(pair.type_ids)[None]}

        def logit(mask, inputs=inputs):
            return model(attention_mask=mask, **inputs).logits[:, 0]

        expected = FeatureAblation(logit).attribute(torch.ones(1, len(pair)), feature_mask=features)[0]
        (found,) = occlusion(ranker, [pair])
        theirs = [expected[part.tokens[0]].item() for part in parts]
        np.testing.assert_allclose(values_of(found), theirs, rtol=1e-5, atol=1e-5)


def test_dropping_a_word_scores_the_text_without_it():
    ranker = cross_encoder()
    (found,) = occlusion(ranker, read(pairs=PAIRS[:1]), by="drop")
    query, document = PAIRS[0]
    whole = score(ranker, query, document)
    assert found.score == pytest.approx(whole, abs=1e-6)
    without = score(ranker, "how do make food", document)
    assert found.query.words[2].value == pytest.approx(whole - without, abs=1e-6)
    without = score(ranker, query, "Green plants make food. The is unlike water, sunlight and air.")
    assert words(found.document)[6] == "leaf"
    assert found.document.words[6].value == pytest.approx(whole - without, abs=1e-6)


def test_mask_tokens_take_the_place_of_each_token_of_a_word():
    ranker = cross_encoder()
    (found,) = occlusion(ranker, read(pairs=[("a leaf", "unlike cells")]), by="[MASK]")
    without = score(ranker, "a leaf", "unlike [MASK] [MASK]")
    assert (words(found.document)[1], found.document.words[1].tokens) == ("cells", 2)
    assert found.document.words[1].value == pytest.approx(found.score - without, abs=1e-6)


def test_ways_to_leave_out_differ():
    ranker = cross_encoder()
    found = [values_of(occlusion(ranker, read(pairs=PAIRS[:1]), by=by)[0]) for by in ("mask", "drop", "[MASK]")]
    assert all(np.abs(one - other).max() > 1e-3 for one, other in zip(found, found[1:]))


def test_more_words_than_are_read_at_once_are_all_dropped(monkeypatch):
    monkeypatch.setattr(ablation, "TEXTS_AT_ONCE", 2)
    ranker = cross_encoder()
    (pair,) = ranker.read([("plants", "the leaf of a green cell")])
    parts = word_parts(pair, DOCUMENT)
    found = list(ablation.dropped(ranker, pair, ([part] for part in parts)))
    assert len(found) == len(parts) > 2


def test_what_was_cut_moves_in_where_words_are_dropped_from_a_long_text():
    ranker = cross_encoder()
    query, document = "green air", "food from the leaf . " * 20
    (pair,) = read(pairs=[(query, document)])
    (found,) = occlusion(ranker, [pair], by="drop")
    assert found.document.truncation.tokens_left_out > 0
    without = score(ranker, query, document[: len("food from the ")] + document[len("food from the leaf ") :])
    assert found.document.words[3].value == pytest.approx(found.score - without, abs=1e-6)


def test_a_sentence_is_left_out_whole():
    ranker = cross_encoder()
    pairs = read(pairs=PAIRS[:1])
    (masked,) = occlusion_by_sentence(ranker, pairs)
    assert words(masked.document) == ["Green plants make food.", "The leaf is unlike water, sunlight and air."]
    assert words(masked.query) == [PAIRS[0][0]]
    keep = np.ones(len(pairs[0]), bool)
    keep[list(sentence_parts(pairs[0], DOCUMENT)[1].tokens)] = False
    without = float(ranker.score(PairBatch.of([pairs[0].kept(keep)]))[0])
    assert masked.document.words[1].value == pytest.approx(masked.score - without, abs=1e-6)
    (dropped,) = occlusion_by_sentence(ranker, pairs, by="drop")
    without = score(ranker, PAIRS[0][0], "Green plants make food.")
    assert dropped.document.words[1].value == pytest.approx(dropped.score - without, abs=1e-6)


@pytest.mark.parametrize("by", ["mask", "drop", "[MASK]"])
def test_order_and_company_of_pairs_change_nothing(by):
    ranker = cross_encoder()
    together = occlusion(ranker, read(), by=by)
    turned = occlusion(ranker, read()[::-1], by=by)[::-1]
    for pair, first, second in zip(read(), together, turned, strict=True):
        (alone,) = occlusion(ranker, [pair], by=by)
        for other in (second, alone):
            np.testing.assert_allclose(values_of(other), values_of(first), rtol=1e-5, atol=1e-5)


def test_a_bi_encoder_is_explained_by_the_same_calls():
    ranker = real_ranker()
    query, document = "what moves the sea", "The tides follow the Moon. Bread rises with yeast."
    for by in ("mask", "drop", "[MASK]"):
        (found,) = occlusion(ranker, ranker.read([(query, document)]), by=by)
        assert found.document.strongest(1)[0].text == "tides"
        assert found.signed
    (found,) = occlusion_by_sentence(ranker, ranker.read([(query, document)]))
    tides, bread = found.document.words
    assert tides.value > 0 > bread.value


def test_passes_and_progress_are_counted():
    done = []
    found = occlusion(cross_encoder(), read(), progress=done.append)
    assert sum(done) == len(PAIRS)
    assert [one.passes for one in found] == [1 + len(word_parts(pair)) for pair in read()]


def test_scores_of_groups_keep_their_groups_over_many_passes():
    ranker = cross_encoder()
    pairs = [pair for pair in read() for _ in range(90)]
    groups = [pairs[:100], pairs[100:101], pairs[101:]]
    done = []
    found = score_groups(ranker, groups, done.append)
    assert [len(scores) for scores in found] == [100, 1, 169]
    assert sum(done) == 3
    np.testing.assert_allclose(np.concatenate(found), ranker.scores_of(pairs), atol=1e-6)


def test_a_word_that_nothing_looks_at_is_an_error_when_it_is_all_there_is():
    class Deaf:
        name = "deaf"
        tokens_a_pass = 2048

        def score(self, batch, inputs_embeds=None):
            return np.ones(len(batch.pairs), np.float32)

    with pytest.raises(GraphError, match="what the score loses without a part of the document must not be zero"):
        occlusion(Deaf(), read()[:1])


def test_wrong_ways_are_refused():
    with pytest.raises(InputError, match=r"by must be one of mask, drop, \[MASK\], got delete"):
        occlusion(cross_encoder(), read(), by="delete")


def test_a_model_without_a_mask_token_is_refused(tmp_path):
    ranker = load_ranker(write_qwen3(tmp_path))
    with pytest.raises(InputError, match="the tokenizer must have a mask token"):
        occlusion(ranker, ranker.read([("a leaf", "green plants")]), by="[MASK]")


def test_a_prompt_around_the_texts_stays(tmp_path):
    ranker = load_ranker(write_qwen3(tmp_path))
    for by in ("mask", "drop"):
        (found,) = occlusion(ranker, ranker.read([("a leaf", "green plants")]), by=by)
        assert words(found.query) + words(found.document) == ["a", "leaf", "green", "plants"]
        without = score(ranker, "a leaf", "plants")
        if by == "drop":
            assert found.document.words[0].value == pytest.approx(found.score - without, abs=1e-5)


def test_pytorchs_engine_gives_the_same(tmp_path):
    native = load_ranker(write_cross_encoder(tmp_path))
    other = TorchRanker(tmp_path)
    for by in ("mask", "drop", "[MASK]"):
        for ours, theirs in zip(*(occlusion(ranker, read(ranker), by=by) for ranker in (native, other))):
            np.testing.assert_allclose(values_of(ours), values_of(theirs), atol=1e-5)


def test_a_text_without_spans_has_no_doubled_white_space():
    text = "A red fox, and  a dog."
    assert text_without(text, []) == text
    assert text_without(text, [(0, 1)]) == "red fox, and  a dog."
    assert text_without(text, [(2, 5), (6, 9)]) == "A , and  a dog."
    assert text_without(text, [(17, 21), (21, 22)]) == "A red fox, and  a"
    assert text_without(text, [(0, len(text))]) == ""


@pytest.mark.parametrize(
    "sentences",
    [
        ["It fell by 3.5 m.", "Then it stopped!", "Why?"],
        ["Dr. J. R. Smith met Mr. Jones, e.g. in the U.S. Senate."],
        ['"Is it so?"', "(It is.)", "Wait... for it…", "Done."],
        ["See Fig. 2 and No. 5.", "What follows?!", "Nothing"],
        ["Yahoo! has it.", "It is so"],
        ["これは短い。", "次の文！", "終わり"],
    ],
)
def test_sentences_are_found(sentences):
    joined = ("" if "。" in sentences[0] else " ").join(sentences)
    assert [joined[start:end] for start, end in sentence_spans(joined)] == sentences


def test_an_empty_line_ends_a_sentence_and_a_single_break_does_not():
    text = "A heading\n\nA line\nthat goes on. "
    assert [text[start:end] for start, end in sentence_spans(text)] == ["A heading", "A line\nthat goes on."]


def test_query_and_document_are_taken_apart_by_side():
    (pair,) = read(pairs=PAIRS[:1])
    assert {part.side for part in word_parts(pair, QUERY)} == {QUERY}
    assert word_parts(pair) == word_parts(pair, QUERY) + word_parts(pair, DOCUMENT)
