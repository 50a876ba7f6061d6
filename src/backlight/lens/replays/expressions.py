"""The expressions of formulas: computed with NumPy, and written out with values, or with shapes, in place of names."""

import math

import numpy as np

from backlight.kernels.state_blocks import silent_floats
from backlight.lens.replays.formulas import Called, Chosen, Compared, Expression, Joined, Name, Negated, Number, Prose
from backlight.lens.replays.wording import Block, array_block, bracketed, shape_text

_erf = np.vectorize(math.erf, otypes=[float])
NUMPYS = ("abs", "cos", "cosh", "exp", "floor", "log", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")
FUNCTIONS = {
    **{name: getattr(np, name) for name in NUMPYS},
    "ln": np.log,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "Φ": lambda x: (1 + _erf(x / math.sqrt(2))) / 2,
    "φ": lambda x: np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),
}
JOINING = {
    "+": np.add,
    "−": np.subtract,
    "·": np.multiply,
    "/": np.divide,
    "^": lambda left, right: np.power(np.asarray(left, float), right),
}
COMPARING = {"<": np.less, ">": np.greater, "≤": np.less_equal, "≥": np.greater_equal, "=": np.equal, "≠": np.not_equal}


class Arithmetic:
    """Computes expressions for one set of values.

    Args:
        values: what the names stand for.
        matrices: whether `·` between two arrays is the product of matrices.
        dim: along which dim Σ goes, keeping it; None for all of them at once.
    """

    def __init__(self, values: dict[str, np.ndarray], *, matrices: bool = False, dim: int | None = None):
        self.values, self.matrices, self.dim = {"π": np.float64(np.pi), **values}, matrices, dim

    def of(self, expression: Expression) -> np.ndarray:
        """Compute an expression.

        Raises:
            Prose: a name in it stands for nothing known, or shapes do not fit: so it cannot be meant this way.
        """
        try:
            with silent_floats():
                return self._of(expression)
        except ValueError as problem:
            raise Prose(str(problem)) from problem

    def _of(self, expression: Expression) -> np.ndarray:
        match expression:
            case Number(text):
                return np.float64(0.5 if text == "½" else float(text))
            case Name(text):
                if text not in self.values:
                    raise Prose(f"{text} is not known")
                return self.values[text]
            case Negated(inner):
                return -self._of(inner)
            case Joined(mark, left, right):
                return self._joined(mark, self._of(left), self._of(right))
            case Called(function, parts):
                return self._called(function, [self._of(part) for part in parts])
            case Chosen(inner, where, other):
                return np.where(self._holds(where), self._of(inner), 0.0 if other is None else self._of(other))
        raise Prose(str(expression))

    def _joined(self, mark: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        if mark == "·" and self.is_matrix_product(left, right):
            column = np.ndim(left) == 1 and np.ndim(right) == 2 and len(right) == 1
            return (left[:, None] if column else left) @ right
        return JOINING[mark](left, right)

    def is_matrix_product(self, left: np.ndarray, right: np.ndarray) -> bool:
        """Return whether `·` between these is the product of matrices."""
        return self.matrices and np.ndim(left) > 0 and np.ndim(right) > 0

    def _holds(self, where: Compared) -> np.ndarray:
        parts = [self._of(part) for part in where.parts]
        held = [COMPARING[mark](left, right) for mark, left, right in zip(where.marks, parts, parts[1:])]
        return np.logical_and.reduce(held)

    def _called(self, function: str, parts: list) -> np.ndarray:
        if function == "sum":
            return np.sum(parts[0]) if self.dim is None else np.sum(parts[0], axis=self.dim, keepdims=True)
        if function == "sum_rows":
            return _rows(parts[0]).sum(0)
        if function == "rows":
            return _rows(parts[0])
        if function == "transpose":  # a vector becomes a row, so that `grad · vecᵀ` is a matrix
            return np.atleast_2d(parts[0]) if np.ndim(parts[0]) < 2 else np.swapaxes(parts[0], -1, -2)
        if function not in FUNCTIONS or len(parts) != 1:
            raise Prose(f"{function} is not known")
        return np.asarray(FUNCTIONS[function](np.asarray(parts[0], float)))


def _rows(array: np.ndarray) -> np.ndarray:
    if np.ndim(array) < 2:
        return np.atleast_2d(array)
    return np.reshape(array, (-1, np.shape(array)[-1]))


BINDING = {"+": 1, "−": 1, "·": 2, "/": 2, "^": 4}
UNARY = 2  # how strongly −x and Σ x hold their x
BRACKETS = {"abs": "||", "floor": "⌊⌋"}
NAMED = {"sum": "Σ ", "sum_rows": "Σ ", "sqrt": "√", "rows": ""}


class Writer:
    """Writes an expression with values in place of names."""

    def __init__(self, arithmetic: Arithmetic, digits: int = 4):
        self.arithmetic, self.digits = arithmetic, digits

    def value(self, name: str) -> Block:
        """Write what a name stands for."""
        return Block(("π",)) if name == "π" else array_block(self.arithmetic.values[name], self.digits)

    def is_product(self, left: Expression, right: Expression) -> bool:
        """Return whether `·` between these is the product of matrices."""
        return self.arithmetic.is_matrix_product(self.arithmetic.of(left), self.arithmetic.of(right))

    def of(self, expression: Expression, binding: int = 0) -> Block:
        """Write an expression; in brackets if it holds its parts together less than what stands around it."""
        match expression:
            case Number(text):
                return Block((text,))
            case Name(text):
                block = self.value(text)
                return bracketed(block) if binding > 3 and block.lines[0].startswith("−") else block
            case Negated(inner):
                inside = self.of(inner, UNARY + 1 if binding > 1 else UNARY)
                block = "−" + (bracketed(inside) if inside.lines[0].lstrip().startswith("−") else inside)
                return bracketed(block) if binding > 1 else block
            case Joined(mark, left, right):
                return self._joined(mark, left, right, binding)
            case Called(function, parts):
                return self._called(function, parts, binding)
            case Chosen(inner, where, other):
                ending = ", else 0" if other is None else ", else " + self.of(other)
                return self.of(inner) + " where " + self._compared(where) + ending
        raise Prose(str(expression))

    def _joined(self, mark: str, left: Expression, right: Expression, binding: int) -> Block:
        own = BINDING[mark]
        if mark == "^":
            block = self.of(left, own + 1) + self._exponent(right)
        else:
            written = "@" if mark == "·" and self.is_product(left, right) else mark
            block = self.of(left, own) + f" {written} " + self.of(right, own + (mark in "−/"))
        return bracketed(block) if own < binding else block

    def _exponent(self, right: Expression) -> Block:
        if right in (Number("2"), Number("3")):
            return Block(("²" if right.text == "2" else "³",))
        return "^" + (self.of(right) if isinstance(right, (Number, Name)) else bracketed(self.of(right)))

    def _called(self, function: str, parts: tuple, binding: int) -> Block:
        if function == "transpose":
            return self.of(parts[0], 5) + "ᵀ"
        if function in BRACKETS:
            left, right = BRACKETS[function]
            return left + self.of(parts[0]) + right
        if function in NAMED:
            block = NAMED[function] + self.of(parts[0], UNARY if function != "sqrt" else 5)
            return bracketed(block) if function.startswith("sum") and binding > UNARY else block
        return f"{function}(" + self.of(parts[0]) + ")"

    def _compared(self, where: Compared) -> Block:
        block = self.of(where.parts[0])
        for mark, part in zip(where.marks, where.parts[1:]):
            block = block + f" {mark} " + self.of(part)
        return block


class ShapeWriter(Writer):
    """Writes an expression with shapes in place of the names of arrays."""

    def value(self, name: str) -> Block:
        """Write the shape of what a name stands for; a single number by its name."""
        value = self.arithmetic.values[name]
        return Block((name if np.ndim(value) == 0 else f"{name} {shape_text(np.shape(value))}",))


def names_in(expression: Expression | Compared | None) -> set[str]:
    """Return the names in an expression."""
    match expression:
        case Name(text):
            return {text}
        case Number() | None:
            return set()
        case Negated(inner):
            return names_in(inner)
        case Joined(_, left, right):
            return names_in(left) | names_in(right)
        case Called(_, parts) | Compared(_, parts):
            return set().union(*map(names_in, parts))
        case Chosen(inner, where, other):
            return names_in(inner) | names_in(where) | names_in(other)
    raise Prose(str(expression))
