"""A finding of the doctor: its evidence, its likely cause and what to try."""

from dataclasses import dataclass, field

from backlight.lens.records.nodes import Place

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Finding:
    """A mistake that the doctor found.

    Args:
        rule: the rule's stable id, `BL301`.
        slug: the rule's stable name, `forgotten-zero-grad`.
        title: one line that says what is wrong, with the names in the program.
        level: ERROR (the program stops or trains wrongly), WARNING (very likely unintended), NOTE (shown only on
            request: legal, but often misunderstood).
        evidence: recorded values and lines, one sentence each.
        cause: the likely cause.
        cure: what to try.
        place: the source line.
        corrected: the corrected line, if it is known.
        corrected_at: the line that `corrected` replaces, if it is not `place`.
        path: the relevant path through the graph, from the loss, if there is one: `loss ← MulBackward0 ← …`.
        times: how often it occurred; the evidence is of the first time.
        verified: whether the corrected program was run and had no findings.
    """

    rule: str
    slug: str
    title: str
    level: str
    cause: str
    cure: str
    evidence: tuple[str, ...] = ()
    place: Place | None = None
    corrected: str | None = None
    corrected_at: Place | None = None
    path: tuple[str, ...] = ()
    times: int = field(default=1, compare=False)
    verified: bool = field(default=False, compare=False)
