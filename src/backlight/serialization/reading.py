"""`load`: files that `save` or PyTorch wrote."""

import io
import math
import os
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import BinaryIO

import numpy as np

from backlight.devices import device, require_cpu
from backlight.dtypes import ALL, OLD, dtype, to_numpy_dtype, uint8
from backlight.engine.storage import stored_in
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import BacklightError, GraphError
from backlight.kernels.memory_order import strided as strided_array
from backlight.layouts import layout, sparse_coo, strided
from backlight.nn.parameter import Parameter
from backlight.serialization.allowed import ALLOWED
from backlight.serialization.legacy import LEGACY_HEAD, StoredArray, read_legacy
from backlight.serialization.objects import ObjectUnpickler
from backlight.serialization.opcodes import DAMAGE, Builder, LoadError, hashable, names_in, read_pickle
from backlight.sizes import Size
from backlight.tensor.sparse.creation import sparse_coo_tensor
from backlight.tensor.storages import UntypedStorage
from backlight.tensor.tensor import Tensor
from backlight.types import FileLike


def load(
    f: FileLike,
    map_location: object = None,
    pickle_module: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **options,
):
    """Return the content of a file in PyTorch's format: tensors and plain values in dicts and lists.

    No code of the file is run, unless `weights_only` is False.

    Args:
        f: a path, or a file open for reading.
        map_location: the device of the tensors; only the CPU. A function is called with each storage and its place,
            "cpu", and may return another storage.
        pickle_module: accepted; Python's pickle is not used.
        weights_only: refuse a file that holds more than tensors and plain values, and what `add_safe_globals` allows.
            With False whatever the file names is imported and called, also if it does harm: only for files that you
            trust.
        mmap: accepted; the file is read.

    Raises:
        UnpicklingError: the file is damaged, of another format, or holds more than tensors and plain values.
    """
    placed = _placement(map_location)
    read = _read_plain if weights_only or weights_only is None else _read_any
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file, read, placed)
    return _read(f, read, placed)


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Return the names of classes and functions in a file that `load` refuses without `weights_only=False`.

    No code of the file is run.

    Args:
        f: a path, or a file open for reading.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    start = f.tell()
    with zipfile.ZipFile(f) as archive:
        found = names_in(_Archive(archive, f).pickled())
    f.seek(start)
    return [name for name in found if name not in NAMES and name not in ALLOWED.by_path()]


def _placement(map_location: object) -> Callable | None:
    """Return what `load` calls with each storage and its place, "cpu": a function given as map_location, else None.

    Raises:
        RuntimeError: another device than the CPU.
    """
    if callable(map_location) and not isinstance(map_location, device):
        return map_location
    if isinstance(map_location, (str, device)):
        try:
            require_cpu(map_location)
        except BacklightError as problem:
            if isinstance(map_location, str) and str(problem).startswith("Expected one of"):
                raise GraphError(
                    "don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
                    f"{map_location})"
                ) from problem
            raise
    return None


def _read_plain(content: BinaryIO, stored: Callable):
    """Read a pickle of plain values, and of what is allowed."""
    return read_pickle(content, NAMES, stored, ALLOWED.by_path())


def _read_any(content: BinaryIO, stored: Callable):
    """Read a pickle of any values: what it names is called."""
    return ObjectUnpickler(content, NAMES, stored).load()


def _read(file: BinaryIO, read: Callable, placed: Callable | None):
    """Return the content of a file, in the zip format or the legacy format."""
    start = file.tell()
    head = file.read(len(LEGACY_HEAD))
    file.seek(start)
    try:
        if head == LEGACY_HEAD:
            return read_legacy(file, read)
        with zipfile.ZipFile(file) as archive:
            return _Archive(archive, file, placed).content(read)
    except LoadError:
        raise
    except (zipfile.BadZipFile, struct.error, OSError, *DAMAGE) as problem:
        raise LoadError(
            f"{getattr(file, 'name', 'the file')} must be a file that torch.save wrote, and is damaged or of another "
            "format: for safetensors, use load_file"
        ) from problem


class _Archive:
    """An open file: its pickle, and the memory of the tensors in it, each read once."""

    def __init__(self, archive: zipfile.ZipFile, file: BinaryIO, placed: Callable | None = None):
        self.archive, self.placed = archive, placed
        self.left = file.seek(0, os.SEEK_END)  # how many bytes may still be read: at most the file's size in total
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1 or any(name.endswith("/constants.pkl") for name in archive.namelist()):
            raise LoadError(f"{archive.filename} holds no weights: it must have been written by torch.save")
        self.root = pickles[0].removesuffix("data.pkl")
        self.arrays: dict[str, StoredArray] = {}

    def content(self, read: Callable):
        """Return the value of the pickle."""
        order = f"{self.root}byteorder"
        if order in self.archive.namelist() and self._bytes(order) != b"little":
            raise LoadError("the file must have little-endian numbers, and has big-endian ones: save it again")
        return read(io.BytesIO(self.pickled()), self.stored)

    def pickled(self) -> bytes:
        """Return the pickle."""
        return self._bytes(f"{self.root}data.pkl")

    def _bytes(self, name: str) -> bytes:
        """Return the bytes of an entry, which must not be compressed: so nothing expands beyond the file's size."""
        entry = self.archive.getinfo(name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > self.left:
            raise LoadError(
                f"the file is damaged: {name} must be stored as it is, and within the file; it is compressed, or "
                f"{entry.file_size} bytes long"
            )
        self.left -= entry.file_size
        return self.archive.read(entry)

    def stored(self, key: tuple) -> StoredArray:
        """Return the memory of a persistent id: ("storage", dtype, name, place, number of elements)."""
        _, kind, name, _, count = key
        if name not in self.arrays:
            content = bytearray(self._bytes(f"{self.root}data/{name}"))
            elements = np.frombuffer(content, to_numpy_dtype(kind)) if content else np.empty(0, to_numpy_dtype(kind))
            if elements.size != count:
                raise LoadError(f"the file is damaged: storage {name} must have {count} elements, got {elements.size}")
            elements = self._placed(elements)
            self.arrays[name] = StoredArray(elements, stored_in(elements))
        return self.arrays[name]

    def _placed(self, elements: np.ndarray) -> np.ndarray:
        """Return the memory that `map_location`, a function, puts in the place of a storage's."""
        if self.placed is None:
            return elements
        found = self.placed(UntypedStorage._over(elements, np.dtype(np.uint8)), "cpu")
        return elements if found is None else found._flat.view(elements.dtype)


def _tensor(
    stored: StoredArray,
    offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    hooks: object = None,
    extra: object = None,
):
    """Return a tensor over stored memory, after checking its bounds."""
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
    data = strided_array(elements[offset:], size, steps)
    return wrap(data, None, stored.storage).requires_grad_(requires_grad)


def _tensor_of_bytes(
    stored: StoredArray, offset: int, size: tuple, stride: tuple, requires_grad: bool, hooks: object, kind: dtype
):
    """Return a tensor of a dtype that has no storage class of its own: uint16, uint32, uint64 or complex32."""
    if not isinstance(kind, dtype) or stored.elements.nbytes % kind.itemsize:
        raise LoadError(f"the file is damaged: {stored.elements.nbytes} bytes must hold elements of {kind!r:.40}")
    elements = stored.elements.view(kind.numpy)
    return _tensor(StoredArray(elements, stored.storage), offset, size, stride, requires_grad, hooks)


def _layout(name: str) -> layout:
    if name == repr(strided):
        return strided
    if name != repr(sparse_coo):
        raise LoadError(f"a layout must be {sparse_coo}, got {name!r:.40}: other sparse tensors cannot be read")
    return sparse_coo


def _sparse(kind: layout, parts: tuple) -> Tensor:
    """Return a sparse tensor, after checking its parts."""
    indices, values, size, *coalesced = parts
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))


def _parameter(data: Tensor, requires_grad: bool, hooks: object = None) -> Parameter:
    return Parameter(data.detach(), requires_grad)


def _parameter_with_state(data: Tensor, requires_grad: bool, hooks: object, state: dict) -> Parameter:
    """Return a parameter with user attributes."""
    made = _parameter(data, requires_grad)
    if not isinstance(state, dict) or any(not isinstance(name, str) or name in vars(TensorState) for name in state):
        raise LoadError(
            f"the file is damaged: the attributes of a parameter must be a dict by name, got {state!r:.100}"
        )
    made.__dict__.update(state)
    return made


def _set(values: list) -> set:
    return set(map(hashable, values))


def _bytearray(content: bytes = b"") -> bytearray:
    if not isinstance(content, bytes):
        raise LoadError(f"a bytearray must be made of bytes, got {type(content).__name__}")
    return bytearray(content)


def _bytes(text: str, encoding: str) -> bytes:
    """Return bytes that protocol 2 wrote as text in latin1."""
    if encoding != "latin1":
        raise LoadError(f"bytes must be written as latin1, got {encoding!r}")
    return text.encode("latin1")


STORAGES = {f"torch.{kind.old_name}Storage": kind for kind in OLD}
NAMES: Mapping[str, object] = {
    "torch._utils._rebuild_tensor": Builder(partial(_tensor, requires_grad=False)),
    "torch._utils._rebuild_tensor_v2": Builder(_tensor),
    "torch._utils._rebuild_tensor_v3": Builder(_tensor_of_bytes),
    "torch._utils._rebuild_sparse_tensor": Builder(_sparse),
    "torch.serialization._get_layout": Builder(_layout),
    "torch._utils._rebuild_parameter": Builder(_parameter),
    "torch._utils._rebuild_parameter_with_state": Builder(_parameter_with_state),
    "torch.Size": Builder(Size),
    "torch.device": Builder(device),
    "collections.OrderedDict": Builder(OrderedDict),
    "collections.Counter": Builder(Counter),
    "builtins.complex": Builder(complex),
    "__builtin__.complex": Builder(complex),
    "builtins.set": Builder(_set),
    "__builtin__.set": Builder(_set),
    "builtins.bytearray": Builder(_bytearray),
    "__builtin__.bytearray": Builder(_bytearray),
    "_codecs.encode": Builder(_bytes),
    **STORAGES,
    "torch.storage.UntypedStorage": uint8,
    **{f"torch.{kind.name}": kind for kind in ALL},
}
