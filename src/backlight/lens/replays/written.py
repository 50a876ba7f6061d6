"""Expressions of formulas, written out: with values, or with shapes, in place of names."""

import numpy as np

from backlight.lens.replays.arithmetic import Arithmetic
from backlight.lens.replays.blocks import Block, array_block, bracketed, shape_text
from backlight.lens.replays.formulas import Called, Chosen, Compared, Expression, Joined, Name, Negated, Number, Prose

BINDING = {"+": 1, "−": 1, "·": 2, "/": 2, "^": 4}
UNARY = 2  # how strongly −x and Σ x hold their x
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
        if function == "abs":
            return "|" + self.of(parts[0]) + "|"
        if function == "floor":
            return "⌊" + self.of(parts[0]) + "⌋"
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


def names_in(expression) -> set[str]:
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
