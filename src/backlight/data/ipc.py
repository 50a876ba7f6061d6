"""Parcels: what goes from one process to another, with the memory of its arrays beside the pickle.

NOTE [How arrays travel]
A message is small, always: what is larger than MESSAGE lies in a file that has no name and no disk (`memfd_create`),
and the message carries its descriptor. So a worker that has a batch ready goes on with the next one, whether the main
process reads or not, and nothing is left behind whatever dies when: the kernel frees the file with its last descriptor.
The receiver reads the arrays into memory of its own, which costs one copy and leaves it neither a descriptor nor shared
memory to hold for as long as a batch lives. A batch of 1 MB takes a fifth, one of 40 MB a quarter of the time that it
takes in a pipe. Where there are no such files, everything is in the message.
"""

import os
import pickle
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from typing import NamedTuple

import numpy as np

from backlight.engine.tensor_state import LEAF, TensorState
from backlight.errors import GraphError

MESSAGE = 16384  # bytes
APART = 4096  # bytes: the memory of smaller arrays is part of the pickle
FILES = hasattr(os, "memfd_create")

BEGIN, FETCH, STOP = "begin", "fetch", "stop"  # what the main process says
BATCH, FAILURE, END = "batch", "failure", "end"  # what a worker answers


class Label(NamedTuple):
    """What a parcel is: the answer to a task has the task's epoch and number."""

    kind: str
    epoch: int = -1
    task: int = -1


class Parcel(NamedTuple):
    """An object as a pickle and the memory of its larger arrays."""

    pickled: bytes
    buffers: list

    def open(self):
        """Return the object. Its arrays lie in the parcel's memory: a parcel is opened once."""
        return pickle.loads(self.pickled, buffers=self.buffers)


class _Pickler(ForkingPickler):
    """Pickles what multiprocessing can, and refuses tensors with a history, as PyTorch does."""

    def reducer_override(self, value):
        if isinstance(value, TensorState) and value._edge is not None and value._edge is not LEAF:
            raise GraphError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                "before serializing (e.g., putting it on the queue)."
            )
        return NotImplemented


def pack(content) -> Parcel:
    """Return an object as a parcel.

    Raises:
        Exception: it cannot be pickled.
    """
    buffers = []

    def in_the_pickle(buffer: pickle.PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes >= APART:
            buffers.append(memory)
        return memory.nbytes < APART

    written = _Written()
    _Pickler(written, 5, True, in_the_pickle).dump(content)
    return Parcel(b"".join(written), buffers)


class _Written(list):
    """A file for a pickler that keeps the pieces."""

    write = list.append


def send(line: Connection, label: Label, parcel: Parcel) -> None:
    """Send a parcel through a line (see NOTE [How arrays travel])."""
    small = not parcel.buffers and len(parcel.pickled) <= MESSAGE
    if small or not FILES:
        line.send_bytes(pickle.dumps((label, parcel.pickled, [bytearray(buffer) for buffer in parcel.buffers], ()), 5))
        return
    pieces = [memoryview(parcel.pickled), *parcel.buffers]
    with open(os.memfd_create("batch"), "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        line.send_bytes(pickle.dumps((label, b"", [], [piece.nbytes for piece in pieces]), 5))
        send_handle(line, file.fileno(), None)


def receive(line: Connection) -> tuple[Label, Parcel]:
    """Return the next parcel of a line and its label; wait for it.

    Raises:
        OSError: the other side is gone.
        EOFError: it is gone and had sent nothing more.
    """
    label, pickled, buffers, sizes = pickle.loads(line.recv_bytes())
    if not sizes:
        return label, Parcel(pickled, buffers)
    with open(recv_handle(line), "rb") as file:
        file.seek(0)
        first, *others = [_read(file, size) for size in sizes]
    return label, Parcel(first, others)


def _read(file, size: int) -> np.ndarray:
    memory = np.empty(size, np.uint8)
    file.readinto(memory)
    return memory
