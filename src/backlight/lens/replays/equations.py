"""A node's equations, forward and backward, from what a record knows of it.

NOTE [Worked out]
What PyTorch's own backward computes on its way, in a backward that is recorded itself, no watcher sees: of x³ the
derivative is 3 · x², and only the product is passed on. Where a result is one of a few plain ops and its inputs are
known, small ones, the replay works it out, and says so.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np

from backlight.lens.records.nodes import Edge, Node, Step, Summary
from backlight.lens.replays.expressions import Arithmetic, Writer
from backlight.lens.replays.filled import Filled, Given, filled
from backlight.lens.replays.formulas import Expression, Formula, Prose, read
from backlight.lens.replays.wording import Block, brief, brief_array, drawn, equals, given_of, is_written_out, word_of

# PyTorch's names of what a node saved, as formulas have them
SAVED_AS = {"self": ("input",), "result": ("out", "output", "result"), "result1": ("out",)}
MATRICES = frozenset({"Mm", "Mv", "Bmm", "Addmm", "Addbmm", "Baddbmm", "Addmv", "Addr", "Linear", "Matmul", "Ger"})
LINE = 66  # characters of a line with an equation, about
SUMS = frozenset({"Add", "Sub", "Rsub"})
DEFAULTS = {"alpha": 1, "beta": 1, "value": 1}
FORWARDS = {
    "Abs": ("|input|",),
    "Add": ("input + other", "input + alpha · other"),
    "Addmm": ("input · weightᵀ + bias", "input + mat1 · mat2", "beta · input + alpha · mat1 · mat2"),
    "Bmm": ("input · mat2",),
    "Cos": ("cos(input)",),
    "Div": ("input / other",),
    "Exp": ("exp(input)",),
    "Linear": ("input · weightᵀ + bias", "input · weightᵀ"),
    "Log": ("log(input)",),
    "Mean": ("(Σ input) / n",),
    "Mm": ("input · mat2",),
    "Mul": ("input · other",),
    "Mv": ("input · vec",),
    "Neg": ("−input",),
    "Pow": ("input^exponent",),
    "Reciprocal": ("1 / input",),
    "Relu": ("input where input > 0, else 0",),
    "Rsub": ("other − input",),
    "Sigmoid": ("sigmoid(input)",),
    "Sin": ("sin(input)",),
    "Sqrt": ("√input",),
    "Sub": ("input − other", "input − alpha · other"),
    "Sum": ("Σ input",),
    "T": ("inputᵀ",),
    "Tanh": ("tanh(input)",),
}


class Named(Writer):
    """Writes an expression with the user's names."""

    def __init__(self, words: Mapping[str, str]):
        super().__init__(Arithmetic({}))
        self.words = words

    def value(self, name: str) -> Block:
        """Write the user's name."""
        return Block((self.words.get(name, name),))

    def is_product(self, left: Expression, right: Expression) -> bool:
        """Write `·` as the formula does: shapes are not looked at."""
        return False


@cache
def formula(text: str) -> Formula | None:
    """Read a formula; None where it is prose."""
    try:
        return read(text)
    except Prose:
        return None


class Equations:
    """Writes the equations of the nodes of a record."""

    def __init__(self, nodes: list[Node]):
        self.nodes = nodes
        self.worked_out: dict[int, Summary] = {}
        for node in filter(is_unknown, nodes):
            found = worked_out(node, _stem(node), self._known(node)[0])
            if found is not None:
                self.worked_out[node.id] = found

    def outputs(self, node: Node) -> list[Summary]:
        """Return what a node computed: as recorded, or worked out (see NOTE [Worked out])."""
        found = self.worked_out.get(node.id)
        return node.outputs if found is None else [found]

    def forward(self, node: Node) -> list[str]:
        """Return what an op computed: `e = c · d = 5 · 6 = 30`."""
        lines = self._forward(node)
        return [*lines, "(worked out: its result was not recorded)"] if node.id in self.worked_out else lines

    def _forward(self, node: Node) -> list[str]:
        (values, words), outputs = self._known(node), self.outputs(node)
        head = f"{node.name} = " if node.name else ""
        for text in FORWARDS.get(_stem(node), ()) if len(outputs) == 1 else ():
            found = _filled(node, formula(text), values, outputs[0])
            if found is not None:
                numbers = {name: brief_array(given.array) for name, given in values.items() if given.is_number}
                named = _named(formula(text), {**numbers, **words})
                return _lines(f"{head}{named}", found) + _result(found, outputs[0])
        inputs = [word_of(self.nodes[edge.to]) if edge else "…" for edge in node.edges]
        call = head + (_unfilled(node, values, words) or f"{node.label}({', '.join(inputs)})")
        known = [output for output in outputs if output.values is not None or output.norm is not None]
        if not known:
            return [f"{call}; its values were not recorded"]
        sign = max(map(equals, known))  # "≈" if one of several results is shortened
        return _side_by_side(f"{call} {sign} ", [line for output in known for line in drawn(output)])

    def derivative(self, node: Node, step: Step, edge: Edge, gradient: Summary | None) -> list[str]:
        """Return how a node makes the gradient of one input: `grad · other = grad · d = 1 · 6 = 6`."""
        if gradient is None:
            return [f"{edge.formula}: no gradient" if edge.formula else "no gradient"]
        values, words = self._known(node)
        grads = [one for one in step.incoming if one is not None]
        parsed = formula(edge.formula) if edge.formula else None
        if len(grads) == 1 and parsed is not None:
            values = {**values, "grad": given_of(grads[0])}
            found = _filled(node, parsed, values, gradient)
            if found is not None:
                general, named = _named(parsed, {}), _named(parsed, words)
                rule = edge.formula if found.shaped or not parsed.rest else general
                return _lines(rule, found, "" if named == general else named) + _result(found, gradient)
        arrow = f"{brief(grads[0])} → " if len(grads) == 1 and len(drawn(grads[0])) == 1 else ""
        return _side_by_side(f"{edge.formula}: {arrow}" if edge.formula else arrow, drawn(gradient))

    def _known(self, node: Node) -> tuple[dict[str, Given], dict[str, str]]:
        """Return what the names in a node's formulas stand for, and what the user calls it."""
        values = {name: Given((), np.float64(value)) for name, value in {**DEFAULTS, **node.options}.items()}
        words = {}
        if len(node.outputs) == 1:
            for name in SAVED_AS["result"]:
                values[name], words[name] = given_of(node.outputs[0]), word_of(node)
        for edge in filter(None, node.edges):
            target = self.nodes[edge.to]
            outputs = self.outputs(target)
            if edge.name and edge.output < len(outputs):
                values[edge.name] = given_of(outputs[edge.output])
                words[edge.name] = word_of(target)
        for kept in node.saved:
            for name in SAVED_AS.get(kept.name, (kept.name,)):
                values[name] = given_of(kept.summary)
                if kept.of is not None:
                    words[name] = word_of(self.nodes[kept.of])
        return values, words


def _stem(node: Node) -> str:
    """Return `Mul` of `MulBackward0`."""
    return node.type.partition("Backward")[0]


def _filled(node: Node, parsed: Formula, values: Mapping[str, Given], result: Summary) -> Filled | None:
    return filled(parsed, values, given_of(result), result.dtype, matrices=_stem(node) in MATRICES)


def _named(parsed: Formula, words: Mapping[str, str]) -> str:
    return str(Named(words).of(parsed.expression))


def _unfilled(node: Node, values: Mapping[str, Given], words: Mapping[str, str]) -> str | None:
    """Return a sum or difference with `…` for an operand that was not recorded: `… − d` of `10 - d`.

    `−(d)` would say another thing. None for other ops, and where both operands are known.
    """
    stem, plain = _stem(node), node.options.get("alpha", 1) == 1
    if stem not in SUMS or {"input", "other"} <= words.keys() or (stem == "Rsub" and not plain):
        return None
    texts = FORWARDS[stem]
    numbers = {"alpha": brief_array(values["alpha"].array), "input": "…", "other": "…"}
    return _named(formula(texts[0 if plain else -1]), {**numbers, **words})


def _result(found: Filled, result: Summary) -> list[str]:
    """Return the result beneath an equation of shapes."""
    if found.numbers or not (result.values or result.norm is not None):
        return []
    return _side_by_side(f"{equals(result)} ", drawn(result))


def _lines(head: str, found: Filled, named: str = "") -> list[str]:
    """Put an equation behind what it is of; beneath it where one line would be too long, or holds matrices."""
    lines = found.lines()
    if len(lines) > 1 or not found.numbers:
        return [f"{head} = {named}" if named else head, *lines]
    if head == lines[0]:
        return lines
    signs = [" = "] if named else []
    joint = ": " if found.shaped and found.numbers == found.value else f" {found.given} "
    terms, signs = [head, *([named] if named else []), lines[0]], [*signs, joint]
    if sum(map(len, terms)) <= LINE:
        return ["".join(sign + term for sign, term in zip(["", *signs], terms))]
    return [head, *((f"{sign.strip()} " if sign != ": " else "") + term for sign, term in zip(signs, terms[1:]))]


def _side_by_side(head: str, lines: list[str]) -> list[str]:
    """Put lines behind a beginning."""
    return [f"{head if not number else ' ' * len(head)}{line}" for number, line in enumerate(lines)]


PLAIN = ("Add", "Cos", "Div", "Exp", "Mul", "Neg", "Pow", "Reciprocal", "Sin", "Sqrt", "Sub", "Tanh")
EXPRESSIONS = {stem: read(FORWARDS[stem][-1]).expression for stem in PLAIN}
FLOATS = ("float32", "float64")


def is_unknown(node: Node) -> bool:
    """Return whether nothing but the shape was recorded of a node's one result."""
    return len(node.outputs) == 1 and node.outputs[0].values is None and node.outputs[0].nans is None


def worked_out(node: Node, stem: str, values: Mapping[str, Given]) -> Summary | None:
    """Return what a node computed (see NOTE [Worked out]); None where that is unknown."""
    shown = node.outputs[0]
    if stem not in EXPRESSIONS or shown.dtype not in FLOATS:
        return None
    known = {name: given.array for name, given in values.items() if given.array is not None}
    try:
        found = np.asarray(Arithmetic(known).of(EXPRESSIONS[stem]), shown.dtype)
    except Prose:
        return None
    if found.shape != tuple(shown.shape) or not np.isfinite(found).all():
        return None
    made = Summary(shown.shape, shown.dtype, values=found.tolist())
    return made if is_written_out(made) else None
