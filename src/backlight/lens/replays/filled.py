"""Formulas with the numbers in them: `grad · other = 1 · 4 = 4`.

NOTE [No wrong equation]
What stands in a record may not be what the derivative read: a parameter that was stepped since, an option that was not
recorded, a sum over a dim that the formula does not name. So a formula is filled in only where the numbers, computed,
give the gradient that was recorded; and as many digits are written as make the line true for a reader who computes it
by hand: "=" if it is exact for the dtype, "≈" to three digits, and before every number that is shortened (NOTE
[Shortened numbers] in wording.py). Else there is no equation: the formula and the gradient stand alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from backlight.lens.replays.expressions import Arithmetic, ShapeWriter, Writer, names_in
from backlight.lens.replays.formulas import Formula, Joined, Name, Prose
from backlight.lens.replays.wording import (
    Given,
    any_shortened,
    array_block,
    block_of,
    bracketed,
    can_be_drawn,
    rounded,
    same,
    shape_text,
)

DIGITS = (4, 6, 9)
WIDEST = 100  # characters that an expression may take
NARROWEST = 3  # that a number takes, with what parts it from the next
CLOSE = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-7}
WRITTEN = 1e-3  # how far a rounded line may be from the gradient, in relation to its largest element


@dataclass(frozen=True)
class Filled:
    """A formula with numbers (see NOTE [No wrong equation]).

    Args:
        numbers: the expression with values in place of names; several lines for matrices; "" where they are too large.
        relation: what stands between numbers and value: "=", or "≈" where what is written does not give it exactly.
        given: what stands before the numbers: "≈" where one of them is shortened.
        value: what it gives; "" where that is too large.
        shapes: the expression with shapes in place of names, where one is a matrix: "(2×3) @ (3×4) = (2×4)".
        shaped: how the value got the gradient's shape, "repeated" or "summed"; "" where it had it.
        result: the gradient, where it is not the value.
    """

    numbers: str
    relation: str
    value: str
    shapes: str = ""
    shaped: str = ""
    result: str = ""
    given: str = "="

    def lines(self) -> list[str]:
        """Return what is to be read: the numbers in one line, or in a block for matrices."""
        if not self.numbers:
            return [self.shapes]
        ending = block_of(self.numbers)
        if self.numbers != self.value:
            numbers = bracketed(ending) if " where " in self.numbers else ending
            ending = numbers + f" {self.relation} " + block_of(self.value)
        if self.shaped:
            ending = ending + f", {self.shaped}: " + block_of(self.result)
        return ([self.shapes] if "@" in self.shapes else []) + str(ending).splitlines()


def filled(
    formula: Formula, names: Mapping[str, Given], result: Given, dtype: str = "float32", *, matrices: bool = False
) -> Filled | None:
    """Put values into a formula.

    Args:
        names: what the names in it stand for; `grad` among them.
        result: the gradient that was recorded.
        dtype: the gradient's: how exactly the numbers must give it.
        matrices: whether `·` between arrays is the product of matrices.

    Returns:
        A `Filled`, or None where the numbers, or for large tensors the shapes, do not fit.
    """
    names = _with_count(names, result)
    for filling in _candidates(formula, names, result, matrices, CLOSE.get(dtype, 2e-5)):
        found = filling.checked()
        if found is not None:
            return found
    return None


def _with_count(names: Mapping[str, Given], result: Given) -> dict[str, Given]:
    """Add `n`, of a mean: how many elements of the input there are for one of the output."""
    few, many = (names["grad"], result) if "grad" in names else (result, names.get("input", result))
    size, full_size = (int(np.prod(given.shape)) for given in (few, many))
    if not size or full_size % size:
        return dict(names)
    return {"n": Given((), np.float64(full_size // size)), **names}


def _candidates(
    formula: Formula, names: dict[str, Given], result: Given, matrices: bool, close: float
) -> Iterator["_Filling"]:
    """Give the ways in which a formula may be meant."""
    expressions = [formula.expression]
    if formula.rest.startswith("/ n"):
        expressions.append(Joined("/", formula.expression, Name("n")))
    dims = [None, *range(len(result.shape) - 1, -1, -1)] if "Σ" in formula.text else [None]
    for expression in expressions:
        for dim in dims:
            yield _Filling(replace(formula, expression=expression), names, result, matrices, close, dim)


class _Filling:
    """One way to read a formula, tried."""

    def __init__(
        self, formula: Formula, names: dict[str, Given], result: Given, matrices: bool, close: float, dim: int | None
    ):
        self.formula, self.names, self.result = formula, names, result
        self.matrices, self.close, self.dim = matrices, close, dim

    def checked(self) -> Filled | None:
        """Return the formula filled in, if it is true."""
        arrays = {name: given.array for name, given in self.names.items() if given.array is not None}
        try:
            if self.result.array is None or not self._used() <= set(arrays) | {"π"}:
                # fill in shapes only, where they fit
                shapes = tuple((name, self.names[name].shape) for name in sorted(self._used() & set(self.names)))
                written = _shapes_only(self.formula, shapes, self.result.shape, self.matrices, self.dim)
                return Filled("", "=", "", written) if written else None
            value, arithmetic = computed(self.formula, arrays, self.matrices, self.dim)
            shaped = _shaped(value, self.result.array, self.close)
            return None if shaped is None else self._written(value, arithmetic, shaped)
        except Prose:
            return None

    def _used(self) -> set[str]:
        parts = dict(self.formula.parts)
        used = names_in(self.formula.expression)
        return used.union(*(names_in(part) for part in parts.values())) - set(parts)

    def _written(self, value: np.ndarray, arithmetic: Arithmetic, shaped: str) -> Filled | None:
        shapes = _with_shapes(self.formula, arithmetic.values, self.result.shape, self.matrices)
        drawn = [arithmetic.values[name] for name in names_in(self.formula.expression)]
        columns = sum(np.shape(one)[-1] for one in [*drawn, value] if np.ndim(one))
        if columns * NARROWEST > WIDEST or not all(map(can_be_drawn, [*drawn, value, self.result.array])):
            return Filled("", "=", "", shapes) if shapes else None
        flat = max(map(np.ndim, [value, *drawn])) < 2
        for digits in DIGITS if flat else (3, *DIGITS):
            block = Writer(arithmetic, digits).of(self.formula.expression)
            if block.width > WIDEST:
                break
            relation = self._relation(arithmetic.values, value, digits)
            if relation:
                result = str(array_block(self.result.array, digits)) if shaped else ""
                used = names_in(self.formula.expression) - {"π"}
                given = "≈" if any(any_shortened(arithmetic.values[name], digits) for name in used) else "="
                return Filled(str(block), relation, str(array_block(value, digits)), shapes, shaped, result, given)
        return Filled("", "=", "", shapes) if shapes else None

    def _relation(self, values: Mapping[str, np.ndarray], value: np.ndarray, digits: int) -> str:
        """Compute the line as a reader would: with the digits that are written."""
        written = {name: rounded(values[name], digits) for name in names_in(self.formula.expression)}
        try:
            computed = np.asarray(Arithmetic(written, matrices=self.matrices, dim=self.dim).of(self.formula.expression))
        except Prose:
            return ""
        shown = rounded(value, digits)
        for close, relation in ((self.close / 20, "="), (WRITTEN, "≈")):
            if same(computed, value, close) and same(shown, value, close):
                return "≈" if any_shortened(value, digits) else relation
        return ""


def computed(
    formula: Formula, arrays: Mapping[str, np.ndarray], matrices: bool, dim: int | None
) -> tuple[np.ndarray, Arithmetic]:
    """Compute a formula, its named parts first; return its value and what computes with these values."""
    arithmetic = Arithmetic(dict(arrays), matrices=matrices, dim=dim)
    for name, part in formula.parts:
        arithmetic.values[name] = arithmetic.of(part)
    return np.asarray(arithmetic.of(formula.expression), float), arithmetic


@lru_cache(4096)  # a model repeats its blocks
def _shapes_only(
    formula: Formula,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    result: tuple[int, ...],
    matrices: bool,
    dim: int | None,
) -> str:
    """Write a formula with shapes if they fit: dims of any size stand for themselves as small numbers."""
    sizes = sorted({size for _, shape in (*shapes, ("", result)) for size in shape} - {1})
    small = {1: 1, **{size: number + 2 for number, size in enumerate(sizes)}}
    arrays = {name: np.ones([small[size] for size in shape]) for name, shape in shapes}
    value, _ = computed(formula, arrays, matrices, dim)
    if list(value.shape) != [small[size] for size in result]:
        return ""
    return _with_shapes(formula, {name: np.broadcast_to(0.0, shape) for name, shape in shapes}, result, matrices)


def _with_shapes(formula: Formula, values: Mapping[str, np.ndarray], result: tuple[int, ...], matrices: bool) -> str:
    """Write a formula with shapes, where one is of a matrix and the shapes say something."""
    used = names_in(formula.expression)
    if used == {"grad"} or all(np.ndim(values.get(name, 0.0)) < 2 for name in used):
        return ""
    parts = {name: np.broadcast_to(0.0, result) for name, _ in formula.parts}
    writer = ShapeWriter(Arithmetic({**parts, **values}, matrices=matrices))
    return f"{writer.of(formula.expression)} → {shape_text(result)}"


def _shaped(value: np.ndarray, result: np.ndarray, close: float) -> str | None:
    """Return what must happen to a value for it to be the gradient: "" for nothing, None if nothing helps."""
    if same(value, result, close):
        return ""
    if value.size < result.size and any(same(one, result, close) for one in _repeated(value, result.shape)):
        return "repeated"
    if value.size > result.size and same(_summed(value, result.shape), result, close):
        return "summed over what was broadcast"
    if value.size == result.size and value.ndim != result.ndim and same(value.reshape(result.shape), result, close):
        return "repeated" if value.ndim < result.ndim else "summed over what was broadcast"
    return None


def _repeated(value: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Give the ways to repeat an array over a larger shape: as it broadcasts, and along a dim that it lacks."""
    ways = [value, *(np.expand_dims(value, dim) for dim in range(value.ndim + 1))]
    for one in ways:
        try:
            yield np.broadcast_to(one, shape)
        except ValueError:
            continue


def _summed(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the dims that broadcasting from `shape` would have added or widened."""
    value = value.sum(tuple(range(value.ndim - len(shape))))
    widened = tuple(dim for dim, size in enumerate(shape) if size == 1 and value.shape[dim] != 1)
    return value.sum(widened, keepdims=True)
