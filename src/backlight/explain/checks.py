"""Checks before a score is explained: the pair was read, the score is that of an ordinary call, values are finite."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from backlight.errors import GraphError, InputError
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Scorer
from backlight.models.scoring import ROUNDING, TOKENS_A_PASS, passes

ScoreCheck = Callable[[np.ndarray], None]  # takes a batch's scores, (pairs,), and raises unless they are ordinary ones


def check_readable(pair: Pair) -> None:
    """Raise if a text has no tokens, for example if it consists of invisible characters."""
    for side, what in ((QUERY, "the query"), (DOCUMENT, pair.name)):
        if not len(pair.of_side(side)):
            raise InputError(f"{what} must hold something that the model reads, and its tokenizer finds nothing in it")


def ordinary_passes(
    ranker: Scorer, pairs: Sequence[Pair], scores: np.ndarray | None, width: Callable[..., int] = len
) -> Iterator[tuple[PairBatch, np.ndarray]]:
    """Yield pairs in batches of about `TOKENS_A_PASS` tokens, each with the scores of an ordinary call.

    Args:
        scores: the scores of the ordinary call, (pairs,); None: they are computed here.
        width: how many tokens a pair counts for.
    """
    done = 0
    for some in passes(pairs, width):
        batch = PairBatch.of(some)
        yield batch, ranker.score(batch) if scores is None else scores[done : done + len(some)]
        done += len(some)


def checked_passes(
    ranker: Scorer, pairs: Sequence[Pair], scores: np.ndarray | None, width: Callable[..., int] = len
) -> Iterator[tuple[PairBatch, ScoreCheck]]:
    """Yield pairs in batches of some thousand tokens, each with a check of the scores that are explained.

    If the scores of the ordinary call are given, every pair is compared. If not, the scores come from the explained
    call, and only the shortest pair is scored by an ordinary call and compared: a call that reads a different input
    does so for every pair.

    Args:
        scores: the scores of the ordinary call, (pairs,), or None.
        width: the number of tokens that a pair counts for, if the memory of a pass is not proportional to its tokens.
    """
    done = 0
    shortest = min(range(len(pairs)), key=lambda number: len(pairs[number]), default=0)
    for some in passes(pairs, width, ranker.tokens_a_pass if width is len else TOKENS_A_PASS):
        batch = PairBatch.of(some)
        if scores is not None:
            yield batch, _check_all(ranker, batch, scores[done : done + len(some)])
        else:
            yield batch, _check_one(ranker, batch, shortest - done)
        done += len(some)


def _check_all(ranker: Scorer, batch: PairBatch, ordinary: np.ndarray) -> ScoreCheck:
    return lambda found: check_same_scores(found, ordinary, batch.pairs, ranker.rounding)


def _check_one(ranker: Scorer, batch: PairBatch, number: int) -> ScoreCheck:
    """Return a check of one pair, which is scored alone; of none, if the batch has no pair of this number."""

    def check(found: np.ndarray) -> None:
        if 0 <= number < len(batch.pairs):
            one = batch.pairs[number : number + 1]
            check_same_scores(found[number : number + 1], ranker.score(PairBatch.of(one)), one, ranker.rounding)

    return check


def check_same_scores(
    found: Sequence[float], ordinary: Sequence[float], pairs: Sequence[Pair], rounding: float = ROUNDING
) -> None:
    """Raise unless the explained scores agree with those of the ordinary call.

    Args:
        rounding: the allowed difference: absolute, or relative to the score if its magnitude is above 1.
    """
    for again, score, pair in zip(found, ordinary, pairs, strict=True):
        if not abs(again - score) <= rounding * max(1.0, abs(score)):
            raise GraphError(
                f"the score of {pair.name} must be the same in an ordinary call and in the one that is "
                f"explained, got {score:.6f} and {again:.6f}: the two do not read the same input"
            )


def check_values(values: np.ndarray, name: str, what: str = "the gradient of the score") -> None:
    """Raise if a pair's values are all zero, or one of them is not finite."""
    if not np.isfinite(values).all():
        raise GraphError(f"{what} of {name} must be finite, got NaN or infinity; nothing was explained")
    if not values.any():
        raise GraphError(f"{what} of {name} must not be zero everywhere, and it is; nothing was explained")


def check_below_highest(ranker: Scorer, scores: np.ndarray, pairs: Sequence[Pair]) -> None:
    """Raise if a score is the maximum possible, where its gradient is zero up to rounding."""
    highest = ranker.highest_score
    for score, pair in zip(scores, pairs):
        if highest is not None and score > highest - ROUNDING / 10:
            raise GraphError(
                f"the score of {pair.name} must be below {highest}, the highest there is, got {score:.6f}: the model "
                "reads query and document as the same, and there the gradient is zero; leave this document out"
            )


def checked_gradients(ranker: Scorer, batch: PairBatch, check: ScoreCheck) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and ∂score/∂embedding at the word embeddings, after comparing the scores with ordinary ones.

    Args:
        check: as returned by `checked_passes`.

    Shapes: -> (pairs,), (tokens, hidden)

    Raises:
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    scores, gradients = ranker.gradients(batch)
    check(scores)
    check_below_highest(ranker, scores, batch.pairs)
    for part, pair in zip(batch.by_pair(gradients), batch.pairs):
        check_values(part, pair.name)
    return scores, gradients
