"""A rule: one mistake that the doctor knows, with a stable id."""

from dataclasses import dataclass

from backlight.lens.finding import ERROR, Finding
from backlight.lens.records.nodes import Place


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One mistake.

    Args:
        id: stable, `BL301`; the first digit is the family's.
        slug: a stable name, `in-place-on-leaf`.
        title: what is wrong, where nothing more special is known.
        level: ERROR, WARNING or NOTE, as in `Finding`.
        explanation: what happens and why the engine does it that way, a paragraph or two.
        cause: what most likely led to it.
        cure: what to try.
        wrong, right: a program that makes the mistake, and the same without it.
        says: how PyTorch's message begins; "" where it prints nothing.
        reference: where PyTorch's documentation speaks of it: page and section.
    """

    id: str
    slug: str
    title: str
    cause: str
    cure: str
    level: str = ERROR
    explanation: str = ""
    wrong: str = ""
    right: str = ""
    says: str = ""
    reference: str = ""

    def found(
        self,
        *,
        place: Place | None = None,
        evidence: tuple[str, ...] = (),
        title: str | None = None,
        corrected: str | None = None,
        corrected_at: Place | None = None,
        path: tuple[str, ...] = (),
        cause: str | None = None,
        cure: str | None = None,
        level: str | None = None,
    ) -> Finding:
        """Return a finding of this rule; what is not given is the rule's own."""
        return Finding(
            rule=self.id,
            slug=self.slug,
            title=title or self.title,
            level=level or self.level,
            cause=cause or self.cause,
            cure=cure or self.cure,
            evidence=tuple(evidence),
            place=place,
            corrected=corrected,
            corrected_at=corrected_at if corrected else None,
            path=tuple(path),
        )
