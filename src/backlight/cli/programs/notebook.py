"""A notebook's code cells, as Python runs them without Jupyter: in order, without magics.

NOTE [Lines for IPython]
A line that IPython alone understands (`%matplotlib inline`, `!pip install …`, `files = !ls`, `torch.nn?`) is replaced
by `pass`, so that all others keep their numbers; a cell that is a magic as a whole (`%%bash`) is left out. What times
a statement or a cell (`%time`, `%%time`) is taken off, and the statement stays. Such lines are looked for only where a
statement may begin: inside brackets and texts a line may begin with `%`.
"""

import io
import json
import linecache
import os
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from backlight.errors import InputError

SUFFIX = ".ipynb"
SPECIAL = re.compile(r"\s*(?:[%!]|[\w.\[\]]*\s*=\s*[%!]\w|\?{1,2}[\w.]|%?[\w.*]+\?{1,2}\s*$)")
TIMED = re.compile(r"(\s*)%time\s+")
WHOLE = re.compile(r"\s*%%\s*(\w*)")
SAME_PROGRAM = {"time", "capture", "prun", "doctor", "graph"}  # cell magics that run the cell in the notebook's names
PYTHON = {"python", "python3", "ipython"}


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Args:
        file: what findings and tracebacks call it: the notebook's path and the cell's number, counting code cells.
        text: its source as Python, with as many lines as in the notebook.
        skipped: the lines of IPython's own that were left out.
    """

    file: str
    text: str
    skipped: tuple[str, ...]

    def compiled(self) -> CodeType:
        """Return its code, and let tracebacks find its lines."""
        lines = self.text.splitlines(keepends=True)
        linecache.cache[self.file] = (len(self.text), None, lines, self.file)
        return compile(self.text, self.file, "exec", dont_inherit=True)


def is_notebook(path: str) -> bool:
    """Return whether a path names a notebook."""
    return Path(path).suffix.lower() == SUFFIX


def code_cells(source: bytes, path: str) -> list[Cell]:
    """Return the code cells of a notebook file that are not empty.

    Raises:
        InputError: it is no notebook, or not one of Python.
    """
    full = os.path.abspath(path)
    cells = [_cell(f"{full} cell {number}", text) for number, text in enumerate(_texts(source, path), 1)]
    return [cell for cell in cells if cell.text.strip() or cell.skipped]


def _texts(source: bytes, path: str) -> list[str]:
    """Return the source of each code cell; version 3 of the format keeps them in worksheets."""
    try:
        found = json.loads(source)
        language = found.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        sheets = [found] if "cells" in found else found["worksheets"]
        cells = [cell for sheet in sheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
        texts = [cell["source"] if "source" in cell else cell["input"] for cell in cells]
        joined = [text if isinstance(text, str) else "".join(text) for text in texts]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"{path!r} must be a Jupyter notebook, and has no list of cells: {problem!r}") from problem
    if str(language).lower() not in PYTHON:
        raise InputError(f"{path!r} must be a notebook of Python, got one of {language}")
    return joined


def _cell(file: str, text: str) -> Cell:
    lines, skipped = text.splitlines(), []
    whole = _whole_magic(lines)
    if whole is not None:
        line, name = whole
        if name not in SAME_PROGRAM:
            return Cell(file, "", (lines[line].strip(),))
        skipped += [lines[line].strip()] if name != "time" else []
        lines[line] = ""
    kept = _without_magics(lines, skipped)
    return Cell(file, "\n".join(kept) + "\n", tuple(skipped))


def _whole_magic(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the line and the name of the magic that a cell is given to; it must come first."""
    for number, line in enumerate(lines):
        found = WHOLE.match(line)
        if found:
            return number, found[1]
        if line.strip():
            return None
    return None


def _without_magics(lines: Sequence[str], skipped: list[str]) -> list[str]:
    """Return lines as Python, and add those left out to `skipped` (NOTE [Lines for IPython])."""
    kept: list[str] = []
    is_used_later = False  # whether the line before was left out and ends in a backslash
    for line in lines:
        special = is_used_later or (SPECIAL.match(line) is not None and not _is_inside(kept))
        if not special:
            kept.append(line)
            continue
        timed = None if is_used_later else TIMED.match(line)
        if timed:
            kept.append(timed[1] + line[timed.end() :])
            continue
        indent = line[: len(line) - len(line.lstrip())]
        kept.append("" if is_used_later else f"{indent}pass")
        is_used_later = line.rstrip().endswith("\\")
        skipped.append(line.strip())
    return kept


def _is_inside(lines: Sequence[str]) -> bool:
    """Return whether the next line goes on with what these lines began: a bracket, a text, a backslash."""
    if not lines:
        return False
    if lines[-1].rstrip().endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            pass
    except tokenize.TokenError as problem:
        return "EOF in multi-line" in str(problem) or "unterminated triple" in str(problem)
    except SyntaxError:
        return False
    return False
