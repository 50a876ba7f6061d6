"""Quasi-random points: Sobol sequences, with PyTorch's numbers.

NOTE [Sobol's sequence]
Each dim has 30 direction numbers v₁ … v₃₀. The next point is the last one XOR, in each dim, the direction number whose
index is the place of the lowest zero bit of the number of points so far. The first dim has vⱼ = 2³⁰⁻ʲ; any other has
a primitive polynomial xˢ + a₁xˢ⁻¹ + … + 1 over GF(2) and s initial odd numbers mⱼ < 2ʲ, which give the others:

    mⱼ = 2a₁mⱼ₋₁ ⊕ 2²a₂mⱼ₋₂ ⊕ … ⊕ 2ˢmⱼ₋ₛ ⊕ mⱼ₋ₛ          vⱼ = mⱼ · 2³⁰⁻ʲ

The initial numbers are a table; the polynomials are found when they are needed, in the table's order.
"""

from collections.abc import Iterator
from importlib import resources
from itertools import count, islice

import numpy as np

from backlight.dtypes import dtype as dtype_kind
from backlight.dtypes import get_default_dtype
from backlight.engine.tensor_state import wrap
from backlight.errors import ValueProblem
from backlight.tensor.generators import Generator
from backlight.tensor.random_factories import randint
from backlight.tensor.tensor import Tensor

__all__ = ["SobolEngine"]

BITS = 30


class SobolEngine:
    """Draws the points of a Sobol sequence in [0, 1)ᵈ, in order.

    Args:
        dimension: d, at most `MAXDIM`; PyTorch has 21201.
        scramble: mix each dim's bits at random (Matoušek's linear matrix scrambling, and a shift).
        seed: of the scrambling; None takes the default generator.

    Raises:
        ValueError: `dimension` is out of range.

    Source: Ilya Sobol: On the distribution of points in a cube, 1967; scrambling: Art Owen, 1995

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = BITS
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueProblem(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]; got {dimension}"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self._directions = direction_numbers(dimension)  # (dimension, BITS)
        self._shift = self._scrambled() if scramble else np.zeros(dimension, np.int64)
        self._point = self._shift.copy()
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype_kind | None = None) -> Tensor:
        """Return the next `n` points.

        Args:
            out: a tensor to put them into, which gets their shape.
            dtype: of the points; None is the default dtype.
        """
        kind = (get_default_dtype() if dtype is None else dtype).numpy
        points = np.empty((n, self.dimension), np.int64)
        for place in range(n):
            if self.num_generated + place:
                self._advance(self.num_generated + place - 1)
            points[place] = self._point
        self.num_generated += n
        result = wrap((points.astype(np.float64) / 2**BITS).astype(kind))
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype_kind | None = None) -> Tensor:
        """Return the next 2ᵐ points.

        Raises:
            ValueError: the number of all points drawn so far would be no power of 2.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueProblem(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> "SobolEngine":
        """Return to the first point."""
        self._point = self._shift.copy()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Skip the next `n` points."""
        for place in range(self.num_generated, self.num_generated + n):
            if place:
                self._advance(place - 1)
        self.num_generated += n
        return self

    def _advance(self, number: int) -> None:
        """Go from point `number` to the next one."""
        lowest_zero = (~number & (number + 1)).bit_length() - 1
        self._point ^= self._directions[:, lowest_zero]

    def _scrambled(self) -> np.ndarray:
        """Mix the direction numbers, and return the shift."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = randint(2, (self.dimension, BITS), generator=generator)._data
        shift = bits @ (1 << np.arange(BITS))
        rows = np.tril(randint(2, (self.dimension, BITS, BITS), generator=generator)._data)
        rows[:, range(BITS), range(BITS)] = 1
        masks = rows @ (1 << np.arange(BITS)[::-1])  # (dimension, BITS): which bits of a number a new bit sums up
        for place in range(BITS):
            numbers = self._directions[:, place]
            parities = np.bitwise_count(masks & numbers[:, None]).astype(np.int64) & 1
            self._directions[:, place] = parities @ (1 << np.arange(BITS)[::-1])
        return shift

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        options += ["scramble=True"] if self.scramble else []
        options += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(options)})"


def direction_numbers(dimension: int) -> np.ndarray:
    """Return the direction numbers, (dimension, 30): see NOTE [Sobol's sequence]."""
    rows = [[1] * BITS]
    table = resources.files("backlight.tensor").joinpath("sobol_numbers.txt").read_text()
    initial = (line for line in table.splitlines() if not line.startswith("#"))
    for polynomial, line in islice(zip(primitive_polynomials(), initial), dimension - 1):
        rows.append(_extended([int(number) for number in line.split()], polynomial))
    return np.array(rows, np.int64) << np.arange(BITS)[::-1]


def _extended(numbers: list[int], polynomial: int) -> list[int]:
    """Return all 30 numbers m of a dim, from its initial ones and its polynomial, given by its bits."""
    degree = len(numbers)
    for place in range(degree, BITS):
        new = numbers[place - degree] ^ (numbers[place - degree] << degree)
        for power in range(1, degree):
            if polynomial >> (degree - power) & 1:
                new ^= numbers[place - power] << power
        numbers.append(new)
    return numbers


def primitive_polynomials() -> Iterator[int]:
    """Yield the primitive polynomials over GF(2) by degree and value, as numbers of their bits."""
    yield 0b11
    for degree in count(2):
        order = 2**degree - 1
        factors = _prime_factors(order)
        for polynomial in range(2**degree + 1, 2 ** (degree + 1), 2):
            whole = _power_of_x(order, polynomial, degree) == 1
            if whole and all(_power_of_x(order // factor, polynomial, degree) != 1 for factor in factors):
                yield polynomial


def _power_of_x(exponent: int, polynomial: int, degree: int) -> int:
    """Return x to a power, modulo a polynomial."""
    result, square = 1, 2
    while exponent:
        if exponent & 1:
            result = _product(result, square, polynomial, degree)
        square = _product(square, square, polynomial, degree)
        exponent >>= 1
    return result


def _product(left: int, right: int, polynomial: int, degree: int) -> int:
    result = 0
    while right:
        if right & 1:
            result ^= left
        left <<= 1
        if left >> degree:
            left ^= polynomial
        right >>= 1
    return result


def _prime_factors(number: int) -> set[int]:
    found, factor = set(), 2
    while factor * factor <= number:
        while number % factor == 0:
            found.add(factor)
            number //= factor
        factor += 1
    return found | ({number} if number > 1 else set())
