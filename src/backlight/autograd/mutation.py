"""`allow_mutation_on_saved_tensors`: saved tensors are copied just before the first write to them."""

import weakref
from collections.abc import Iterator

import numpy as np

from backlight.autograd.saved_hooks import saved_tensors_hooks
from backlight.engine.provenance import describe_place
from backlight.engine.storage import GuardedStorage, Storage, guarding
from backlight.engine.tensor_state import TensorState, storage_of, wrap
from backlight.errors import BacklightError, GraphError
from backlight.kernels.state_blocks import block

OUTSIDE = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    "in which the graph was originally recorded."
)


class OutsideBlockError(BacklightError, AssertionError):
    """Backward runs outside the block in which its graph was recorded."""


class Handle:
    """The handle of a saved tensor at one version."""

    __slots__ = ("__weakref__",)


class SavedCopies:
    """The saved tensors of one block, and copies of those that were written to since."""

    def __init__(self):
        self.original = weakref.WeakKeyDictionary()  # handle -> tensor
        self.cloned = weakref.WeakKeyDictionary()
        self.versions = weakref.WeakKeyDictionary()
        self.handles = weakref.WeakValueDictionary()  # (id of tensor, address, version) -> handle

    def pack(self, tensor: TensorState) -> Handle:
        """Register a tensor to be copied before its memory is written to."""
        storage = storage_of(tensor)
        key = (id(tensor), id(tensor._data), storage.version)
        handle = self.handles.get(key)
        if handle is None:
            handle = self.handles[key] = Handle()
            self.original[handle] = wrap(tensor._data)
            if isinstance(tensor._data, np.ndarray):
                self.versions[handle] = (storage, storage.version)
                self._guard(storage, weakref.ref(handle))
        return handle

    def _guard(self, storage: Storage, reference: weakref.ref) -> None:
        if storage.__class__ is Storage:
            storage.__class__ = GuardedStorage
        storage.guards = (*storage.guards, lambda: self._copy(storage, reference()))

    def _copy(self, storage: Storage, handle: Handle | None) -> None:
        if handle is not None and handle in self.original and self.versions[handle][1] == storage.version:
            self.cloned[handle] = wrap(np.array(self.original.pop(handle)._data))

    def unpack(self, handle: Handle):
        """Return a tensor as it was when it was saved.

        Raises:
            AssertionError: the block has ended.
            RuntimeError: it was written to in a way that cannot be intercepted.
        """
        if handle in self.cloned:
            return self.cloned[handle]
        if handle not in self.original:
            raise OutsideBlockError(f"{OUTSIDE}\n  Call backward() inside the block")
        storage, version = self.versions.get(handle, (None, None))
        if storage is not None and storage.version != version:
            name, *place = storage.writer
            raise GraphError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{name} at {describe_place(*place)} writes without asking allow_mutation_on_saved_tensors first; "
                "clone() the tensor before it"
            )
        return self.original[handle]

    def clear(self) -> None:
        """Forget all."""
        for kept in (self.original, self.cloned, self.versions, self.handles):
            kept.clear()


@block
def allow_mutation_on_saved_tensors() -> Iterator[SavedCopies]:
    """Allow writes to saved tensors inside the block; backward uses their original values.

    Run forward and backward inside the same block. It costs a copy of each saved tensor that is written to.

    Raises:
        RuntimeError: the block stands inside another.
    """
    if guarding.blocks:
        raise GraphError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = SavedCopies()
    try:
        guarding.blocks += 1
        with saved_tensors_hooks(copies.pack, copies.unpack):
            yield copies
    finally:
        guarding.blocks -= 1
        copies.clear()
