"""The common loop of methods that give each token a value: batch by batch, with scores checked by an ordinary call.

NOTE [A method]
`method(ranker, pairs, *, scores=None, progress=…)` and options of its own give an `Attribution` a pair, in their order:
    ranker      a scorer (NOTE [A scorer] in models/scorer.py)
    pairs       as `ranker.read` gives them
    scores      what the ordinary call gave, (pairs,), where it was made before. By default the scores are those of
                the call that is explained, and an ordinary call is made for one pair, the shortest (`checked_passes`
                in explain/checks.py); methods of many passes make it for all. Methods that score pairs without some
                of their words have no such argument: the ordinary score is one of theirs
    progress    called with the number of pairs newly explained
Every method compares scores that it explains with an ordinary call's, and raises a RuntimeError if the two disagree, or
if its values are zero everywhere or not finite.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import ScoreCheck, checked_passes
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import Progress, Scorer
from backlight.models.scoring import passes

Pairs = Sequence[Pair]
Scores = np.ndarray | None  # of an ordinary call, (pairs,)
Valued = tuple[np.ndarray, np.ndarray]  # scores, (pairs,), and values, (tokens,)


def explain_by_batch(
    ranker: Scorer,
    pairs: Pairs,
    scores: Scores,
    progress: Progress,
    recipe: Recipe,
    valued: Callable[[PairBatch, ScoreCheck], Valued],
    width: Callable[[Pair], int] = len,
) -> list[Attribution]:
    """Return explanations by a function that gives a batch's scores, and a value for each of its tokens.

    Args:
        valued: takes a batch and the check that its scores must pass, and gives (pairs,) and (tokens,).
        width: how many tokens of a batch a pair counts for.
    """
    done = []
    for batch, check in checked_passes(ranker, pairs, scores, width):
        found, values = valued(batch, check)
        for pair, score, own in zip(batch.pairs, found, batch.by_pair(values)):
            done.append(attribute_pair(pair, own, recipe, ranker.name, score))
        progress(len(batch.pairs))
    return done


def gradients_at(ranker: Scorer, points: Iterable[tuple[Pair, np.ndarray]]) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the score of each point and its gradient there, in their order.

    A method that follows a path or draws noise evaluates one pair at many points. They are laid end to end like any
    pairs, so that many short passes become few long ones.

    Args:
        points: pairs, each with the word embeddings that stand in for its own, (tokens, hidden). They are made as they
            are needed: only those of one pass are held.

    Shapes: yields (), (tokens, hidden)

    Raises:
        RuntimeError: the score does not depend on the word embeddings.
    """
    for some in passes(points, width=lambda point: len(point[0])):
        batch = PairBatch.of([pair for pair, _ in some])
        found, gradients = ranker.gradients(batch, np.concatenate([embeddings for _, embeddings in some]))
        yield from zip(found.tolist(), batch.by_pair(gradients))
