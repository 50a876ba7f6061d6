"""Translates one-expression forwards and derivatives into programs that the compiled core runs (csrc/programs.h).

What is elementwise and made of arithmetic, comparisons and the functions in CALLS has a program; options stand at their
defaults, and conditions on them are decided here. Anything else raises Untranslatable, and stays Python's.
"""

import ast
from dataclasses import dataclass

from backlight.ops.inline import expression_of

MOST_CONSTANTS, MOST_SCRATCH, MOST_STEPS, MOST_SOURCES = 8, 8, 24, 8

BINARY = {ast.Add: "ADD", ast.Sub: "SUB", ast.Mult: "MUL", ast.Div: "DIV", ast.BitAnd: "AND", ast.BitOr: "OR"}
COMPARISONS = {ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE", ast.Eq: "EQ", ast.NotEq: "NE"}
TRUTHS = {"LT", "LE", "GT", "GE", "EQ", "NE", "AND", "OR", "NOT"}
CALLS = {  # name of a function of xp, of ops or of a kernel: (instruction, how many arguments)
    "exp": ("EXP", 1),
    "tanh": ("TANH", 1),
    "log": ("LOG", 1),
    "sqrt": ("SQRT", 1),
    "abs": ("ABS", 1),
    "absolute": ("ABS", 1),
    "negative": ("NEG", 1),
    "maximum": ("MAXIMUM", 2),
    "minimum": ("MINIMUM", 2),
    "multiply": ("MUL", 2),
    "kept": ("KEPT", 2),
    "scale": ("MUL", 2),
    "where": ("WHERE", 3),
    "chosen": ("WHERE", 3),
}


class Untranslatable(Exception):
    """Raised for an expression that has no program."""


@dataclass(frozen=True)
class Value:
    """What a part of an expression is: a number known now, or a register; `truth` if it holds 1 or 0 for a bool."""

    register: int = -1
    number: float | int | bool | None = None
    truth: bool = False


@dataclass(frozen=True)
class Program:
    """A program as the core is told it, and the names of its sources in order; `passes` names what it only hands on."""

    sources: tuple[str, ...]
    steps: bytes
    constants: tuple[float, ...]
    instructions: tuple[str, ...]

    def told(self) -> tuple:
        """Return what the core reads."""
        return len(self.sources), self.steps, self.constants


def program_of(function, arguments: dict[str, object], instructions: tuple[str, ...]) -> Program:
    """Translate a function.

    Args:
        arguments: for each parameter the name of the array that it is, or the number that it has as an option.
        instructions: the core's names of what it can do, in order.

    Raises:
        Untranslatable: it is no single expression, or one that has no program.
    """
    found = expression_of(function, {name: name for name in arguments}, "f")
    if found is None:
        raise Untranslatable(function.__name__)
    tree = ast.parse(found[0], mode="eval").body
    return _Translator(arguments, found[1], instructions).program(tree)


class _Translator:
    """Emits instructions for one expression. Registers get their final numbers once all of them are known."""

    def __init__(self, arguments, names, instructions):
        self.arguments = arguments
        self.names = names
        self.instructions = instructions
        self.sources: list[str] = []
        self.constants: list[float] = []
        self.steps: list[tuple] = []

    def program(self, tree) -> Program:
        result = self.value(tree)
        if result.register < 0 or result.truth:
            raise Untranslatable("a number, or truth values")
        if not self.steps or self.steps[-1][1] != result:
            self.emit("COPY", result)
        if (
            max(len(self.sources) - MOST_SOURCES, len(self.constants) - MOST_CONSTANTS, len(self.steps) - MOST_STEPS)
            > 0
        ):
            raise Untranslatable("too long")
        return Program(
            tuple(self.sources), self._packed(), tuple(self.constants), tuple(step[0] for step in self.steps)
        )

    def _packed(self) -> bytes:
        """Number the registers: sources, constants, scratch; a scratch register is free after its last use."""
        last_use = {value: at for at, step in enumerate(self.steps) for value in step[2]}
        free, place, packed = list(range(MOST_SCRATCH)), {}, bytearray()
        base = len(self.sources) + len(self.constants)

        def register(value):
            if value in place:
                return base + place[value]
            return value.register if value.number is None else len(self.sources) + value.register

        for at, (name, result, read) in enumerate(self.steps):
            codes = [register(value) for value in read]
            for value in set(read):
                if value in place and last_use[value] == at:
                    free.append(place.pop(value))
            if not free:
                raise Untranslatable("too many values at once")
            place[result] = free.pop(0)
            codes = (codes + [0, 0, 0])[:3]
            packed += bytes([self.instructions.index(name), register(result), *codes])
        return bytes(packed)

    def emit(self, name: str, *values: Value) -> Value:
        result = Value(1000 + len(self.steps), truth=name in TRUTHS)
        self.steps.append((name, result, [self.stored(value) for value in values]))
        return result

    def stored(self, value: Value) -> Value:
        """Return a value that has a register: a number becomes a constant."""
        if value.number is None:
            return value
        number = float(value.number)
        if number not in self.constants:
            self.constants.append(number)
        return Value(self.constants.index(number), number)

    def value(self, node) -> Value:
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Untranslatable(type(node).__name__)
        return handler(node)

    def _constant(self, node) -> Value:
        return _number(node.value)

    def _name(self, node) -> Value:
        if node.id in self.names:
            return _number(self.names[node.id])
        if node.id not in self.arguments:
            raise Untranslatable(node.id)
        found = self.arguments[node.id]
        if not isinstance(found, str):
            return _number(found)
        if found not in self.sources:
            self.sources.append(found)
        return Value(self.sources.index(found))

    def _attribute(self, node) -> Value:
        """`x.dtype.itemsize` is asked for to tell half types apart, and programs never run on these."""
        if ast.unparse(node).endswith(".dtype.itemsize"):
            return Value(number=4)
        raise Untranslatable(node.attr)

    def _binop(self, node) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        name = BINARY.get(type(node.op))
        if name is None:
            raise Untranslatable(ast.unparse(node))
        if left.number is not None and right.number is not None:
            return _number(eval(f"left {_SIGNS[name]} right", {"left": left.number, "right": right.number}))
        if (name in ("AND", "OR")) != (left.truth and right.truth) or left.truth != right.truth:
            raise Untranslatable("truth values in arithmetic")
        return self.emit(name, left, right)

    def _unaryop(self, node) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            if value.truth:
                raise Untranslatable("truth values in arithmetic")
            return Value(number=-value.number) if value.number is not None else self.emit("NEG", value)
        if isinstance(node.op, ast.Invert) and value.truth:
            return self.emit("NOT", value)
        raise Untranslatable(ast.unparse(node))

    def _compare(self, node) -> Value:
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARISONS:
            raise Untranslatable(ast.unparse(node))
        name, left, right = COMPARISONS[type(node.ops[0])], self.value(node.left), self.value(node.comparators[0])
        if left.number is not None and right.number is not None:
            return Value(number=eval(f"left {_SIGNS[name]} right", {"left": left.number, "right": right.number}))
        if left.truth or right.truth:
            raise Untranslatable("truth values compared")
        return self.emit(name, left, right)

    def _ifexp(self, node) -> Value:
        """Options are at their defaults, so that a condition on them is decided."""
        test = self._decided(node.test)
        return self.value(node.body if test else node.orelse)

    def _decided(self, node) -> bool:
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            option = self.arguments.get(node.left.id)
            right = node.comparators[0]
            if isinstance(node.ops[0], ast.Eq) and isinstance(right, ast.Constant) and node.left.id in self.arguments:
                if not isinstance(option, str):
                    return option == right.value
        value = self.value(node)
        if value.number is None:
            raise Untranslatable(ast.unparse(node))
        return bool(value.number)

    def _call(self, node) -> Value:
        name = self._called(node.func)
        if name == "like":  # a number in the dtype of an array
            return self.value(node.args[1])
        if name.endswith("dtype.type"):
            return self.value(node.args[0])
        if name not in CALLS or len(node.args) != CALLS[name][1] or node.keywords:
            raise Untranslatable(name)
        values = [self.value(argument) for argument in node.args]
        if name in ("kept", "where", "chosen") and not values[1 if name == "kept" else 0].truth:
            raise Untranslatable("a choice by what is no truth value")
        if all(value.number is not None for value in values):
            raise Untranslatable("a function of numbers")
        return self.emit(CALLS[name][0], *values)

    def _called(self, function) -> str:
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id in ("xp", "ops") or function.value.id in self.names:
                return function.attr
        if isinstance(function, ast.Attribute):
            return ast.unparse(function)
        if isinstance(function, ast.Name) and function.id in self.names:
            return getattr(self.names[function.id], "__name__", function.id)
        raise Untranslatable(ast.unparse(function))


_SIGNS = {
    "ADD": "+",
    "SUB": "-",
    "MUL": "*",
    "DIV": "/",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "EQ": "==",
    "NE": "!=",
}


def _number(value) -> Value:
    if isinstance(value, (bool, int, float)):
        return Value(number=value)
    raise Untranslatable(f"{value!r} is no number")
