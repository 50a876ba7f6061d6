"""The documents that a command line names: files, folders, texts as they are, and standard input.

NOTE [Files left out]
A file that is no text (binary, not UTF-8, a PDF, empty) does not stop a command that has other documents: it is left
out, named on standard error with the reason, and counted. Where nothing else is left, or it is the only input, it is an
error. A file that is missing always is one: its name may be misspelt.
"""

import codecs
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backlight.cli.main import notice
from backlight.errors import InputError
from backlight.explain.presentation.wording import count_of

TEXT_FILES = {".txt", ".md"}
NOT_TEXT = {  # by the name's ending: what it is, and what gets the text out of it
    ".pdf": ("a PDF", "pdftotext"),
    ".docx": ("a Word document", "pandoc"),
    ".doc": ("a Word document", "antiword"),
    ".odt": ("an OpenDocument text", "pandoc"),
    ".rtf": ("Rich Text", "pandoc"),
    ".epub": ("an e-book", "pandoc"),
}
PDF = b"%PDF-"  # how a PDF begins, whatever its name
EMPTY = "is empty"
NAMED = 5  # most folders that a line names


def check_query(query: str) -> None:
    if not query.strip():
        raise InputError("the query must not be empty: say what to look for")
    check_unicode(query, "the query")


def check_unicode(text: str, what: str) -> None:
    """Raise if an argument held bytes that are no text: Python hands those on as lone surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{what} must be UTF-8 text, and has bytes that are not")


@dataclass(frozen=True)
class LeftOut:
    """A file that was not read, and why, as a sentence without its name: "must be UTF-8 text, and …"."""

    name: str
    reason: str


class NotText(InputError):
    """A file is there and holds no text."""

    def __init__(self, name: str, reason: str):
        super().__init__(f"{name} {reason}")
        self.left_out = LeftOut(name, reason)


def read_documents(given: Sequence[str], left_out: list[LeftOut] | None = None) -> list[tuple[str, str]]:
    """Return the name and text of each document: of files, of folders' text files, of texts as they are.

    What a folder holds besides is not read: a line on standard error says so, and another names each file left out.

    Args:
        left_out: gets the files left out (see NOTE [Files left out]); None where each file that is named itself must be
            read, and only files that lie in a folder may be left out.

    Raises:
        InputError: a file is missing, or none of what was given can be read as text.
    """
    found: list[tuple[str, str]] = []
    problems: list[NotText] = []
    for number, value in enumerate(given, 1):
        if value == "-":
            found.append(("standard input", _text_of(sys.stdin.buffer.read(), "standard input")))
            continue
        path = Path(_not_empty(value, f"document {number}"))
        if not _exists(path):
            found.append((f"text {number}", _as_it_is(value, number)))
        elif path.is_dir():
            found += _texts_of(_files_in(path, problems), problems)
        elif left_out is None:
            found.append((str(path), _read(path)))
        else:
            found += _texts_of([path], problems)
    _report_skipped_files(problems, len(found))
    if left_out is not None:
        left_out += [problem.left_out for problem in problems]
    return found


def _as_it_is(value: str, number: int) -> str:
    """Return a document that is given as its text. Raises InputError: it is not UTF-8, or was meant to be a file."""
    if looks_like_a_path(value):
        raise InputError(f"there is no file {value}: if this is the text itself, pipe it in and give - instead")
    check_unicode(value, f"document {number}")
    return value


def _report_skipped_files(problems: Sequence[NotText], read: int) -> None:
    """Name each file that was left out, and count several. Raises the first problem: no document was read."""
    if problems and not read:
        more = f" (so it is with {len(problems)} files, and there is no other)" if len(problems) > 1 else ""
        raise InputError(f"{problems[0]}{more}")
    for problem in problems:
        notice(f"{problem}{' and' if problem.left_out.reason == EMPTY else '; it'} was left out")
    if len(problems) > 1:
        notice(f"{len(problems)} files were left out, {count_of(read, 'document')} read")


def _texts_of(files: Sequence[Path], problems: list[NotText]) -> list[tuple[str, str]]:
    """Return the name and text of each file, and add those that hold no text to `problems`."""
    found = []
    for file in files:
        try:
            found.append((str(file), _read(file)))
        except NotText as problem:
            problems.append(problem)
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # longer than a file name can be
        return False


def looks_like_a_path(value: str) -> bool:
    """Return whether an argument that names no file was meant to.

    It was if it starts as paths do, or is one word with a separator or a suffix, or several that end in a suffix of
    text files and have a separator.
    """
    if value.startswith(("./", "../", "~", "/")):
        return True
    suffix = Path(value).suffix
    separated = "/" in value or os.sep in value
    if any(character.isspace() for character in value.strip()):
        return separated and suffix in TEXT_FILES
    return separated or bool(suffix[1:].isalnum() and not suffix[1:].isdigit())


def _files_in(folder: Path, problems: list[NotText]) -> list[Path]:
    """Return the text files that lie in a folder, say what else there is, and add its empty ones to `problems`."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as problem:
        raise InputError(f"cannot read the folder {folder}: {problem.strerror}") from problem
    files = [file for file in entries if file.suffix in TEXT_FILES and file.is_file()]
    if not files:
        held = [entry.name for entry in entries if entry.is_file() and entry.name[0] != "."]
        only = f"; it has {_some(held)}, which must be converted to text first" if held else ""
        raise InputError(f"the folder {folder} holds no document: a document is a .txt or .md file in it{only}")
    empty = [file for file in files if _is_blank(file)]
    if len(empty) == len(files):
        raise InputError(f"the folder {folder} holds no document: its .txt and .md files are empty")
    problems += [NotText(str(file), EMPTY) for file in empty]
    others = [entry.name for entry in entries if entry.is_file() and entry not in files and entry.name[0] != "."]
    if others:
        notice(f"files in {folder} that are not .txt or .md are not read: {_some(others)}")
    inner = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    if inner:
        notice(f"folders inside {folder} are not read: {_some(inner)} (name them too to have them read)")
    return [file for file in files if file not in empty]


def _is_blank(file: Path) -> bool:
    """Return whether a file holds white space at most; a file that cannot be read is not called blank."""
    try:
        return not file.read_bytes().removeprefix(codecs.BOM_UTF8).strip()
    except OSError:
        return False


def _some(names: Sequence[str]) -> str:
    """Name the first of some files, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _read(file: Path) -> str:
    kind = NOT_TEXT.get(file.suffix.lower())
    if kind is not None:
        raise NotText(str(file), f"must be text, and is {kind[0]}: convert it to a .txt file first ({kind[1]} does)")
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    return _text_of(content, str(file))


def _text_of(content: bytes, name: str) -> str:
    if content.startswith(PDF):
        raise NotText(name, "must be text, and is a PDF: convert it to a .txt file first (pdftotext does)")
    if b"\0" in content:
        raise NotText(name, "must be text, and is a binary file: convert it to UTF-8 text first")
    try:
        return _not_empty(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as problem:
        byte, place = content[problem.start], problem.start
        reason = f"must be UTF-8 text, and byte {place} (0x{byte:02x}) is not: convert it first (iconv does)"
        raise NotText(name, reason) from problem


def _not_empty(text: str, name: str) -> str:
    if not text.strip():
        raise NotText(name, "must not be empty: leave it out, or give it text")
    return text.strip()
