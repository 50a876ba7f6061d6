"""Losses of a query with its documents: listwise, pointwise, and distillation from a teacher.

Sources: Gao, Dai, Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, 2021, arXiv:2101.08751
(softmax over candidates); Cao and others, Learning to Rank: From Pairwise Approach to Listwise Approach, 2007 (several
right documents); Hinton, Vinyals, Dean, Distilling the Knowledge in a Neural Network, 2015, arXiv:1503.02531;
Hofstätter and others, Improving Efficient Neural Ranking Models with Cross-Architecture Knowledge Distillation, 2020,
arXiv:2010.02666 (margins).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.nn.functional import log_softmax, softplus
from backlight.ops.elementwise.where_clamp import where
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

ABSENT = -1e4  # a score that no softmax counts
KL, MARGIN_MSE = "kl", "margin-mse"
DISTILLATIONS = (KL, MARGIN_MSE)
COSINES = 0.05  # a temperature: cosines that lie 0.05 apart differ by one as logits


@dataclass(frozen=True)
class Group:
    """A query with the documents that a step sees of it.

    Args:
        query: its text.
        documents: their texts.
        labels: how right each is, from 0 (wrong) to 1.
        teacher: another model's score of each; NaN where there is none.
        weight: of the query in the loss.
    """

    query: str
    documents: tuple[str, ...]
    labels: tuple[float, ...]
    teacher: tuple[float, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class LossWeights:
    """The weights of the loss terms (see `ranking_loss`).

    Args:
        listwise: softmax cross-entropy over a query's documents.
        logistic: pointwise logistic loss of each document.
        distillation: distance from the teacher's scores.
        distillation_loss: "kl" or "margin-mse".
        temperature: what the teacher's scores are divided by; None is 1, or `COSINES` for a bi-encoder's.
    """

    listwise: float = 1.0
    logistic: float = 0.3
    distillation: float = 0.5
    distillation_loss: str = KL
    temperature: float | None = None


def ranking_loss(scores: Tensor, groups: Sequence[Group], parts: LossWeights, total: float | None = None) -> Tensor:
    """Return the weighted mean loss of groups.

        listwise · −Σ p log softmax(s),  p = labels / Σ labels
        + logistic · ½ (Σ label · softplus(−s) / Σ label + Σ (1 − label) · softplus(s) / Σ (1 − label))
        + distillation · Σ q log(q / softmax(s)),  q = softmax(t / temperature), over the documents that have a score t,
          or, with margins, the mean of ((s₊ − s) − (t₊ − t) / temperature)² over the negatives that do

    The second part gives the logit its zero, with positives and negatives weighted equally. An unanswerable query
    has only this part and the distillation. s₊ is the mean of the positives' scores, by p.

    Args:
        scores: logits of all documents of all groups, one after another, (pairs,).
        total: the sum of weights that the mean divides by; that of these groups by default. A step that is run in
            several parts gives its own.

    Shapes: -> ()
    """
    grid = _Grid.of(groups)
    total = sum(group.weight for group in groups) if total is None else total
    padded = where(from_numpy(grid.mask), scores[from_numpy(grid.places)], _constant(ABSENT))
    labels, mask = grid.labels, grid.mask
    right = labels / np.maximum(labels.sum(1, keepdims=True), 1e-12)  # p; zeros where nothing is right
    wrong = np.where(mask, 1 - labels, 0)
    wrong = wrong / np.maximum(wrong.sum(1, keepdims=True), 1e-12)
    by_query = (grid.weights / total)[:, None]
    loss = -(log_softmax(padded, 1) * _constant(parts.listwise * by_query * right)).sum()
    if parts.logistic:
        half = 0.5 * parts.logistic * by_query
        loss = loss + (softplus(-padded) * _constant(half * right) + softplus(padded) * _constant(half * wrong)).sum()
    if parts.distillation:
        follow = _margins if parts.distillation_loss == MARGIN_MSE else _divergence
        loss = loss + follow(padded, grid, right, parts.distillation * by_query, parts.temperature or 1.0)
    return loss


def _divergence(padded: Tensor, grid: "_Grid", right: np.ndarray, by_query: np.ndarray, temperature: float) -> Tensor:
    """Return Σ q log(q / softmax(s)) over the documents with a teacher's score, where there are two or more."""
    known = grid.known & (grid.known.sum(1, keepdims=True) > 1)
    logits = np.where(known, grid.teacher / temperature, -np.inf)
    logits = logits - np.max(logits, axis=1, keepdims=True, where=known, initial=-1e300)
    powers = np.where(known, np.exp(np.where(known, logits, 0)), 0)
    wanted = powers / np.maximum(powers.sum(1, keepdims=True), 1e-300)
    entropy = (by_query * wanted * np.log(np.where(wanted > 0, wanted, 1))).sum()
    found = log_softmax(where(from_numpy(known), padded, _constant(ABSENT)), 1)
    return _constant(entropy) - (found * _constant(by_query * wanted)).sum()


def _margins(padded: Tensor, grid: "_Grid", right: np.ndarray, by_query: np.ndarray, temperature: float) -> Tensor:
    """Return the mean squared difference of margins to those of the teacher."""
    teacher = np.where(grid.known, grid.teacher / temperature, 0)
    whole = (grid.known | (right == 0)).all(1) & (right.sum(1) > 0)  # of these the right ones' scores are all known
    counted = grid.known & (right == 0) & whole[:, None]
    share = counted / np.maximum(counted.sum(1, keepdims=True), 1)
    margins = (padded * _constant(right)).sum(1, keepdim=True) - padded
    wanted = (teacher * right).sum(1, keepdims=True) - teacher
    gaps = where(from_numpy(counted), margins - _constant(wanted), _constant(0.0))
    return (gaps * gaps * _constant(by_query * share)).sum()


@dataclass(frozen=True)
class _Grid:
    """Groups as a rectangle, (groups, documents of the largest); `mask` says where there is a document."""

    places: np.ndarray  # of each document's score in the row
    mask: np.ndarray
    labels: np.ndarray
    teacher: np.ndarray
    known: np.ndarray  # where the teacher has a score
    weights: np.ndarray  # (groups,)

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "_Grid":
        sizes = np.array([len(group.documents) for group in groups])
        columns = np.arange(sizes.max())
        mask = columns < sizes[:, None]
        places = np.where(mask, (np.cumsum(sizes) - sizes)[:, None] + columns, 0)
        labels, teacher = np.zeros(mask.shape), np.full(mask.shape, np.nan)
        labels[mask] = [label for group in groups for label in group.labels]
        teacher[mask] = [score for group in groups for score in group.teacher]
        weights = np.array([group.weight for group in groups], np.float64)
        return cls(places, mask, labels, teacher, ~np.isnan(teacher), weights)


def _constant(value: float | np.ndarray) -> Tensor:
    return from_numpy(np.asarray(value, np.float32))
