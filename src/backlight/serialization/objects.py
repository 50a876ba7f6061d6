"""Any Python object in a file, such as a whole model: Python's pickle, with PyTorch's names for what is ours.

NOTE [Whole objects]
`save` writes tensors and plain values by itself. Whatever else it is given goes through Python's pickler, in which
tensors are written as `save` writes them, and classes and functions of backlight under the names of PyTorch's; so
PyTorch reads such a file too, if it has the program's own classes. Reading one calls what the file names: only
`load(…, weights_only=False)` does that.
"""

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from backlight.devices import device
from backlight.dtypes import BAREBONES, dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.kernels.sparse_array import is_sparse
from backlight.layouts import layout
from backlight.nn.internal.hooks import Hooks
from backlight.nn.internal.state_dict import StateHooks
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.serialization.opcodes import Builder, LoadError
from backlight.sizes import Size
from backlight.tensor.pickling import own_attributes, sparse_parts
from backlight.torch_api.module_names import NAMES as TORCH_MODULES
from backlight.torch_api.module_names import not_here, pytorch_name, value_of

FIRST = ("training", "_parameters", "_buffers", "_non_persistent_buffers_set")  # of a module's attributes


class Global(NamedTuple):
    """A name that the file has, of a module and inside it: PyTorch's function, or a type of its storages."""

    module: str
    name: str

    def __call__(self, *args):
        """Make pickle take it for a function, which it writes by its name."""
        raise NotImplementedError(f"{self.module}.{self.name} is a name in a file")


class StoredMemory(NamedTuple):
    """An array whose elements stand outside the pickle, under a number."""

    number: int
    elements: np.ndarray


REBUILD_SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
REBUILD_PARAMETER = Global("torch._utils", "_rebuild_parameter")
REBUILD_PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")


def rebuilding(kind: np.dtype) -> Global:
    """Return PyTorch's function that makes a tensor of a dtype over its storage."""
    return Global("torch._utils", "_rebuild_tensor_v3" if kind in BAREBONES else "_rebuild_tensor_v2")


def storage_class(kind: np.dtype) -> Global:
    """Return the storage class of a dtype: uint16, uint32 and uint64 have none, their tensors lie in bytes."""
    if kind in BAREBONES:
        return Global("torch.storage", "UntypedStorage")
    return Global("torch", f"{from_numpy_dtype(kind).old_name}Storage")


def stored_size(array: np.ndarray) -> int:
    """Return how many elements of its storage class an array takes."""
    return array.nbytes if array.dtype in BAREBONES else array.size


class ObjectPickler(pickle._Pickler):
    """Python's own pickler, written in Python: the one in C does not let a class say how names are written.

    Args:
        layout: returns the array to store for a tensor, and the tensor's offset and strides in it.
        stored: stores an array, and returns its number.
    """

    def __init__(self, file: io.BytesIO, layout: Callable, stored: Callable, legacy: bool):
        super().__init__(file, protocol=2)
        self.layout = layout
        self.stored = stored
        self.legacy = legacy

    def persistent_id(self, obj: object) -> tuple | None:
        """Return the id of a tensor's memory."""
        if type(obj) is not StoredMemory:
            return None
        kind, size = storage_class(obj.elements.dtype), stored_size(obj.elements)
        return ("storage", kind, str(obj.number), "cpu", size, *((None,) if self.legacy else ()))

    def reducer_override(self, obj: object):
        """Return how to write what is ours; NotImplemented for what Python knows to write."""
        if isinstance(obj, Global):
            return obj.name
        if isinstance(obj, Parameter):
            arguments = obj.detach(), obj.requires_grad, OrderedDict()
            attributes = own_attributes(obj)
            if attributes:
                return REBUILD_PARAMETER_WITH_STATE, (*arguments, attributes)
            return REBUILD_PARAMETER, arguments
        if isinstance(obj, TensorState) and is_sparse(obj):
            return REBUILD_SPARSE, (obj.layout, sparse_parts(obj))
        if isinstance(obj, layout):
            return Global("torch.serialization", "_get_layout"), (repr(obj),)
        if isinstance(obj, TensorState):
            memory, offset, strides = self.layout(obj)
            kept = StoredMemory(self.stored(memory), np.asarray(memory))
            kind = obj._data.dtype
            extra = (from_numpy_dtype(kind),) if kind in BAREBONES else ()
            parts = (kept, offset, tuple(obj.shape), strides, obj.requires_grad, OrderedDict(), *extra)
            return rebuilding(kind), parts
        if isinstance(obj, dtype):
            return obj.name
        if isinstance(obj, device):
            return Global("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, Size):
            return Global("torch", "Size"), (tuple(obj),)
        if isinstance(obj, Module) and type(obj).__getstate__ is object.__getstate__:
            make, arguments, _, *rest = obj.__reduce_ex__(2)
            return make, arguments, _state_in_pytorch(obj), *rest
        return _written_by_name(obj)

    def save_global(self, obj: object, name: str | None = None) -> None:
        """Write a name: of what is ours, PyTorch's."""
        found = _torch_name(obj)
        if found is None:
            super().save_global(obj, name)
        else:
            self.write(pickle.GLOBAL + f"{found[0]}\n{found[1]}\n".encode())
            self.memoize(obj)


def _written_by_name(obj: object):
    """Return the name of a function of ours, which pickle may not recognise as one."""
    found = None if isinstance(obj, type) or not callable(obj) else _torch_name(obj)
    return NotImplemented if found is None else found[1]


def _torch_name(obj: object) -> tuple[str, str] | None:
    if isinstance(obj, Global):
        return obj
    return ("torch", obj.name) if isinstance(obj, dtype) else pytorch_name(obj)


def _state_in_pytorch(module: Module) -> dict:
    """Return the attributes of a module as PyTorch's modules have them: hooks in dictionaries of their own."""
    own = dict(vars(module))
    hooks, on_state = own.pop("_hooks", None) or Hooks(), own.pop("_state_hooks", None) or StateHooks()
    first = {name: own.pop(name) for name in FIRST}
    modules = own.pop("_modules")
    return {**first, **vars(hooks), **vars(on_state), "_modules": modules, **own}


class ObjectUnpickler(pickle.Unpickler):
    """Reads what a file holds, and calls what it names.

    Args:
        names: values, and Builders of functions, by "module.name".
        stored: returns the value of a persistent id.
    """

    def __init__(self, file: io.BufferedIOBase, names: Mapping[str, object], stored: Callable):
        super().__init__(file)
        self.names = names
        self.stored = stored

    def find_class(self, module: str, name: str):
        """Return what a name of the file means: of PyTorch's names, ours."""
        found = self.names.get(f"{module}.{name}")
        if found is not None:
            return found.call if isinstance(found, Builder) else found
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        found = value_of(module, name) if module in TORCH_MODULES else None
        if found is None:
            raise LoadError(not_here(f"{module}.{name}"))
        return found

    def persistent_load(self, pid: tuple):
        """Return the memory of a tensor; of a class that was written with its source, the class."""
        return pid[1] if pid[0] == "module" else self.stored(pid)
