"""The recipe of the built-in reranker: what it trains on, and that it goes on bit for bit after being killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import backlight
from backlight.errors import InputError
from backlight.models.ranker import load_ranker
from reranker.measures import interval, ndcg, ranks_of, reciprocal
from reranker.model import scores_of
from reranker.negatives import Negatives
from reranker.package import write_package
from reranker.texts import as_written, read_paragraphs, read_sentences, split_articles
from reranker.training import Candidates, Recipe, Training, loss_of
from reranker_data import write_data
from tiny_bert import write_bert

ROOT = Path(__file__).parent.parent
SMALL = {
    "held_out": 2,
    "validation": 2,
    "validation_questions": 6,
    "validate_every": 6,
    "checkpoint_every": 2,
    "questions": 4,
    "negatives": 3,
    "epochs": 2,
    "max_length": 30,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with made-up data."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return a folder with a tiny BERT."""
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def training(data, bert, tmp_path):
    """Return a training of the tiny BERT."""
    return Training(Recipe(model=str(bert), ranker=str(bert), **SMALL), data, tmp_path / "run", lambda line: None)


def started(data, bert, out, *more):
    """Start the script in a process of its own."""
    settings = [part for name, value in SMALL.items() for part in ("--" + name.replace("_", "-"), str(value))]
    return subprocess.Popen(
        [
            sys.executable,
            ROOT / "examples/train_reranker.py",
            data,
            "--out",
            out,
            "--model",
            bert,
            "--ranker",
            bert,
            *settings,
            *more,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process):
    """Wait for a script and return what it printed."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out


def test_a_run_that_was_killed_ends_bit_equal_to_one_that_was_not(data, bert, tmp_path):
    said = finished(started(data, bert, tmp_path / "whole"))
    assert "of 32: loss" in said and "validation nDCG@10" in said
    process = started(data, bert, tmp_path / "killed")
    while not list((tmp_path / "killed" / "checkpoints").glob("step-*")):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed/checkpoints/step-00000032.safetensors").exists()
    finished(started(data, bert, tmp_path / "killed", "--resume"))
    for name in ("model/model.safetensors", "model/config.json", "checkpoints/step-00000032.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


def test_a_folder_with_a_run_is_taken_up_only_if_asked_and_only_by_its_recipe(training, data, bert):
    training.start(resume=False)
    training._save()
    with pytest.raises(InputError, match="--resume"):
        training.start(resume=False)
    other = Training(Recipe(model=str(bert), ranker=str(bert), **{**SMALL, "negatives": 2}), data, training.run.path)
    with pytest.raises(InputError, match="another recipe"):
        other.start(resume=True)


def test_no_held_out_article_is_trained_on(training, data):
    held_out = read_paragraphs(data, training.split.held_out + training.split.validation)
    texts = set(held_out.documents) | {question.text for question in held_out.questions}
    assert len(held_out.documents) == 16
    for step in range(training.steps):
        assert not texts & {text for pair in training.pairs(training.groups(step)) for text in pair}


def test_an_epoch_asks_each_question_once(training):
    asked = [
        question
        for step in range(training.steps_an_epoch)
        for question, _ in training.pairs(training.groups(step))[::4]
    ]
    assert len(asked) == len(set(asked)) == len(training.asked) == 64


def test_negatives_are_never_the_right_document_nor_twice_nor_hold_the_answer(training):
    for collection, negatives in zip(training.collections, training.negatives):
        for number, asked in enumerate(collection.questions):
            for epoch in range(3):
                drawn = negatives.draw(number, 4, (0, epoch))
                assert asked.positive not in drawn and len(set(drawn)) == 4
                assert drawn == negatives.draw(number, 4, (0, epoch))
            for wrong in (*negatives.bm25[number], *negatives.cosine[number]):
                assert not any(answer in collection.documents[wrong] for answer in asked.answers)


def test_negatives_come_from_both_rankings_and_one_from_anywhere():
    texts = {"questions": np.zeros((1, 2)), "documents": np.zeros((1000, 2))}
    negatives = Negatives(bm25=((1, 2, 3),), cosine=((4, 5, 6),), positives=(0,), **texts)
    drawn = [negatives.draw(0, 3, (seed,)) for seed in range(50)]
    assert all(len({1, 2, 3} & set(one)) >= 1 and len({4, 5, 6} & set(one)) >= 1 for one in drawn)
    assert any(max(one) > 6 for one in drawn)
    few = Negatives(bm25=((),), cosine=((),), positives=(0,), questions=np.zeros((1, 2)), documents=np.zeros((4, 2)))
    assert sorted(few.draw(0, 3, (0,))) == [1, 2, 3]


def test_the_loss_is_listwise_and_logistic():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5, 4)).astype(np.float32)
    theirs = torch.tensor(scores)
    expected = torch.nn.functional.cross_entropy(theirs, torch.zeros(5, dtype=torch.long))
    logistic = torch.nn.functional.binary_cross_entropy_with_logits
    right, wrong = theirs[:, 0], theirs[:, 1:]
    balanced = logistic(right, torch.ones_like(right)) + logistic(wrong, torch.zeros_like(wrong))
    ours = loss_of(backlight.tensor(scores), 0.3).item()
    assert ours == pytest.approx((expected + 0.15 * balanced).item(), rel=1e-6)


def test_the_bi_encoder_is_followed_in_the_order_of_the_wrong_documents():
    rng = np.random.default_rng(0)
    scores, cosines = rng.normal(size=(2, 5, 4)).astype(np.float32)
    theirs = torch.tensor(scores[:, 1:]), torch.softmax(torch.tensor(cosines[:, 1:]) / 0.05, 1)
    expected = torch.nn.functional.cross_entropy(*theirs).item()
    plain, both = (loss_of(backlight.tensor(scores), 0.3, cosines, weight).item() for weight in (0.0, 0.7))
    assert both == pytest.approx(plain + 0.7 * expected, rel=1e-5)


def test_groups_of_two_sizes_weigh_by_their_questions(data, bert, tmp_path):
    recipe = Recipe(model=str(bert), ranker=str(bert), **{**SMALL, "sentence_negatives": 6, "imitation": 0.5})
    training = Training(recipe, data, tmp_path / "run", lambda line: None)
    groups = training.groups(0)
    assert {len(group.documents) for group in groups} == {4, 7}
    alone = [training.loss([group]).item() for group in groups]
    assert training.loss(groups).item() == pytest.approx(np.mean(alone), rel=1e-5)


def test_another_stage_goes_on_from_a_model_with_other_sentences_and_negatives(training, data, tmp_path):
    training.start(resume=False)
    training.validate()
    again = replace(
        training.recipe, model=str(training.run.path / "model"), stage=1, sentences=30, skipped_sentences=30
    )
    further = Training(again, data, tmp_path / "further", lambda line: None)
    assert further.split == training.split
    assert first_loss(further) != first_loss(training)
    pairs = training.pairs(training.groups(0))
    np.testing.assert_array_equal(scores_of(further.model, pairs), scores_of(training.model, pairs))
    first = Training(replace(again, stage=0, skipped_sentences=0), data, tmp_path / "first", lambda line: None)
    asked = [{question.text for question in one.collections[1].questions} for one in (first, further)]
    assert len(asked[0]) == 30 and len(asked[1]) == 18 and not asked[0] & asked[1]
    assert further.pairs(further.groups(0)) != first.pairs(first.groups(0))


def test_rates_rise_then_fall_to_zero():
    shares = [Recipe(warm_up=0.1).share(step, 100) for step in range(101)]
    assert shares[0] == 0.1 and max(shares) == shares[9] == 1 and shares[100] == 0
    assert shares[55] == pytest.approx(0.5)


def first_loss(training):
    """Return the loss of what the first step reads."""
    return training.loss(training.groups(0)).item()


def test_training_raises_the_right_document(training):
    training.start(resume=False)
    before = first_loss(training)
    training.train()
    after = first_loss(training)
    assert after < before


def test_a_finished_run_becomes_the_folder_of_a_package(training, tmp_path):
    training.start(resume=False)
    with pytest.raises(InputError, match="must hold a finished run"):
        write_package(training.run, tmp_path / "package", None)
    training.train()
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps({"sections": [{"about": "6 questions", "lines": ["| BM25 | 0.9 |"]}]}))
    write_package(training.run, tmp_path / "package", figures)
    held_out = json.loads((tmp_path / "package" / "held_out.json").read_text())
    assert held_out["articles"] == list(training.split.held_out)
    card = (tmp_path / "package" / "README.md").read_text()
    assert "6 questions.\n\n| BM25 | 0.9 |" in card and "64 questions" in card and "$" not in card
    assert ElementTree.parse(tmp_path / "package" / "curves.svg").getroot().tag.endswith("svg")
    stored = load_ranker(tmp_path / "package")
    pairs = training.pairs(training.groups(0))
    np.testing.assert_allclose(scores_of(stored, pairs), scores_of(training.model, pairs), atol=0.02)


def test_articles_are_split_by_the_seed_without_overlap(data):
    split = split_articles(data, 2, 1, seed=3)
    assert split == split_articles(data, 2, 1, seed=3) != split_articles(data, 2, 1, seed=4)
    assert len({*split.training, *split.validation, *split.held_out}) == 8
    with pytest.raises(InputError, match="leave articles for training"):
        split_articles(data, 7, 1, seed=3)


def test_missing_data_are_named(tmp_path, data):
    with pytest.raises(InputError, match="squad-36-articles"):
        split_articles(tmp_path, 2, 1, seed=3)
    with pytest.raises(InputError, match="questions"):
        read_sentences(tmp_path)
    with pytest.raises(InputError, match="no article Nobody"):
        read_paragraphs(data, ("Nobody",))


@pytest.mark.parametrize(
    ("tokenised", "written"),
    [
        ("the `` a '' -lrb- 1858 -rrb- , mary 's .", 'the "a" (1858), mary\'s.'),
        ("it does n't cost $ 5 , or 10 % ; yes", "it doesn't cost $5, or 10%; yes"),
        ("what is `` b ''", 'what is "b"'),
        ("students ' rooms -lsb- 1 -rsb- ...", "students' rooms [1]..."),
    ],
)
def test_tokenised_text_is_written_as_people_do(tokenised, written):
    assert as_written(tokenised) == written


def test_ranks_and_measures():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
    ranks = ranks_of(scores, np.array([2, 0, -1]))
    np.testing.assert_array_equal(ranks, [2, 1.5, np.inf])
    np.testing.assert_allclose(ndcg(ranks), [1 / np.log2(3), 1 / np.log2(2.5), 0])
    np.testing.assert_allclose(reciprocal(ranks), [1 / 2, 1 / 1.5, 0])
    assert ndcg(np.array([10.0, 11.0]))[1] == 0
    low, high = interval(np.arange(100) % 2)
    assert 0.38 < low < 0.45 and 0.55 < high < 0.62


def test_candidates_know_where_the_right_document_is(data):
    collection = read_paragraphs(data, ("Article_0", "Article_1", "Article_2"))
    candidates = Candidates.of(collection, 5)
    assert candidates.documents.shape == (5, 12) and (candidates.right >= 0).all()
    answers = {asked.text: collection.documents[asked.positive] for asked in collection.questions}
    ranks = candidates.ranks(lambda pairs: np.array([float(answers[query] == text) for query, text in pairs]))
    np.testing.assert_array_equal(ranks, 1)
