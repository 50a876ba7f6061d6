"""A ranking in the terminal: each document with its words highlighted by their importance."""

from collections.abc import Mapping, Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backlight.cli.screens.terminal import Screen, ending, number, plain, strongest, unread
from backlight.explain.attribution import Attribution, Ranked, Ranking, Window
from backlight.explain.methods.interactions import Interactions
from backlight.explain.methods.registry import DEFAULT, METHODS, Method
from backlight.explain.notebook import baseline_text
from backlight.explain.presentation.scales import (
    NO_EFFECT,
    activation_of,
    bar_share,
    explanations_of,
    look_of,
    ranking_scales,
)
from backlight.explain.presentation.scores import score_line, score_text
from backlight.explain.presentation.verdict import details_line, unit_word, verdict_line
from backlight.explain.presentation.wording import (
    WINDOW_ALONE,
    candidates_line,
    closeness_line,
    count_of,
    effect_sentence,
    figure,
    gap_text,
    joint_lines,
    precision_line,
    windows_text,
)
from backlight.explain.typos import TypoEffect
from backlight.report.text import digits_for

INDENT = 4  # columns that a text stands in from the edge
UNREAD_SHOWN = 20  # documents that were not reranked, of which the names are printed
BAR = 24  # most columns of a score's bar


def show(ranking: Ranking, screen: Screen, typo: TypoEffect | None = None) -> None:
    """Print a ranking: the query and the method, each explained document, then the others.

    Args:
        typo: what typos in the query do to the ranking (`try_typos`).
    """
    console = screen.console
    console.print(grid(_heading(ranking, screen)))
    explained = [ranked for ranked in ranking.documents if ranked.attribution is not None]
    close = closeness_line(ranking, typo)
    if close:
        console.print(Text(f"\n{close}", "italic"))
    for ranked in explained:
        console.print()
        show_title(ranked, ranking, screen)
        console.print(Padding(_explained(ranked, ranking, screen), (0, 0, 0, INDENT)))
    rest = [ranked for ranked in ranking.documents if ranked.attribution is None]
    if rest:
        console.print("\nranked, not explained" if explained else "")
    for ranked in rest:
        show_title(ranked, ranking, screen)
        if ranked.truncation and ranked.window is None:
            console.print(Padding(unread(ranked.truncation), (0, 0, 0, INDENT)))
    if ranking.not_reranked:
        _show_not_reranked(ranking, screen)


def _show_not_reranked(ranking: Ranking, screen: Screen) -> None:
    """Print the names of the documents that were no candidates, the first of them."""
    others, console = ranking.not_reranked, screen.console
    console.print(f"\nnot reranked, in the order of {plain(ranking.retrieval.retriever)}")
    room = max(len(str(one.rank)) for one in others[:UNREAD_SHOWN])
    for one in others[:UNREAD_SHOWN]:
        name = ending(plain(one.name), console.width - room - 2)
        console.print(Text(f"{one.rank:>{max(room, 3)}} {name}", "dim"))
    if len(others) > UNREAD_SHOWN:
        console.print(Text(f"and {count_of(len(others) - UNREAD_SHOWN, 'more', 'more')} (--json lists all)", "dim"))


def grid(lines: Mapping[str, Text]) -> Table:
    """Return names, each with what is said of it."""
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(Text(name, "dim"), value)
    return table


def _heading(ranking: Ranking, screen: Screen) -> dict[str, Text]:
    """Name the query, the model, the method, and what the shades mean."""
    made = list(explanations_of(ranking))
    activation = activation_of(ranking.documents)
    lines = {
        "query": Text(plain(ranking.query)),
        "model": Text(f"{ranking.model}, reads {ranking.max_tokens} tokens of a text"),
        "score": Text(score_line(ranking.score_name, activation, explained=bool(made))),
    }
    if ranking.retrieval is not None:
        lines["candidates"] = Text(plain(candidates_line(ranking.retrieval)))
    if made:
        of_query, of_documents = (figure(scale) for scale in ranking_scales(ranking))
        unit = unit_word(made[0])
        which = f"of the {len(made)} documents" if len(made) > 1 else "of the document"
        of = f"of {of_documents}, the strongest {unit} {which}, and of {of_query} in the query"
        lines["method"] = Text(account(made))
        if precision := precision_line(made[0].execution):
            lines["precision"] = Text(precision)
        if all(one.check is not None and one.check.verdict == NO_EFFECT for one in made):
            return lines
        lines["legend"] = screen.legend(made[0].signed, of=of, estimates=any(one.estimate for one in made))
    return lines


def method_parts(first: Attribution | Interactions, methods: Mapping[str, Method], *others: Attribution) -> list[str]:
    """Describe a method: its name, what its values say, its baseline, and the largest gap of all explanations by it."""
    made = (first, *others)
    summary = methods[first.method].summary if first.method in methods else first.meaning
    if first.method == DEFAULT:
        summary = summary.replace("word", unit_word(first))
        if not any(one.estimate for one in made):
            summary = summary.partition(":")[0]  # what follows is about words that were estimated
    parts = [first.method, summary]
    parts.append(baseline_text(first))
    worst = max((abs(one.gap) for one in made if one.gap is not None), default=None)
    if worst is not None:
        parts.append(gap_text(worst))
    return parts


def account(made: Sequence[Attribution]) -> str:
    """Describe how explanations were made, and their quality: the method, its baseline, its gap, its cost."""
    first, parts = made[0], method_parts(made[0], METHODS, *made[1:])
    least, most = (choose(one.passes for one in made) for choose in (min, max))
    cost = f"{most:,.0f}" if round(least) == round(most) else f"{least:,.0f} to {most:,.0f}"
    parts.append(f"{cost} pass{'' if cost == '1' else 'es'} per document")
    described = ", ".join(parts)
    own = {name: value for name, value in first.settings.items() if name != "measured"}  # the check's line has it
    parts += [said for name, value in own.items() if (said := f"{name} {value}") not in described]
    if any(one.fallback for one in made):
        parts.append("ANOTHER METHOD WAS USED")
    return ", ".join(parts)


def show_title(ranked: Ranked, ranking: Ranking, screen: Screen) -> None:
    """Print a document's rank, name and scores in one line, and which window of it was read."""
    width = screen.console.width
    columns = min(BAR, width // 4)
    score = score_text(ranked.score, ranked.activated, activation_of(ranking.documents))
    room = max(len(score), 6)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=3, justify="right")
    table.add_column(ratio=1, no_wrap=True)
    table.add_column(width=room, justify="right", no_wrap=True)
    table.add_column(width=columns)
    share = bar_share(ranked, ranking)
    filled = round(columns * abs(share))
    below = share < 0  # zero: the sign is in the score, too
    bar = Text(("╍" if below else "━") * filled, screen.bar(-1) if below else "")
    bar += Text("─" * (columns - filled), "dim")
    name = Text(ending(plain(ranked.name), width - columns - room - 6), "bold")
    table.add_row(Text(str(ranked.rank), "bold"), name, Text(score), bar)
    screen.console.print(table)
    if ranked.window is not None:
        alone = f"; {WINDOW_ALONE}" if ranked.attribution is not None and ranked.window.effects_of == "window" else ""
        screen.console.print(Padding(Text(f"{window_of(ranked.window)}{alone}", "dim"), (0, 0, 0, INDENT)))


def window_of(window: Window) -> str:
    """Describe which part of a long document gave its score."""
    if window.how == "mean":
        return f"the mean of {windows_text(window)}"
    return (
        f"the best of {windows_text(window)}: number {window.number:,}, "
        f"characters {window.first_character:,} to {window.last_character:,}"
    )


def _explained(ranked: Ranked, ranking: Ranking, screen: Screen) -> Text:
    """Return the verdict, a text with its words lit, its strongest words with their values, and what was measured."""
    made, width = ranked.attribution, screen.console.width - INDENT
    of_query, of_document = (look_of(made, scale) for scale in ranking_scales(ranking))
    activation = activation_of(ranking.documents)
    verdict, sentence = verdict_line(made, activation, ranked.window), effect_sentence(ranked, ranking)
    shown = Text(f"{plain(verdict)}\n", "bold" if of_document.fails else "")
    shown += screen.text(made.document, of_document, windowed=ranked.window is not None)
    idle = of_document.verdict == NO_EFFECT  # numbers of words that do nothing would seem to rank them
    shown += Text("" if idle else f"\n{strongest(made.document, of_document, width)}", "dim")
    if sentence:
        shown += Text(f"\n{plain(sentence)}")
    for line in (details_line(made, activation), *joint_lines(made)):
        shown += Text(f"\n{plain(line)}" if line else "", "dim")
    shown += Text().append("\nquery here: ", "dim") + screen.text(made.query, of_query)
    shown += Text(f"\n{strongest(made.query, of_query, width)}" if made.query.words and not idle else "", "dim")
    if made.special:
        digits = digits_for(token.value for token in made.special)
        special = " · ".join(
            f"{plain(one.text)} {number(one.value, digits, signed=made.signed)}" for one in made.special
        )
        shown += Text(f"\nspecial tokens: {special}", "dim")
    return shown
