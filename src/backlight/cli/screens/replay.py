"""A replay in the terminal: the nodes with what they hold, the step in words, keys to walk through it."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backlight.cli.screens.keys import Keyboard
from backlight.errors import InputError, install_hint
from backlight.lens.records.nodes import LEAF, Node
from backlight.lens.replays.replay import BEGIN, FORWARD, Moment, Replay
from backlight.lens.replays.wording import word_of
from backlight.report.numbers import size_text

try:
    from rich.cells import cell_len, set_cell_size
    from rich.console import Console
    from rich.text import Text
except ImportError as problem:
    raise InputError(f"the replay in a terminal needs the rich library: {install_hint('explain')}") from problem

KEYS = "→ next  ← back  Home End  b backward  ↑ ↓ scroll  / search  n again  q quit"
SHORT_KEYS = "→ ← Home End b ↑↓ / n q"
STYLES = {
    "title": "bold",
    "quiet": "dim",
    "leaf": "green",
    "op": "yellow",
    "firing": "bold reverse",
    "arrives": "bold cyan",
    "formula": "cyan",
    "compute": "",
    "grad": "green",
    "hook": "magenta",
    "gradient": "",
    "why": "",
    "memory": "dim",
    "note": "",
}
HEADING = 12
LEAST_CELL = 8  # the width that a column keeps on a narrow screen
PATIENCE = 0.25  # seconds after which the size of the window is looked at again
BAR = 10


@dataclass
class Trace:
    """What a node holds at a step."""

    value: str = ""
    gradient: str = "—"
    grad: str = ""


class ReplayScreen:
    """The replay at one step, as lines of a window.

    Args:
        replay: what is shown.
        nodes: the record's.
        step: where it begins.
    """

    def __init__(self, replay: Replay, nodes: list[Node], step: int = 0):
        self.replay, self.nodes, self.at = replay, nodes, step
        self.scrolled = 0
        self.typing: str | None = None  # what is being searched for, while it is typed
        self.sought = ""
        self.notice = ""

    @property
    def step(self) -> Moment:
        """The step that is shown."""
        return self.replay.steps[self.at]

    def press(self, key: str) -> bool:
        """Do what a key says; return whether to go on."""
        self.notice = ""
        if self.typing is not None:
            self._type(key)
            return True
        if key in ("q", "escape"):
            return False
        moves = {"right": 1, "space": 1, "enter": 1, "l": 1, "left": -1, "backspace": -1, "h": -1}
        scrolls = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": 8, "pageup": -8}
        if key in moves:
            self.show_step(self.at + moves[key])
        elif key in scrolls:
            self.scrolled = max(0, self.scrolled + scrolls[key])
        elif key in ("home", "end", "g", "G"):
            self.show_step(0 if key in ("home", "g") else len(self.replay.steps) - 1)
        elif key == "b":
            self._next((step.number for step in self.replay.steps if step.kind == BEGIN), "no backward was recorded")
        elif key == "/":
            self.typing = ""
        elif key == "n" and self.sought:
            self._search()
        return True

    def show_step(self, number: int) -> None:
        """Show another step."""
        self.at = max(0, min(len(self.replay.steps) - 1, number))
        self.scrolled = 0

    def _type(self, key: str) -> None:
        if key == "enter":
            self.sought, self.typing = self.typing or self.sought, None
            self._search()
        elif key == "escape":
            self.typing = None
        elif key == "backspace":
            self.typing = self.typing[:-1]
        elif key == "space" or len(key) == 1:
            self.typing += " " if key == "space" else key

    def _search(self) -> None:
        words = self.sought.casefold()
        found = [step.number for step in self.replay.steps if words in step.text().casefold()]
        self._next(found, f"{self.sought!r} is in no step")

    def _next(self, numbers: Iterable[int], otherwise: str) -> None:
        """Go to the next of some steps, from the last to the first."""
        numbers = list(numbers)
        if not numbers:
            self.notice = otherwise
            return
        self.show_step(next((number for number in numbers if number > self.at), numbers[0]))

    def draw(self, width: int, height: int) -> Text:
        """Return exactly so many lines, none wider than the window."""
        room = max(height - 3, 4)
        listed = max(3, min(len(self.nodes), room * 2 // 5))
        lines = [self._head(width), *self._listed(width, listed), Text("─" * width, STYLES["quiet"])]
        lines += self._details(room - listed, width)
        lines = lines[: height - 1]
        lines += [Text()] * (height - 1 - len(lines))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join([*lines, self._foot(width)])

    def _head(self, width: int) -> Text:
        most = max(1, *(step.held for step in self.replay.steps))
        filled = round(BAR * self.step.held / most)
        head = Text.assemble(
            (self.replay.title or "replay", STYLES["title"]),
            f"  step {self.at + 1} of {len(self.replay.steps)}  ",
            (f"{'█' * filled}{'░' * (BAR - filled)} {size_text(self.step.held)} held for backward", STYLES["quiet"]),
        )
        head.truncate(width, overflow="ellipsis")
        return head

    def _foot(self, width: int) -> Text:
        if self.typing is not None:
            return Text(f"/{self.typing}▏")
        text = self.notice or (KEYS if cell_len(KEYS) < width else SHORT_KEYS)
        foot = Text(text, STYLES["quiet"])
        foot.truncate(width, overflow="ellipsis")
        return foot

    def _listed(self, width: int, count: int) -> Iterator[Text]:
        """Write the nodes around the one that acts: what each is, its value, its gradient so far."""
        traces = self.traces()
        arriving = {flow.end: flow.gradient for flow in self.step.flows}
        around = [one.node for one in self.replay.steps[self.at : self.at + 2] if one.node is not None]
        middle = around[0] if around else 0
        top = max(0, min(middle - count // 2, len(self.nodes) - count))
        shown = self.nodes[top : top + count]
        rows = [self._cells(node, traces.get(node.id), arriving.get(node.id)) for node in shown]
        widths = column_widths(rows, width - 5)
        for node, cells in zip(shown, rows):
            yield self._row(node, cells, widths, recorded=node.id in traces, arrives=node.id in arriving)

    def _cells(self, node: Node, trace: Trace | None, arrives: str | None) -> list[str]:
        cells = [f"{word_of(node)} {'leaf' if node.kind == LEAF else node.label}", "", "", ""]
        if trace is not None:
            cells[1:] = trace.value, f"grad {trace.gradient}", f".grad {trace.grad}" if trace.grad else ""
        if arrives is not None:
            cells[3] = f"← {arrives} arrives"
        return cells

    def _row(self, node: Node, cells: list[str], widths: list[int], *, recorded: bool, arrives: bool) -> Text:
        acts = node.id == self.step.node
        style = STYLES["firing"] if acts else STYLES["leaf" if node.kind == LEAF else "op"]
        name, value, gradient, last = (set_cell_size(fitted(cell, width), width) for cell, width in zip(cells, widths))
        row = Text.assemble(("▶ " if acts else "  ", STYLES["title"]))
        row.append(name, style if recorded else STYLES["quiet"])
        row.append(f" {value} {gradient} ")
        row.append(last, STYLES["arrives" if arrives else "grad"])
        return row

    def _details(self, count: int, width: int) -> list[Text]:
        step = self.step
        lines = [Text(step.title, STYLES["title"])]
        for part in step.parts:
            for number, line in enumerate(part.lines):
                for piece, text in enumerate(wrapped(line, width - HEADING - 1)):
                    heading = f"  {'' if number or piece else part.heading:<{HEADING - 2}} "
                    lines.append(Text.assemble((heading, STYLES["quiet"]), (text, STYLES.get(part.kind, ""))))
        if step.place:
            lines.append(Text(f"  {'line':<{HEADING - 2}} {step.place}", STYLES["quiet"]))
        self.scrolled = min(self.scrolled, max(0, len(lines) - count))
        return lines[self.scrolled : self.scrolled + count]

    def traces(self) -> dict[int, Trace]:
        """Return what each node holds after the step."""
        found: dict[int, Trace] = {}
        for step in self.replay.steps[: self.at + 1]:
            if step.kind == FORWARD:
                found[step.node] = Trace(value=step.value or "")
            elif step.kind == BEGIN:
                for trace in found.values():
                    trace.gradient = "—"
            elif step.node is not None:
                trace = found.setdefault(step.node, Trace())
                trace.gradient = step.gradient or "—"
                if step.grad is not None:
                    trace.grad = step.grad
            for flow in step.flows:
                if flow.gradient != "none":
                    found.setdefault(flow.end, Trace()).gradient = f"{flow.total} + …" if flow.waiting else flow.total
        return found


def step_through(screen: ReplayScreen) -> None:
    """Show a replay and follow the keys until the user quits."""
    console = Console(highlight=False, markup=False, emoji=False, no_color=bool(os.environ.get("NO_COLOR")) or None)
    with console.screen(hide_cursor=True) as window, Keyboard(sys.stdin) as keyboard:
        drawn, going = None, True
        while going:
            size = console.size
            if drawn != size:
                window.update(screen.draw(size.width, size.height))
                drawn = size
            try:
                key = keyboard.read(PATIENCE)
            except EOFError:
                return
            if key is not None:
                going, drawn = screen.press(key), None


LARGE = re.compile(r"\([^)]*\)(?: [a-z0-9]+)? of norm (\S+)")


def fitted(text: str, room: int) -> str:
    """Return a text that fits into so many cells: of large tensors the norm alone, of a list as many whole numbers.

    >>> fitted("[1234.6, 0.5, 2]", 12)
    '[1234.6, …]'
    """
    if cell_len(text) <= room:
        return text
    text = LARGE.sub(r"‖·‖ \1", text)
    while cell_len(text) > room and (head := text.removesuffix(", …]").rpartition(", ")[0]):
        text = f"{head}, …]"
    return text if cell_len(text) <= room else "…"


def column_widths(rows: list[list[str]], room: int) -> list[int]:
    """Return how wide each column is: as its longest cell, and where there is no room for all, the widest give way."""
    widths = [max((cell_len(cell) for cell in column), default=0) for column in zip(*rows)]
    while sum(widths) > max(room, 4 * LEAST_CELL):
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def wrapped(line: str, room: int) -> list[str]:
    """Return a line as lines that are no wider, broken at spaces: a number is never cut.

    >>> wrapped("≈ [1.5, 2.5, 3.5]", 10)
    ['≈ [1.5,', '  2.5,', '  3.5]']
    """
    if cell_len(line) <= max(room, LEAST_CELL):
        return [line]
    pieces = textwrap.TextWrapper(max(room, LEAST_CELL), subsequent_indent="  ", break_long_words=False)
    pieces.break_on_hyphens = False
    return pieces.wrap(line)
