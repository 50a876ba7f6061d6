"""All rules of the doctor, by id; what `--explain` and `--list` print of them."""

import difflib
import textwrap

from backlight.errors import InputError
from backlight.lens.doctor.rule import Rule
from backlight.lens.doctor.rules import (
    backward,
    functions,
    inplace,
    leaving,
    models,
    modes,
    numbers,
    reading,
    requires_grad,
    training,
)

FAMILIES = {
    "BL1": ("Reading .grad", reading.RULES),
    "BL2": ("Calling backward", backward.RULES),
    "BL3": ("In-place writes and shared memory", inplace.RULES),
    "BL4": ("requires_grad", requires_grad.RULES),
    "BL5": ("Leaving the engine", leaving.RULES),
    "BL6": ("autograd.grad and modes", modes.RULES),
    "BL7": ("Training loops and optimisers", (*training.RULES, *models.RULES)),
    "BL8": ("NaN, infinity, zero", (*numbers.RULES, *models.NUMBERS)),
    "BL9": ("Hooks, Functions, checkpoints", functions.RULES),
}
RULES: dict[str, Rule] = {found.id: found for _, family in FAMILIES.values() for found in family}
SLUGS: dict[str, Rule] = {found.slug: found for found in RULES.values()}
WIDTH = 100


def rule(name: str) -> Rule:
    """Return the rule of an id (`BL301`, in any case) or of a slug.

    Raises:
        ValueError: there is none of that name.
    """
    found = RULES.get(name.upper()) or SLUGS.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name, [*RULES, *SLUGS], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`backlight doctor --list` shows all"
        raise InputError(f"rule must be an id such as BL301 or a slug, got {name!r}: {hint}")
    return found


def explain(name: str) -> str:
    """Return all that is known of one rule: what happens and why, an example that is wrong and one that is right."""
    found = rule(name)
    parts = [f"{found.id} {found.slug} ({found.level})", found.title, _filled(found.explanation)]
    parts += [_said(found), _filled(f"Likely cause: {found.cause}"), _filled(f"Try: {found.cure}")]
    parts += [_code("Wrong:", found.wrong), _code("Right:", found.right)]
    parts.append(f"See: {found.reference}" if found.reference else "")
    return "\n\n".join(part for part in parts if part) + "\n"


def _said(found: Rule) -> str:
    if not found.says:
        return "PyTorch prints nothing."
    return _filled(f"PyTorch says: {found.says} …")


def _filled(text: str) -> str:
    return "\n\n".join(textwrap.fill(" ".join(part.split()), WIDTH) for part in text.split("\n\n"))


def _code(head: str, source: str) -> str:
    return f"{head}\n{textwrap.indent(textwrap.dedent(source).strip(), '    ')}" if source else ""
