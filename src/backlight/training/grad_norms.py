"""Σx² of tensors of either engine, read at once on the CPU, and late and all together off it."""

import math
import sys
from collections.abc import Iterable

from backlight.kernels.state_blocks import silent_floats

TINY = 1e-28  # squares below this lose digits in float32


def square_of(tensor):
    """Return Σx²: a float, or off the CPU a tensor that becomes one when it is needed."""
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = flat.abs()
    if flat.element_size() < 4:
        flat = flat.float()
    with silent_floats():
        square = flat.dot(flat)
        if flat.device.type != "cpu":
            return square
        value = square.item()
        if TINY < value < math.inf:
            return value
        wide = flat.double()
        return wide.dot(wide).item()


def in_transform(tensor) -> bool:
    """Return whether a tensor stands for others inside vmap or a transform of PyTorch's: it is not the step's."""
    if hasattr(tensor, "_data"):
        return getattr(tensor._data, "of_a_batch", False)
    functorch = getattr(getattr(sys.modules.get("torch"), "_C", None), "_functorch", None)
    return functorch is not None and functorch.is_functorch_wrapped_tensor(tensor)


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
