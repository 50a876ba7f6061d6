"""A lock that allows one process at a time in a folder.

The system's lock on an open file: it goes when the process ends, however it ends, so a lock file that a killed process
left behind holds nothing back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from backlight.errors import InputError

if os.name == "nt":
    import msvcrt
else:
    import fcntl

LOCK = ".lock"
FAR = 1 << 30  # Windows locks a byte of a file, which others cannot read then: one far behind the process's number


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Hold a folder while the block runs; afterwards, however it ends, the lock file is gone.

    Raises:
        InputError: another process holds it, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(folder / LOCK)
    except OSError as problem:
        raise InputError(f"cannot write to the folder {folder}: {problem.strerror}") from problem
    if descriptor is None:
        raise InputError(
            f"{folder} must be worked on by one process at a time, and process {_owner(folder)} is at it: wait for it, "
            "or choose another folder"
        )
    try:
        yield
    finally:
        _release(folder / LOCK, descriptor)


def _locked(file: Path) -> int | None:
    """Return the descriptor of a lock file that is ours now, and holds our number; None if another process has it."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            held = _lock(descriptor)
            if held and _is_at(file, descriptor):
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not held:
            return None
        # its owner removed it after we had opened it: there is a newer one, or none


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file, and tell whether that was possible."""
    try:
        if os.name == "nt":
            os.lseek(descriptor, FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(file: Path, descriptor: int) -> bool:
    """Return whether an open file still is the one of that name."""
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(file: Path, descriptor: int) -> None:
    """Remove a lock file, and let others lock the folder."""
    if os.name == "nt":  # which removes no open file; if another process has opened it by then, it stays for that one
        os.close(descriptor)
        with suppress(PermissionError):
            file.unlink(missing_ok=True)
        return
    try:
        file.unlink(missing_ok=True)  # before the lock goes: afterwards it may be another's
    finally:
        os.close(descriptor)


def _owner(folder: Path) -> str:
    try:
        return (folder / LOCK).read_text() or "of an unknown number"
    except OSError:
        return "of an unknown number"
