"""A finding of the doctor: its evidence, its likely cause and what to try."""

from dataclasses import dataclass, field

from backlight.lens.records.nodes import Place

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Finding:
    """One mistake that was found.

    Args:
        rule: the stable id, `BL301`.
        slug: its stable name, `forgotten-zero-grad`.
        title: one line that says what is wrong here, with the real names.
        level: ERROR (the program stops or learns something wrong), WARNING (very likely not meant), NOTE (shown only
            on request: legal, and often misunderstood).
        evidence: what was seen, values and lines: one sentence each.
        cause: what most likely led to it.
        cure: what to try.
        place: the line to look at.
        corrected: that line as it should be, if one can write it down.
        corrected_at: the line that `corrected` is for, if it is not `place`.
        path: the way through the graph that matters, from the loss, if there is one: `loss ← MulBackward0 ← …`.
        times: how often it was seen; the evidence is of the first time.
        verified: whether the corrected program was run, and had no findings.
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
