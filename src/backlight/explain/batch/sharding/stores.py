"""Stores: where a job's plan and packed parts lie, a folder or an object store; a file there is created once.

NOTE [A store]
`create(name, content)` returns whether it made the file: False where one of that name is there, which stays as it is.
`read(name)` (FileNotFoundError: there is none), `exists(name)`, `names(folder)`, `remove(name)` and `fetch(name, file)`
do what they say. Names are relative, with / between their parts. Every other failure is an OSError.
"""

import errno
import os
import shutil
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from backlight.adapters.object_store import ObjectStore
from backlight.errors import InputError
from backlight.explain.batch.files import bring_to_disk

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Store(Protocol):
    """See NOTE [A store]."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none of that name, and return whether it was written."""

    def read(self, name: str) -> bytes:
        """Return a file's content."""

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name."""

    def names(self, folder: str) -> set[str]:
        """Return the names of the files in a folder, without the folder's."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def fetch(self, name: str, file: Path) -> None:
        """Copy a file to `file`."""


class FolderStore:
    """A folder, on this machine's disks or on NFS (see NOTE [A store]).

    A file is written under a name of its own, brought to the disk, and then linked to its name, which the system
    refuses where that is taken. On NFS the reply to a link may get lost and the request be repeated; whether it was
    made shows in the number of links.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none of that name, and return whether it was written."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        own = file.with_name(f".{file.name}.{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
        try:
            with open(own, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            created = _link(own, file)
        finally:
            own.unlink(missing_ok=True)
        bring_to_disk(file.parent)
        return created

    def read(self, name: str) -> bytes:
        """Return a file's content."""
        return (self.folder / name).read_bytes()

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        return os.path.lexists(self.folder / name)

    def names(self, folder: str) -> set[str]:
        """Return the names of the files in a folder, without the folder's."""
        try:
            return {entry.name for entry in os.scandir(self.folder / folder)}
        except FileNotFoundError:
            return set()

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def fetch(self, name: str, file: Path) -> None:
        """Copy a file to `file`."""
        shutil.copyfile(self.folder / name, file)


def _link(own: Path, file: Path) -> bool:
    """Give a file its name, and return whether the name was free."""
    if os.name == "nt":  # which renames to no name that is taken
        try:
            own.rename(file)
        except FileExistsError:
            return False
        return True
    try:
        os.link(own, file)
    except FileExistsError:
        return os.stat(own).st_nlink > 1
    except OSError as problem:
        if problem.errno in NO_LINKS:
            raise InputError(
                f"the file system of {file.parent} must have hard links, by which a part is created once: choose a "
                "folder on another disk, on NFS, or an object store"
            ) from problem
        raise
    return True


def is_url(out: str | Path) -> bool:
    """Return whether the output of a job is an object store's URL."""
    return "://" in str(out)


def store_of(out: str | Path, objects: Callable[[str], Store] = ObjectStore) -> Store:
    """Return the store of a job's output, a folder or the URL of an object store."""
    return objects(str(out)) if is_url(out) else FolderStore(Path(out))
