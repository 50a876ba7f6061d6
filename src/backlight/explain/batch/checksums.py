"""Checksums: detect whether a file of a job's folder is still as it was written.

NOTE [Checksums of a job]
Each part has a record in done/, written after the part's files are in their places: their sizes and hashes, how many
rows and bad rows they hold, and of which job they are. A part is done when its record is there and all of that is so.
A record, and job.json, ends with a hash of itself. Whatever is damaged is made again: a kill at any moment, even a
loss of power that brings files to the disk in another order, leaves a part that is done or one that is computed again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backlight.explain.batch.files import write_file

DONE = "done"
OWN = "blake2b"  # the field with the hash of all others
SIZE = 16  # bytes of a hash


@dataclass(frozen=True)
class Repair:
    """A file of a job's folder that was not as it was written, and what was done about it."""

    file: str
    damage: str
    repair: str = "computed again"

    def __str__(self) -> str:
        return f"{self.file} {self.damage}: {self.repair}"


class Damaged(Exception):
    """What is wrong with a file, as the end of a sentence that begins with its name.

    Args:
        damage: "is missing".
        file: relative to the job's folder.
    """

    def __init__(self, damage: str, file: str):
        super().__init__(damage)
        self.file = file


def hash_of(record: object) -> str:
    """Return the hash of a record, whatever the order of its fields."""
    content = json.dumps(record, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(content, digest_size=SIZE).hexdigest()


def record_bytes(record: Mapping) -> bytes:
    """Return a record as JSON, with a hash of itself."""
    return json.dumps({**record, OWN: hash_of(record)}, ensure_ascii=False, indent=1).encode() + b"\n"


def write_record(file: Path, record: Mapping) -> None:
    """Write a record as `record_bytes` has it."""
    write_file(file, record_bytes(record))


def read_record(file: Path, name: str) -> dict:
    """Return a record, without its hash. Raises Damaged: it is missing, or is not as it was written."""
    return record_in(_read(file, name), name)


def record_in(content: bytes, name: str) -> dict:
    """Return what `record_bytes` made bytes of, without its hash. Raises Damaged: it is not as it was written."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Damaged("is not JSON", name) from problem
    if not isinstance(record, dict) or record.pop(OWN, None) != hash_of(record):
        raise Damaged("is not as it was written", name)
    return record


def checksum_of(file: Path, name: str) -> dict:
    """Return the size and the hash of a file. Raises Damaged: it is missing, or cannot be read."""
    try:
        with open(file, "rb") as content:
            found = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=SIZE)).hexdigest()
            return {"bytes": content.tell(), "blake2b": found}
    except OSError as problem:
        raise _unreadable(problem, name) from problem


def checksum(content: bytes) -> dict:
    """Return the size and the hash of bytes, as `checksum_of` those of a file."""
    return {"bytes": len(content), "blake2b": hashlib.blake2b(content, digest_size=SIZE).hexdigest()}


class Records:
    """The records in done/ (see NOTE [Checksums of a job]).

    Args:
        folder: the job's.
        job: which job it is, as `job.begin` returns it.
    """

    def __init__(self, folder: Path, job: str):
        self.folder, self.job = folder, job

    def write(self, name: str, files: Sequence[str], **facts: int) -> dict:
        """Record that files are as they should be.

        Args:
            name: of the record.
            files: relative to the folder.
            facts: what else is recorded of them.
        """
        found = {file: checksum_of(self.folder / file, file) for file in files}
        record = {"job": self.job, "name": name, **facts, "files": found}
        self.keep(record)
        return record

    def keep(self, record: Mapping) -> None:
        """Write a record of files that are in their places."""
        write_record(self.folder / DONE / f"{record['name']}.json", record)

    def verified(self, name: str) -> dict:
        """Return a record, after checking all that it says.

        Raises:
            Damaged: it is missing, a file is not as it was written, or it is of another job.
        """
        record = read_record(self.folder / DONE / f"{name}.json", f"{DONE}/{name}.json")
        if record["job"] != self.job:
            raise Damaged("is of another job", f"{DONE}/{name}.json")
        if record["name"] != name:
            raise Damaged(f"is a copy of {record['name']}.json", f"{DONE}/{name}.json")
        for file, written in record["files"].items():
            found = checksum_of(self.folder / file, file)
            if found["bytes"] != written["bytes"]:
                kept = f"{found['bytes']:,} bytes of {written['bytes']:,}" if found["bytes"] else "nothing"
                raise Damaged(f"holds {kept}", file)
            if found != written:
                raise Damaged("is not as it was written", file)
        return record


def jobs_recorded(folder: Path) -> set[str]:
    """Return which jobs the readable records of a folder are of."""
    jobs = set()
    for file in (folder / DONE).glob("*.json"):
        try:
            jobs.add(read_record(file, file.name)["job"])
        except Damaged:
            continue  # it says nothing of a job
    return jobs


def _read(file: Path, name: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise _unreadable(problem, name) from problem


def _unreadable(problem: OSError, name: str) -> Damaged:
    if isinstance(problem, FileNotFoundError):
        return Damaged("is missing", name)
    if isinstance(problem, IsADirectoryError):
        return Damaged("is a folder", name)
    return Damaged(f"cannot be read ({problem.strerror})", name)
