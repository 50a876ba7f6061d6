"""The documents that a command line names: files, folders, texts as they are, and standard input."""

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from backlight.cli.main import notice
from backlight.errors import InputError

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
NAMED = 5  # most folders that a line names


def check_query(query: str) -> None:
    if not query.strip():
        raise InputError("the query must not be empty: say what to look for")
    check_unicode(query, "the query")


def check_unicode(text: str, what: str) -> None:
    """Raise if an argument held bytes that are no text: Python hands those on as lone surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{what} must be UTF-8 text, and has bytes that are not")


def read_documents(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the name and text of each document: of files, of folders' text files, of texts as they are.

    What a folder holds besides is not read: of its empty files and its folders, a line on standard error says so.

    Raises:
        InputError: a file is missing or cannot be read as text, or a document is empty.
    """
    for number, value in enumerate(given, 1):
        if value == "-":
            yield "standard input", _text_of(sys.stdin.buffer.read(), "standard input")
            continue
        path = Path(_not_empty(value, f"document {number}"))
        if _exists(path):
            yield from _documents_in(path) if path.is_dir() else [(str(path), _read(path))]
        elif looks_like_a_path(value):
            raise InputError(f"there is no file {value}: if this is the text itself, pipe it in and give - instead")
        else:
            check_unicode(value, f"document {number}")
            yield f"text {number}", value


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


def _documents_in(folder: Path) -> list[tuple[str, str]]:
    """Return the name and text of each text file that lies in a folder, and say what was left out."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as problem:
        raise InputError(f"cannot read the folder {folder}: {problem.strerror}") from problem
    files = [file for file in entries if file.suffix in TEXT_FILES and file.is_file()]
    if not files:
        held = [entry.name for entry in entries if entry.is_file() and entry.name[0] != "."]
        only = f"; it has {_some(held)}, which must be converted to text first" if held else ""
        raise InputError(f"the folder {folder} holds no document: a document is a .txt or .md file in it{only}")
    empty = [file for file in files if not _bytes_of(file).removeprefix(codecs.BOM_UTF8).strip()]
    if len(empty) == len(files):
        raise InputError(f"the folder {folder} holds no document: its .txt and .md files are empty")
    for file in empty:
        notice(f"{file} is empty and was left out")
    others = [entry.name for entry in entries if entry.is_file() and entry not in files and entry.name[0] != "."]
    if others:
        notice(f"files in {folder} that are not .txt or .md are not read: {_some(others)}")
    inner = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    if inner:
        notice(f"folders inside {folder} are not read: {_some(inner)} (name them too to have them read)")
    return [(str(file), _read(file)) for file in files if file not in empty]


def _some(names: Sequence[str]) -> str:
    """Name the first of some files, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _read(file: Path) -> str:
    kind = NOT_TEXT.get(file.suffix.lower())
    if kind is not None:
        raise InputError(f"{file} must be text, and is {kind[0]}: convert it to a .txt file first ({kind[1]} does)")
    return _text_of(_bytes_of(file), str(file))


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem


def _text_of(content: bytes, name: str) -> str:
    if content.startswith(PDF):
        raise InputError(f"{name} must be text, and is a PDF: convert it to a .txt file first (pdftotext does)")
    if b"\0" in content:
        raise InputError(f"{name} must be text, and is a binary file: convert it to UTF-8 text first")
    try:
        return _not_empty(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as problem:
        byte = content[problem.start]
        raise InputError(
            f"{name} must be UTF-8 text, and byte {problem.start} (0x{byte:02x}) is not: convert it first (iconv does)"
        ) from problem


def _not_empty(text: str, name: str) -> str:
    if not text.strip():
        raise InputError(f"{name} must not be empty: leave it out, or give it text")
    return text.strip()
