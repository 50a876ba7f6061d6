"""The rules of the doctor, each one mistake with a stable id: read from `rules/*.toml`, a file a family.

NOTE [How a rule is written]
A rule's `program` is two programs written as a diff: `-` lines belong to the one that makes the mistake, `+` lines to
the one that does not, all others to both. `says` is how PyTorch's message begins, as `--explain` shows it; `message` is
the regular expression that recognises the message, needed only where it is not that text itself.
"""

import difflib
import re
import textwrap
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, Unpack

from backlight.errors import InputError
from backlight.lens.finding import ERROR, Finding
from backlight.lens.records.nodes import Place

WIDTH = 100
VERBATIM = ("message", "program")


class Words(TypedDict, total=False):
    """What a finding may say besides its evidence, in place of its rule's own words; see `Finding`."""

    title: str | None
    cause: str | None
    cure: str | None
    corrected: str | None
    corrected_at: Place | None
    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One mistake (see NOTE [How a rule is written]).

    Args:
        id: stable, `BL301`; the first digit is the family's.
        slug: a stable name, `in-place-on-leaf`.
        title: what is wrong, where nothing more special is known.
        level: ERROR, WARNING or NOTE, as in `Finding`.
        explanation: what happens and why the engine does it that way.
        cause: what most likely led to it.
        cure: what to try.
        program: one that makes the mistake and one that does not, as a diff.
        says: how PyTorch's message begins; "" where it prints nothing.
        message: a regular expression for the message; "" for the text of `says`.
        reference: where PyTorch's documentation speaks of it: page and section.
    """

    id: str
    slug: str
    title: str
    cause: str
    cure: str
    level: str = ERROR
    explanation: str
    program: str
    says: str = ""
    message: str = ""
    reference: str = ""

    @property
    def wrong(self) -> str:
        """The program that makes the mistake."""
        return "\n".join(line[2:] for line in self.program.splitlines() if not line.startswith("+"))

    @property
    def right(self) -> str:
        """The same program without the mistake."""
        return "\n".join(line[2:] for line in self.program.splitlines() if not line.startswith("-"))

    def found(self, place: Place | None, *evidence: str, **words: Unpack[Words]) -> Finding:
        """Return a finding of this rule; of the words, those that are not given, or empty, are the rule's own."""
        given = {key: value for key, value in words.items() if value}
        if "corrected" not in given:
            given.pop("corrected_at", None)
        own = {"rule": self.id, "slug": self.slug, "title": self.title, "level": self.level}
        own |= {"cause": self.cause, "cure": self.cure}
        return Finding(**own | given, evidence=evidence, place=place)


@cache
def families() -> dict[str, tuple[str, tuple[Rule, ...]]]:
    """Return the rules by family: {"BL1": ("Reading .grad", its rules)}."""
    found = {}
    for file in sorted((Path(__file__).parent / "rules").glob("*.toml")):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        name = table.pop("family")
        found[file.name[:3].upper()] = name, tuple(_read(id, fields) for id, fields in table.items())
    return found


def _read(id: str, fields: dict[str, str]) -> Rule:
    """Return a rule; its texts are filled paragraphs, whose line breaks mean nothing."""
    return Rule(id=id, **{key: text if key in VERBATIM else " ".join(text.split()) for key, text in fields.items()})


@cache
def rules() -> dict[str, Rule]:
    """Return all rules by id."""
    return {found.id: found for _, family in families().values() for found in family}


@cache
def rule(name: str) -> Rule:
    """Return the rule of an id (`BL301`, in any case) or of a slug.

    Raises:
        ValueError: there is none of that name.
    """
    slugs = {found.slug: found for found in rules().values()}
    found = rules().get(name.upper()) or slugs.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name, [*rules(), *slugs], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`backlight doctor --list` shows all"
        raise InputError(f"rule must be an id such as BL301 or a slug, got {name!r}: {hint}")
    return found


@cache
def messages(*, errors: bool) -> dict[str, str]:
    """Return {pattern: rule id} of the errors, or of the warnings, that engines give.

    The first of several rules that have one message stands for all: what was watched tells them apart.
    """
    spoken = [one for one in rules().values() if one.says and (one.level == ERROR) == errors]
    first: dict[str, Rule] = {}
    for one in spoken:
        first.setdefault(one.says, one)
    owners = [one for one in spoken if one.message or first[one.says] is one]
    return {one.message or re.escape(one.says.rstrip(".")): one.id for one in owners}


def rule_of_message(text: str, *, error: bool) -> str | None:
    """Return the id of the rule that an error's or a warning's text means; None for one that no rule knows."""
    return next((id for pattern, id in messages(errors=error).items() if re.search(pattern, text)), None)


def explain(name: str) -> str:
    """Return all that is known of one rule: what happens and why, an example that is wrong and one that is right."""
    found = rule(name)
    parts = [
        f"{found.id} {found.slug} ({found.level})",
        found.title,
        textwrap.fill(found.explanation, WIDTH),
        textwrap.fill(f"PyTorch says: {found.says} …", WIDTH) if found.says else "PyTorch prints nothing.",
        textwrap.fill(f"Likely cause: {found.cause}", WIDTH),
        textwrap.fill(f"Try: {found.cure}", WIDTH),
        f"Wrong:\n{textwrap.indent(found.wrong, '    ')}",
        f"Right:\n{textwrap.indent(found.right, '    ')}",
        *([f"See: {found.reference}"] if found.reference else []),
    ]
    return "\n\n".join(parts) + "\n"
