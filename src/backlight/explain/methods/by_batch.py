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
    """Return explanations by a function that computes a batch's scores and a value for each token.

    Args:
        valued: takes a batch and a check for its scores, and returns scores (pairs,) and values (tokens,).
        width: the number of tokens that a pair counts for.
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

    A method with a path or noise evaluates one pair at many points. The points are batched like other pairs, so that
    many short passes become few long ones.

    Args:
        points: pairs, each with word embeddings that replace its own, (tokens, hidden). They are consumed lazily: only
            those of one pass are in memory.

    Shapes: yields (), (tokens, hidden)

    Raises:
        RuntimeError: the score does not depend on the word embeddings.
    """
    for some in passes(points, width=lambda point: len(point[0])):
        batch = PairBatch.of([pair for pair, _ in some])
        found, gradients = ranker.gradients(batch, np.concatenate([embeddings for _, embeddings in some]))
        yield from zip(found.tolist(), batch.by_pair(gradients))
