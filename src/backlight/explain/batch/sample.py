"""Which rows the page shows: all if they are few, else the best, the worst, the largest errors and some of the rest."""

from collections.abc import Iterator

from backlight.explain.batch.parts import Parts
from backlight.explain.batch.tally import SPREAD, Tally

SHOWN = 2000
OF_EACH = 250  # of the best, the worst and each kind of error
ERRORS = 20  # that the summary tells


def chosen_rows(tally: Tally) -> dict[int, list[str]]:
    """Return the numbers of the rows to show, each with why: "best", "worst", "false positive", "false negative", …"""
    if tally.one("SELECT count(*) FROM scored") <= SHOWN:
        return {row: [] for (row,) in tally.each("SELECT row FROM scored")}
    found: dict[int, list[str]] = {}
    for why, question in REASONS.items():
        for (row,) in tally.each(f"SELECT row FROM scored {question} LIMIT ?", OF_EACH):
            found.setdefault(row, []).append(why)
    for (row,) in tally.each(f"SELECT row FROM scored ORDER BY {SPREAD} LIMIT ?", SHOWN):
        if len(found) == SHOWN:
            break
        found.setdefault(row, []).append("sampled")
    return found


REASONS = {
    "best": "ORDER BY score DESC, row",
    "worst": "ORDER BY score, row",
    "false positive": "WHERE label <= 0 ORDER BY score DESC, row",
    "false negative": "WHERE label > 0 ORDER BY score, row",
}


def errors(tally: Tally) -> dict[str, list[int]]:
    """Return the rows without relevance that score highest, and the relevant ones that score lowest."""
    return {
        why: [row for (row,) in tally.each(f"SELECT row FROM scored {REASONS[why]} LIMIT ?", ERRORS)]
        for why in ("false positive", "false negative")
    }


def records_with(tally: Tally, parts: Parts, rows: set[int]) -> Iterator[dict]:
    """Give the records of some rows, in the order of the input, from the parts that hold them."""
    wanted: dict[int, set[int]] = {}
    for row, part in tally.each("SELECT row, part FROM scored"):
        if row in rows:
            wanted.setdefault(part, set()).add(row)
    for part in sorted(wanted):
        for record in parts.part(part):
            if record["row"] in wanted[part]:
                yield record
