"""What distances between tokens add to attention scores.

NOTE [Disentangled attention]
With q and k of the tokens, and p the embeddings of distances, projected as keys or as queries, a score is

    (q_i · k_j  +  q_i · p_key(i − j)  +  k_j · p_query(i − j)) / √(dim · terms)

Each of the last two terms can be off. Distances are put into buckets that widen with them. A term is made as the
products of each token with all distances that its text has; a pair of tokens picks its own. Where no token is left
out, token i picks the columns that begin i to the left of token 0's: a slanted view of the products, with no index.

Source: He, Liu, Gao, Chen, DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2020, arXiv:2006.03654.
"""

import numpy as np

from backlight.ops.indexing.gather_scatter import gather
from backlight.ops.indexing.index_selection import index_select
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


def relative_rows(far: int, span: int, buckets: int, farthest: int) -> np.ndarray:
    """Return the embedding that stands for each distance from −far to far, (2 · far + 1,).

    Args:
        span: how many embeddings there are for distances to one side.
        buckets: distances up to half of these have an embedding each; beyond, one stands for distances whose
            logarithms are near. Without buckets (0 or less) each distance has its own.
        farthest: the distance up to which buckets tell distances apart.
    """
    distances = np.arange(-far, far + 1)
    if buckets > 0:
        middle = buckets // 2
        sizes = np.maximum(np.abs(distances), middle).astype(np.float32)  # where it rounds up depends on float32
        steps = np.log(sizes / np.float32(middle)) / np.log(np.float32((farthest - 1) / middle))
        outer = np.ceil(steps * np.float32(middle - 1)).astype(np.int64) + middle
        distances = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * outer)
    return np.clip(distances + span, 0, 2 * span - 1)


def distance_bias(
    query: Tensor,
    key: Tensor,
    distance_keys: Tensor | None,
    distance_queries: Tensor | None,
    rows: np.ndarray,
    positions: np.ndarray,
) -> Tensor:
    """Return what distances add to the scores of a text (see NOTE [Disentangled attention]).

    Shapes: query, key (heads, tokens, dim), distance_keys and distance_queries (embeddings, heads, dim)
        -> (heads, tokens, tokens)

    Args:
        distance_keys: the embeddings of distances projected as keys, scaled; None if the term is off.
        distance_queries: the same as queries; one of the two is given.
        rows: the embedding that stands for each distance, from the lowest to the highest, (2 · far + 1,).
        positions: of the tokens, in rising order.
    """
    found = None
    if distance_keys is not None:
        found = _of_pairs(query, distance_keys, rows[::-1].copy(), positions)
    if distance_queries is not None:
        looked_for = _of_pairs(key, distance_queries, rows, positions).mT
        found = looked_for if found is None else found + looked_for
    return found


def _of_pairs(tokens: Tensor, projected: Tensor, rows: np.ndarray, positions: np.ndarray) -> Tensor:
    """Return the product of each token with its distance to each other one.

    Shapes: tokens (heads, tokens, dim), projected (embeddings, heads, dim) -> (heads, tokens, tokens)

    Args:
        rows: the embedding that stands for the distance to what stands −far, …, far places from a token.
    """
    by_place = index_select(projected, 0, from_numpy(rows)).permute(1, 2, 0)
    products = tokens @ by_place  # (heads, tokens, 2 · far + 1)
    far, count = len(rows) // 2, len(positions)
    if count == far + 1:
        return _slanted(products, count)
    columns = from_numpy(far - positions[:, None] + positions)
    return gather(products, -1, columns.expand(len(products), count, count))


def _slanted(products: Tensor, count: int) -> Tensor:
    """Return columns count − 1 − i to 2 · count − 2 − i of row i; (heads, count, 2 · count − 1) -> (…, count)."""
    if count == 1:
        return products
    step = 2 * count - 2  # one less than a row: each row begins one column further left
    return products.flatten(1)[:, count - 1 : count - 1 + count * step].unflatten(1, (count, step))[..., :count]
