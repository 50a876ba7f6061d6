"""Texts become tokens with offsets; words are found in text and get the tokens that lie in them."""

import dataclasses
import json
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bert import real_folder, real_ranker, write_bert, write_tokenizer

from backlight.errors import InputError
from backlight.explain.attribution import Recipe, attribute_pair, truncation_of
from backlight.explain.words import tokens_by_word, word_spans
from backlight.models.pairs import DOCUMENT, PairReader, longest_first
from backlight.models.ranker import load_ranker
from backlight.models.scoring import passes
from backlight.models.tokens import Batch, Tokenizer


@cache
def real_transformers_tokenizer():
    return transformers.AutoTokenizer.from_pretrained(real_folder())


def words_of(text):
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 1,000 km (or so).", ["It's", "1,000", "km", "(", "or", "so", ")", "."]),
        ("rain-soaked, e.g. «this»…", ["rain-soaked", ",", "e.g", ".", "«", "this", "»", "…"]),
        ("at 12:30; and/or 3.14!!!", ["at", "12:30", ";", "and", "/", "or", "3.14", "!!!"]),
        ("don’t — 'twas", ["don’t", "—", "'", "twas"]),
        ("one,two", ["one", ",", "two"]),
        ("東京は big", ["東", "京", "は", "big"]),
        ("cafe\u0301 हिन्दी", ["cafe\u0301", "हिन्दी"]),
        ("  \n\t ", []),
        ("-", ["-"]),
    ],
)
def test_words_are_runs_with_punctuation_split_off(text, words):
    assert words_of(text) == words


@given(st.text(max_size=60))
def test_words_are_disjoint_in_order_and_cover_all_but_whitespace(text):
    spans = word_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())


def test_subwords_are_merged_by_their_offsets():
    text = "Chlorophyll isn't naïve."
    read = real_ranker().tokenizer(text)
    merged = {text[w.start : w.end]: [read.pieces[i] for i in w.tokens] for w in tokens_by_word(text, read.offsets)}
    assert merged == {
        "Chlorophyll": ["ch", "##lor", "##op", "##hyl", "##l"],
        "isn't": ["isn", "'", "t"],
        "naïve": ["naive"],
        ".": ["."],
    }


def test_a_token_that_reaches_over_words_makes_them_one():
    text = "so ). And"
    spans = tokens_by_word(text, [(0, 2), (2, 5), (5, 9)])
    assert [(text[w.start : w.end], w.tokens) for w in spans] == [("so", (0,)), (").", (1,)), ("And", (2,))]


def test_a_space_that_a_token_takes_along_belongs_to_no_word():
    text = "a b"
    assert [(w.start, w.end, w.tokens) for w in tokens_by_word(text, [(0, 1), (1, 3)])] == [(0, 1, (0,)), (2, 3, (1,))]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.booleans())
def test_every_token_of_a_text_is_in_one_word_or_none(text, together):
    (pair,) = (PairReader(real_ranker().tokenizer) if together else real_ranker().read)([("what moves", text)])
    values = np.arange(1.0, len(pair) + 1)
    found = attribute_pair(pair, values, Recipe("", ""), "", 0.0)
    for part in (found.query, found.document):
        held = sum(word.tokens for word in part.words)
        outside = [token for token in part.tokens if token.start == token.end]
        assert held + len(outside) == len(part.tokens)
        total = sum(word.value for word in part.words) + sum(token.value for token in outside)
        assert total == pytest.approx(sum(token.value for token in part.tokens))
    texts = (*found.query.tokens, *found.document.tokens, *found.special)
    assert sum(token.value for token in texts) == pytest.approx(values.sum())
    assert "".join(piece for piece, _ in found.document.segments()) == text


def test_special_tokens_are_apart():
    (pair,) = real_ranker().read([("plants [SEP] eat", "a")])
    found = attribute_pair(pair, np.ones(len(pair)), Recipe("", ""), "", 0.0)
    assert [token.text for token in found.special] == ["[CLS]", "[SEP]", "[CLS]", "[SEP]"]
    assert [word.text for word in found.query.words] == ["plants", "[SEP]", "eat"], "the user's own is a word"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=150), st.text(min_size=1, max_size=150), st.integers(8, 60))
def test_a_pair_is_read_and_cut_as_transformers_does(query, document, limit):
    (pair,) = PairReader(Tokenizer(real_folder(), limit))([(query, document)])
    theirs = real_transformers_tokenizer()(query, document, truncation="longest_first", max_length=limit)
    assert pair.ids.tolist() == theirs["input_ids"]
    assert pair.type_ids.tolist() == theirs["token_type_ids"]


def test_the_longer_text_gives_way_first():
    assert longest_first(5, 5, 10) == (5, 5)
    assert longest_first(300, 20, 100) == (80, 20)
    assert longest_first(300, 200, 101) == (51, 50)


@pytest.mark.parametrize("together", [True, False])
def test_windows_cover_a_long_document_and_say_where_they_are(together):
    document = " ".join(f"word{chr(97 + i % 26)}" for i in range(200))
    tokenizer = Tokenizer(real_folder(), 50)
    ranker = dataclasses.replace(real_ranker(), tokenizer=tokenizer)
    read = PairReader(tokenizer) if together else ranker
    windows = read.windows("what word", document)
    truncations = [truncation_of(pair, DOCUMENT) for pair in windows]
    assert truncations[0].first_character == 0
    assert truncations[-1].characters_read == len(document)
    assert all(a.first_character < b.first_character <= a.characters_read for a, b in pairwise(truncations))
    assert all(left.words_left_out > 0 for left in truncations)
    assert len(read.windows("what word", "short")) == 1


def test_a_pair_without_some_tokens_keeps_the_positions_of_the_others():
    (pair,) = real_ranker().read([("what moves the sea", "the moon does")])
    keep = np.ones(len(pair), bool)
    keep[[2, 7]] = False
    left = pair.kept(keep)
    assert left.lengths == (5, 4)
    assert left.positions.tolist() == [0, 1, 3, 4, 5, 0, 2, 3, 4]
    assert left.pieces[:3] == ("[CLS]", "what", "the")


def test_ids_equal_those_of_transformers():
    theirs = transformers.AutoTokenizer.from_pretrained(real_folder())
    for text in ["Łódź café — ﬁne 東京 don't", "a\u200bb \x07c", "x" * 150]:
        read = real_ranker().tokenizer(text)
        assert read.ids.tolist() == theirs(text)["input_ids"]


def test_a_long_text_is_cut_and_what_is_left_out_is_counted():
    words = [f"word{chr(97 + i % 26)}" for i in range(400)]
    text = " ".join(words)
    tokenizer = Tokenizer(real_folder(), 20)
    read = tokenizer(text)
    whole = Tokenizer(real_folder(), 100_000)(text)
    assert len(read) == 20
    assert read.pieces[0] == "[CLS]"
    assert read.pieces[-1] == "[SEP]"
    assert read.left_out == len(whole) - 20
    (pair,) = dataclasses.replace(real_ranker(), tokenizer=tokenizer).read([("q", text)])
    left = truncation_of(pair, DOCUMENT)
    assert (left.tokens_read, left.tokens_left_out) == (18, len(whole) - 20)
    reached = words_of(text[: left.characters_read])
    assert left.words_left_out == 400 - len(reached)
    assert left


def test_a_text_that_fits_leaves_nothing_out():
    (pair,) = real_ranker().read([("q", "plants ")])
    left = truncation_of(pair, DOCUMENT)
    assert (left.tokens_left_out, left.words_left_out, left.characters_read) == (0, 0, 7)
    assert not left


def test_the_limit_is_the_smallest_that_the_folder_says(tmp_path):
    assert real_ranker().tokenizer.max_length == 256
    folder = write_bert(tmp_path)
    assert load_ranker(folder).tokenizer.max_length == 32
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    assert load_ranker(folder).tokenizer.max_length == 32
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}))
    assert load_ranker(folder).tokenizer.max_length == 9


def test_padding_and_truncation_in_the_file_are_not_used():
    says = json.loads((real_folder() / "tokenizer.json").read_text())
    assert says["padding"] and says["truncation"]["max_length"] == 128
    assert len(real_ranker().tokenizer("plants")) == 3
    assert len(real_ranker().tokenizer("plants " * 300)) == 256


def test_no_room_for_text_is_refused(tmp_path):
    write_tokenizer(tmp_path)
    with pytest.raises(InputError, match="must leave room for one token of text, got 2"):
        Tokenizer(tmp_path, 2)


def test_lower_case_keeps_the_offsets(tmp_path):
    write_tokenizer(tmp_path)
    read = Tokenizer(tmp_path, 32, lower_case=True)("GREEN Leaf")
    assert read.pieces[1:-1] == ("green", "leaf")
    assert read.offsets[1:-1].tolist() == [[0, 5], [6, 10]]


def test_a_batch_lays_texts_end_to_end_without_padding():
    read = real_ranker().tokenizer.all_of(["plants", "make some food", "x"])
    batch = Batch.of(read)
    assert batch.lengths == (3, 5, 3)
    assert batch.starts == (0, 3, 8)
    assert batch.positions.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2]
    assert [part.tolist() for part in batch.parts(batch.ids)] == [text.ids.tolist() for text in read]
    assert len(batch) == 3


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(InputError, match="at least"):
        Batch.of([])


def test_passes_keep_the_order_and_stay_small():
    read = real_ranker().tokenizer.all_of(["plants " * 200] * 50)
    some = list(passes(read))
    assert [text for part in some for text in part] == read
    assert len(some) > 1
    assert all(sum(map(len, part)) <= 4096 for part in some)
