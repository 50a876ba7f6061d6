"""A recorded pass, step by step: what each op computes, then in backward which node runs and its outgoing gradients.

NOTE [A replay]
`record.replay()` turns a record into steps in the order in which things happened: a step for each op of the forward,
and for each backward its beginning, a step for each node that fired, and its end. A step is made of parts, each a kind,
a heading and lines of text; the terminal and the page show the same ones. Formulas are filled in only where that gives
the recorded gradient (NOTE [No wrong equation] in lens/replays/filled.py).
"""

import dataclasses
import json
from dataclasses import dataclass

FORWARD, BEGIN, FIRE, GRAD, END = "forward", "begin", "fire", "grad", "end"
INDENT = 12
NOTHING = "nothing was recorded: no op with a gradient ran in the block"


@dataclass(frozen=True)
class Detail:
    """One part of the description of a step.

    Args:
        kind: "compute", "why", "gradient", "hook", "formula", "grad", "memory" or "note".
        heading: one or two words: "why now", "→ c".
        lines: lines of text; matrices are aligned in a monospaced font.
    """

    kind: str
    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class OutgoingGradient:
    """A gradient that a node passes to an input.

    Args:
        start, end: the nodes; `output`: the output of `end` that it is for.
        name: the input's name in the formula.
        formula: as declared; "" if unknown.
        gradient: the gradient as short text; "none" without one.
        total: the sum that has arrived there so far.
        waiting: the number of users of that input that have not run yet.
    """

    start: int
    end: int
    output: int
    name: str
    formula: str
    gradient: str
    total: str
    waiting: int


@dataclass(frozen=True)
class Moment:
    """One step of a replay.

    Args:
        number: from 0.
        kind: FORWARD, BEGIN (of a backward), FIRE (a node runs), GRAD (a leaf's `.grad`), END.
        title: one line.
        parts: the description of the step.
        node: the node; None at the beginning and the end of a backward.
        backward: the backward it belongs to; None for the forward.
        value: the result of a forward step as short text.
        gradient: the incoming gradient as short text; None without one.
        grad: `.grad` of the node after the step as short text; None if nothing was written to it.
        flows: its outgoing gradients.
        held: bytes saved for backward after the step; `freed`: bytes that the step freed.
        place: the user's line, "file.py:12  e = c * d".
    """

    number: int
    kind: str
    title: str
    parts: tuple[Detail, ...]
    node: int | None = None
    backward: int | None = None
    value: str | None = None
    gradient: str | None = None
    grad: str | None = None
    flows: tuple[OutgoingGradient, ...] = ()
    held: int = 0
    freed: int = 0
    place: str = ""

    def text(self) -> str:
        """Return the step as plain text."""
        lines = [self.title]
        for part in self.parts:
            for number, line in enumerate(part.lines):
                lines.append(f"  {'' if number else part.heading:<{INDENT - 2}} {line}".rstrip())
        if self.place:
            lines.append(f"  {'line':<{INDENT - 2}} {self.place}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Replay:
    """The steps of a record (see NOTE [A replay])."""

    title: str
    engine: str
    steps: tuple[Moment, ...]

    def text(self) -> str:
        """Return all steps as plain text."""
        if not self.steps:
            return NOTHING
        return "\n\n".join(f"{step.number + 1}. {step.text()}" for step in self.steps)

    def as_dict(self) -> dict:
        """Return it as dicts and lists; what has no value is None."""
        return dataclasses.asdict(self)

    def to_json(self, **options) -> str:
        """Return it as JSON."""
        return json.dumps(self.as_dict(), allow_nan=False, **options)

    def firing(self, backward: int = 0) -> list[int]:
        """Return the nodes that one backward fired, in order."""
        return [step.node for step in self.steps if step.backward == backward and step.kind in (FIRE, GRAD)]
