"""How the states of a text's tokens become one vector."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.errors import InputError
from backlight.models.tokens import Batch
from backlight.ops.indexing.index_selection import index_select
from backlight.ops.shape.joining import stack
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

READ_ALONE: dict[str, Callable[[Batch], Sequence[int]]] = {  # poolings that read one token of a text, and which
    "cls": lambda batch: batch.starts,
    "lasttoken": lambda batch: np.cumsum(batch.lengths) - 1,
}
POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda states: states.mean(0),
    "max": lambda states: states.amax(0),
    "mean_sqrt_len_tokens": lambda states: states.sum(0) / len(states) ** 0.5,
}


def pooled(states: Tensor, batch: Batch, pooling: str) -> Tensor:
    """Return one vector a text; states (tokens, hidden) -> (texts, hidden).

    Args:
        pooling: a key of `POOLINGS` or `READ_ALONE`.
    """
    if pooling in READ_ALONE:
        return index_select(states, 0, from_numpy(np.asarray(READ_ALONE[pooling](batch), np.int64)))
    return stack([POOLINGS[pooling](part) for part in states.split(batch.lengths)])


def weights_of(batch: Batch, pooling: str) -> list[np.ndarray]:
    """Return what part of each text's vector comes from the state of each token, one row a text; each sums to 1.

    Raises:
        InputError: the vector is made of maxima, which come from other tokens in each dim.
    """
    if pooling == "max":
        raise InputError("pooling must read whole states, got max: each dim comes from a token of its own")
    if pooling not in READ_ALONE:
        return [np.full(length, 1 / length) for length in batch.lengths]
    alone = np.zeros(sum(batch.lengths))
    alone[np.asarray(READ_ALONE[pooling](batch))] = 1.0
    return batch.parts(alone)


def gradient_of_pooling(batch: Batch, states: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return how strongly scores react to each token's weight in the mean of the last states, at weight 1; (tokens,).

    It is zero where states are not weighed, or are those of one token.

    Args:
        states: the last states, (tokens, hidden).
        gradients: ∂score/∂state, (tokens, hidden).
    """
    found = []
    for own, slope in zip(batch.parts(states), batch.parts(gradients)):
        sizes = np.linalg.norm(slope.astype(np.float64), axis=1)  # (tokens,)
        shared = slope[sizes.argmax()] / (sizes.max() or 1.0)
        weighed = np.allclose(slope, sizes[:, None] * shared, rtol=1e-3, atol=1e-5 * sizes.max())
        mean = (sizes / (sizes.sum() or 1.0)) @ own
        found.append((slope * (own - mean)).sum(axis=1, dtype=np.float64) if weighed else np.zeros(len(own)))
    return np.concatenate(found)
