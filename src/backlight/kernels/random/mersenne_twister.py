"""The words of the Mersenne Twister MT19937, and numbers made of them.

A state is 625 uint32: 624 words, and the place of the next one, 624 where all are used. Drawing moves it on in place.
"""

from collections.abc import Sequence

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats

WORDS = 624


def seeded(seed: int) -> np.ndarray:
    """Return the state that belongs to a 32-bit seed, with all words used."""
    with silent_floats():  # an interrupt inside RandomState can leave NumPy's own np.errstate on
        generator = np.random.RandomState(seed)
    return state_of(generator.get_state(legacy=False)["state"]["key"], WORDS)


def state_of(words: Sequence[int], place: int) -> np.ndarray:
    """Return the state of these words, about to give the one at `place`."""
    return np.array([*words, place], np.uint32)


@native
def random_words(state: np.ndarray, count: int) -> np.ndarray:
    """Return the next `count` words, as uint64."""
    if not count:
        return np.empty(0, np.uint64)
    with silent_floats():
        twister = np.random.MT19937(0)
    twister.state = {"bit_generator": "MT19937", "state": {"key": state[:WORDS], "pos": int(state[WORDS])}}
    found = twister.random_raw(count)
    after = twister.state["state"]
    state[:WORDS], state[WORDS] = after["key"], after["pos"]
    return found


def random_wide_words(state: np.ndarray, count: int) -> np.ndarray:
    """Return numbers of 64 random bits, of two words each, the first one above."""
    pairs = random_words(state, 2 * count).reshape(count, 2)
    return (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]


@native
def random_units(state: np.ndarray, count: int, kind: np.dtype) -> np.ndarray:
    """Return numbers from [0, 1): float32 of 24 random bits (one word), or float64 of 53 (two words)."""
    if kind == np.float32:
        return (random_words(state, count) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)
    return (random_wide_words(state, count) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53


@native
def random_choices(state: np.ndarray, count: int, probability: float) -> np.ndarray:
    """Return bools that are True with a probability; two words each."""
    return random_units(state, count, np.dtype(np.float64)) < probability


@native
def random_noise(state: np.ndarray, count: int, probability: float, value: float, kind: np.dtype) -> np.ndarray:
    """Return `value` with a probability, and 0 else, in a float dtype; two words each."""
    return random_choices(state, count, probability).astype(kind) * kind.type(value)
