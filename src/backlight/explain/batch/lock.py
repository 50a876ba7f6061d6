"""One process at a time in a folder.

An exclusive transaction of SQLite holds the lock: the system takes it away when a process ends, however it ends, so
there is no stale lock to clear away. Nothing is written into the database.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backlight.errors import InputError

LOCK, OWNER = ".lock", ".lock.pid"


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Hold a folder while the block runs.

    Raises:
        InputError: another process holds it, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
        try:
            database.execute("BEGIN EXCLUSIVE")
            (folder / OWNER).write_text(str(os.getpid()))
            yield
        finally:
            database.close()
    except sqlite3.OperationalError as problem:
        if "locked" not in str(problem):
            raise InputError(f"cannot write to the folder {folder}: {problem}") from problem
        raise InputError(
            f"{folder} must be worked on by one process at a time, and process {_owner(folder)} is at it: wait for it, "
            "or choose another folder"
        ) from problem
    except OSError as problem:
        raise InputError(f"cannot write to the folder {folder}: {problem.strerror}") from problem


def _owner(folder: Path) -> str:
    file = folder / OWNER
    return file.read_text() if file.exists() else "of an unknown number"
