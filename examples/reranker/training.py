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

import backlight as torch
from backlight.errors import InputError
from backlight.models.checkpoint import find_model
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker
from backlight.nn.functional import cross_entropy, softplus
from backlight.nn.utils import clip_grad_norm_
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.run_folder import RunFolder
from reranker.candidates import Candidates
from reranker.measures import ndcg, reciprocal
from reranker.model import scores_of, starting_model, weights_of, write_model
from reranker.negatives import Group, find_negatives
from reranker.recipe import Recipe
from reranker.texts import read_paragraphs, read_sentences, split_articles

TEMPERATURE = 0.05  # of cosines: those that lie 0.05 apart differ by one as logits


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
        self.optimizer = _optimizer(self.model, recipe)
        self.step = 0

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
            self._load(load_checkpoint(file))
        self.run.write_config(config)
        self.run.go_back_to(self.step, epoch=1)

    def train(self) -> None:
        """Run all steps that are left."""
        began, first = time.monotonic(), self.step
        while self.step < self.steps:
            at = time.monotonic()
            found = self._one_step()
            self.run.append({"step": self.step, **found, "seconds": time.monotonic() - at})
            if self.step % self.recipe.validate_every == 0 or self.step == self.steps:
                self.validate()
            if self.step % self.recipe.checkpoint_every == 0 or self.step == self.steps:
                self._save()
                left = (self.steps - self.step) * (time.monotonic() - began) / (self.step - first)
                self.report(f"step {self.step} of {self.steps}: loss {found['loss']:.4f}, {left / 60:.0f} min left")

    def validate(self) -> None:
        """Rank the candidates of the validation questions, record how well, and write the model."""
        ranks = self._validation.ranks(lambda pairs: scores_of(self.model, pairs))
        found = {"ndcg": float(ndcg(ranks).mean()), "mrr": float(reciprocal(ranks).mean())}
        self.run.append({"step": self.step, "epoch": 0, "evaluation": found})
        write_model(self.model, self._source, self.run.path / "model")
        self.report(f"step {self.step}: validation nDCG@10 {found['ndcg']:.4f}, MRR@10 {found['mrr']:.4f}")

    def groups(self, step: int) -> list["Group"]:
        """Return what a step sees: for each question the right document and wrong ones."""
        recipe = self.recipe
        epoch, place = divmod(step + recipe.stage * self.steps, self.steps_an_epoch)
        order = np.random.default_rng([recipe.seed, epoch]).permutation(len(self.asked))
        counts = recipe.negatives, recipe.sentence_negatives
        found = []
        for number in order[place * recipe.questions : (place + 1) * recipe.questions]:
            which, question = self.asked[number]
            wrong = self.negatives[which].draw(question, counts[which], (recipe.seed, epoch, which))
            right = self.collections[which].questions[question].positive
            found.append(Group(which, question, (right, *wrong)))
        return found

    def pairs(self, groups: Sequence["Group"]) -> list[tuple[str, str]]:
        """Return the question of each group with each of its documents, the right one first."""
        return [
            (self.collections[group.which].questions[group.question].text, self.collections[group.which].documents[one])
            for group in groups
            for one in group.documents
        ]

    def loss(self, groups: Sequence["Group"]) -> torch.Tensor:
        """Return the mean loss of groups, ()."""
        scores = self.model.pair_scores(PairBatch.of(self.model.read(self.pairs(groups))))
        ends = np.cumsum([len(group.documents) for group in groups])
        losses = []
        for size in sorted({len(group.documents) for group in groups}):
            some = [number for number, group in enumerate(groups) if len(group.documents) == size]
            places = np.concatenate([np.arange(ends[number] - size, ends[number]) for number in some])
            own = scores if len(some) == len(groups) else scores[torch.from_numpy(places)]
            cosines = np.stack([self.negatives[groups[n].which].cosines(groups[n]) for n in some])
            loss = loss_of(own.reshape(len(some), size), self.recipe.logistic, cosines, self.recipe.imitation)
            losses.append(loss * (len(some) / len(groups)))
        return sum(losses[1:], losses[0])

    def _one_step(self) -> dict:
        """Train on the next questions; return the loss, the gradient's norm and how many pairs were read."""
        share = self.recipe.share(self.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = share * group["highest"]
        groups = self.groups(self.step)
        loss = self.loss(groups)
        self.optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(list(weights_of(self.model).values()), self.recipe.clip, error_if_nonfinite=True)
        self.optimizer.step()
        self.step += 1
        return {"loss": loss.item(), "norm": norm.item(), "pairs": sum(len(group.documents) for group in groups)}

    def _save(self) -> None:
        """Write all that is needed to go on from here."""
        state = {"step": self.step, "weights": weights_of(self.model), "optimizer": self.optimizer.state_dict()}
        save_checkpoint(self.run.checkpoint_at(self.step), state)
        self.run.keep_last(2)

    def _load(self, state: dict) -> None:
        self.step = state["step"]
        with torch.no_grad():
            for name, weight in weights_of(self.model).items():
                weight.copy_(state["weights"][name])
        self.optimizer.load_state_dict(state["optimizer"])


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


def loss_of(
    scores: torch.Tensor, logistic: float, cosines: np.ndarray | None = None, imitation: float = 0.0
) -> torch.Tensor:
    """Return the loss of groups whose first document is right and whose others are wrong.

        −log softmax(scores)₀ + logistic · ½ (softplus(−s₀) + mean of softplus(sₙ) over the wrong ones)
        + imitation · −Σₙ softmax(cosines / τ)ₙ · log softmax(s)ₙ over the wrong ones

    The second part gives the logit a zero: undecided, with right and wrong documents counting as much. The third keeps
    what the bi-encoder knows of meaning: which of the wrong documents is less wrong.

    Shapes: scores, cosines (questions, documents) -> ()
    """
    right, wrong = scores[:, 0], scores[:, 1:]
    listwise = cross_entropy(scores, torch.zeros(len(scores), dtype=torch.int64))
    loss = listwise + logistic * 0.5 * (softplus(-right).mean() + softplus(wrong).mean())
    if not imitation:
        return loss
    weights = np.exp((cosines[:, 1:] - cosines[:, 1:].max(1, keepdims=True)) / TEMPERATURE)
    wanted = torch.from_numpy((weights / weights.sum(1, keepdims=True)).astype(np.float32))
    return loss + imitation * cross_entropy(wrong, wanted)


def _optimizer(model: CrossEncoder, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW over all weights: matrices decay, vectors do not; the head has a rate of its own."""
    groups = []
    for head, rate in ((False, recipe.rate), (True, recipe.head_rate)):
        for matrix, decay in ((True, recipe.weight_decay), (False, 0.0)):
            chosen = [
                weight.requires_grad_()
                for name, weight in weights_of(model).items()
                if name.startswith("head.") == head and (weight.dim() > 1) == matrix
            ]
            groups.append({"params": chosen, "lr": rate, "highest": rate, "weight_decay": decay})
    return torch.optim.AdamW(groups)
