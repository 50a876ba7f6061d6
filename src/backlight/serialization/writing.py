"""`save`: tensors and plain values in PyTorch's zip format, which `torch.load(weights_only=True)` reads; and objects.

NOTE [The format]
A zip archive, not compressed: `data.pkl` is a pickle in which each tensor is a call of `_rebuild_tensor_v2` with a
persistent id, and `data/<number>` has the bytes of that id. The pickle is written here, opcode by opcode:
Python's pickler would write the names of our classes. A value that is no plain one goes through that pickler
(NOTE [Whole objects] in objects.py).
"""

import io
import math
import os
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from backlight.devices import device
from backlight.dtypes import BAREBONES, dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.kernels.memory_order import is_dense, outer_first, row_major
from backlight.kernels.sparse_array import is_sparse
from backlight.layouts import layout
from backlight.nn.parameter import Parameter
from backlight.serialization.legacy import MACHINE, MAGIC, PROTOCOL
from backlight.serialization.objects import ObjectPickler, rebuilding, storage_class, stored_size
from backlight.sizes import Size
from backlight.tensor.pickling import base_array, layout_in, sparse_parts
from backlight.types import FileLike


def save(
    obj: object,
    f: FileLike,
    pickle_module: object = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors and plain values, in dicts, lists and tuples at any depth, as PyTorch would; other objects too.

    A file at a path is replaced atomically when the new one is complete.

    Args:
        obj: the value to save, for example a state_dict. A model, or another object, is written too, and is then
            loaded with `weights_only=False` only.
        f: a path, or a file open for writing.
        pickle_module: accepted; Python's pickler is not used.
        pickle_protocol: accepted; it is 2.
        _use_new_zipfile_serialization: False writes the format of before PyTorch 1.6.

    Raises:
        PicklingError: `obj` holds something that pickle cannot write, such as a lambda.
    """
    writer = _written(obj, legacy=not _use_new_zipfile_serialization)
    put = _archive if _use_new_zipfile_serialization else _in_a_row
    if not isinstance(f, (str, os.PathLike)):
        put(f, writer)
        return
    part = Path(f).with_name(f"{Path(f).name}.part")
    with open(part, "wb") as file:
        put(file, writer)
    part.replace(f)


def _written(obj: object, legacy: bool) -> "_Writer":
    """Return a writer that has written a value: by itself, or, for one that is not plain, through Python's pickler."""
    writer = _Writer(shared_storages(obj), legacy)
    try:
        writer.write(obj)
    except _NotPlainError:
        writer = _Writer(None, legacy)
        content = io.BytesIO()
        ObjectPickler(content, writer.in_memory, writer.stored, legacy).dump(obj)
        writer.out += content.getvalue()[2:-1]  # without its PROTO and its STOP
    return writer


class _NotPlainError(Exception):
    """A value is no tensor and no plain value."""


def shared_storages(value: object) -> set[int]:
    """Return the ids of storages that two or more tensors inside a value share: these are written in full."""
    inside, seen, times = [value], set(), Counter()
    while inside:
        each = inside.pop()
        if isinstance(each, TensorState) and each._storage is not None:
            times[id(each._storage)] += 1
        elif isinstance(each, (dict, list, tuple)) and id(each) not in seen:
            seen.add(id(each))
            inside.extend(each.values() if isinstance(each, dict) else each)
    return {storage for storage, count in times.items() if count > 1}


def _in_a_row(file: BinaryIO, writer: "_Writer") -> None:
    """Write the legacy format (NOTE [The legacy format] in legacy.py)."""
    for value in (MAGIC, PROTOCOL, MACHINE):
        pickle.dump(value, file, 2)
    file.write(pickle.PROTO + b"\2" + bytes(writer.out) + pickle.STOP)
    pickle.dump([str(number) for number in range(len(writer.arrays))], file, 2)
    for array in writer.arrays:
        file.write(struct.pack("<q", stored_size(array)) + array.tobytes())


def _archive(file: BinaryIO, writer: "_Writer") -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.PROTO + b"\2" + bytes(writer.out) + pickle.STOP)
        archive.writestr("archive/byteorder", "little")
        for number, array in enumerate(writer.arrays):
            archive.writestr(f"archive/data/{number}", memoryview(array.reshape(-1).view(np.uint8)))
        archive.writestr("archive/version", "3\n")


class _Writer:
    """Writes the pickle, and collects the arrays for the other entries (see NOTE [The format])."""

    def __init__(self, shared: set[int] | None, legacy: bool):
        self.shared = shared
        self.legacy = legacy
        self.out = bytearray()
        self.arrays: list[np.ndarray] = []
        self.numbers: dict[tuple, int] = {}  # memory -> its number, so that tied weights stay tied
        self.kept: list = []  # objects whose ids are in `numbers` must stay alive
        self.inside: set[int] = set()

    def write(self, value: object) -> None:
        """Write one value."""
        for kind, method in WRITERS:
            if isinstance(value, kind):
                method(self, value)
                return
        raise _NotPlainError

    def constant(self, value: bool | None) -> None:
        self.out += {None: pickle.NONE, True: pickle.NEWTRUE, False: pickle.NEWFALSE}[value]

    def integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out += pickle.BININT + struct.pack("<i", value)
        else:
            content = pickle.encode_long(int(value))
            if len(content) > 255:
                raise ValueProblem(f"integers must fit into 255 bytes, got one of {len(content)}")
            self.out += pickle.LONG1 + bytes([len(content)]) + content

    def real(self, value: float) -> None:
        self.out += pickle.BINFLOAT + struct.pack(">d", value)

    def text(self, value: str) -> None:
        content = value.encode("utf-8", "surrogatepass")
        self.out += pickle.BINUNICODE + struct.pack("<I", len(content)) + content

    def bytestring(self, value: bytes) -> None:
        self._call("_codecs", "encode", bytes(value).decode("latin1"), "latin1")

    def number(self, value: np.generic) -> None:
        self.write(value.item())

    def kind(self, value: dtype) -> None:
        self._name("torch", value.name)

    def layout(self, value: layout) -> None:
        self._call("torch.serialization", "_get_layout", repr(value))

    def size(self, value: Size) -> None:
        self._call("torch", "Size", tuple(value))

    def place(self, value: device) -> None:
        self._call("torch", "device", value.type)

    def sequence(self, value: list) -> None:
        self.out += pickle.EMPTY_LIST + pickle.MARK
        self._inside(value, value)
        self.out += pickle.APPENDS

    def row(self, value: tuple) -> None:
        self.out += pickle.MARK
        self._inside(value, value)
        self.out += pickle.TUPLE

    def mapping(self, value: dict) -> None:
        self.out += pickle.EMPTY_DICT
        self._entries(value)

    def counts(self, value: Counter) -> None:
        self._call("collections", "Counter", dict(value))

    def ordered(self, value: OrderedDict) -> None:
        self._call("collections", "OrderedDict")
        self._entries(value)
        if vars(value):
            self.write(dict(vars(value)))
            self.out += pickle.BUILD

    def parameter(self, value: Parameter) -> None:
        self._call("torch._utils", "_rebuild_parameter", value.detach(), value.requires_grad, OrderedDict())

    def tensor(self, value: TensorState) -> None:
        if is_sparse(value):
            self._call("torch._utils", "_rebuild_sparse_tensor", value.layout, sparse_parts(value))
            return
        memory, offset, strides = self.in_memory(value)
        kind = value._data.dtype
        self._name(*rebuilding(kind))
        self.out += pickle.MARK
        self._memory(memory)
        for each in (offset, tuple(value.shape), strides, value.requires_grad, OrderedDict()):
            self.write(each)
        if kind in BAREBONES:
            self.kind(from_numpy_dtype(kind))
        self.out += pickle.TUPLE + pickle.REDUCE

    def in_memory(self, value: TensorState) -> tuple:
        """Return the array to store for a tensor, and the tensor's layout in it: (array, offset, strides)."""
        size = value._data.dtype.itemsize
        base = base_array(value) if self.shared is None or id(value._storage) in self.shared else None
        if base is not None and not base.nbytes % size:
            _, kind, start, steps = layout_in(base, value._data)
            if not any(number % size for number in (start, *steps)):
                memory = base.reshape(-1, order="A").view(np.uint8).view(kind)
                return memory, start // size, tuple(step // size for step in steps)
        shape, data = tuple(value.shape), value._data
        if isinstance(data, np.ndarray) and data.size and not row_major(data) and is_dense(data):
            flat = data.transpose(outer_first(data)).reshape(-1)
            return flat, 0, tuple(step // size for step in data.strides)
        return data, 0, tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))

    def stored(self, data: np.ndarray) -> int:
        """Return the number of an array's bytes."""
        array = np.asarray(data)
        key = (array.ctypes.data, array.shape, array.strides, array.dtype) if isinstance(data, np.ndarray) else id(data)
        if key not in self.numbers:
            self.numbers[key] = len(self.arrays)
            self.kept.append(data)
            self.arrays.append(np.ascontiguousarray(array))
        return self.numbers[key]

    def _memory(self, data: np.ndarray) -> None:
        """Write the persistent id of an array's bytes."""
        number, array = self.stored(data), np.asarray(data)
        self.out += pickle.MARK
        self.text("storage")
        self._name(*storage_class(array.dtype))
        self.text(str(number))
        self.text("cpu")
        self.integer(stored_size(array))
        if self.legacy:
            self.constant(None)  # it is no part of another storage
        self.out += pickle.TUPLE + pickle.BINPERSID

    def _entries(self, value: dict) -> None:
        self.out += pickle.MARK
        self._inside(value, [each for entry in value.items() for each in entry])
        self.out += pickle.SETITEMS

    def _inside(self, owner: object, values: Iterable) -> None:
        if id(owner) in self.inside:
            raise _NotPlainError  # pickle writes what holds itself
        self.inside.add(id(owner))
        for value in values:
            self.write(value)
        self.inside.discard(id(owner))

    def _name(self, module: str, name: str) -> None:
        self.out += pickle.GLOBAL + f"{module}\n{name}\n".encode()

    def _call(self, module: str, name: str, *arguments) -> None:
        self._name(module, name)
        self.row(arguments)
        self.out += pickle.REDUCE


WRITERS = [
    ((bool, type(None)), _Writer.constant),
    (np.generic, _Writer.number),  # before Python's types: np.float64 is a float
    (int, _Writer.integer),
    (float, _Writer.real),
    (str, _Writer.text),
    (bytes, _Writer.bytestring),
    (Parameter, _Writer.parameter),
    (TensorState, _Writer.tensor),
    (dtype, _Writer.kind),
    (device, _Writer.place),
    (layout, _Writer.layout),
    (Size, _Writer.size),
    (Counter, _Writer.counts),
    (OrderedDict, _Writer.ordered),
    (dict, _Writer.mapping),
    (list, _Writer.sequence),
    (tuple, _Writer.row),
]
