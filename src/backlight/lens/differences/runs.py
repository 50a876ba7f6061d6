"""Records two functions of one process that are to be compared, both from the same random state."""

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from backlight.errors import InputError
from backlight.kernels.state_blocks import block
from backlight.lens.engines import loaded_engines
from backlight.lens.records.record import Record
from backlight.lens.records.watching import Watch, watch


def records_of(functions: Sequence[Callable], args: Sequence, seed: int | None, values: str) -> list[Record]:
    """Call functions and return the record of each; random numbers begin alike in all of them.

    Raises:
        InputError: a function computed nothing that requires grad.
    """
    return [_record_of(function, args, seed, values) for function in functions]


def _record_of(function: Callable, args: Sequence, seed: int | None, values: str) -> Record:
    title = getattr(function, "__name__", type(function).__name__)
    watched = watch(values=values, title="" if title == "<lambda>" else title)
    with _random_state(seed), watched:
        function(*args)
    return _only(watched, title)


def _only(watched: Watch, title: str) -> Record:
    """Return the record of the engine that the function used: of both the one with more nodes."""
    if not watched.records:
        raise InputError(
            f"{title} must compute something that requires grad, and nothing did: check requires_grad, and that it is "
            "not all under no_grad()"
        )
    return max(watched.records, key=lambda record: len(record.nodes))


@block
def _random_state(seed: int | None) -> Iterator[None]:
    """Leave the random state of all generators as it was, and begin with a seed if there is one."""
    engines = [engine.module for engine in loaded_engines()]
    kept = [engine.get_rng_state() for engine in engines]
    others = random.getstate(), np.random.get_state()
    try:
        if seed is not None:
            set_seed(seed)
        yield
    finally:
        for engine, state in zip(engines, kept):
            engine.set_rng_state(state)
        random.setstate(others[0])
        np.random.set_state(others[1])


def set_seed(seed: int) -> None:
    """Seed the generators of all engines that are loaded, of NumPy and of Python."""
    for engine in loaded_engines():
        engine.module.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
