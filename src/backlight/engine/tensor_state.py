"""The part of a tensor that the graph uses: its data, its edge, its storage, its base, its gradient.

NOTE [Edges]
`tensor._edge` says where a tensor came from:
    None      it does not require grad
    LEAF      it requires grad and no op made it
    a Node    the node that made it, its only output
    Output    one of several outputs of a node
    a leaf    the tensor stands for that leaf, which gets its gradient (a saved leaf that was unpacked)
So `requires_grad` is `_edge is not None`, and an op reads one slot of each input to know what to record. In
`node.edges` a leaf stands for itself: `edge.is_leaf_edge` tells leaf tensors from nodes. A leaf's AccumulateGrad, as in
PyTorch, is made when it is first requested (`next_functions`).

NOTE [Storages are made late]
`tensor._storage` is None until the tensor is written to, shares its memory, or is saved as an op's own output. A node
that saves an input keeps the tensor: None then and None now means that there was no write.

NOTE [0-d data]
`tensor._data` is a NumPy array, or for 0-d results the NumPy scalar that ufuncs return, which is several times
cheaper. A scalar is immutable and never shared; `writable(tensor)` makes it an array, in place of the scalar,
before memory is shared (a view, detach, numpy()) or written.
"""

import numpy as np

from backlight.engine.grad_mode import modes
from backlight.engine.storage import InferenceStorage, Storage, new_storage, stored_in

new = object.__new__


class _Leaf:
    """The edge of a leaf that requires grad."""

    __slots__ = ()

    is_leaf_edge = True

    def __repr__(self) -> str:
        return "LEAF"


LEAF = _Leaf()


class _Transforms:
    """How many function transforms are open in all threads: NOTE [Captured tensors] in engine/mutation_checks.py."""

    __slots__ = ("open",)

    def __init__(self):
        self.open = 0


transforms = _Transforms()


class TensorState:
    """Slots that every op reads or writes, and defaults of attributes that few tensors have."""

    __slots__ = ("__dict__", "__weakref__", "_data", "_edge", "_storage", "_view")

    is_leaf_edge = True  # as an edge: the backward pass ends here
    outputs = 1
    _accumulator = None  # weak reference to the AccumulateGrad of a leaf, once it was requested
    _grad = None  # the gradient, a tensor
    _hooks = None  # leaf: {id: hook} of register_hook
    _post_accumulate_hooks = None
    _retains_grad = False
    _tangents = None  # {level of forward mode: tangent}: NOTE [Duals] in codegen/forward_mode.py
    _views = None  # of a base: weak references to its live views
    _was_detached = False  # by `detach_()`, from the node that made it


Gradient = np.ndarray | np.generic | TensorState  # what a backward pass carries: tensors under create_graph
_tensor_class: type  # the class that ops return


def tensor_class(cls: type) -> type:
    """Declare `cls` to be the class that ops return (tensor/tensor.py does this once)."""
    global _tensor_class
    _tensor_class = cls
    return cls


def the_tensor_class() -> type:
    """Return the class that ops return."""
    return _tensor_class


def wrap(data: np.ndarray | np.generic, edge: object | None = None, storage: Storage | None = None):
    """Return a tensor over `data`, which is not copied."""
    made = new(_tensor_class)
    made._data = data
    made._edge = edge
    made._storage = new_storage() if transforms.open and storage is None and modes.marks else storage
    made._view = None
    return made


def wrap_gradient(data: np.ndarray | np.generic):
    """Return a gradient as a tensor: in inference mode as an inference tensor."""
    return wrap(data, None, new_storage() if modes.inference else None)


def storage_of(tensor: TensorState):
    """Return the storage that a tensor shares with its views and detached aliases."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = Storage()
    if transforms.open and not storage.born and tensor._view is None:  # it notes how old the tensor's node is
        edge = tensor._edge
        storage.born = getattr(getattr(edge, "node", edge), "sequence", 0)
    return storage


def memory_of(tensor: TensorState) -> np.ndarray:
    """Return the array over all of the memory that a tensor may be a part of: its base's, unless noted."""
    storage = tensor._storage
    if storage is not None and storage.memory is not None:
        return storage.memory
    view = tensor._view
    return writable(tensor if view is None else view[0])


def storage_for_alias(tensor: TensorState):
    """Return a tensor's storage for an alias without a base, as detach() makes: the storage notes the memory."""
    storage = storage_of(tensor)
    if tensor._view is not None and storage.memory is None:
        storage.memory = writable(tensor._view[0])
    return storage


def noted_memory(tensor: TensorState) -> np.ndarray | None:
    """Return `memory_of(tensor)` if an alias with another storage could not find it, else None."""
    storage = tensor._storage
    part = tensor._view is not None or (storage is not None and storage.memory is not None)
    return memory_of(tensor) if part else None


def replace_memory(tensor: TensorState, data: np.ndarray, memory: np.ndarray | None) -> None:
    """Give a tensor other memory, `data` (a part of `memory`, if given); its views and aliases keep theirs."""
    storage = tensor._storage
    parts = memory is not None or tensor._views or noted_memory(tensor) is not None
    if parts and storage.__class__ is not InferenceStorage:
        apart = stored_in(data if memory is None else memory)
        if storage is not None:
            storage.memory = memory_of(tensor)
            apart.version, apart.writer, apart.born = storage.version, storage.writer, storage.born
        tensor._storage = apart
    tensor._data = data


def edge_of(tensor: TensorState):
    """Return what receives this tensor's gradient: a node, an Output, the leaf itself, or None."""
    edge = tensor._edge
    return tensor if edge is LEAF else edge


def below_batches(tensor: TensorState):
    """Return the tensor that is in the graph: under vmap the one with all elements, the batch dims first."""
    while getattr(tensor._data, "of_a_batch", False):
        tensor = tensor._data.physical
    return tensor


def plain(data: TensorState | np.ndarray) -> np.ndarray:
    """Return a tensor's values, under vmap those of all elements, or an array, as an array."""
    return np.asarray(below_batches(data)._data if isinstance(data, TensorState) else data)


def writable(tensor: TensorState) -> np.ndarray:
    """Return the tensor's data as an array that may be shared and written (see NOTE [0-d data])."""
    data = tensor._data
    if not isinstance(data, np.ndarray):
        data = tensor._data = np.asarray(data)
    return data
