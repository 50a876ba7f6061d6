"""Training: one right document against hard negatives, in steps that go on bit for bit where they were stopped.

NOTE [What a step sees]
The questions of all collections are shuffled once an epoch. A step takes the next ones, and for each its right document
and negatives drawn for it. All of it depends on the seed, the epoch and the question alone: the number of the step says
where training stands, and nothing else about the data is kept in a checkpoint.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.reranker.loss import Group
from backlight.training.reranker.measures import ndcg, reciprocal
from backlight.training.reranker.model import scores_of, starting_model
from backlight.training.reranker.steps import Stepper
from backlight.training.run_folder import RunFolder
from reranker.candidates import Candidates
from reranker.negatives import Drawn, find_negatives
from reranker.recipe import Recipe
from reranker.texts import read_paragraphs, read_sentences, split_articles


class Training:
    """A run of a recipe in a folder: metrics.jsonl, checkpoints, and `model`, the last validated model.

    Args:
        recipe: what to do.
        data: the folder with the data sets.
        out: the folder of the run.
        report: called with each line of progress.
        source: the model that training goes on from, in place of the recipe's encoder.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Path,
        out: Path,
        report: Callable[[str], None] = print,
        *,
        source: Path | None = None,
    ):
        self.recipe, self.run, self.report = recipe, RunFolder(out), report
        self._source = find_model(recipe.model) if source is None else source
        self.split = split_articles(data, recipe.held_out, recipe.validation, recipe.seed)
        everything = read_sentences(data)
        sentences = everything.with_questions(recipe.sentences, recipe.seed, recipe.skipped_sentences)
        paragraphs = read_paragraphs(data, self.split.training).with_questions(recipe.paragraphs, recipe.seed)
        self.collections = (paragraphs, sentences)
        counts = {collection.name: len(collection.questions) for collection in self.collections}
        self.counts = {**counts, "all sentences": len(everything.questions)}
        self._validation = Candidates.of(read_paragraphs(data, self.split.validation), recipe.validation_questions)
        ranker = load_ranker(find_model(recipe.ranker))
        self.negatives = [find_negatives(collection, ranker) for collection in self.collections]
        self.asked = [(which, n) for which, one in enumerate(self.collections) for n in range(len(one.questions))]
        self.model = starting_model(self._source, recipe.max_length, recipe.seed)
        self.stepper = Stepper(self.model, self.steps, recipe.optimisation, recipe.loss)

    @property
    def step(self) -> int:
        """How many steps were made."""
        return self.stepper.step

    @property
    def steps_an_epoch(self) -> int:
        """How many steps see each question once; the few that are left over are not seen in that epoch."""
        return len(self.asked) // self.recipe.questions

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        return self.recipe.epochs * self.steps_an_epoch

    def start(self, resume: bool) -> None:
        """Begin, or take up the run in the folder from its last checkpoint.

        Raises:
            InputError: the folder holds a run and it is not asked for, or it holds one of another recipe.
        """
        if self.run.holds_a_run() and not resume:
            raise InputError(f"{self.run.path} holds a run: go on with it by --resume, or name another folder")
        self.run.make()
        split = {name: list(titles) for name, titles in asdict(self.split).items()}
        config = {"recipe": asdict(self.recipe), "split": split, "questions": self.counts, "steps": self.steps}
        file = self.run.checkpoint()
        if file is not None:
            if self.run.config() != config:
                raise InputError(f"{self.run.path} holds a run of another recipe or other data: name another folder")
            self.stepper.load(load_checkpoint(file))
        self.run.write_config(config)
        self.run.go_back_to(self.step, epoch=1)

    def train(self) -> None:
        """Run all steps that are left."""
        began, first = time.monotonic(), self.step
        while self.step < self.steps:
            at = time.monotonic()
            found = self.stepper.advance(self.groups(self.step))
            self.run.append({"step": self.step, **found, "seconds": time.monotonic() - at})
            if self.step % self.recipe.validate_every == 0 or self.step == self.steps:
                self.validate()
            if self.step % self.recipe.checkpoint_every == 0 or self.step == self.steps:
                self._save()
                left = (self.steps - self.step) * (time.monotonic() - began) / (self.step - first)
                self.report(f"step {self.step} of {self.steps}: loss {found['loss']:.4f}, {left / 60:.0f} min left")

    def validate(self) -> None:
        """Rank the candidates of the validation questions, record how well, and write the model."""
        ranks = self._validation.ranks(lambda pairs: scores_of(self.model.scorer, pairs))
        found = {"ndcg": float(ndcg(ranks).mean()), "mrr": float(reciprocal(ranks).mean())}
        self.run.append({"step": self.step, "epoch": 0, "evaluation": found})
        self.model.write(self.run.path / "model")
        self.report(f"step {self.step}: validation nDCG@10 {found['ndcg']:.4f}, MRR@10 {found['mrr']:.4f}")

    def drawn(self, step: int) -> list[Drawn]:
        """Return which questions a step sees, each with its right document and wrong ones, by number."""
        recipe = self.recipe
        epoch, place = divmod(step + recipe.stage * self.steps, self.steps_an_epoch)
        order = np.random.default_rng([recipe.seed, epoch]).permutation(len(self.asked))
        counts = recipe.negatives, recipe.sentence_negatives
        found = []
        for number in order[place * recipe.questions : (place + 1) * recipe.questions]:
            which, question = self.asked[number]
            wrong = self.negatives[which].draw(question, counts[which], (recipe.seed, epoch, which))
            right = self.collections[which].questions[question].positive
            found.append(Drawn(which, question, (right, *wrong)))
        return found

    def groups(self, step: int) -> list[Group]:
        """Return what a step sees: MiniLM is the teacher in how to order the wrong documents, not the right one."""
        return [self._group(drawn) for drawn in self.drawn(step)]

    def _group(self, drawn: Drawn) -> Group:
        collection, cosines = self.collections[drawn.which], self.negatives[drawn.which].cosines(drawn)
        return Group(
            query=collection.questions[drawn.question].text,
            documents=tuple(collection.documents[number] for number in drawn.documents),
            labels=(1.0,) + (0.0,) * (len(drawn.documents) - 1),
            teacher=(np.nan, *cosines[1:].tolist()),
        )

    def _save(self) -> None:
        """Write all that is needed to go on from here."""
        save_checkpoint(self.run.checkpoint_at(self.step), self.stepper.state())
        self.run.keep_last(2)


def train_stages(
    stages: Sequence[Recipe], data: Path, out: Path, resume: bool, report: Callable[[str], None] = print
) -> Path:
    """Train stage after stage, each from the model of the one before, in `stage-1`, `stage-2` … of a folder.

    Args:
        resume: leave out what is done and go on where it was stopped.

    Returns:
        The folder of the last model.

    Raises:
        InputError: the folder holds runs and they are not asked for, or those of other recipes; data are missing.
    """
    source = None
    for number, recipe in enumerate(stages, 1):
        folder = out / f"stage-{number}"
        report(f"stage {number} of {len(stages)}")
        if not (resume and _is_done(RunFolder(folder), recipe)):
            training = Training(recipe, data, folder, report, source=source)
            training.start(resume)
            questions = " and ".join(f"{len(one.questions):,} on {one.name}" for one in training.collections)
            report(f"{questions}: {training.steps:,} steps")
            training.train()
        source = folder / "model"
    return source


def _is_done(run: RunFolder, recipe: Recipe) -> bool:
    """Return whether a folder holds the last step of a recipe."""
    config = run.config()
    return config.get("recipe") == asdict(recipe) and run.checkpoint_at(config["steps"]).is_file()
