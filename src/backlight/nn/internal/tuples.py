"""PyTorch's `torch.nn.modules.utils`: numbers for each dimension, and prefixes of state dicts."""

from collections.abc import Callable, Iterable
from itertools import repeat

from backlight.errors import ValueProblem

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[object], tuple]:
    """Return a function that repeats a number `n` times, and makes a tuple of what can be iterated."""

    def parse(x: object):
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """Return the elements from last to first, each `n` times: padding as `nn.functional.pad` wants it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: list[int] | int, defaults: list[int]) -> list[int] | int:
    """Return sizes with each None replaced by the input's own."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueProblem(f"Input dimension should be at least {len(out_size) + 1}")
    own = defaults[-len(out_size) :]
    return [given if given is not None else default for given, default in zip(out_size, own, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Remove `prefix` from the keys of a state dict and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
