"""How the states of a text's tokens become one vector."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.models.tokens import Batch
from backlight.ops.joining import stack
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
        pooling: a key of `POOLINGS`.
    """
    return stack([POOLINGS[pooling](part) for part in states.split(batch.lengths)])
