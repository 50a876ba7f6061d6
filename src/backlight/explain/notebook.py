"""Explanations in a notebook: short HTML whose styles are all in it, for light grounds and dark.

Grounds of words are half transparent and letters keep the notebook's own colour, so that both can be read on any
theme. Words that lower the score are blue and dotted beneath, so that the sign needs no eye for colours. Words whose
value is an estimate are paler and have no line, and measured ones beside them have one even if they change nothing;
where the check fails, words are hatched and have no colour.
"""

from collections.abc import Iterable
from html import escape
from typing import Protocol

from backlight.explain.presentation.scales import (
    ESTIMATED,
    MEASURED,
    Look,
    activation_of,
    explanations_of,
    largest_value,
    look_of,
    ranking_scales,
)
from backlight.explain.presentation.scores import score_line, score_text, write_scores
from backlight.explain.presentation.verdict import details_line, verdict_line
from backlight.explain.presentation.wording import (
    candidates_line,
    effect_sentence,
    gap_text,
    joint_lines,
    name_of,
    no_swap_line,
    precision_line,
    spelling_line,
    value_words,
)
from backlight.report.text import digits_for, number

WARM, COLD, GREY = "245,165,36", "79,142,240", "128,128,128"
FAINT = 0.04  # the share of the scale from which a word is lit
PALER = 0.4  # of a measured word's shade: an estimated word's
OPTION = '{name}="{value}"'  # how an option is written in Python
STRONGEST = 0.6  # the opacity of its ground
HATCHED = 0.35  # the opacity of the lines behind the strongest word of an explanation whose check fails
TEXT = "font:1em/1.7 Georgia,serif;max-width:48em;margin:.2em 0 .5em;overflow-wrap:anywhere"
BELOW = f"border-bottom:1px solid rgb({GREY})"  # of measured words beside estimated ones
SMALL = "font-size:.8em;opacity:.75"
UPRIGHT = "writing-mode:vertical-rl;font-weight:400;padding:.2em 0"
COLUMNS = 24  # document words that a matrix shows


class Made(Protocol):
    """What an attribution and a matrix say of how their values were made."""

    method: str
    meaning: str
    baseline: str | None
    gap: float | None
    passes: float


def attribution_html(found) -> str:
    """Return an `Attribution`: its score, both texts lit, what its check found, and how it was made."""
    special = ", ".join(f"{escape(token.text)} {_number(token.value, found.signed)}" for token in found.special)
    query, document = (look_of(found, largest_value([text])) for text in (found.query, found.document))
    parts = [
        f"<div><b>{_number(found.score)}</b> {escape(found.model)}</div>",
        _paragraph(_lit(found.query, query, found)),
        _spelling([found.read_as]),
        _explained(found, document, verdict_line(found, option=OPTION)),
        f'<div style="{SMALL}">{_legend([found])}{escape(account(found))}{_precision(found)}'
        f"{'; special tokens: ' + special if special else ''}</div>",
    ]
    return f"<div>{''.join(parts)}</div>"


def ranking_html(ranking) -> str:
    """Return a `Ranking`: a row a document, with its words lit where it was explained.

    The query is lit for the best document, and says so.
    """
    scales = ranking_scales(ranking)
    rows = "".join(_ranked_row(ranked, ranking, scales) for ranked in ranking.documents)
    explained = [ranked for ranked in ranking.documents if ranked.attribution is not None]
    how, query = "not explained", escape(ranking.query)
    if explained:
        best = explained[0]
        how = _legend([one.attribution for one in explained]) + escape(account(best.attribution))
        how += _precision(best.attribution)
        query = _lit(
            best.attribution.query, look_of(best.attribution, scales[0], explanations_of(ranking)), best.attribution
        )
        query += f' <span style="{SMALL}">(for {escape(best.name)})</span>' if len(explained) > 1 else ""
    activation = activation_of(ranking.documents)
    score = escape(score_line(ranking.score_name, activation, explained=bool(explained)))
    chosen = ""
    if ranking.retrieval is not None:
        chosen = f'<div style="{SMALL}">Candidates: {escape(candidates_line(ranking.retrieval))}</div>'
    return (
        f"<div>{_paragraph(query)}{_spelling([one.read_as for one in ranking.documents])}<table>{rows}</table>"
        f'<div style="{SMALL}">{escape(ranking.model)}, {score}; {how}</div>{chosen}</div>'
    )


def _ranked_row(ranked, ranking, scales: tuple[float, float]) -> str:
    activation = activation_of(ranking.documents)
    made, cell = ranked.attribution, 'style="text-align:left;vertical-align:top;padding:.2em .8em .2em 0"'
    if made is None:
        shown = _paragraph(escape(_cut(ranked.text, 300)))
    else:
        look = look_of(made, scales[1], explanations_of(ranking))
        verdict = verdict_line(made, activation, ranked.window, OPTION)
        shown = _explained(made, look, verdict, activation, effect_sentence(ranked, ranking))
    score = escape(score_text(ranked.score, ranked.activated, activation))
    return (
        f'<tr><td {cell}>{ranked.rank}</td><td {cell[:-1]};white-space:nowrap">{score}</td>'
        f"<td {cell}>{escape(ranked.name)}</td><td {cell}>{shown}</td></tr>"
    )


def _explained(made, look: Look, verdict: str, activation: str | None = None, sentence: str | None = None) -> str:
    """Return what a document's check found, the document lit, and what was measured."""
    lines = [line for line in (sentence, details_line(made, activation), *joint_lines(made)) if line]
    small = "".join(f"<div>{escape(line)}</div>" for line in lines)
    first = f"<b>{escape(verdict)}</b>" if look.fails else escape(verdict)
    return f"<div>{first}</div>{_paragraph(_lit(made.document, look, made))}" + f'<div style="{SMALL}">{small}</div>'


def _spelling(found) -> str:
    """Return which words of the query were read as others, given the `read_as` of each document."""
    line = spelling_line(found)
    return "" if line is None else f'<div style="{SMALL}">{escape(line)}</div>'


def _legend(made) -> str:
    """Return samples of what is weaker than measured words, if there is any."""
    samples = []
    if any(one.estimate is not None for one in made):
        samples.append(f'<span style="{BELOW}">a line: measured</span>; ')
        samples.append(f'<span style="{_ground(0.8 * PALER)}">no line, paler: estimated, not measured</span>; ')
    if any(one.check is not None and one.check.verdict == "fails" for one in made):
        samples.append(f'<span style="{_hatched(0.8)}">hatched: not faithful</span>; ')
    return "".join(samples)


def interactions_html(found) -> str:
    """Return `Interactions` as a heat map of the columns with the largest values, in the order of the text."""
    chosen, sizes = found.strongest_columns(COLUMNS)
    most = max(sizes, default=0.0)
    head = "".join(f'<th style="{UPRIGHT}">{escape(found.document[column].text)}</th>' for column in chosen)
    rows = "".join(
        f'<tr><th style="font-weight:400;text-align:right;padding-right:.5em">{escape(word.text)}</th>'
        + "".join(_cell(word, found.document[column], row[column], most, found.signed) for column in chosen)
        + "</tr>"
        for word, row in zip(found.query, found.values)
    )
    more = f"; the {len(chosen)} strongest of {len(sizes)} columns" if len(chosen) < len(sizes) else ""
    return (
        f"<div>{_spelling([found.read_as])}<table><tr><td></td>{head}</tr>{rows}</table>"
        f'<div style="{SMALL}">{_number(found.score)} {escape(found.model)}; {escape(account(found))}{more}</div></div>'
    )


def _cell(word, other, value: float, most: float, signed: bool) -> str:
    details = f"{word.text} × {other.text}: {_number(value, signed)}"
    sign = "·" if signed and value < 0 and most and value < -FAINT * most else ""
    ground = _ground(value / most if most else 0.0)
    return f'<td title="{escape(details)}" style="min-width:1.3em;text-align:center;padding:0;{ground}">{sign}</td>'


def comparison_html(found) -> str:
    """Return a `Comparison`: the difference, both documents highlighted, and what would swap them."""
    look = Look(True, largest_value([found.a.document, found.b.document]), found.a.estimate is not None)
    query = _lit(found.query_words, Look(True, largest_value([found.query_words]), look.estimates), found.a)
    texts = "".join(
        f"<div><b>{letter}</b> {escape(name)} <b>{escape(score_text(score, activated, found.activation))}</b></div>"
        f"{_paragraph(_lit(made.document, look, made))}"
        for (letter, name, score, made), activated in zip(found.sides, (found.activated_a, found.activated_b))
    )
    return (
        f"<div>{_paragraph(query)}{_spelling([found.a.read_as, found.b.read_as])}"
        f"<div>A − B = <b>{_number(found.difference, True)}</b> ({escape(found.score_name)}): "
        f"orange speaks for A, blue for B</div>{texts}<div>{_swap(found)}</div>"
        f'<div style="{SMALL}">{escape(found.model)}; {escape(account(found.a))}</div></div>'
    )


def _swap(found) -> str:
    if found.swap is None:
        return escape(no_swap_line(found))
    better = found.a if found.swap.side == "a" else found.b
    words, written = (
        ", ".join(escape(name_of(word, better.document.words)) for word in found.swap.words),
        write_scores([found.swap.score_after], found.activation),
    )
    after = escape(f"{written.texts[0]} ({written.quantity})")
    return f"Without <s>{words}</s> {found.swap.side.upper()} falls to {after}, below the other."


def account(found: Made) -> str:
    """Describe how values were made: the method, its baseline, its gap and its cost."""
    parts = [f"{found.method}: {found.meaning}", baseline_text(found), gap_text(found.gap)]
    return "; ".join([*parts, f"{found.passes:,.0f} pass{'' if found.passes == 1 else 'es'}"])


def _precision(made) -> str:
    said = precision_line(made.execution)
    return f"; {escape(said)}" if said else ""


def baseline_text(found: Made) -> str:
    """Return what the inputs were compared with."""
    return "no baseline" if found.baseline is None else f"baseline {found.baseline}"


def _lit(text, look: Look, made) -> str:
    """Return a text with each word on a ground of its share of the scale."""
    parts = []
    for piece, word in text.segments():
        if word is None:
            parts.append(escape(piece))
            continue
        known = value_words(made, word)
        details = _number(word.value, look.signed) + ("" if word.error is None else f" ± {_number(word.error)}")
        details += f" ({known})" if known else ""
        parts.append(f'<span title="{escape(details)}" style="{_style(word, look)}">{escape(piece)}</span>')
    left = text.truncation.words_left_out
    return "".join(parts) + (f" … <i>[{left} more words beyond this part]</i>" if left else "")


def _style(word, look: Look) -> str:
    share, kind = look.share(word), look.kind(word)
    below = BELOW if kind == MEASURED else ""
    if abs(share) < FAINT:
        return below
    if look.fails:
        return _hatched(abs(share))
    if kind == ESTIMATED:
        return f"{_ground(PALER * share)};border-radius:3px"
    if look.signed and abs(share) >= 3 * FAINT:
        below = f"border-bottom:2px {'dotted' if share < 0 else 'solid'} rgb({COLD if share < 0 else WARM})"
    return f"{_ground(share)};border-radius:3px{below and ';'}{below}"


def _hatched(share: float) -> str:
    """Return a ground of lines that are thin and faint: letters stand on them, on a light ground and on a dark one."""
    grey = f"rgba({GREY},{HATCHED * share:.2f})"
    return f"background:repeating-linear-gradient(-45deg,{grey} 0 1px,transparent 1px 6px);border-radius:3px"


def _ground(share: float) -> str:
    return f"background:rgba({COLD if share < 0 else WARM},{STRONGEST * abs(share):.2f})"


def _paragraph(content: str) -> str:
    return f'<div style="{TEXT}">{content}</div>'


def _number(value: float, signed: bool = False) -> str:
    return number(value, f"{'+' if signed else ''}z.{max(3, digits_for([value]))}f")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


def summary(name: str, details: str, words: Iterable) -> str:
    """Return what an explanation says of itself in one line, with its strongest words."""
    listed = ", ".join(f"{word.text} {word.value:.3g}" for word in words)
    return f"{name}({details}{': ' + listed if listed else ''})"
