"""Translate one-expression forwards and derivatives into programs for the compiled core (csrc/kernels/programs.h).

Elementwise expressions of arithmetic, comparisons and the functions in CALLS have a program; options have their
defaults, and conditions on them are decided here. Anything else raises Untranslatable, and runs in Python.
"""

import ast
import operator
from itertools import pairwise
from typing import NamedTuple

from backlight.codegen.declaration import TABLE
from backlight.codegen.inlining import definition_of, is_docstring

MOST_CONSTANTS, MOST_SCRATCH, MOST_STEPS, MOST_SOURCES = 8, 8, 24, 8

BINARY = {ast.Add: "ADD", ast.Sub: "SUB", ast.Mult: "MUL", ast.Div: "DIV", ast.BitAnd: "AND", ast.BitOr: "OR"}
COMPARISONS = {ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE", ast.Eq: "EQ", ast.NotEq: "NE", ast.Is: "IS"}
FOLDED = {  # constant folding
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "DIV": operator.truediv,
    "AND": operator.and_,
    "OR": operator.or_,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
    "IS": operator.is_,
}
TRUTHS = {"LT", "LE", "GT", "GE", "EQ", "NE", "AND", "OR", "NOT"}
CALLS = {  # name of a function of xp, of ops or of a kernel: (instruction, how many arguments)
    "exp": ("EXP", 1),
    "tanh": ("TANH", 1),
    "log": ("LOG", 1),
    "expm1": ("EXPM1", 1),
    "log1p": ("LOG1P", 1),
    "sigmoid": ("SIGMOID", 1),
    "sqrt": ("SQRT", 1),
    "abs": ("ABS", 1),
    "absolute": ("ABS", 1),
    "negative": ("NEG", 1),
    "maximum": ("MAXIMUM", 2),
    "minimum": ("MINIMUM", 2),
    "multiply": ("MUL", 2),
    "kept": ("KEPT", 2),
    "scale": ("MUL", 2),
    "tanh_gradient": ("TANH_GRADIENT", 2),
    "where": ("WHERE", 3),
    "chosen": ("WHERE", 3),
}


class Untranslatable(Exception):
    """Raised for an expression that has no program."""


class Value(NamedTuple):
    """The value of a subexpression: a constant, or a register; `truth` if it holds 1 or 0 for a bool."""

    register: int = -1
    number: float | int | bool | str | None = None
    truth: bool = False


class Program(NamedTuple):
    """A program in the core's encoding, with the names of its sources, in order, and of its instructions."""

    sources: tuple[str, ...]
    steps: bytes
    constants: tuple[float, ...]
    instructions: tuple[str, ...]

    def encoded(self) -> tuple:
        """Return the tuple that the core reads."""
        return len(self.sources), self.steps, self.constants


def program_of(function, arguments: dict[str, object], instructions: tuple[str, ...]) -> Program:
    """Translate a function of arrays.

    Args:
        arguments: for each parameter the name of its array, or the value of the option.
        instructions: the core's instructions by name, in order.

    Raises:
        Untranslatable: it is no expression, or has no program.
    """
    translator = _Translator(instructions)
    given = {
        name: translator.source(value) if isinstance(value, str) else Value(number=value)
        for name, value in arguments.items()
    }
    return translator.program(translator.body(function, given))


class _Translator:
    """Emits instructions for one function. Registers get their final numbers once all of them are known."""

    def __init__(self, instructions):
        self.instructions = instructions
        self.sources: list[str] = []
        self.constants: list[float] = []
        self.steps: list[tuple] = []
        self.known: dict[str, Value] = {}  # names inside the function that is being translated
        self.globals: dict = {}

    def source(self, name: str) -> Value:
        """Return the register of an array."""
        if name not in self.sources:
            self.sources.append(name)
        return Value(self.sources.index(name))

    def body(self, function, given: dict[str, Value]) -> Value:
        """Translate a function's body, assignments and one return, with these values for its parameters."""
        definition = definition_of(function)
        if definition is None:
            raise Untranslatable(f"{function!r} has no source")
        outer = self.known, self.globals
        self.known, self.globals = dict(given), function.__globals__
        try:
            for statement in definition.body:
                if is_docstring(statement):
                    continue
                if isinstance(statement, ast.Return):
                    return self.value(statement.value)
                if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                    raise Untranslatable(type(statement).__name__)
                target, value = statement.targets[0], statement.value
                targets, values = ([target], [value]) if isinstance(target, ast.Name) else (target.elts, value.elts)
                found = [self.value(one) for one in values]
                self.known.update({name.id: one for name, one in zip(targets, found)})
        finally:
            self.known, self.globals = outer
        raise Untranslatable(f"{definition.name} is no expression")

    def program(self, result: Value) -> Program:
        """Return what was emitted; its last instruction gives the result."""
        if result.register < 0 or result.truth:
            raise Untranslatable("a number, or truth values")
        if not self.steps or self.steps[-1][1] != result:
            self.emit("COPY", result)
        read = {value.register for step in self.steps for value in step[2] if value.number is None}
        kept = [number for number in range(len(self.sources)) if number in read]
        moved = {Value(old): Value(new) for new, old in enumerate(kept)}
        self.sources = [self.sources[number] for number in kept]
        self.steps = [
            (name, result, [moved.get(value, value) for value in values]) for name, result, values in self.steps
        ]
        if len(self.sources) > MOST_SOURCES or len(self.constants) > MOST_CONSTANTS or len(self.steps) > MOST_STEPS:
            raise Untranslatable("too long")
        names = tuple(step[0] for step in self.steps)
        return Program(tuple(self.sources), self._packed(), tuple(self.constants), names)

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
        if node.id in self.known:
            return self.known[node.id]
        return _number(self.globals.get(node.id))

    def _attribute(self, node) -> Value:
        """Read a dtype: rules test it for half types only, on which programs never run."""
        if node.attr == "itemsize":
            return Value(number=4)
        if node.attr == "dtype":
            return Value(number="float")
        raise Untranslatable(node.attr)

    def _binop(self, node) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        name = BINARY.get(type(node.op))
        if name is None:
            raise Untranslatable(ast.unparse(node))
        if left.number is not None and right.number is not None:
            return _number(FOLDED[name](left.number, right.number))
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
        if any(type(one) not in COMPARISONS for one in node.ops):
            raise Untranslatable(ast.unparse(node))
        values = [self.value(part) for part in (node.left, *node.comparators)]
        if all(value.register < 0 for value in values):
            pairs = zip(node.ops, pairwise(value.number for value in values))
            return Value(number=all(FOLDED[COMPARISONS[type(one)]](*pair) for one, pair in pairs))
        if len(node.ops) != 1 or type(node.ops[0]) is ast.Is or values[0].truth or values[1].truth:
            raise Untranslatable(ast.unparse(node))
        return self.emit(COMPARISONS[type(node.ops[0])], *values)

    def _ifexp(self, node) -> Value:
        """Options are at their defaults, so that a condition on them is decided."""
        test = self.value(node.test)
        if test.register >= 0:
            raise Untranslatable(ast.unparse(node))
        return self.value(node.body if test.number else node.orelse)

    def _call(self, node) -> Value:
        if node.keywords:
            raise Untranslatable("keywords")
        if ast.unparse(node.func).endswith(".dtype.type"):  # a number in the dtype of an array
            return self.value(node.args[0])
        name, function = self._called(node.func)
        if name == "like":  # likewise
            return self.value(node.args[1])
        if name in ("widened", "rounded"):  # programs never run on half types
            return self.value(node.args[0])
        values = [self.value(argument) for argument in node.args]
        if name in CALLS:
            return self._emitted(*CALLS[name], values)
        if function is None:
            raise Untranslatable(name)
        code = getattr(function, "__code__", None)
        names = () if code is None else code.co_varnames[: code.co_argcount]
        names = names[1:] if names[:1] == ("xp",) else names
        if len(names) != len(values):
            raise Untranslatable(f"{name} takes {names}")
        return self.body(function, dict(zip(names, values)))

    def _emitted(self, instruction: str, count: int, values: list[Value]) -> Value:
        choice = {"KEPT": 1, "WHERE": 0}.get(instruction)
        if len(values) != count or all(value.register < 0 for value in values):
            raise Untranslatable(f"{instruction} of {values}")
        if any(value.truth != (place == choice) for place, value in enumerate(values)):
            raise Untranslatable("truth values in arithmetic")
        return self.emit(instruction, *values)

    def _called(self, called) -> tuple[str, object]:
        """Return the name of a function and, where it is one of backlight's, the readable function itself."""
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            home = called.value.id
            if home == "ops":
                return called.attr, TABLE[called.attr].forward if called.attr in TABLE else None
            if home in ("xp", "np"):
                return called.attr, None
            return called.attr, _reference(getattr(self.globals.get(home), called.attr, None))
        if isinstance(called, ast.Name):
            function = self.globals.get(called.id)
            return getattr(function, "__name__", called.id), _reference(function)
        raise Untranslatable(ast.unparse(called))


def _reference(function):
    """Return a kernel's NumPy reference, or the function itself."""
    return getattr(function, "__wrapped__", function)


def _number(value) -> Value:
    if isinstance(value, (bool, int, float, str)):
        return Value(number=value)
    raise Untranslatable(f"{value!r} is no number")
