"""The tables of a study: which columns they have, what each means, and how its numbers are written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from backlight.explain.faithfulness.table import LinkRow, Row
from backlight.report.intervals import Mean
from backlight.report.text import MINUS, number

ARROWS = {1: " ↑", -1: " ↓", 0: ""}


@dataclass(frozen=True)
class Column:
    """One measure as a column."""

    name: str  # the measure's key in data
    heading: str
    meaning: str  # one sentence
    better: int = 0  # 1 if more is better, −1 if less is, 0 if neither
    digits: int = 2  # how many digits after the point
    interval: bool = True  # whether the interval is shown

    @property
    def title(self) -> str:
        """The heading, with an arrow in the better direction."""
        return self.heading + ARROWS[self.better]

    def of(self, row: Row | LinkRow) -> Mean | None:
        """Return the measure of a row; None where it was not measured."""
        return row.behind if self.name == "behind" else row.means.get(self.name)

    def written(self, mean: Mean) -> str:
        """Return a mean, and its interval where it is shown."""
        if not self.interval:
            return f"{mean.value:.{self.digits}g}"
        value, low, high = (number(one, f".{self.digits}f") for one in (mean.value, mean.low, mean.high))
        return f"{value} ({low} to {high})"

    def brief(self, mean: Mean) -> str:
        """Return a mean over half the width of its interval, for narrow places."""
        if not self.interval:
            return self.written(mean).replace("-", MINUS)
        half, spec = (mean.high - mean.low) / 2, f".{self.digits}f"
        return f"{number(mean.value, spec)}\n±{number(half, spec)}"


@dataclass(frozen=True)
class Panel:
    """Columns of one table."""

    name: str
    title: str
    columns: tuple[Column, ...]


PANELS = (
    Panel(
        "removal",
        "What the score loses when an explanation's words are masked from attention",
        (
            Column(
                "comprehensiveness",
                "comp.",
                "comprehensiveness: score lost without the strongest 10 to 50 % of the words",
                1,
            ),
            Column("behind", "behind the best", "how much less than the best method's, on the same pairs"),
            Column("sufficiency", "suff.", "sufficiency: score lost when only the strongest 10 to 50 % are kept", -1),
            Column("ranks_lost", "ranks lost", "ranks lost among the candidates without the strongest 20 %", 1),
            Column("ndcg_lost", "nDCG lost", "nDCG@10 lost by that", 1, 3),
        ),
    ),
    Panel(
        "closer",
        "A closer look at some of the pairs",
        (
            Column("comprehensiveness_deleted", "comp., deleted", "comprehensiveness, with the words deleted", 1),
            Column("sufficiency_deleted", "suff., deleted", "sufficiency, with the words deleted", -1),
            Column("comprehensiveness_by_magnitude", "comp. by |value|", "comprehensiveness, in order of |value|", 1),
            Column("deletion_auc", "deletion AUC", "mean score as words are removed, strongest first", -1),
            Column("insertion_auc", "insertion AUC", "mean score as words are added, strongest first", 1),
            Column("naopc", "NAOPC", "area over the curve between the worst order's (0) and the best order's (1)", 1),
        ),
    ),
    Panel(
        "checks",
        "Checks and cost",
        (
            Column("shortcut", "shortcut", "share of an injected shortcut's two words among the two strongest", 1),
            Column(
                "half_random", "half random", "rank correlation with the model's upper half random; should be near 0"
            ),
            Column("all_random", "all random", "rank correlation with all layers random; should be near 0"),
            Column("batch_effect", "batch effect", "largest relative change of a value in a batch", -1, 1, False),
            Column("gap", "gap", "by how much the values miss the sum that the method guarantees", -1, 2, False),
            Column("passes", "passes", "passes through the model per pair", -1, 3, False),
            Column("seconds", "CPU seconds", "CPU seconds per pair, one pair at a time", -1, 2, False),
        ),
    ),
)

LINKS = Panel(
    "links",
    "Do interactions find the words that people linked?",
    (
        Column("auc", "AUC", "how often a linked pair of words has a larger value than another pair", 1),
        Column("auc_unlike", "AUC, unlike", "the same for pairs of two different words", 1),
        Column("precision", "precision", "share of links among the k strongest pairs, for k links", 1),
        Column("seconds", "CPU seconds", "CPU seconds per question and sentence", -1, 2, False),
    ),
)


def best_in(column: Column, rows: Sequence[Row] | Sequence[LinkRow]) -> float | None:
    """Return the best mean of a column; None where nothing was measured or no side is better.

    Comprehensiveness is compared among methods measured on the same pairs.
    """
    if column.name == "comprehensiveness":
        rows = [row for row in rows if row.behind is None]
    found = [mean.value for row in rows if (mean := column.of(row)) is not None]
    choose: Callable = max if column.better > 0 else min
    return choose(found) if found and column.better else None


def cells_of(columns: Sequence[Column], rows: Sequence[Row] | Sequence[LinkRow]) -> Iterator[tuple]:
    """Give each row with its cells: the column, the mean or None, and whether that is the best of its column."""
    bests = [best_in(column, rows) for column in columns]
    for row in rows:
        means = [column.of(row) for column in columns]
        marked = (
            mean is not None and one.interval and mean.value == best for one, mean, best in zip(columns, means, bests)
        )
        yield row, list(zip(columns, means, marked))


def measured(panel: Panel, rows: Sequence[Row] | Sequence[LinkRow]) -> list[Column]:
    """Return the columns of a panel that hold anything."""
    return [column for column in panel.columns if any(column.of(row) is not None for row in rows)]


def tables_of(rows: Sequence[Row], links: Sequence[LinkRow]) -> list[tuple[Panel, list[Column], Sequence]]:
    """Return the panels that hold anything, each with its columns and rows."""
    panels = [(panel, measured(panel, rows), rows) for panel in PANELS]
    return [one for one in [*panels, (LINKS, measured(LINKS, links), links)] if one[1]]


def markdown(rows: Sequence[Row], links: Sequence[LinkRow] = ()) -> str:
    """Return the tables in Markdown under their titles."""
    tables = markdown_tables(rows, links)
    return "\n".join(f"### {panel.title}\n\n{tables[panel.name]}" for panel, _, _ in tables_of(rows, links))


def markdown_tables(rows: Sequence[Row], links: Sequence[LinkRow] = ()) -> dict[str, str]:
    """Return the tables in Markdown by name, each with what its columns mean, the best of each column in bold."""
    found = {}
    for panel, columns, lines in tables_of(rows, links):
        heads = ["method", *(["pairs"] if panel is PANELS[0] else []), *(column.title for column in columns)]
        written = [heads, ["---"] * len(heads)]
        for row, cells in cells_of(columns, lines):
            texts = (("" if mean is None else column.written(mean), best) for column, mean, best in cells)
            pairs = [str(row.pairs)] if panel is PANELS[0] else []
            written.append([row.title, *pairs, *(f"**{text}**" if best else text for text, best in texts)])
        meanings = "\n".join(f"- **{_escaped(column.heading)}**: {column.meaning}" for column in columns)
        table = "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in written)
        found[panel.name] = f"{table}\n\n{meanings}\n"
    return found


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
