"""Explanations as SVG pictures, for documents and slides: light paper, no script, readable without colour.

Words that raise the score lie on orange and are underlined; words that lower it lie on blue and are dotted beneath.
Words whose value is an estimate are paler and have no line; where the check fails, words stand in dashed grey frames.
Each word carries its width, so that another font is fitted to it and no ground is too short.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from backlight.explain.attribution import Attribution, Ranked, Ranking, TextAttribution
from backlight.explain.comparison import Comparison
from backlight.explain.methods.interactions import Interactions
from backlight.explain.notebook import account
from backlight.explain.presentation.scales import (
    ESTIMATED,
    FAILS,
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
    closeness_line,
    count_of,
    effect_sentence,
    figure,
    joint_lines,
    name_of,
    no_swap_line,
    spelling_line,
)
from backlight.explain.typos import TypoEffect
from backlight.report.text import FONT, number, text_element, width_of


@dataclass(frozen=True)
class Run:
    """A stretch of text that is not broken, with its share of the strongest word's importance; None: no word."""

    text: str
    share: float | None = None
    kind: str = ""  # of `Look.kind`


@dataclass(frozen=True)
class Placed:
    """A run, and where it begins."""

    run: Run
    x: float
    line: int
    width: float


def flow(runs: Iterable[Run], width: float, size: float) -> list[Placed]:
    """Lay runs into lines; spaces at the edge of a line take no room."""
    placed, x, line = [], 0.0, 0
    for run in runs:
        for part in _broken(run, width, size):
            wide = width_of(part.text, size)
            if part.text == "\n":
                x, line = 0.0, line + 1
            elif not part.text.strip():
                x += wide if x else 0.0
            else:
                if x and x + wide > width:
                    x, line = 0.0, line + 1
                placed.append(Placed(part, x, line, wide))
                x += wide
    return placed


def _broken(run: Run, width: float, size: float) -> Iterator[Run]:
    """Cut what stands between words at spaces, and words that are wider than a line anywhere."""
    if run.share is None:
        word = ""
        for character in run.text:
            if character.isspace():
                if word:
                    yield Run(word)
                yield Run("\n" if character == "\n" else " ")
                word = ""
            else:
                word += character
        if word:
            yield Run(word)
        return
    text = " ".join(run.text.split())
    while text:
        fitting = len(text)
        while fitting > 1 and width_of(text[:fitting], size) > width:
            fitting -= 1
        yield Run(text[:fitting], run.share, run.kind)
        text = text[fitting:]


WIDTH, EDGE = 800, 32
SIZE, LINE = 16, 26  # of texts
SMALL = 12
PAPER, INK, QUIET, RULE = "#ffffff", "#1f1b15", "#6b6355", "#e7e0d3"
WARM, COLD = "#f5a524", "#5b98f2"
WARM_LINE, COLD_LINE = "#a55a00", "#1b4f9c"
FAINT, SIGN_FROM, PALER = 0.04, 0.12, 0.4
KINDS = {
    MEASURED: "a line: measured",
    ESTIMATED: "no line: estimated, not measured",
    FAILS: "not faithful",
}
COLUMNS, CELL = 28, 22  # of a matrix
MOST_DOCUMENTS = 5


@dataclass
class Sheet:
    """A picture that grows downwards."""

    signed: bool
    width: float = WIDTH
    y: float = EDGE
    parts: list[str] = field(default_factory=list)

    def line(self, text: str, size: float = SMALL, colour: str = QUIET, weight: str = "400", right: str = "") -> None:
        """Write one line, cut to what fits, and something at its right end."""
        room = self.width - 2 * EDGE - (width_of(right, size) + 16 if right else 0)
        while text and width_of(text, size) > room:
            text = text[:-2] + "…"
        self.y += size * 1.4
        baseline = self.y - size * 0.35
        self.parts.append(text_element(EDGE, baseline, text, size, fill=colour, font_weight=weight))
        if right:
            end = self.width - EDGE
            self.parts.append(text_element(end, baseline, right, size, fill=INK, font_weight="600", text_anchor="end"))

    def paragraph(self, text: str, size: float = SMALL, colour: str = QUIET) -> None:
        """Write lines of one colour, as many as it takes."""
        placed = flow([Run(text)], self.width - 2 * EDGE, size)
        for one in placed:
            self.parts.append(
                text_element(EDGE + one.x, self.y + size * (1.05 + 1.4 * one.line), one.run.text, size, fill=colour)
            )
        self.y += size * 1.4 * (placed[-1].line + 1 if placed else 0)

    def space(self, height: float) -> None:
        """Leave room."""
        self.y += height

    def rule(self) -> None:
        """Draw a line across."""
        y = f"{self.y:.1f}"
        self.parts.append(f'<path d="M{EDGE} {y}H{self.width - EDGE}" stroke="{RULE}"/>')

    def text(
        self, text: TextAttribution, look: Look, size: float = SIZE, x: float = EDGE, width: float | None = None
    ) -> None:
        """Write a text with its words on their grounds."""
        left = text.truncation.words_left_out
        runs = [*runs_of(text, look), *([Run(f" … [{left:,} more words beyond this part]")] if left else [])]
        placed = flow(runs, width or self.width - 2 * EDGE, size)
        step = LINE * size / SIZE
        for one in placed:
            baseline = self.y + step * (one.line + 0.7)
            if one.run.share is not None:
                place = x + one.x - 1.5, baseline - size, one.width + 3, size * 1.32
                self.parts += ground(one.run.share, *place, self.signed, one.run.kind)
            attributes = {"fill": INK, "textLength": f"{one.width:.1f}", "lengthAdjust": "spacingAndGlyphs"}
            self.parts.append(text_element(x + one.x, baseline, one.run.text, size, **attributes))
        self.y += step * (max((one.line for one in placed), default=0) + 1)

    def legend(
        self,
        lower: str = "lowers the score",
        higher: str = "raises the score",
        kinds: Sequence[str] = (),
        full: str = "",
    ) -> None:
        """Describe what the shades mean.

        Args:
            kinds: which kinds of words there are (`Look.kind`).
            full: what a full shade is.
        """
        shares = (-1, -0.6, -0.3, 0, 0.3, 0.6, 1) if self.signed else (0, 0.25, 0.5, 0.75, 1)
        x, y = EDGE, self.y + 4
        first, last = (lower, higher) if self.signed else ("no effect", "strongest word")
        self.parts.append(text_element(x, y + 12, first, SMALL, fill=QUIET))
        x += width_of(first, SMALL) + 10
        for share in shares:
            self.parts += ground(share, x, y, 24, 15, self.signed)
            x += 26
        self.parts.append(text_element(x + 8, y + 12, f"{last}{full}", SMALL, fill=QUIET))
        x += 24 + width_of(f"{last}{full}", SMALL)
        for kind in kinds:
            name = KINDS[kind]
            if x + width_of(name, SMALL) + 40 > self.width - EDGE:
                x, y = EDGE, y + 22
            self.parts += ground(0.0 if kind == MEASURED else 0.8, x, y, 24, 15, self.signed, kind)
            self.parts.append(text_element(x + 30, y + 12, name, SMALL, fill=QUIET))
            x += 46 + width_of(name, SMALL)
        self.y = y + 22

    def svg(self, title: str) -> str:
        """Return the picture."""
        height = self.y + EDGE
        head = text_element(0, 0, title, 0).partition(">")[2].removesuffix("</text>")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {height:.0f}" font-family="{FONT}" role="img"><title>{head}</title>'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>{"".join(self.parts)}</svg>\n'
        )


def ground(share: float, x: float, y: float, width: float, height: float, signed: bool, kind: str = "") -> list[str]:
    """Return what lies behind a word of this share, and the line beneath it that says its sign.

    Args:
        kind: what `Look.kind` says of the word.
    """
    line, dots = (COLD_LINE, ' stroke-dasharray="2 2"') if signed and share < 0 else (WARM_LINE, "")
    under = f'<path d="M{x + 1:.1f} {y + height:.1f}h{width - 2:.1f}"{dots}'
    measured = [f'{under} stroke="{QUIET}"/>'] if kind == MEASURED else []
    if abs(share) < FAINT:
        return measured
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    if kind == FAILS:
        frame = f'fill="none" stroke="{QUIET}" stroke-dasharray="3 2" stroke-opacity="{abs(share):.2f}"'
        return [f'<rect {place} rx="3" {frame}/>']
    colour, opacity = COLD if share < 0 else WARM, abs(share) * (PALER if kind == ESTIMATED else 1)
    found = [f'<rect {place} rx="3" fill="{colour}" fill-opacity="{opacity:.2f}"/>']
    if signed and kind != ESTIMATED and abs(share) >= SIGN_FROM:
        return [*found, f'{under} stroke="{line}" stroke-width="2"/>']
    return found + measured


def runs_of(text: TextAttribution, look: Look) -> list[Run]:
    """Return a text as runs: words with their shares, and what stands between."""
    return [
        Run(piece) if word is None else Run(piece, look.share(word), look.kind(word)) for piece, word in text.segments()
    ]


def ranking_svg(ranking: Ranking, typo: TypoEffect | None = None) -> str:
    """Return a picture of the best documents of a ranking that were explained.

    Args:
        typo: what typos in the query do to the ranking (`try_typos`).
    """
    explained = [ranked for ranked in ranking.documents if ranked.attribution is not None][:MOST_DOCUMENTS]
    sheet = Sheet(bool(explained) and explained[0].attribution.signed)
    scales = ranking_scales(ranking)
    if explained:
        best = explained[0].attribution
        made = [ranked.attribution for ranked in explained]
        sheet.text(best.query, look_of(best, scales[0], made), 24)
        if len(explained) > 1:
            sheet.line(f"the query's colours are those for {explained[0].name}")
    else:
        sheet.line(ranking.query, 24, INK)
    sheet.space(4)
    activation = activation_of(ranking.documents)
    score = score_line(ranking.score_name, activation, explained=bool(explained))
    sheet.paragraph(f"{ranking.model}, {score}, {count_of(len(ranking.documents), 'document')}")
    if ranking.retrieval is not None:
        sheet.paragraph(f"candidates: {candidates_line(ranking.retrieval)}")
    if explained:
        sheet.paragraph(account(best))
        sheet.legend(kinds=_kinds(made), full=f" (by {figure(scales[1])})")
    if line := spelling_line([ranked.read_as for ranked in ranking.documents]):
        sheet.paragraph(line, 13, INK)
    if line := closeness_line(ranking, typo):
        sheet.paragraph(line, 13, INK)
    for ranked in explained:
        _document(sheet, ranked, ranking, scales)
    if len(explained) < len(ranking.documents):
        sheet.space(10)
        sheet.rule()
        sheet.space(6)
    for ranked in ranking.documents:
        if ranked not in explained:
            score = score_text(ranked.score, ranked.activated, activation)
            sheet.line(f"{ranked.rank}  {ranked.name}", 14, INK, right=score)
    return sheet.svg(ranking.query)


def _kinds(made: Sequence[Attribution]) -> list[str]:
    """Return which kinds of words explanations have, as far as they are told apart."""
    estimated = any(one.estimate is not None for one in made)
    fails = any(one.check is not None and one.check.verdict == FAILS for one in made)
    return [MEASURED, ESTIMATED] * estimated + [FAILS] * fails


def _document(sheet: Sheet, ranked: Ranked, ranking: Ranking, scales: tuple[float, float]) -> None:
    made = ranked.attribution
    look, activation = look_of(made, scales[1], explanations_of(ranking)), activation_of(ranking.documents)
    title, score = f"{ranked.rank}  {ranked.name}", score_text(ranked.score, ranked.activated, activation)
    sheet.space(10)
    sheet.rule()
    sheet.space(10)
    sheet.line(title, 14, INK, "600", right=score)
    sheet.space(4)
    sheet.paragraph(verdict_line(made, activation, ranked.window), 13, INK)
    sheet.space(4)
    sheet.text(made.document, look)
    sheet.space(2)
    if sentence := effect_sentence(ranked, ranking):
        sheet.paragraph(sentence, 13, INK)
    for line in (*joint_lines(made), details_line(made, activation)):
        if line:
            sheet.paragraph(line)


def comparison_svg(found: Comparison) -> str:
    """Return a picture of why one document ranks above another, the two side by side."""
    sheet = Sheet(True, 960)
    estimates = any(one.estimate is not None for one in (found.a, found.b))
    look = Look(True, largest_value([found.a.document, found.b.document]), estimates)
    sheet.text(found.query_words, Look(True, largest_value([found.query_words]), estimates), 24)
    sheet.space(4)
    sheet.line(f"{found.model}, {found.score_name}: A − B = {number(found.difference, '+.3f')}")
    sheet.paragraph(account(found.a))
    sheet.legend("for B", "for A", _kinds([found.a, found.b]))
    half = (sheet.width - 3 * EDGE) / 2
    top, ends = sheet.y + 12, []
    for place, (letter, name, score, made) in enumerate(found.sides):
        x = EDGE + place * (half + EDGE)
        sheet.y = top + 24
        heading = f"{letter}  {name.rpartition('/')[2]}"
        sheet.parts.append(text_element(x, sheet.y - 7, heading, 14, fill=INK, font_weight="600"))
        attributes = {"fill": INK, "font_weight": "600", "text_anchor": "end"}
        shown = score_text(score, (found.activated_a, found.activated_b)[place], found.activation)
        sheet.parts.append(text_element(x + half, sheet.y - 7, shown, 14, **attributes))
        sheet.text(made.document, look, 15, x, half)
        ends.append(sheet.y)
    sheet.y = max(ends) + 12
    sheet.paragraph(_swap(found), 13, INK)
    return sheet.svg(f"{found.query}: {found.name_a} against {found.name_b}")


def _swap(found: Comparison) -> str:
    if found.swap is None:
        return no_swap_line(found)
    better = found.a if found.swap.side == "a" else found.b
    words = ", ".join(name_of(word, better.document.words) for word in found.swap.words)
    written = write_scores([found.swap.score_after], found.activation)
    after = f"{written.texts[0]} ({written.quantity})"
    return f"Without {words}, {found.swap.side.upper()} falls to {after}, below the other."


def interactions_svg(found: Interactions) -> str:
    """Return a heat map of the document's words with the largest values, in the order of the text."""
    chosen, sizes = found.strongest_columns(COLUMNS)
    most = max(sizes, default=0.0) or 1.0
    label = max((width_of(word.text, 14) for word in found.query), default=0.0) + 12
    head = max((width_of(found.document[column].text, 13) for column in chosen), default=0.0) + 8
    sheet = Sheet(found.signed, max(480, 2 * EDGE + label + CELL * len(chosen)))
    sheet.line(f"{found.query_text}", 18, INK)
    sheet.line(f"{found.model}, score {number(found.score)}; {len(chosen)} of {len(sizes)} columns")
    sheet.paragraph(account(found))
    sheet.legend("together lower the score", "together raise it")
    sheet.space(head)
    for place, column in enumerate(chosen):
        x = EDGE + label + CELL * place + CELL * 0.7
        turned = f"rotate(-90 {x:.1f} {sheet.y:.1f})"
        sheet.parts.append(text_element(x, sheet.y, found.document[column].text, 13, fill=INK, transform=turned))
    sheet.space(8)
    for word, row in zip(found.query, found.values):
        attributes = {"fill": INK, "text_anchor": "end"}
        sheet.parts.append(text_element(EDGE + label - 8, sheet.y + CELL * 0.7, word.text, 14, **attributes))
        _cells(sheet, [row[column] / most for column in chosen], EDGE + label, found.signed)
        sheet.space(CELL)
    return sheet.svg(f"{found.query_text} × {found.document_text}")


def _cells(sheet: Sheet, shares: Sequence[float], x: float, signed: bool) -> None:
    for column, share in enumerate(shares):
        left, size = x + CELL * column, CELL - 2
        place = f'x="{left:.1f}" y="{sheet.y:.1f}" width="{size}" height="{size}" rx="3"'
        sheet.parts.append(f'<rect {place} fill="none" stroke="{RULE}"/>')
        sheet.parts += ground(share, left, sheet.y, size, size, signed)
