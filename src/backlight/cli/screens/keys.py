"""Keys of a terminal, one at a time: `right`, `home`, `q`."""

import os
import select
import sys
import time
from typing import TextIO

if os.name == "nt":
    import msvcrt
else:
    import termios
    import tty

SEQUENCES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[7~": "home", "[4~": "end", "[8~": "end", "[5~": "pageup", "[6~": "pagedown",
}  # fmt: skip
CHARACTERS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", " ": "space"}
CODES = dict(zip("HPMKGOIQ", ("up", "down", "right", "left", "home", "end", "pageup", "pagedown")))
REST = 0.05  # seconds within which the rest of a sequence follows its escape
INTERRUPT = "\x03"


class Keyboard:
    """Reads keys as they are pressed; on leaving the block the terminal is as it was."""

    def __init__(self, stream: TextIO = sys.stdin):
        self.stream = stream

    def __enter__(self) -> "Keyboard":
        if os.name != "nt":
            self.number = self.stream.fileno()
            self.before = termios.tcgetattr(self.number)
            tty.setcbreak(self.number)
        return self

    def __exit__(self, *problem) -> None:
        if os.name != "nt":
            termios.tcsetattr(self.number, termios.TCSADRAIN, self.before)

    def read(self, seconds: float) -> str | None:
        """Return the next key: its name or its character; None if none is pressed for so many seconds.

        Raises:
            EOFError: the terminal has gone.
        """
        return _from_console(seconds) if os.name == "nt" else self._from_terminal(seconds)

    def _from_terminal(self, seconds: float) -> str | None:
        if not self._waits(seconds):
            return None
        character = self._character()
        if character != "\x1b" or not self._waits(REST):
            return CHARACTERS.get(character, character)
        sequence = self._character()
        while self._waits(REST) and not (len(sequence) > 1 and (sequence[-1].isalpha() or sequence[-1] == "~")):
            sequence += self._character()
        return SEQUENCES.get(sequence, "escape")

    def _waits(self, seconds: float) -> bool:
        return bool(select.select([self.number], [], [], seconds)[0])

    def _character(self) -> str:
        """Read one character, which may be several bytes."""
        read = os.read(self.number, 1)
        if not read:
            raise EOFError
        more = sum(read[0] >= bound for bound in (0xC0, 0xE0, 0xF0))
        return (read + b"".join(os.read(self.number, 1) for _ in range(more))).decode(errors="replace")


def _from_console(seconds: float) -> str | None:
    """Read a key from Windows' console, which is polled every few milliseconds."""
    end = time.monotonic() + seconds
    while not msvcrt.kbhit():
        if time.monotonic() > end:
            return None
        time.sleep(REST / 5)
    character = msvcrt.getwch()
    if character in "\x00\xe0":
        return CODES.get(msvcrt.getwch(), "escape")
    if character == INTERRUPT:
        raise KeyboardInterrupt
    return CHARACTERS.get(character, character)
