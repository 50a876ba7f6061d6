"""Preparation before the first step: mine negatives, score them with the teacher, rank the validation queries."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.errors import InputError
from backlight.formats.array_files import read_arrays
from backlight.models.bi_encoder import BiEncoder
from backlight.models.checkpoint import find_model
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.ranker import load_ranker
from backlight.training.reranker.candidates import (
    Candidates,
    Miner,
    taught,
    training_candidates,
    validation_candidates,
)
from backlight.training.reranker.loss import COSINES
from backlight.training.reranker.model import scores_of
from backlight.training.reranker.progress import TrainingProgress, Watch
from backlight.training.reranker.rows import Judged
from backlight.training.reranker.settings import RerankerSettings
from backlight.training.reranker.validation import Validation
from backlight.training.run_folder import write_atomically

Split = tuple[Sequence[Judged], Sequence[Judged]]  # queries to train on, and those that are held out


@dataclass(frozen=True)
class Prepared:
    """What is known before the first step."""

    training: list[Candidates]
    validation: Validation
    before: np.ndarray  # nDCG@10 of the start, (queries,)
    bm25: np.ndarray
    left_out: dict[str, int]
    temperature: float  # of the teacher's scores


def prepare(
    settings: RerankerSettings, split: Split, texts: Sequence[str], start: BiEncoder | CrossEncoder, watch: Watch
) -> Prepared:
    """Mine negatives for all queries, let a teacher score those for training, and rank the held-out part.

    Args:
        texts: all documents.
        start: the model that training starts from; of a bi-encoder, the bi-encoder itself.

    Raises:
        InputError: the mining model is not a bi-encoder, or a model is missing.
    """
    asked, kept = split
    miner = Miner(texts, _bi_encoder(settings.mining_model), settings.near_duplicates)
    watch(TrainingProgress("embedding" if settings.mining_model else "indexing", 0, len(texts)))
    miner.embed()
    sizes = settings.negatives, settings.hard_negatives, settings.seed
    training = training_candidates(asked, miner, *sizes, _counter(watch, "mining", asked))
    held_out = validation_candidates(kept, miner, settings.candidates, _counter(watch, "mining", kept))
    temperature = settings.loss.temperature or 1.0
    if settings.teacher is not None:
        teacher = load_ranker(find_model(settings.teacher), settings.teacher)
        temperature = settings.loss.temperature or (COSINES if isinstance(teacher, BiEncoder) else 1.0)
        known = miner.embeddings if settings.teacher == settings.mining_model else None
        training = taught(training, texts, teacher, _counter(watch, "teaching", training), known)
    validation = Validation(tuple(held_out), tuple(texts))
    watch(TrainingProgress("validating", 0, len(held_out)))
    before = validation.ndcg(scores_of(start, validation.pairs))
    bm25 = validation.ndcg(validation.bm25_scores(miner.bm25))
    return Prepared(training, validation, before, bm25, asdict(miner.left_out), temperature)


def write_prepared(file: Path, found: Prepared) -> None:
    """Write what was found, so that a training that goes on need not find it again."""
    arrays = {"before": found.before, "bm25": found.bm25}
    for name, some in (("training", found.training), ("validation", found.validation.candidates)):
        arrays[f"{name}.sizes"] = np.array([len(one.found) for one in some], np.int64)
        arrays[f"{name}.found"] = np.array([number for one in some for number in one.found], np.int64)
        arrays[f"{name}.teacher"] = np.array([score for one in some for score in one.teacher], np.float64)
    texts = {"left_out": json.dumps(found.left_out), "temperature": repr(found.temperature)}
    write_atomically(file, save(arrays, texts))


def read_prepared(file: Path, split: Split, texts: Sequence[str]) -> Prepared:
    """Return what `write_prepared` wrote.

    Raises:
        InputError: the file is damaged.
    """
    arrays, said = read_arrays(file, "what was found in ")
    parts = {}
    for name, queries in zip(("training", "validation"), split):
        ends = np.cumsum(arrays[f"{name}.sizes"])[:-1]
        found = [tuple(some.tolist()) for some in np.split(arrays[f"{name}.found"], ends)]
        ends = np.cumsum([len(query.documents) + len(more) for query, more in zip(queries, found)])[:-1]
        teacher = [tuple(some.tolist()) for some in np.split(arrays[f"{name}.teacher"], ends)]
        parts[name] = [Candidates(*one) for one in zip(queries, found, teacher)]
    validation = Validation(tuple(parts["validation"]), tuple(texts))
    left_out, temperature = json.loads(said["left_out"]), float(said["temperature"])
    return Prepared(parts["training"], validation, arrays["before"], arrays["bm25"], left_out, temperature)


def _bi_encoder(name: str | None) -> BiEncoder | None:
    if name is None:
        return None
    found = load_ranker(find_model(name), name)
    if not isinstance(found, BiEncoder):
        raise InputError(f"mining_model must be a bi-encoder, got {name}, which reads query and document together")
    return found


def _counter(watch: Watch, doing: str, queries: Sequence) -> Callable[[int], None]:
    """Return a function that adds up how many queries are done, and shows it."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        watch(TrainingProgress(doing, done, len(queries)))

    return count
