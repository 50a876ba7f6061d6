"""Texts of any length are cut into tokens in pieces, and give the tokens and the windows of the whole."""

import tracemalloc

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bert import cross_encoder, real_ranker

from backlight.explain.reranker import Reranker
from backlight.models import tokens
from backlight.models.pairs import DOCUMENT, QUERY
from backlight.models.tokens import Tokenizer, pieces_of

WORDS = ["the", "plant", "don't", "(see)", "café", "東京", "green,", "3.5", "1,000", "\n\n", "in-vitro", "e.g."]
QUESTION = "how do plants make food"


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A tokenizer of the kind of GPT-2's, whose tokens hold the space before a word."""
    folder = tmp_path_factory.mktemp("byte_level")
    found = tokenizers.Tokenizer(tokenizers.models.BPE())
    found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    found.train_from_iterator([" ".join(WORDS * 20)], trainer)
    found.save(str(folder / "tokenizer.json"))
    return Tokenizer(folder, 512)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, " ", "\t"]), min_size=1, max_size=200), st.integers(40, 200))
def test_pieces_cover_a_text_and_give_the_tokens_of_the_whole(byte_level, words, size):
    text = " ".join(words)
    places = list(pieces_of(text, size))
    assert "".join(text[start:end] for start, end in places) == text
    assert all(0 < end - start <= size for start, end in places) or not text
    for tokenizer in (real_ranker().tokenizer, byte_level):
        (whole,) = tokenizer.encoded([text])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "pieces_of", lambda text: pieces_of(text, size))
            row = tokenizer.row(text)
        assert row.ids.tolist() == whole.ids
        assert row.offsets.tolist() == [list(place) for place in whole.offsets]
        assert tokenizer.spelled(row.ids) == tuple(whole.tokens)


def test_a_text_without_white_space_is_cut_too():
    text = "東" * 500
    places = list(pieces_of(text, 64))
    assert [start for start, _ in places] == list(range(0, 500, 64))
    tokenizer = real_ranker().tokenizer
    assert len(tokenizer.row(text)) == len(tokenizer.encoded([text])[0])


@pytest.mark.parametrize("make", [cross_encoder, real_ranker], ids=["cross-encoder", "bi-encoder"])
def test_windows_are_what_the_library_cuts(make):
    model = make()
    document = "plants make food ! a green leaf . " * 300
    windows = model.windows(QUESTION, document, 9)
    (whole,) = model.tokenizer.encoded([document])
    read = windows[0].of_side(DOCUMENT)
    whole.truncate(len(read), stride=len(read) - 9)
    parts = [whole, *whole.overflowing]
    assert len(windows) == len(parts) == len(list(windows))
    total = len(model.tokenizer.row(document))
    for number in (0, 1, len(parts) // 2, -1):
        pair, part = windows[number], parts[number]
        own = pair.of_side(DOCUMENT)
        assert pair.ids[own].tolist() == part.ids
        assert pair.offsets[own].tolist() == [list(place) for place in part.offsets]
        assert [pair.pieces[place] for place in own] == part.tokens
        assert pair.left_out == (0, total - len(part))
    first = model.read([(QUESTION, document)])[0]
    for name in ("ids", "type_ids", "positions", "sides", "offsets"):
        found, expected = getattr(windows[0], name), getattr(first, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert (windows[0].pieces, windows[0].lengths) == (first.pieces, first.lengths)
    with pytest.raises(IndexError, match=f"there are {len(parts)} windows"):
        windows[len(parts)]


@pytest.mark.parametrize("make", [cross_encoder, real_ranker], ids=["cross-encoder", "bi-encoder"])
def test_a_long_text_that_is_cut_reads_as_its_beginning_does(make, monkeypatch):
    model = make()
    query, document = "plants make food " * 100, "a green leaf ! water and air . " * 100
    expected = model.read([(query, document), (QUESTION, document), (query, "a leaf")])
    monkeypatch.setattr(tokens, "PIECE", 256)
    monkeypatch.setattr("backlight.models.pairs.PIECE", 256)
    found = model.read([(query, document), (QUESTION, document), (query, "a leaf")])
    for one, other in zip(found, expected):
        assert one.left_out == other.left_out
        assert one.pieces == other.pieces
        for side in (QUERY, DOCUMENT):
            np.testing.assert_array_equal(one.offsets[one.of_side(side)], other.offsets[other.of_side(side)])


def test_scoring_windows_keeps_none_of_them():
    model = cross_encoder()

    def most(count: int) -> int:
        windows = model.windows(QUESTION, "plants make food . a leaf ! " * count)
        tracemalloc.start()
        scores = model.scores_of(windows)
        found = tracemalloc.get_traced_memory()[1] - scores.nbytes
        tracemalloc.stop()
        return found

    most(50)
    assert most(8000) < 3 * most(200)


def test_progress_goes_on_within_a_long_document():
    steps = []
    documents = ["a leaf", "plants make food from sunlight , water and air . " * 300, "a cell"]
    Reranker(cross_encoder()).rank("food", documents, max_windows=0, advance=steps.append)
    assert sum(steps) == 3
    assert len(steps) > 3 and all(0 <= step <= 2 for step in steps)
