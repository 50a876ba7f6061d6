"""Folders of each family, with the family's own tokenizer, score pairs as sentence-transformers does."""

import numpy as np
import pytest
import sentence_transformers
from model_folders import CASES, write_reranker
from tiny_bert import relative_error

from backlight.models.pairs import ADDED, DOCUMENT, QUERY
from backlight.models.ranker import load_ranker

PAIRS = [
    ("how do plants make food", "Green plants make food from sunlight, water and air."),
    ("a leaf", "Unlike cells!"),
    ("food from a leaf " * 4, "water in the air of the green plants " * 12),
]


@pytest.mark.parametrize("kind", CASES)
def test_scores_equal_those_of_sentence_transformers(tmp_path, kind):
    ranker = load_ranker(write_reranker(tmp_path, kind))
    read = ranker.read(PAIRS)
    model = sentence_transformers.CrossEncoder(str(tmp_path), max_length=ranker.max_tokens)
    expected = model.predict(PAIRS)
    scores = ranker.activate(ranker.scores_of(read))
    assert max(len(pair) for pair in read) == ranker.max_tokens and not sum(read[0].left_out)
    assert relative_error(scores[None], expected[None]) < 1e-5


@pytest.mark.parametrize("kind", CASES)
def test_each_token_belongs_to_its_place_in_its_text(tmp_path, kind):
    ranker = load_ranker(write_reranker(tmp_path, kind))
    (pair,) = ranker.read(PAIRS[:1])
    for side in (QUERY, DOCUMENT):
        text, spans = pair.text(side), pair.offsets[pair.sides == side]
        covered = {place for first, end in spans.tolist() for place in range(first, end)}
        assert {place for place, letter in enumerate(text) if letter != " "} <= covered <= set(range(len(text)))
        assert (np.diff(spans[:, 0]) >= 0).all()
    assert not pair.offsets[pair.sides == ADDED].any()
    assert np.flatnonzero(pair.sides == ADDED)[0] == 0
