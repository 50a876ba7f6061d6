"""In the terminal: words that act together, why one document ranks above another, what an edit changes."""

from dataclasses import replace

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backlight.cli.screens.ranking import INDENT, account, grid, method_parts, window_of
from backlight.cli.screens.terminal import (
    Screen,
    ending,
    level_of,
    number,
    plain,
    strongest,
    unread,
    with_value,
)
from backlight.explain.attribution import Attribution
from backlight.explain.comparison import Comparison, WhatIf
from backlight.explain.methods.interactions import MATRICES, Interactions, Link
from backlight.explain.presentation.scales import PROBABILITY, Look, activation_of, activation_of_scores, largest_value
from backlight.explain.presentation.scores import score_line, score_text, unit_of, write_scores
from backlight.explain.presentation.wording import count_of, figure, name_of, no_swap_line, ordinal
from backlight.report.text import digits_for

PAIRS = 10  # strongest pairs listed
CELL = 2  # columns of a cell of the grid
LABEL = 14  # most columns of a query word next to its row
BAR = 20
HARDLY = 0.5e-3  # a change of the raw score that three digits do not show


def show_matrix(found: Interactions, screen: Screen) -> None:
    """Print a matrix: how it was made, the strongest pairs, and as much of the grid as fits."""
    console = screen.console
    lines = {
        "query": Text(plain(found.query_text)),
        "model": Text(found.model),
        "score": Text(score_text(found.score, found.activated, activation_of_scores([(found.score, found.activated)]))),
        **({} if found.window is None else {"document": Text(window_of(found.window))}),
        "method": Text(", ".join([*method_parts(found, MATRICES), f"{found.passes:,.0f} passes"])),
        "legend": screen.legend(found.signed, "together raise the score", "together lower it", "of the strongest pair"),
    }
    console.print(grid(lines))
    console.print("\nstrongest pairs")
    console.print(_pairs(found, screen))
    console.print()
    console.print(_grid(found, screen))


def _pairs(found: Interactions, screen: Screen) -> Table:
    """Return the strongest pairs, each with its value as a number and as a bar to either side."""
    links = found.strongest(PAIRS)
    most, digits = max((abs(link.value) for link in links), default=0.0), digits_for(link.value for link in links)
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    for link in links:
        filled = round(BAR / 2 * abs(link.value) / most) if most else 0
        table.add_row(
            Text(f"{plain(name_of(link.query, found.query))} × {plain(name_of(link.document, found.document))}"),
            Text(number(link.value, digits, signed=found.signed)),
            _two_sided(link, filled, screen),
        )
    return table


def _two_sided(link: Link, filled: int, screen: Screen) -> Text:
    """Return a bar that goes from the middle to the right for +, to the left for −."""
    half = BAR // 2
    empty, bar = Text("─" * (half - filled), "dim"), "━" * filled
    if link.value < 0:
        return empty + Text(bar, screen.bar(-1)) + Text("│" + " " * half, "dim")
    return Text(" " * half + "│", "dim") + Text(bar, screen.bar(1)) + empty


def _grid(found: Interactions, screen: Screen) -> Group:
    """Return the columns of the largest values that fit next to each other, in the order of the text."""
    labels = [ending(plain(word.text), LABEL) for word in found.query]
    room = max(1, (screen.console.width - max(map(cell_len, labels), default=0) - 2) // CELL)
    chosen, sizes = found.strongest_columns(room)
    most = max(sizes, default=0.0) or 1.0
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for label, row in zip(labels, found.values):
        table.add_row(Text(label), Text().join(_cell(row[column] / most, screen) for column in chosen))
    which = "all words" if len(chosen) == len(sizes) else f"the {len(chosen)} strongest of {len(sizes)} words"
    shown = " ".join(plain(found.document[column].text) for column in chosen)
    return Group(table, Text(f"columns, {which}: {shown}", "dim"))


def _cell(share: float, screen: Screen) -> Text:
    """Return a cell of the grid: a shade, or without colours a sign, twice from the third level on."""
    level, sign = level_of(share), 1 if share > 0 else -1
    if level is None:
        return Text("· ", "dim")
    mark = ("+" if share > 0 else "-") * (2 if level >= 2 else 1)
    return Text(f"{mark:{CELL}}", screen.shade(level, sign).replace("underline ", ""))


IDENTICAL = "A and B are identical texts: they have the same score, and each word contributes equally to both."


def show_comparison(found: Comparison, screen: Screen) -> None:
    """Print why A ranks above B: the difference, what would swap the two, and both documents highlighted."""
    console = screen.console
    scale = largest_value([found.a.document, found.b.document])
    less = f"({number(found.score_b)})" if found.score_b < 0 else number(found.score_b)
    difference = f"{number(found.score_a)} − {less} = {number(found.difference, signed=True)}"
    both = (found.score_a, found.activated_a), (found.score_b, found.activated_b)
    scores = [score_text(score, activated, found.activation) for score, activated in both]
    lines = {
        "query": screen.text(found.query_words, Look(True, largest_value([found.query_words]))),
        "model": Text(found.model),
        "A": Text(plain(found.name_a), "bold") + Text(f"  {scores[0]}"),
        "B": Text(plain(found.name_b), "bold") + Text(f"  {scores[1]}"),
        "A − B": Text(f"{difference} ({found.score_name})"),
        "method": Text(account([found.a])),
        "legend": screen.legend(True, "speaks for A", "speaks for B", "of the strongest word of both"),
    }
    console.print(grid(lines))
    for (letter, name, _, made), score in zip(found.sides, scores):
        console.print()
        console.print(Text(f"  {letter} {ending(plain(name), console.width - len(score) - 8)}  {score}", "bold"))
        if made.window is not None:
            console.print(Padding(Text(window_of(made.window), "dim"), (0, 0, 0, INDENT)))
        console.print(Padding(_side(made, Look(True, scale, made.estimate is not None), screen), (0, 0, 0, INDENT)))
    console.print()
    console.print(_swap(found))


def _side(made: Attribution, look: Look, screen: Screen) -> Text:
    """Return a document with its words lit by what they bring to the difference."""
    words = strongest(made.document, look, screen.console.width - INDENT)
    return screen.text(made.document, look, windowed=made.window is not None) + Text(f"\n{words}", "dim")


def _swap(found: Comparison) -> Text:
    """Describe which words the better document must lose to rank below the other."""
    if found.identical:
        return Text(IDENTICAL)
    if found.swap is None:
        return Text(no_swap_line(found))
    swap, names = found.swap, {"a": found.name_a, "b": found.name_b}
    better = found.a if swap.side == "a" else found.b
    other = names["b" if swap.side == "a" else "a"]
    digits = digits_for(word.value for word in swap.words)
    named = [replace(word, text=name_of(word, better.document.words)) for word in swap.words]
    words = ", ".join(with_value(word, True, digits) for word in named)
    plural = "word" if len(swap.words) == 1 else "words"
    written = write_scores([swap.score_after], found.activation)
    surely = "no smaller set is enough" if swap.exact else "a smaller set may exist"
    part = "" if better.window is None else "the best window of "
    return Text(
        f"{part}{plain(names[swap.side])} falls below {plain(other)} without {len(swap.words)} {plural}: {words}; its "
        f"{written.quantity} is then {written.texts[0]}, and {surely}."
    )


def show_what_if(found: WhatIf, name: str, screen: Screen) -> None:
    """Print a document's score as it is and after each edit, and its place among the candidates.

    Args:
        name: what the document is called.
    """
    console = screen.console
    activation = activation_of(found.versions)
    unit = f"{unit_of(activation)} " if activation == PROBABILITY else ""
    lines = {
        "query": Text(plain(found.query)),
        "model": Text(found.model),
        "score": Text(score_line(found.score_name, activation, explained=False)),
        "document": Text(plain(name), "bold"),
    }
    console.print(grid(lines))
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for place, version in enumerate(found.versions):
        score = score_text(version.score, version.activated, activation)
        change = version.score - found.versions[place - 1].score if place else 0.0
        changed = Text(f"{unit}{number(change, signed=True)}" if place else "", screen.bar(change) if place else "")
        rank = "" if version.rank is None else f"{ordinal(version.rank)} of {found.candidates + 1}"
        edit = Text(plain(version.edit) if place else "as it is") + unread(
            version.truncation, windowed=version.window is not None
        )
        if version.window is not None:
            edit += Text(f"\n{window_of(version.window)}", "dim")
        table.add_row(Text(score, "bold"), changed, Text(rank), edit)
    console.print()
    console.print(Padding(table, (0, 0, 0, INDENT)))
    console.print()
    console.print(Text(_outcome(found)))


def _outcome(found: WhatIf) -> str:
    """Return what all edits together do, in a sentence."""
    before, after = found.before, found.after
    moved = "stays the same" if not found.change else "rises" if found.change > 0 else "falls"
    written = write_scores([before.score, after.score], activation_of(found.versions))
    scores = "" if not found.change else f" from {written.texts[0]} to {written.texts[1]}"
    if 0 < abs(found.change) < HARDLY:
        moved, scores = "hardly changes", f", by {figure(found.change, '+')}"
    made = len(found.versions) - 1
    edits = {1: "this edit", 2: "both edits"}.get(made, f"all {count_of(made, 'edit')}")
    said = f"With {edits} the {written.quantity} {moved}{scores}"
    if before.rank is None or after.rank is None:
        return f"{said}."
    if before.rank == after.rank:
        return f"{said}; the document stays {ordinal(before.rank)}."
    way = "falls" if after.rank > before.rank else "rises"
    return f"{said}; the document {way} from {ordinal(before.rank)} to {ordinal(after.rank)}."
