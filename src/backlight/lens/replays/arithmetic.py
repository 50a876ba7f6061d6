"""What the expressions of formulas come to: computed with NumPy, for the lens to check what it is about to show."""

import math

import numpy as np

from backlight.kernels.state_blocks import silent_floats
from backlight.lens.replays.formulas import Called, Chosen, Compared, Expression, Joined, Name, Negated, Number, Prose

_erf = np.vectorize(math.erf, otypes=[float])
FUNCTIONS = {
    "abs": np.abs,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log": np.log,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
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
COMPARING = {
    "<": np.less,
    ">": np.greater,
    "≤": np.less_equal,
    "≥": np.greater_equal,
    "=": np.equal,
    "≠": np.not_equal,
}


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
                return self.joining(mark, self._of(left), self._of(right))
            case Called(function, parts):
                return self._called(function, [self._of(part) for part in parts])
            case Chosen(inner, where, other):
                return np.where(self._holds(where), self._of(inner), 0.0 if other is None else self._of(other))
        raise Prose(str(expression))

    def joining(self, mark: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Join two values."""
        if mark == "·" and self.is_matrix_product(left, right):
            column = np.ndim(left) == 1 and np.ndim(right) == 2 and len(right) == 1
            return (left[:, None] if column else left) @ right
        return JOINING[mark](left, right)

    def is_matrix_product(self, left: np.ndarray, right: np.ndarray) -> bool:
        """Return whether `·` between these is the product of matrices."""
        return self.matrices and np.ndim(left) > 0 and np.ndim(right) > 0

    def _holds(self, where: Compared) -> np.ndarray:
        parts = [self._of(part) for part in where.parts]
        return np.logical_and.reduce(
            [COMPARING[mark](left, right) for mark, left, right in zip(where.marks, parts, parts[1:])]
        )

    def _called(self, function: str, parts: list) -> np.ndarray:
        if function == "sum":
            return np.sum(parts[0]) if self.dim is None else np.sum(parts[0], axis=self.dim, keepdims=True)
        if function == "sum_rows":
            return _rows(parts[0]).sum(0)
        if function == "rows":
            return _rows(parts[0])
        if function == "transpose":
            return _transposed(parts[0])
        if function not in FUNCTIONS or len(parts) != 1:
            raise Prose(f"{function} is not known")
        return np.asarray(FUNCTIONS[function](np.asarray(parts[0], float)))


def _rows(array: np.ndarray) -> np.ndarray:
    if np.ndim(array) < 2:
        return np.atleast_2d(array)
    return np.reshape(array, (-1, np.shape(array)[-1]))


def _transposed(array: np.ndarray) -> np.ndarray:
    """Transpose a matrix; a vector becomes a row, so that `grad · vecᵀ` is a matrix."""
    return np.atleast_2d(array) if np.ndim(array) < 2 else np.swapaxes(array, -1, -2)
