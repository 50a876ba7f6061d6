"""PyTorch's format before 1.6: pickles one after another, and then the memory of the storages.

NOTE [The legacy format]
Five pickles: a magic number, the protocol 1001, a dict about the machine, the value (in which each tensor names its
storage by a persistent id), and the list of the storages' keys. Then, for each key, the number of elements as 8 bytes
and the elements. Tensors are made before their memory is read, so it is allocated by the sizes in the ids: in total at
most as many bytes as the file has.
"""

import io
import pickle
import struct
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

from backlight.dtypes import dtype, to_numpy_dtype
from backlight.engine.storage import Storage, stored_in
from backlight.serialization.opcodes import LoadError, read_pickle

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
MACHINE = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
LEGACY_HEAD = pickle.dumps(MAGIC, 2)


class StoredArray(NamedTuple):
    """The memory of one or more tensors."""

    elements: np.ndarray
    storage: Storage


class _Storages:
    """The memory that is allocated while the value is read."""

    def __init__(self, most: int):
        self.left = most
        self.arrays: dict[str, StoredArray] = {}

    def stored(self, key: tuple) -> StoredArray:
        """Return the memory for ("storage", dtype, name, place, number of elements, part): a part is None or a view."""
        _, kind, name, _, count, part = key
        if not isinstance(kind, dtype) or not isinstance(count, int) or count < 0:
            raise LoadError(f"the file is damaged: a storage of {count!r} elements of {kind!r}")
        if name not in self.arrays:
            numpy_kind = to_numpy_dtype(kind)
            self.left -= count * numpy_kind.itemsize
            if self.left < 0:
                raise LoadError(f"the file is damaged: it is shorter than its storage {name!r} of {count} elements")
            elements = np.zeros(count, numpy_kind)
            self.arrays[name] = StoredArray(elements, stored_in(elements))
        found = self.arrays[name]
        if part is None:
            return found
        _, offset, length = part
        return StoredArray(found.elements[offset : offset + length], found.storage)

    def fill(self, name: str, file: BinaryIO) -> None:
        """Read the elements of one storage."""
        elements = self.arrays[name].elements
        head = file.read(8)
        if len(head) != 8 or struct.unpack("<q", head)[0] != elements.size:
            raise LoadError(f"the file is damaged: storage {name!r} must have {elements.size} elements")
        content = file.read(elements.nbytes)
        if len(content) != elements.nbytes:
            raise LoadError(f"the file is damaged: it ends in the midst of storage {name!r}")
        elements.view(np.uint8)[:] = np.frombuffer(content, np.uint8)


def read_legacy(file: BinaryIO, read: Callable):
    """Return the value in a file of the legacy format (see NOTE [The legacy format]).

    Args:
        read: reads the value's pickle from a file, with a function that returns the value of a persistent id.
    """
    content = file.read()
    rest = io.BytesIO(content)
    storages = _Storages(len(content))
    magic, protocol, machine = (read_pickle(rest, {}, storages.stored) for _ in range(3))
    if (magic, protocol) != (MAGIC, PROTOCOL) or not isinstance(machine, dict) or not machine.get("little_endian"):
        raise LoadError(f"the file must be of protocol {PROTOCOL} and little-endian, and is not: save it again")
    value = read(rest, storages.stored)
    keys = read_pickle(rest, {}, storages.stored)
    if not isinstance(keys, list) or set(keys) != set(storages.arrays):
        raise LoadError("the file is damaged: the storages that it lists are not those of its tensors")
    for key in keys:
        storages.fill(key, rest)
    return value
