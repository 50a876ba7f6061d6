"""Dead units: when each unit of each layer was last active.

NOTE [Dead units]
A unit is dead if it was 0 for all samples of a window of steps. Of an activation that can be exactly 0 (ReLU and its
like, as a module) the units of its outputs are counted, under the activation's name. Activations called as functions
cannot be seen by a module's hooks; but a unit that is 0 everywhere hands on no gradient, so that its bias gets a
gradient of exactly 0: for layers with a weight and a bias these are counted, under the layer's name.
"""

import math
import sys
from collections.abc import Iterable

import numpy as np

from backlight.training.engine_types import AnyTensor


def numbers_of(values: Iterable) -> list[float]:
    """Return floats: those that are tensors by one copy from each device and dtype."""
    values = list(values)
    groups: dict[tuple, list[int]] = {}
    for place, value in enumerate(values):
        if not isinstance(value, float):
            groups.setdefault((str(value.device), value.dtype), []).append(place)
    for places in groups.values():
        library = sys.modules[type(values[places[0]]).__module__.partition(".")[0]]
        for place, number in zip(places, library.stack([values[place] for place in places]).tolist()):
            values[place] = float(number)
    return values


class DeadUnits:
    """For each layer, when each of its units was last active.

    Args:
        window: the steps after which a unit that was not active is dead.
    """

    def __init__(self, window: int):
        self.window, self.step = window, 0
        self._last: dict[str, object] = {}  # arrays, or tensors off the CPU

    def next_step(self) -> None:
        """Begin a step."""
        self.step += 1

    def note(self, name: str, active: np.ndarray | AnyTensor) -> None:
        """Note which units of a layer are active: an array or a tensor of bools."""
        last, plain = self._last.get(name), isinstance(active, np.ndarray)
        if last is None or last.shape != active.shape:
            last = self._last[name] = np.zeros(active.shape, np.float32) if plain else active.float().zero_()
        if plain:
            last[active] = self.step
        else:
            last.masked_fill_(active, float(self.step))

    def shares(self) -> dict[str, float]:
        """Return the share of units of each layer that are dead."""
        since = max(0, self.step - self.window)
        dead = numbers_of(counted(last <= since) for last in self._last.values())
        return {name: count / math.prod(last.shape) for (name, last), count in zip(self._last.items(), dead)}


def counted(found: np.ndarray | AnyTensor) -> float | AnyTensor:
    """Return how many of some bools are true: of an array a number, of a tensor one that becomes a number later."""
    return float(np.count_nonzero(found)) if isinstance(found, np.ndarray) else found.sum()
