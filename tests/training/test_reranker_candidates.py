"""Wrong documents: who finds them, what is left out, and what a step sees of them."""

import numpy as np
import pytest
from pair_files import rows, write_rows
from tiny_bert import cross_encoder, write_bert

from backlight.models.ranker import load_ranker
from backlight.models.retrieval.bm25 import BM25
from backlight.training.reranker.candidates import (
    Candidates,
    Miner,
    taught,
    training_candidates,
    validation_candidates,
)
from backlight.training.reranker.rows import Judged, read_training_data
from backlight.training.reranker.steps import Schedule

TEXTS = (
    "Green leaves make food from sunlight",
    "green leaves make food from sunlight!",
    "green leaves fall in autumn",
    "water runs down the hill",
    "green frogs sit on leaves",
    "a hill of sand",
)


def judged(text="green leaves", right=(0,), wrong=()):
    labels = (1.0,) * len(right) + (0.0,) * len(wrong)
    return Judged(text, (*right, *wrong), labels, (np.nan,) * len(labels))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return load_ranker(write_bert(tmp_path_factory.mktemp("models") / "bert"))


def test_a_right_document_and_its_versions_are_left_out_and_counted():
    miner = Miner(TEXTS)
    (found,) = training_candidates([judged()], miner, negatives=2, mined=6, seed=0)
    assert set(found.found) == {2, 3, 4, 5} and found.found[:2] in [(2, 4), (4, 2)]
    assert (miner.left_out.right, miner.left_out.near_duplicates) == (1, 1)
    assert len(found.teacher) == len(found.documents) == len(found.labels) == 5
    assert (
        Miner(TEXTS, near_duplicates=1.0).wrong(judged(), [[1]]) == []
        and Miner(TEXTS[:1] + TEXTS[2:]).left_out.near_duplicates == 0
    )


def test_none_are_looked_for_where_the_data_names_enough_or_nothing_answers():
    enough, nothing = judged(wrong=(3, 5)), Judged("green", (2,), (0.0,), (np.nan,))
    for found in training_candidates([enough, nothing], Miner(TEXTS), negatives=2, mined=6, seed=0):
        assert found.found == ()


def test_validation_adds_the_best_wrong_documents_up_to_a_number():
    (found,) = validation_candidates([judged(wrong=(3,))], Miner(TEXTS), count=3)
    assert found.documents[:2] == (0, 3) and found.found in [(2,), (4,)]


def test_a_bi_encoder_finds_the_nearest_by_turns_with_bm25(bert):
    texts = [row["positive"] for row in rows()]
    miner = Miner(texts, bert, near_duplicates=1.0)
    query = Judged("make a leaf", (0,), (1.0,), (np.nan,))
    ((words, cosines),) = miner.rankings([query])
    embeddings = bert.embeddings_of(texts)
    (own,) = bert.embeddings_of(["make a leaf"])
    assert cosines == np.argsort(-(embeddings @ own), kind="stable")[:24].tolist()
    assert words == BM25(texts, stems=False).best(["make a leaf"], 24)[0]
    merged = miner.wrong(query, [[0, 5, 6], [7, 5]])
    assert merged == [7, 5, 6]


def test_a_teacher_scores_each_document_of_each_query(bert):
    several = [Candidates(judged("food"), (3,), (np.nan, np.nan)), Candidates(judged("air"), (), (1.0,))]
    found = taught(several, TEXTS, bert)
    expected = bert.rank_scores("food", [TEXTS[0], TEXTS[3]])
    np.testing.assert_allclose(found[0].teacher, expected, atol=1e-5)
    np.testing.assert_allclose(found[1].teacher, bert.rank_scores("air", [TEXTS[0]]), atol=1e-5)
    cross = cross_encoder()
    found = taught(several, TEXTS, cross)
    np.testing.assert_allclose(found[0].teacher, cross.rank_scores("food", [TEXTS[0], TEXTS[3]]), atol=1e-5)
    np.testing.assert_allclose(found[1].teacher, cross.rank_scores("air", [TEXTS[0]]), atol=1e-5)


def test_what_a_step_sees_has_the_datas_wrong_documents_first():
    candidates = Candidates(judged(wrong=(3,)), (2, 4, 5), (9.0, 8.0, 7.0, 6.0, 5.0))
    for seed in range(10):
        group = candidates.draw(TEXTS, 3, (seed,))
        assert group == candidates.draw(TEXTS, 3, (seed,))
        assert group.labels == (1.0, 0.0, 0.0, 0.0) and group.documents[:2] == (TEXTS[0], TEXTS[3])
        assert len(set(group.documents)) == 4
        scores = dict(zip((TEXTS[n] for n in (0, 3, 2, 4, 5)), (9.0, 8.0, 7.0, 6.0, 5.0)))
        assert group.teacher == tuple(scores[text] for text in group.documents)
    assert len({candidates.draw(TEXTS, 2, (seed,)).documents[2] for seed in range(20)}) == 3


def test_each_epoch_sees_each_query_once_in_an_order_of_its_own(tmp_path):
    data = read_training_data([write_rows(tmp_path / "pairs.jsonl", rows())])
    candidates = training_candidates(data.queries, Miner(data.documents), 3, 6, 0)
    schedule = Schedule(candidates, data.documents, queries=6, negatives=3, seed=0)
    seen = [group.query for step in range(schedule.steps(3)) for group in schedule.groups(step)]
    epochs = [seen[:64], seen[64:128], seen[128:192]]
    assert all(sorted(one) == sorted(row["query"] for row in rows()) for one in epochs)
    assert epochs[0] != epochs[1] and schedule.groups(3) == schedule.groups(3)
