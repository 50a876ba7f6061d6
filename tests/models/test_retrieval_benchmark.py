"""The benchmark of retrieval counts ranks as it says, and candidates that are all documents lose nothing."""

import importlib
import sys

import numpy as np
import pytest
from paths import ROOT
from tiny_bert import write_cross_encoder

from backlight.models.ranker import load_ranker

sys.path.insert(0, str(ROOT / "benchmarks"))
benchmark = importlib.import_module("retrieval")

DOCUMENTS = ("plants make food", "the tides follow the moon", "unlike cells", "a green leaf")
QUERIES = (("what moves the tides", 1), ("green", 3), ("nothing of it", 2))


def test_ranks_are_those_of_the_right_documents(tmp_path):
    folder = write_cross_encoder(tmp_path)
    texts = benchmark.Texts(DOCUMENTS, QUERIES)
    found, about = benchmark.measured(texts, str(folder), None, benchmark.Counts(3, 2, 2))
    assert (about["documents"], about["queries"]) == (4, 3)
    assert sorted(found.ranks["BM25"]) == [1, 1, 2.5]  # of "nothing of it" no document has a word: the mean rank
    ranker = load_ranker(folder, "tiny")
    asked = [texts.queries[i] for i in np.random.default_rng(benchmark.SEED).permutation(3)[:2]]
    expected = [
        1 + (scores > scores[right]).sum()
        for query, right in asked
        for scores in [ranker.rank_scores(query, DOCUMENTS)]
    ]
    assert found.ranks["everything"] == expected
    assert found.ranks["20 of BM25, reranked"] == found.ranks["50 of sum of scores, reranked"] == expected
    table = benchmark.lines_of("four", found, about)
    assert "four: 4 documents" in table[0]
    assert any("| +0.000 (+0.000 to +0.000) |" in line for line in table if line.startswith("| 20 of BM25"))


def test_a_document_that_is_no_candidate_counts_nothing():
    assert benchmark.ndcg([1, 2, 11, np.inf]).tolist() == pytest.approx([1, 1 / np.log2(3), 0, 0])


def test_reciprocal_rank_fusion_is_its_formula():
    one, other = np.array([3.0, 2.0, 1.0]), np.array([0.0, 9.0, 0.0])
    expected = [1 / 61 + 1 / 62.5, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62.5]
    np.testing.assert_allclose(benchmark.reciprocal_rank_fusion([one, other]), expected)
    np.testing.assert_allclose(benchmark.mean_ranks(np.array([1.0, 1.0, 5.0, 0.0, 1.0])), [3, 3, 1, 5, 3])
