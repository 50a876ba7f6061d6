"""Files: those of an input, plain or gzipped, their lines and fingerprints; and how a job writes its own."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from backlight.errors import InputError
from backlight.explain.batch.rows import START, Place

BLOCK = 1 << 20
LONGEST_LINE = 1 << 28  # bytes
MARK = b"\xef\xbb\xbf"  # that some programs write before UTF-8


@dataclass(frozen=True)
class Fingerprint:
    """What a file held: the same for the same content, wherever it lies and whether or not it is gzipped."""

    bytes: int
    lines: int
    blake2b: str


def opened(file: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacked if its name ends in .gz. Raises InputError: that is not possible."""
    try:
        return gzip.open(file, "rb") if file.suffix == ".gz" else open(file, "rb")
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem


def suffix_of(file: Path) -> str:
    """Return what a file's name ends in, without .gz.

    >>> suffix_of(Path("pairs.TSV.gz"))
    '.tsv'
    """
    name = file.name.lower().removesuffix(".gz")
    return Path(name).suffix


def fingerprint(file: Path) -> Fingerprint:
    """Return the fingerprint of a file, whose content is read once for it: about a second a gigabyte.

    Raises:
        InputError: the file cannot be read.
    """
    found, size, lines, last = hashlib.blake2b(digest_size=16), 0, 0, b"\n"
    with opened(file) as content:
        for block in blocks(content, file):
            found.update(block)
            size += len(block)
            lines += block.count(b"\n")
            last = block[-1:]
    return Fingerprint(size, lines + (last != b"\n"), found.hexdigest())


def blocks(content: BinaryIO, file: Path) -> Iterator[bytes]:
    """Give the bytes of an open file, a megabyte at a time."""
    try:
        while block := content.read(BLOCK):
            yield block
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"cannot read {file} to its end: {problem}") from problem


def _bounded(content: BinaryIO, file: Path) -> Iterator[bytes]:
    """Give lines; a line of gigabytes, as a packed file of little size can hold, is an error and fills no memory."""
    while line := content.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"a line of {file} is longer than {LONGEST_LINE >> 20} MiB: it holds no pair to score")
        yield line


def lines_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file with their numbers from 1, without their ends, empty ones left out."""
    for place, line in placed_lines(file):
        yield place.line, line


def placed_lines(file: Path, start: Place = START) -> Iterator[tuple[Place, bytes]]:
    """Give the lines of a file as `lines_of`, each with where it begins, from the one that begins at `start`."""
    with opened(file) as content:
        try:
            at = content.seek(start.at)
            for number, line in enumerate(_bounded(content, file), start.line):
                place = Place(start.file, at, number)
                at += len(line)
                line = line.removeprefix(MARK) if number == 1 else line
                if line.strip():
                    yield place, line.rstrip(b"\r\n")
        except (OSError, EOFError, zlib.error) as problem:
            raise InputError(f"cannot read {file} to its end: {problem}") from problem


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give a temporary name to write to; when the block ends, what was written there replaces the file.

    Whoever looks, at any moment and after a loss of power, finds the old content or the new one.

    Raises:
        InputError: a folder that is not empty lies in the file's place.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}")
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        remove_folder(file)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    bring_to_disk(file.parent)


def write_file(file: Path, content: bytes) -> None:
    """Write a file as `replacing` does."""
    with replacing(file) as temporary:
        temporary.write_bytes(content)


def remove(file: Path) -> None:
    """Remove a file, if it is there, or an empty folder in its place. Raises InputError: the folder is not empty."""
    remove_folder(file)
    file.unlink(missing_ok=True)


def remove_folder(file: Path) -> None:
    """Remove an empty folder that lies where a file belongs, if there is one. Raises InputError: it is not empty."""
    if not file.is_dir() or file.is_symlink():
        return
    try:
        file.rmdir()
    except OSError as problem:
        raise InputError(f"{file} must be a file, and is a folder that is not empty: move it away") from problem


def bring_to_disk(folder: Path) -> None:
    """Make sure that the names in a folder outlive a loss of power, where the system can."""
    if os.name == "nt":
        return  # Windows opens no folders
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
