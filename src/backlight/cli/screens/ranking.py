"""A ranking in the terminal: each document's words lit from behind by their importance."""

from collections.abc import Mapping, Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backlight.cli.screens.terminal import Screen, digits_for, ending, number, plain, strongest, unread
from backlight.explain.attribution import Attribution, Ranked, Ranking, Window
from backlight.explain.methods.interactions import Interactions
from backlight.explain.methods.registry import METHODS, Method
from backlight.explain.notebook import baseline_text

INDENT = 4  # columns that a text stands in from the edge
BAR = 24  # most columns of a score's bar


def show(ranking: Ranking, screen: Screen) -> None:
    """Print a ranking: the query and the method, each explained document, then the others."""
    console = screen.console
    console.print(grid(_heading(ranking, screen)))
    explained = [ranked for ranked in ranking.documents if ranked.attribution is not None]
    for ranked in explained:
        console.print()
        show_title(ranked, ranking, screen)
        console.print(Padding(_explained(ranked.attribution, screen), (0, 0, 0, INDENT)))
    rest = [ranked for ranked in ranking.documents if ranked.attribution is None]
    if rest:
        console.print("\nranked, not explained" if explained else "")
    for ranked in rest:
        show_title(ranked, ranking, screen)
        if ranked.truncation:
            console.print(Padding(unread(ranked.truncation), (0, 0, 0, INDENT)))


def grid(lines: Mapping[str, Text]) -> Table:
    """Return names, each with what is said of it."""
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(Text(name, "dim"), value)
    return table


def _heading(ranking: Ranking, screen: Screen) -> dict[str, Text]:
    """Name the query, the model, the method, and what the shades mean."""
    made = [ranked.attribution for ranked in ranking.documents if ranked.attribution is not None]
    shown = f"{ranking.score_name}{', → as its owners show it' if shows_both(ranking) else ''}"
    lines = {
        "query": screen.text(ranking.mean_query(), made[0].signed) if made else Text(plain(ranking.query)),
        "model": Text(f"{ranking.model}, reads {ranking.max_tokens} tokens of a text"),
        "score": Text(shown),
    }
    if made:
        lines["method"] = Text(account(made))
        lines["shade"] = screen.legend(made[0].signed)
    return lines


def method_parts(first: Attribution | Interactions, methods: Mapping[str, Method], *others: Attribution) -> list[str]:
    """Describe a method: its name, what its values say, its baseline, and the largest gap of all explanations by it."""
    made = (first, *others)
    parts = [first.method, methods[first.method].summary if first.method in methods else first.meaning]
    parts.append(baseline_text(first))
    worst = max((abs(one.gap) for one in made if one.gap is not None), default=None)
    if worst is not None:
        parts.append(f"misses its sum by {worst:.2g}" + (" at most" if others else ""))
    return parts


def account(made: Sequence[Attribution]) -> str:
    """Describe how explanations were made, and their quality: the method, its baseline, its gap, its cost."""
    first, parts = made[0], method_parts(made[0], METHODS, *made[1:])
    cost = max(one.passes for one in made)
    parts.append(f"{cost:,.0f} pass{'' if cost == 1 else 'es'} a document")
    described = ", ".join(parts)
    parts += [said for name, value in first.settings.items() if (said := f"{name} {value}") not in described]
    if any(one.fallback for one in made):
        parts.append("ANOTHER METHOD STOOD IN")
    return ", ".join(parts)


def shows_both(ranking: Ranking) -> bool:
    """Return whether activated scores differ from the raw scores."""
    return any(abs(ranked.activated - ranked.score) > 1e-6 for ranked in ranking.documents)


def show_title(ranked: Ranked, ranking: Ranking, screen: Screen) -> None:
    """Print a document's rank, name and scores in one line, and which window of it was read."""
    width = screen.console.width
    columns = min(BAR, width // 4)
    score = number(ranked.score) + (f" → {number(ranked.activated)}" if shows_both(ranking) else "")
    room = max(len(score), 6)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=3, justify="right")
    table.add_column(ratio=1, no_wrap=True)
    table.add_column(width=room, justify="right", no_wrap=True)
    table.add_column(width=columns)
    filled = round(columns * _share(ranked, ranking))
    bar = Text("━" * filled) + Text("─" * (columns - filled), "dim")
    name = Text(ending(plain(ranked.name), width - columns - room - 6), "bold")
    table.add_row(Text(str(ranked.rank), "bold"), name, Text(score), bar)
    screen.console.print(table)
    if ranked.window is not None:
        screen.console.print(Padding(Text(window_of(ranked.window), "dim"), (0, 0, 0, INDENT)))


def _share(ranked: Ranked, ranking: Ranking) -> float:
    """Return how long a score's bar is: cosines from 0 to 1, logits from the lowest here to the highest."""
    low, high = 0.0, 1.0
    if not ranking.score_name.startswith("cosine"):
        scores = [one.score for one in ranking.documents]
        low, high = min(scores), max(scores)
    return min(1.0, max(0.0, (ranked.score - low) / (high - low))) if high > low else 1.0


def window_of(window: Window) -> str:
    """Describe which part of a long document gave its score."""
    if window.how == "mean":
        return f"the mean of {window.of} windows"
    return (
        f"the best of {window.of} windows: the {window.number}., "
        f"characters {window.first_character:,} to {window.last_character:,}"
    )


def _explained(made: Attribution, screen: Screen) -> Text:
    """Return a text with its words lit, then its strongest words with their values."""
    width = screen.console.width - INDENT
    words = strongest(made.document.words, made.signed, width)
    shown = screen.text(made.document, made.signed) + Text(f"\n{words}", "dim")
    if made.special:
        digits = digits_for(token.value for token in made.special)
        special = " · ".join(
            f"{plain(one.text)} {number(one.value, digits, signed=made.signed)}" for one in made.special
        )
        shown += Text(f"\napart: {special}", "dim")
    return shown
