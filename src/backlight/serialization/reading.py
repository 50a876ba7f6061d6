"""`load`: files that `save` or PyTorch wrote."""

import math
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from backlight.devices import device, require_cpu
from backlight.dtypes import ALL, to_numpy_dtype
from backlight.graph.state import wrap
from backlight.graph.storage import Storage
from backlight.nn.parameter import Parameter
from backlight.serialization.opcodes import Builder, LoadError, read_pickle
from backlight.sizes import Size

__all__ = ["load"]


def load(f, map_location=None, pickle_module=None, *, weights_only: bool = True, mmap: bool | None = None, **options):
    """Return what a file in PyTorch's format holds: tensors and plain values in dicts and lists. No code is run.

    Args:
        f: a path, or a file open for reading.
        map_location: where tensors go; there is the CPU.
        pickle_module: accepted; Python's pickle is not used.
        weights_only: accepted; nothing else is loaded in any case.
        mmap: accepted; the file is read.

    Raises:
        UnpicklingError: the file is damaged, of another format, or holds more than tensors and plain values.
    """
    require_cpu(map_location if isinstance(map_location, (str, device)) else None)
    try:
        with zipfile.ZipFile(f) as archive:
            return _Archive(archive).content()
    except zipfile.BadZipFile as problem:
        raise LoadError(
            f"{f} must be a file that torch.save wrote in its zip format (since PyTorch 1.6), and is damaged or no zip "
            "archive: for an older one, load and save it with PyTorch; for safetensors, use load_file"
        ) from problem


class StoredArray(NamedTuple):
    """The memory of one or more tensors."""

    elements: np.ndarray
    storage: Storage


class _Archive:
    """An open file: its pickle, and the memory of the tensors in it, each read once."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1 or any(name.endswith("/constants.pkl") for name in archive.namelist()):
            raise LoadError(f"{archive.filename} holds no weights: it must have been written by torch.save")
        self.root = pickles[0].removesuffix("data.pkl")
        self.arrays: dict[str, StoredArray] = {}

    def content(self):
        """Return what the pickle says."""
        order = f"{self.root}byteorder"
        if order in self.archive.namelist() and self.archive.read(order) != b"little":
            raise LoadError("the file must have little-endian numbers, and has big-endian ones: save it again")
        return read_pickle(self.archive.read(f"{self.root}data.pkl"), NAMES, self.stored)

    def stored(self, key) -> StoredArray:
        """Return the memory that a persistent id stands for: ("storage", dtype, name, place, number of elements)."""
        _, kind, name, _, count = key
        if name not in self.arrays:
            content = bytearray(self.archive.read(f"{self.root}data/{name}"))
            elements = np.frombuffer(content, to_numpy_dtype(kind)) if content else np.empty(0, to_numpy_dtype(kind))
            if elements.size != count:
                raise LoadError(f"the file is damaged: storage {name} must have {count} elements, got {elements.size}")
            self.arrays[name] = StoredArray(elements, Storage())
        return self.arrays[name]


def _tensor(stored: StoredArray, offset: int, size: tuple, stride: tuple, requires_grad: bool, hooks=None, extra=None):
    """Return a tensor over stored memory, which it must not leave."""
    size, stride = tuple(size), tuple(stride)
    elements = stored.elements
    last = offset + sum((length - 1) * step for length, step in zip(size, stride))
    numbers = all(isinstance(number, int) and number >= 0 for number in (offset, *size, *stride))
    if not numbers or len(size) != len(stride) or (math.prod(size) and last >= elements.size):
        raise LoadError(
            f"the file is damaged: a tensor of shape {size} and strides {stride} at {offset} leaves its storage of "
            f"{elements.size} elements"
        )
    steps = tuple(step * elements.itemsize for step in stride)
    if not math.prod(size):
        return wrap(np.empty(size, elements.dtype)).requires_grad_(requires_grad)
    data = np.lib.stride_tricks.as_strided(elements[offset:], size, steps)
    return wrap(data, None, stored.storage).requires_grad_(requires_grad)


def _parameter(data, requires_grad: bool, hooks=None) -> Parameter:
    return Parameter(data.detach(), requires_grad)


def _bytes(text: str, encoding: str) -> bytes:
    """Return bytes as protocol 2 writes them: as text in latin1."""
    if encoding != "latin1":
        raise LoadError(f"bytes must be written as latin1, got {encoding!r}")
    return text.encode("latin1")


STORAGES = {f"torch.{kind.old_name}Storage": kind for kind in ALL}
NAMES: Mapping[str, object] = {
    "torch._utils._rebuild_tensor_v2": Builder(_tensor),
    "torch._utils._rebuild_parameter": Builder(_parameter),
    "torch.Size": Builder(Size),
    "torch.device": Builder(device),
    "collections.OrderedDict": Builder(OrderedDict),
    "collections.Counter": Builder(Counter),
    "_codecs.encode": Builder(_bytes),
    **STORAGES,
    **{f"torch.{kind.name}": kind for kind in ALL},
}
