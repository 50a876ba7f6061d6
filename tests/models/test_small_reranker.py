"""The small model that studies train: words match from the start, lists hold what they say, backlight runs it."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from paths import ROOT
from tiny_bert import write_tokenizer
from transformers import ElectraForSequenceClassification

sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import small_reranker
from query_sets import Texts
from small_reranker import Examples, begin_by_matching, config_of

from backlight.explain.reranker import Reranker


@pytest.fixture(scope="module")
def words():
    return torch.randn(800, 160, generator=torch.Generator().manual_seed(0)) * 0.05


@pytest.fixture
def model(words):
    torch.manual_seed(0)
    return ElectraForSequenceClassification(config_of(SimpleNamespace(pad_token_id=0), words)).eval()


def test_a_token_first_looks_at_words_like_itself(model, words):
    ids = torch.tensor([[2, 60, 61, 62, 63, 3, 70, 71, 61, 72, 73, 3]])
    segments = torch.tensor([[0] * 6 + [1] * 6])

    def seen():
        """Return how much the word that is in both texts looks at the other one, beside the mean of other words."""
        with torch.no_grad():
            attention = model(ids, token_type_ids=segments, output_attentions=True).attentions[0][0].mean(0)
        others = [place for place in range(6, 11) if place != 8]
        return (attention[2, 8] / attention[2, others].mean()).item()

    model.set_attn_implementation("eager")
    before = seen()
    begin_by_matching(model, words)
    assert before < 2 < 5 < seen()


def test_another_models_words_are_not_trained(model, words):
    begin_by_matching(model, words)
    still = [name for name, weight in model.named_parameters() if not weight.requires_grad]
    assert still == ["electra.embeddings.word_embeddings.weight"]


def test_the_first_of_each_list_is_right_and_the_others_are_not():
    documents = tuple(f"document {number}" for number in range(40))
    queries = tuple((f"query {number}", number) for number in range(40))
    hard = tuple(tuple((number + step) % 40 for step in range(1, 5)) for number in range(40))
    steps = Examples(Texts(documents, queries), hard, np.random.default_rng(0)).steps()
    seen = set()
    for _ in range(2):
        pairs = next(steps)
        size = 1 + small_reranker.HARD + small_reranker.EASY
        assert len(pairs) == size * small_reranker.QUESTIONS
        for start in range(0, len(pairs), size):
            query, *_ = pairs[start]
            number = int(query.split()[1])
            given = [document for _, document in pairs[start : start + size]]
            assert given[0] == documents[number] and documents[number] not in given[1:]
            assert {text for text, _ in pairs[start : start + size]} == {query}
            hard_ones = given[1 : 1 + small_reranker.HARD]
            assert all(one in [documents[place] for place in hard[number]] for one in hard_ones)
            seen.add(number)
    assert len(seen) == 2 * small_reranker.QUESTIONS  # none twice before all others


def test_the_same_seed_gives_the_same_lists():
    texts = Texts(tuple(f"d{n}" for n in range(20)), tuple((f"q{n}", n) for n in range(20)))
    hard = tuple(((n + 1) % 20, (n + 2) % 20) for n in range(20))
    first, second, third = (next(Examples(texts, hard, np.random.default_rng(seed)).steps()) for seed in (0, 0, 1))
    assert first == second != third


def test_backlight_runs_what_is_saved(model, words, tmp_path):
    begin_by_matching(model, words)
    model.save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    reranker = Reranker.from_pretrained(tmp_path)
    pair = ("green leaf", "the leaf of a green cell")
    (read,) = reranker.scorer.read([pair])
    with torch.no_grad():
        ids, segments = (torch.tensor(np.array(one))[None] for one in (read.ids, read.type_ids))
        expected = model(ids, token_type_ids=segments).logits.item()
    assert reranker.predict(pair, activation="identity") == pytest.approx(expected, abs=1e-4)
