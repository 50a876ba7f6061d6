"""Memory that all processes of a group see, where they are on one machine.

NOTE [Shared gradients]
A rank that copies out of another's memory needs nothing of that rank, whereas MPI moves large data only while both
ranks are in it, and polls until then: on busy cores each waits for the other to be scheduled, and keeps it from it. So
on one machine each rank puts its gradients where all see them, and the ranks exchange two lines for each bucket, for
which they poll with pauses (see NOTE [Two phases] in distributed/mpi.py): when all gradients are there, each rank
reduces its part of them into memory that all see, and when all parts are there, all copy the result. A rank writes
the gradients of its next step after the second line, and its part of the next result after the first line of that
step: no other rank reads them any more by then.
"""

import mmap
import os
import secrets

import numpy as np

from backlight.distributed.process_group import ProcessGroup

LINE = 100  # bytes by which rank 0 says where its memory is


def shared_blocks(group: ProcessGroup, count: int, size: int) -> list[np.ndarray] | None:
    """Return blocks of bytes that all ranks of a group see, the same on all; all must call this.

    The memory is rank 0's, has no name in a file system, and goes when no rank has it any more.

    Args:
        count: of the blocks.
        size: bytes of each.

    Returns:
        None if the ranks are on several machines, or the system has no such memory.
    """
    transport, total = group.transport, mmap.PAGESIZE + count * size
    found: list[mmap.mmap | None] = []

    def share() -> None:
        line, file = np.zeros(LINE, np.uint8), None
        if group.rank == 0 and (file := _created(total)) is not None:
            token = secrets.token_hex(16)
            found.append(mmap.mmap(file, total))
            found[0][: len(token)] = token.encode()
            said = f"/proc/{os.getpid()}/fd/{file} {token}".encode()
            line[: len(said)] = np.frombuffer(said, np.uint8)
        transport.broadcast(line, 0)
        if group.rank:
            found.append(_opened(line.tobytes().rstrip(b"\0").decode(), total))
        seen = np.zeros(group.size(), np.uint8)
        seen[group.rank] = any(one is not None for one in found)
        transport.gather(seen, [1] * group.size())
        if file is not None:
            os.close(file)
        if not seen.all():
            found.clear()

    group.collective(f"shared memory, {count} x {size:,} bytes", share).wait()
    if not found:
        return None
    whole = np.frombuffer(found[0], np.uint8, count * size, mmap.PAGESIZE)
    return [whole[number * size : (number + 1) * size] for number in range(count)]


def _created(size: int) -> int | None:
    """Return a file in memory, or None where there is no room or the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    file = os.memfd_create("backlight")
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        os.close(file)
        return None
    return file


def _opened(line: str, size: int) -> mmap.mmap | None:
    """Return the memory that rank 0 created, or None if that is on another machine."""
    path, _, token = line.partition(" ")
    try:
        file = os.open(path, os.O_RDWR)
        try:
            memory = mmap.mmap(file, size)
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None
    return memory if memory[: len(token)] == token.encode() else None
