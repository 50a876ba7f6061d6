"""The formulas of derivatives, read: `grad · (1 − tanh(input)²)` becomes an expression that numbers can be put into.

NOTE [Notation of formulas]
Each derivative is declared with a formula (`codegen/declaration.py`), written for people: `·` and `/`, `−`, `²`, `x^(n
− 1)`, `√x`, `Σ x`, `xᵀ`, `|x|`, `f(x)`, `a where x > 0, else b`, and `…, s = sigmoid(input)` for a part that has a
name. What follows after a comma is often prose: `grad, summed over dims`. `read` takes the expression and leaves the
prose in `Formula.rest`; a formula that is prose from its beginning (`grad at the largest elements, 0 elsewhere`) has
none.
"""

import re
from dataclasses import dataclass

from backlight.errors import BacklightError

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|½)|(?P<name>π|[A-Za-z_ΦφΨψ][A-Za-z_0-9]*)|(?P<mark>[·/+−^(),|√Σ∏≤≥<>=≠ᵀ²³⌊⌋±;]))"
)
POWERS = {"²": 2, "³": 3}
COMPARISONS = frozenset("<>≤≥=≠")
PRODUCTS = frozenset("·/")
SUMS = frozenset("+−")
CLOSING = {"|": ("|", "abs"), "⌊": ("⌋", "floor")}


class Prose(BacklightError):
    """A formula is not an expression."""


@dataclass(frozen=True)
class Number:
    """A number, as it is written."""

    text: str


@dataclass(frozen=True)
class Name:
    """A value: `grad`, `other`."""

    text: str


@dataclass(frozen=True)
class Negated:
    """−x."""

    inner: "Expression"


@dataclass(frozen=True)
class Joined:
    """Two parts and what stands between them: `·`, `/`, `+`, `−`, `^`."""

    mark: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Called:
    """f(x); also √, |x|, ⌊x⌋, Σ x and xᵀ, by names of their own: sqrt, abs, floor, sum, transpose, rows."""

    function: str
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Compared:
    """x < y, or x < y < z."""

    marks: tuple[str, ...]
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Chosen:
    """x where a condition holds, else y."""

    inner: "Expression"
    where: Compared
    other: "Expression | None"


Expression = Number | Name | Negated | Joined | Called | Chosen


@dataclass(frozen=True)
class Formula:
    """A formula that was read (see NOTE [Notation of formulas]).

    Args:
        text: as it was declared.
        expression: what can be computed.
        parts: expressions that have names in it, `s = sigmoid(input)`.
        rest: the prose after it.
    """

    text: str
    expression: Expression
    parts: tuple[tuple[str, Expression], ...] = ()
    rest: str = ""


def read(text: str) -> Formula:
    """Read a formula.

    Raises:
        Prose: it is not an expression.
    """
    first, *others = segments(text)
    reader = Reader(first)
    chosen, parts, rest = [reader.alternative()], [], ""
    reader.must_end()
    for number, segment in enumerate(others):
        try:
            found = _further(segment, chosen)
        except Prose:
            rest = ", ".join(others[number:])
            break
        (parts if isinstance(found, tuple) and isinstance(found[0], str) else chosen).append(found)
    return Formula(text, _choice(chosen), tuple(parts), rest)


def _further(segment: str, chosen: list):
    """Read what follows a comma: a part with a name, or another alternative of a choice."""
    reader = Reader(segment)
    if len(reader.tokens) > 2 and reader.tokens[1] == "=" and reader.tokens[0].isidentifier():
        name = reader.take()
        reader.take()
        inner = reader.sum()
        reader.must_end()
        return name, inner
    where = chosen[-1][1]
    if where is None:
        raise Prose(segment)
    if reader.next == "else":
        reader.take()
        found = reader.sum(), None
    else:
        found = reader.alternative(where)
    reader.must_end()
    return found


def _choice(chosen: list) -> Expression:
    """Nest alternatives: the first that holds counts."""
    result = None
    for inner, where in reversed(chosen):
        result = inner if where is None else Chosen(inner, where, result)
    return result


def segments(text: str) -> list[str]:
    """Split a formula at commas and semicolons that stand outside of brackets.

    >>> segments("grad · f(a, b), 0 where a is 0; b")
    ['grad · f(a, b)', '0 where a is 0', 'b']
    """
    found, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character in ",;" and not depth:
            found.append("")
        else:
            found[-1] += character
    return [segment.strip() for segment in found]


class Reader:
    """A recursive reader of one expression: each method takes what it can from the front."""

    def __init__(self, text: str):
        self.tokens: list[str] = []
        self.at = 0
        self.open = 0  # how many |x| are open: within one a bar ends it
        place = 0
        while text[place:].strip():
            found = TOKEN.match(text, place)
            if found is None:
                raise Prose(text)
            self.tokens.append(found[0].strip())
            place = found.end()

    @property
    def next(self) -> str:
        """The token in front, "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        """Take the token in front, which must be the one wanted."""
        token = self.next
        if not token or (wanted and token != wanted):
            raise Prose(f"{token!r} for {wanted!r}")
        self.at += 1
        return token

    def takes(self, *tokens: str) -> bool:
        """Take these tokens if they are all in front."""
        if self.tokens[self.at : self.at + len(tokens)] != list(tokens):
            return False
        self.at += len(tokens)
        return True

    def must_end(self) -> None:
        """Raise if something is left."""
        if self.next:
            raise Prose(" ".join(self.tokens))

    def alternative(self, before: Compared | None = None) -> tuple[Expression, Compared | None]:
        """Read `x` or `x where a < b`; `where equal` means the two sides of the condition before."""
        inner = self.sum()
        if not self.takes("where"):
            return inner, None
        if before is not None and self.takes("equal"):
            return inner, Compared(("=",), before.parts)
        parts, marks = [self.sum()], []
        while self.next in COMPARISONS:
            marks.append(self.take())
            parts.append(self.sum())
        if not marks:
            raise Prose(self.next)
        return inner, Compared(tuple(marks), tuple(parts))

    def sum(self) -> Expression:
        """Read terms with + and − between them."""
        result = self.term()
        while self.next in SUMS:
            result = Joined(self.take(), result, self.term())
        return result

    def term(self) -> Expression:
        """Read factors with · and / between them; a minus in front, and Σ, reach over all of them."""
        if self.takes("−"):
            return Negated(self.term())
        if self.takes("Σ"):
            inner = self.term()
            return Called("sum_rows" if self.takes("over", "rows") else "sum", (inner,))
        result = self.power()
        while self.next in PRODUCTS or self._adjacent(result):
            mark = self.take() if self.next in PRODUCTS else "·"
            if self.next == "Σ":
                return Joined(mark, result, self.term())
            result = Joined(mark, result, Negated(self.power()) if self.takes("−") else self.power())
        return result

    def _adjacent(self, left: Expression) -> bool:
        """Return whether a product is written without a dot: `2π`, `2 s`."""
        return isinstance(left, Number) and self.next.isidentifier() and self.next not in ("where", "over")

    def power(self) -> Expression:
        """Read x, x², x^y, xᵀ."""
        result = self.atom()
        while self.next and self.next in "²³ᵀ^":
            mark = self.take()
            if mark == "ᵀ":
                result = Called("transpose", (result,))
            else:
                result = Joined("^", result, self.exponent() if mark == "^" else Number(str(POWERS[mark])))
        return result

    def exponent(self) -> Expression:
        """Read what follows ^: one atom, a minus in front allowed."""
        return Negated(self.atom()) if self.takes("−") else self.atom()

    def atom(self) -> Expression:
        """Read a number, a name, f(…), (…), |…|, ⌊…⌋, √…, `rows of …`."""
        token = self.take()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token in CLOSING:
            closing, function = CLOSING[token]
            inner = self.sum()
            self.take(closing)
            return Called(function, (inner,))
        if token == "√":
            return Called("sqrt", (self.power(),))
        if token == "½" or token[0].isdigit():
            return Number(token)
        return self._named(token)

    def _named(self, token: str) -> Expression:
        if not token.isidentifier() or token in ("where", "else", "over", "of", "equal"):
            raise Prose(token)
        if token == "rows" and self.takes("of"):
            return Called("rows", (self.power(),))
        if token in ("ln", "log") and self.next != "(":
            return Called("ln", (self.power(),))
        if not self.takes("("):
            return Name(token)
        parts = [self.sum()]
        while self.takes(","):
            parts.append(self.sum())
        self.take(")")
        return Called(token, tuple(parts))
