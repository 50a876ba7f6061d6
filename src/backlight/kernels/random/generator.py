"""PyTorch's CPU generator of random bits, bit for bit: the same seed gives the same stream, and the same state bytes.

It is the Mersenne Twister MT19937, seeded by its 32-bit recipe (see kernels/random/mersenne_twister.py).
"""

import os
import struct

import numpy as np

from backlight.errors import GraphError, ValueProblem
from backlight.kernels.random.mersenne_twister import WORDS, random_wide_words, random_words, seeded, state_of
from backlight.system.fork_safety import fork_safe_lock

DEFAULT_SEED = 67280421310721
# seed, draws left before the next twist (+ 1), seeded, next word, words, an unused sample, the spare sample, another
# unused one, whether there is a spare; then a spare float32 sample and whether there is one, which the CPU never has
_STATE = struct.Struct(f"=QiiQ{WORDS}Qdddi4xf?3x")

_UNTOUCHED = state_of([0] * WORDS, WORDS)


class MersenneTwister:
    """A stream of random bits, and the second of two normal numbers that were made at once (`spare`)."""

    def __init__(self, seed: int = DEFAULT_SEED):
        self.lock = fork_safe_lock()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the stream that belongs to a seed; of its 64 bits the lower 32 count.

        Raises:
            ValueError: the seed has more than 64 bits.
        """
        if not -(2**63) <= seed < 2**64:
            raise ValueProblem(f"Overflow when unpacking long long: a seed has at most 64 bits, got {seed}")
        with self.lock:
            self.initial_seed = seed % 2**64
            self.spare = None
            self._words = None  # made at the first draw: NumPy loads its random module then

    def draw(self, function, count: int, *options) -> np.ndarray:
        """Return `function(words, count, *options)` (see mersenne_twister.py); 0 numbers leave the stream untouched."""
        with self.lock:
            if count and self._words is None:
                self._words = seeded(self.initial_seed % 2**32)
            return function(self._words if count else _UNTOUCHED, count, *options)

    def bits32(self, count: int) -> np.ndarray:
        """Return `count` numbers of 32 random bits, as uint64."""
        return self.draw(random_words, count)

    def bits64(self, count: int) -> np.ndarray:
        """Return `count` numbers of 64 random bits."""
        return self.draw(random_wide_words, count)

    def state(self) -> bytes:
        """Return all that decides the stream from here on, in the layout of `torch.get_rng_state()`."""
        with self.lock:
            *words, place = (seeded(self.initial_seed % 2**32) if self._words is None else self._words).tolist()
            left, following = (1, 0) if self._words is None else (WORDS - place + 1, place)
            spare, has_spare = self.spare or 0.0, self.spare is not None
        return _STATE.pack(self.initial_seed, left, 1, following, *words, 0.0, spare, 0.0, has_spare, 0.0, False)

    def restore(self, state: bytes) -> None:
        """Continue from a state that `state()`, or PyTorch, returned.

        Raises:
            RuntimeError: it is not of that length, or not a state.
        """
        if len(state) != _STATE.size:
            raise GraphError(
                f"Expected a CPUGeneratorImplState of size {_STATE.size} but found the input RNG state size to be "
                f"{len(state)}: pass what get_rng_state() returned"
            )
        seed, left, _, following, *rest = _STATE.unpack(state)
        words, (_, spare, _, has_spare, _, _) = [word % 2**32 for word in rest[:WORDS]], rest[WORDS:]
        if not (1 <= left <= WORDS and 0 <= following <= WORDS):
            raise GraphError(
                f"Invalid mt19937 state: of {WORDS} words it has {left} left, and the next is {following}; pass what "
                "get_rng_state() returned"
            )
        with self.lock:
            self.initial_seed = seed
            self._words = None if (left, following) == (1, 0) else state_of(words, following)
            self.spare = spare if has_spare else None


def fresh_seed() -> int:
    """Return an unpredictable seed, of 64 bits as PyTorch's."""
    return int.from_bytes(os.urandom(8), "little")


default_twister = MersenneTwister(fresh_seed())
