"""One mistake that people make, as a program, and the finding that the doctor has to end in."""

import textwrap
from dataclasses import KW_ONLY, dataclass

from backlight.lens.doctor.rule_index import rules


@dataclass(frozen=True)
class Case:
    """A program that makes one mistake, or does something legal that is often misunderstood.

    Args:
        id: as in the catalogue of messages.
        title: what it does.
        source: it, indented, with `torch`, `nn`, `F`, `np` and `copy` at hand; by default the rule's wrong program.
        rule: the finding that it has to end in.
        line: at which line of the source, from 1.
        also: other findings that are right, too.
        only: the engines that it applies to.
        why: why not to the others.
        strict: whether it takes strict mode to see it.
    """

    id: str
    title: str
    source: str = ""
    _: KW_ONLY
    rule: str
    line: int
    also: tuple[str, ...] = ()
    only: tuple[str, ...] = ("torch", "backlight")
    why: str = ""
    strict: bool = False

    @property
    def program(self) -> str:
        """The source as a script has it."""
        return textwrap.dedent(self.source or rules()[self.rule].wrong).strip("\n") + "\n"
