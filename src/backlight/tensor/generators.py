"""Generators of random numbers and their seeds: equal seeds give PyTorch's numbers.

(See NOTE [Equal to PyTorch's numbers] in kernels/random/distributions.py.)
"""

import contextlib
import operator

import numpy as np

from backlight.devices import CPU, device, require_cpu
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, GraphError, UnsupportedError
from backlight.kernels.random.generator import DEFAULT_SEED, MersenneTwister, default_twister, fresh_seed
from backlight.kernels.state_blocks import Block

__all__ = ["Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


class Generator:
    """A separate stream of random numbers, for the `generator` argument of random functions."""

    __slots__ = ("twister",)

    def __init__(self, device: "str | device" = "cpu"):
        require_cpu(device)
        self.twister = MersenneTwister(DEFAULT_SEED)

    @property
    def device(self) -> device:
        """The device of the generator: the CPU."""
        return CPU

    def manual_seed(self, seed: int) -> "Generator":
        """Restart the stream from a seed, and return the generator.

        Raises:
            RuntimeError: the seed is no integer.
            ValueError: it has more than 64 bits.
        """
        try:
            self.twister.seed(operator.index(seed))
        except TypeError:
            raise GraphError(f"manual_seed expected a long, but got {type(seed).__name__}") from None
        return self

    def seed(self) -> int:
        """Restart the stream from a random seed, and return the seed."""
        self.twister.seed(fresh_seed())
        return self.twister.initial_seed

    def initial_seed(self) -> int:
        """Return the seed that the stream was started with."""
        return self.twister.initial_seed

    def get_state(self):
        """Return the state as a tensor of bytes: the same as PyTorch's generator."""
        return wrap(np.frombuffer(self.twister.state(), np.uint8).copy())

    def set_state(self, new_state: TensorState) -> "Generator":
        """Continue from a state that `get_state` returned.

        Raises:
            TypeError: it is no tensor of bytes.
            RuntimeError: it has the wrong length.
        """
        if not isinstance(new_state, TensorState):
            raise ArgumentError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state._data.dtype != np.uint8:
            raise ArgumentError("RNG state must be a torch.ByteTensor; pass what get_rng_state() returned")
        self.twister.restore(new_state._data.tobytes())
        return self

    def graphsafe_get_state(self) -> "Generator":
        """Raise: states that graphs of CUDA share are for GPUs."""
        raise UnsupportedError("graphsafe_get_state is not supported in this Generator; use get_state()")

    def graphsafe_set_state(self, state: "Generator") -> "Generator":
        """Raise: states that graphs of CUDA share are for GPUs."""
        raise UnsupportedError("graphsafe_set_state is not supported in this Generator; use set_state()")

    def clone_state(self) -> "Generator":
        """Return another generator that draws the same numbers."""
        return Generator().set_state(self.get_state())

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {hex(id(self))}>"

    def __reduce__(self):
        return (_generator_from, (self.twister.state(),))


def _generator_from(state: bytes) -> Generator:
    made = Generator()
    made.twister.restore(state)
    return made


default_generator = Generator()
default_generator.twister = default_twister


def manual_seed(seed: int) -> Generator:
    """Restart the default stream from a seed, and return the default generator.

    >>> import backlight as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Restart the default stream from a random seed, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default stream was started with."""
    return default_generator.initial_seed()


def get_rng_state():
    """Return the state of the default generator as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: TensorState) -> None:
    """Continue the default generator from a state."""
    default_generator.set_state(new_state)


class fork_rng(Block, contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Restore the state of the default generator at the end of a `with` block.

    Args:
        devices: accelerators whose generators are restored, too; there are none here.
        enabled: False has no effect.
    """

    def __init__(self, devices=None, enabled: bool = True):
        self.enabled = enabled

    def _block_state(self) -> bytes:
        return default_twister.state()

    def _block_change(self, state) -> None:
        pass

    def _block_restore(self, state) -> None:
        if self.enabled:
            default_twister.restore(state)


def twister_of(generator: Generator | None) -> MersenneTwister:
    """Return the Mersenne Twister of a generator, by default of the default one."""
    if generator is None:
        return default_twister
    if not isinstance(generator, Generator):
        raise ArgumentError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator.twister
