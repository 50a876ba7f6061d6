"""What distances between tokens add to attention scores.

NOTE [Disentangled attention]
With q and k of the tokens, and p the embeddings of distances, projected as keys or as queries, a score is

    (q_i · k_j  +  q_i · p_key(i − j)  +  k_j · p_query(i − j)) / √(dim · terms)

Each of the last two terms can be off. Distances are put into buckets that widen with them. A term is made as the
products of a text's tokens with the distances that occur in it, of which each pair of tokens picks its own.

Source: He, Liu, Gao, Chen, DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2020, arXiv:2006.03654.
"""

import numpy as np

from backlight.ops.scattering import gather
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


def relative_rows(positions: np.ndarray, span: int, buckets: int, farthest: int) -> np.ndarray:
    """Return for each query and key of a text the embedding that stands for their distance.

    Shapes: positions (tokens,) -> (tokens, tokens)

    Args:
        span: how many embeddings there are for distances to one side.
        buckets: distances up to half of these have an embedding each; beyond, one stands for distances whose
            logarithms are near. Without buckets (0 or less) each distance has its own.
        farthest: the distance up to which buckets tell distances apart.
    """
    far = int(np.ptp(positions))
    distances = np.arange(-far, far + 1)
    if buckets > 0:
        middle = buckets // 2
        sizes = np.maximum(np.abs(distances), middle).astype(np.float32)  # where it rounds up depends on float32
        steps = np.log(sizes / np.float32(middle)) / np.log(np.float32((farthest - 1) / middle))
        outer = np.ceil(steps * np.float32(middle - 1)).astype(np.int64) + middle
        distances = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * outer)
    rows = np.clip(distances + span, 0, 2 * span - 1)
    return rows[positions[:, None] - positions + far]


def distance_bias(
    query: Tensor, key: Tensor, distance_keys: Tensor | None, distance_queries: Tensor | None, rows: np.ndarray
) -> Tensor:
    """Return what distances add to the scores of a text (see NOTE [Disentangled attention]).

    Shapes: query, key (heads, tokens, dim), distance_keys and distance_queries (heads, dim, distances),
        rows (tokens, tokens) -> (heads, tokens, tokens)

    Args:
        distance_keys: the distances projected as keys, scaled; None if the term is off.
        distance_queries: the same as queries; one of the two is given.
        rows: which distance stands for each query and key.
    """
    low, high = int(rows.min()), int(rows.max()) + 1
    found = None
    if distance_keys is not None:
        found = _picked(query @ distance_keys[..., low:high], rows - low)
    if distance_queries is not None:
        looked_for = _picked(key @ distance_queries[..., low:high], rows.T - low).mT
        found = looked_for if found is None else found + looked_for
    return found


def _picked(products: Tensor, rows: np.ndarray) -> Tensor:
    """Pick for each token and each other one its distance; (heads, tokens, distances) -> (heads, tokens, tokens)."""
    index = from_numpy(np.ascontiguousarray(rows))
    return gather(products, -1, index.expand(len(products), *rows.shape))
