"""Explanations in the terminal: shades for the size and sign of values, marks where there is no colour.

NOTE [Without colour]
With NO_COLOR, in a terminal without colours, and in a pipe, no shade can be seen. There the strong words are marked:
`*so*` and `**so**`; where values have a sign, `+so+` and `++so++` for words that raise the score, `-so-` and `--so--`
for words that lower it. In colour, words that lower the score are blue and underlined, so that the sign needs no eye
for colours. Words whose value is an estimate beside measured ones have `~+so+~`, and in colour italic letters on the
screen's own ground. Where an explanation's check fails, words have no marks, and in colour those letters, dimmed.
Everywhere the strongest words are listed with their values, an estimate after `~`.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backlight.errors import InputError, install_hint
from backlight.explain.attribution import TextAttribution, Truncation, Word
from backlight.explain.presentation.scales import Look
from backlight.report.text import digits_for, harmless
from backlight.report.text import number as written

try:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

LEVELS = (0.15, 0.3, 0.5, 0.75)  # the share of the strongest word's importance from which each shade is used
SHADES = {
    "dark": ("#f4ead5 on #3d2c0c", "#fff6e3 on #6d4a0b", "#1a1206 on #b87c18", "bold #1a1206 on #ffbe4d"),
    "light": ("#2a2113 on #fdeecb", "#2a2113 on #fbd98c", "#2a2113 on #f4b13e", "bold #fffaf0 on #a55a00"),
}
COLD = {  # of words that lower the score
    "dark": ("#d9e8ff on #12294a", "#e8f1ff on #1c4a87", "#06121f on #4f93e6", "bold #06121f on #9accff"),
    "light": ("#13233a on #dceafe", "#13233a on #b3d0fb", "#0c1a2e on #72aaf7", "bold #f5f9ff on #1b4f9c"),
}
SIXTEEN_COLOURS = ("underline", "bold underline", "black on yellow", "bold black on bright_yellow")
SIXTEEN_WARM = ("yellow", "bold yellow", "black on yellow", "bold black on bright_yellow")
SIXTEEN_COLD = ("cyan", "bold cyan", "black on cyan", "bold black on bright_cyan")
PALE = {"dark": ("#d9a047", "#7fb2ff"), "light": ("#9a5d00", "#2f6fd0")}  # letters of estimated words: +, −
BARS = {"dark": ("#ffb545", "#6aaeff"), "light": ("#c97a06", "#2f6fd0")}  # for +, for −
MARKS = ("", "", "*", "**")
LISTED = 7  # strongest words listed beneath a text, if there is room


@dataclass(frozen=True)
class Screen:
    """Where an explanation is shown."""

    console: Console  # rich's console
    theme: str = "dark"  # whether its background is "dark" or "light"

    @property
    def coloured(self) -> bool:
        """Whether colours can be seen."""
        return self.console.color_system is not None and not self.console.no_color

    def shade(self, level: int, sign: int = 0) -> str:
        """Return the style of a level of importance: none where colours cannot be seen.

        Args:
            sign: 1 where the word raises the score, -1 where it lowers it, 0 for methods without signs.
        """
        if not self.coloured:
            return ""
        if self.console.color_system == "standard":
            shades = {0: SIXTEEN_COLOURS, 1: SIXTEEN_WARM, -1: SIXTEEN_COLD}[sign]
        else:
            shades = (COLD if sign < 0 else SHADES)[self.theme]
        return f"underline {shades[level]}" if sign < 0 else shades[level]

    def bar(self, value: float) -> str:
        """Return the style of a bar for a value of this sign."""
        if not self.coloured:
            return ""
        standard = self.console.color_system == "standard"
        return (("yellow", "cyan") if standard else BARS[self.theme])[value < 0]

    def pale(self, sign: int = 0, dim: bool = False) -> str:
        """Return the style of a word whose value is an estimate, or (dim) is not to be believed."""
        if not self.coloured:
            return ""
        standard = self.console.color_system == "standard"
        letters = ("yellow", "cyan") if standard else PALE[self.theme]
        return f"{'dim ' if dim else ''}italic {letters[sign < 0]}"

    def mark(self, level: int, sign: int = 0) -> str:
        """Return what stands around a word of a level: see NOTE [Without colour]."""
        return "" if self.coloured else MARKS[level].replace("*", {0: "*", 1: "+", -1: "-"}[sign])

    def lit(self, word: Word, look: Look) -> Text:
        """Return a word in the shade, or between the marks, of its share of the scale (see NOTE [One scale])."""
        share, text = look.share(word), plain(word.text)
        level = level_of(share)
        if level is None:
            return Text(text)
        sign = 0 if not look.signed else 1 if share > 0 else -1
        mark = self.mark(level, sign)
        if look.fails:
            return Text(text, self.pale(sign, dim=True))
        if look.is_estimated(word):
            return Text(f"~{mark}{text}{mark}~" if mark else text, self.pale(sign))
        return Text(f"{mark}{text}{mark}", self.shade(level, sign))

    def text(self, text: TextAttribution, look: Look, windowed: bool = False) -> Text:
        """Return a text with each word lit by its importance, and what the model did not read.

        Args:
            windowed: whether the rest of the text was read in other windows.
        """
        lit = Text()
        for piece, word in text.segments():
            lit.append(Text(plain(piece)) if word is None else self.lit(word, look))
        return lit + unread(text.truncation, windowed)

    def legend(
        self,
        signed: bool,
        higher: str = "raises the score",
        lower: str = "lowers it",
        of: str = "of the text's strongest word",
        estimates: bool = False,
    ) -> Text:
        """Explain the shades, or the marks that stand for them.

        Args:
            of: what a share is a share of.
            estimates: whether some words are estimated beside measured ones.
        """
        shares = ", ".join(f"{share:.0%}" for share in (LEVELS if self.coloured else LEVELS[2:3]))
        if signed:
            shown = self._sample(1) + Text(f" {higher}, ") + self._sample(-1) + Text(f" {lower}")
        else:
            shown = self._sample(0) + Text(" a strong word")
        shown += Text(f": from {shares} {of}")
        if not self.coloured:
            full = (f"{mark}so{mark}" for mark in (self.mark(3, sign) for sign in ((1, -1) if signed else (0,))))
            shown += Text(f", {' and '.join(full)} from {LEVELS[3]:.0%}")
        return shown + (self._estimated_sample() if estimates else Text())

    def _estimated_sample(self) -> Text:
        shown = Text("\n")
        if self.coloured:
            shown.append("so", self.pale(1)).append("/").append("so", self.pale(-1))
        else:
            shown.append("~+so+~")
        return shown.append(" and ~ before a value: estimated, not measured")

    def _sample(self, sign: int) -> Text:
        """Return a word in each shade, or in the mark of a strong word."""
        if not self.coloured:
            return Text(f"{self.mark(2, sign)}so{self.mark(2, sign)}")
        return Text(" ").join(Text("so", self.shade(level, sign)) for level in range(len(LEVELS)))


def level_of(share: float) -> int | None:
    """Return which of the shades a word with this share of the strongest word's importance gets, or None."""
    reached = sum(abs(share) >= bound for bound in LEVELS)
    return reached - 1 if reached else None


class PipedConsole(Console):
    """Standard output, whose reader may close it early: rich's own console then ends Python without a word."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError that is being handled."""
        raise


def screen(theme: str | None = None) -> Screen:
    """Return standard output as a screen.

    Args:
        theme: "dark" or "light"; by default as COLORFGBG says (`15;0` is white on black), else dark.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal of an old encoding must not end the run
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return Screen(
        PipedConsole(highlight=False, markup=False, emoji=False),
        theme or ("light" if background in ("7", "15") else "dark"),
    )


@contextmanager
def progress(total: int | None, what: str = "explaining") -> Iterator[Callable[[float], None]]:
    """Give a function to call with the number of steps newly done; on a terminal, a line shows them from the first on.

    Args:
        total: how many steps there are; None where that is not known, and only the time that passes is shown.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    columns = SpinnerColumn(), TextColumn(what), *counted, TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number for the eye, with a real minus sign and optionally a plus.

    >>> number(-0.25, 2), number(0.25, 2, signed=True), number(-0.0001, 2)
    ('−0.25', '+0.25', '0.00')
    """
    plus = "+" if signed and float(f"{value:.{digits}f}") else ""
    return written(value, f"{plus}z.{digits}f")


def with_value(word: Word, signed: bool, digits: int, estimated: bool = False) -> str:
    """Return a word with its value, after `~` if that is an estimate, and its standard error where there is one."""
    error = "" if word.error is None else f"±{number(word.error, digits)}"
    return f"{plain(word.text)} {'~' if estimated else ''}{number(word.value, digits, signed=signed)}{error}"


def strongest(text: TextAttribution, look: Look, width: int) -> str:
    """List the strongest words with their values, as many as one line holds, and one at least."""
    best = [word for word in text.strongest() if not word.is_mark][:LISTED] or text.strongest(1)
    digits = digits_for([look.scale] if look.scale else [word.value for word in best])
    listed = [with_value(word, look.signed, digits, look.is_estimated(word)) for word in best]
    while len(listed) > 1 and cell_len(" · ".join(listed)) > width:
        listed.pop()
    return " · ".join(listed)


def unread(left: Truncation, windowed: bool = False) -> Text:
    """Describe how much of a text the model did not read, or, if it read other windows of it, how much is outside."""
    if not left:
        return Text()
    why = "outside this window" if windowed else "that the model does not read"
    return Text(f" … [{left.words_left_out} more words ({left.tokens_left_out} tokens) {why}]", "italic")


def ending(name: str, width: int) -> str:
    """Return a name that fits: of a long one its end, which tells files apart."""
    if cell_len(name) <= width:
        return name
    while name and cell_len(name) >= width:
        name = name[1:]
    return f"…{name}"


def plain(text: str) -> str:
    """Return a text in one paragraph, without characters that would command the terminal."""
    return harmless(" ".join(re.split(r"\s+", text)))
