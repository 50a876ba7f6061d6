"""The recipe of the built-in reranker: what it trains on, and that it goes on bit for bit after being killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from paths import ROOT
from reranker_data import write_data
from tiny_bert import write_bert

from backlight.errors import InputError
from backlight.training.reranker.measures import ndcg, ranks_of, reciprocal
from backlight.training.reranker.model import scores_of
from backlight.training.reranker.settings import Optimisation
from reranker.candidates import Candidates
from reranker.negatives import Negatives
from reranker.package import picture_of, stages_of, table_of
from reranker.recipe import STAGES, Recipe
from reranker.texts import as_written, read_paragraphs, read_sentences, split_articles
from reranker.training import Training, train_stages

SMALL = {
    "held_out": 2,
    "validation": 2,
    "validation_questions": 6,
    "validate_every": 6,
    "checkpoint_every": 2,
    "questions": 4,
    "negatives": 3,
    "epochs": 2,
    "sentences": 48,
    "skipped_sentences": 0,
    "sentence_negatives": 3,
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


def pairs_of(groups):
    """Return each query with each of its documents."""
    return [(group.query, document) for group in groups for document in group.documents]


def finished(process):
    """Wait for a script and return what it printed."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out


def test_a_run_that_was_killed_ends_bit_equal_to_one_that_was_not(data, bert, tmp_path):
    said = finished(started(data, bert, tmp_path / "whole"))
    assert said.count("step 32 of 32: loss") == 2 and "validation nDCG@10" in said
    process = started(data, bert, tmp_path / "killed")
    while not list((tmp_path / "killed" / "stage-2" / "checkpoints").glob("step-*")):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed/stage-2/checkpoints/step-00000032.safetensors").exists()
    again = finished(started(data, bert, tmp_path / "killed", "--resume"))
    assert again.count("step 32 of 32: loss") == 1  # the first stage is not done again
    for name in ("model/model.safetensors", "model/config.json", "checkpoints/step-00000032.safetensors"):
        whole, killed = (tmp_path / run / "stage-2" / name for run in ("whole", "killed"))
        assert whole.read_bytes() == killed.read_bytes()


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
        assert not texts & {text for pair in pairs_of(training.groups(step)) for text in pair}


def test_an_epoch_asks_each_question_once(training):
    asked = [group.query for step in range(training.steps_an_epoch) for group in training.groups(step)]
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


def test_groups_of_two_sizes_weigh_by_their_questions(data, bert, tmp_path):
    recipe = Recipe(model=str(bert), ranker=str(bert), **(SMALL | {"sentence_negatives": 6, "imitation": 0.5}))
    training = Training(recipe, data, tmp_path / "run", lambda line: None)
    groups = training.groups(0)
    assert {len(group.documents) for group in groups} == {4, 7}
    alone = [training.stepper.gradients([group])["loss"] for group in groups]
    assert training.stepper.gradients(groups)["loss"] == pytest.approx(np.mean(alone), rel=1e-5)


def test_another_stage_goes_on_from_a_model_with_other_sentences_and_negatives(training, data, tmp_path):
    training.start(resume=False)
    training.validate()
    first = replace(training.recipe, sentences=30)
    second = replace(first, stage=1, skipped_sentences=30)
    source = training.run.path / "model"
    before, after = (
        Training(recipe, data, tmp_path / str(recipe.stage), lambda line: None, source=source)
        for recipe in (first, second)
    )
    assert before.split == after.split == training.split
    pairs = pairs_of(training.groups(0))
    np.testing.assert_array_equal(scores_of(after.model.scorer, pairs), scores_of(training.model.scorer, pairs))
    asked = [{question.text for question in one.collections[1].questions} for one in (before, after)]
    assert len(asked[0]) == 30 and len(asked[1]) == 18 and not asked[0] & asked[1]
    assert pairs_of(after.groups(0)) != pairs_of(before.groups(0))


def test_the_stages_of_the_package_hold_out_the_same_articles():
    assert len({(stage.seed, stage.held_out, stage.validation) for stage in STAGES}) == 1
    assert [stage.stage for stage in STAGES] == [0, 1]


def test_rates_rise_then_fall_to_zero():
    shares = [Optimisation(warmup_ratio=0.1).share(step, 100) for step in range(101)]
    assert shares[0] == 0.1 and max(shares) == shares[9] == 1 and shares[100] == 0
    assert shares[55] == pytest.approx(0.5)


def first_loss(training):
    """Return the loss of what the first step reads."""
    return training.stepper.gradients(training.groups(0))["loss"]


def test_training_raises_the_right_document(training):
    training.start(resume=False)
    before = first_loss(training)
    training.train()
    after = first_loss(training)
    assert after < before


def test_finished_stages_say_what_they_were_and_how_they_went(data, bert, tmp_path):
    stages = [Recipe(model=str(bert), ranker=str(bert), stage=stage, **SMALL) for stage in (0, 1)]
    out = tmp_path / "out"
    with pytest.raises(InputError, match="must hold finished stages"):
        stages_of(out)
    train_stages(stages, data, out, False, lambda line: None)
    split, found = stages_of(out)
    assert split["held_out"] == list(split_articles(data, 2, 2, seed=5).held_out)
    assert "| questions on sentences | 48 | 48 |" in table_of(found)
    assert ElementTree.fromstring(picture_of(found)).tag.endswith("svg")


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


def test_candidates_know_where_the_right_document_is(data):
    collection = read_paragraphs(data, ("Article_0", "Article_1", "Article_2"))
    candidates = Candidates.of(collection, 5)
    assert candidates.documents.shape == (5, 12) and (candidates.right >= 0).all()
    answers = {asked.text: collection.documents[asked.positive] for asked in collection.questions}
    ranks = candidates.ranks(lambda pairs: np.array([float(answers[query] == text) for query, text in pairs]))
    np.testing.assert_array_equal(ranks, 1)
