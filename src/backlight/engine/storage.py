"""Version counters: a tensor, its views and its detached aliases share one storage."""

from collections.abc import Iterable

import numpy as np

from backlight.engine.grad_mode import modes
from backlight.errors import GraphError


class Storage:
    """Counts in-place writes to one piece of memory.

    The attributes are class attributes until they are set, so that a new storage costs little.
    """

    version = 0
    writer = None  # (op name, code, lasti) of the last in-place write
    memory = None  # the array that holds all of it, once that is not a base's (`memory_of` in tensor_state.py)
    born = 0  # NOTE [Captured tensors] in engine/mutation_checks.py
    detaches = 0  # how many versions are no writes, but `detach_()` of a tensor that nodes may have saved
    mirrors = None  # the mirrors of tensors in this memory: NOTE [Conjugates] in ops/conjugate_views.py
    detached_from = detached_to = 0  # the versions before and after the last of these that followed each other

    def wrote(self, op_name: str, place: tuple) -> None:
        """Count one in-place write by `op_name`, made at `place`."""
        self.version = self.version + 1
        self.writer = (op_name, *place)

    def note_detached(self) -> None:
        """Count `detach_()` as a version, so that a node that saved the tensor looks at it again."""
        if self.detached_to != self.version:
            self.detached_from = self.version
        self.version = self.detached_to = self.version + 1
        self.detaches += 1

    def written_since(self, version: int) -> bool:
        """Tell whether a write came after a version."""
        return version != self.version and (self.detached_to != self.version or version < self.detached_from)


def stored_in(memory: np.ndarray) -> Storage:
    """Return a new storage for tensors that show parts of an array."""
    storage = Storage()
    storage.memory = memory
    return storage


class GuardedStorage(Storage):
    """A storage of which something was saved that must be copied before it is written to (autograd/mutation.py)."""

    guards = ()  # functions to call before the next write

    def before_write(self) -> None:
        """Call the guards."""
        guards, self.guards = self.guards, ()
        for guard in guards:
            guard()


class _Guarding:
    """How many blocks guard storages now."""

    blocks = 0


guarding = _Guarding()


def before_write(tensors: Iterable) -> None:
    """Call the guards of tensors' memory, which may copy it, before it is written to."""
    for tensor in tensors:
        if isinstance(tensor._storage, GuardedStorage):
            tensor._storage.before_write()


class InferenceStorage:
    """The storage of a tensor made in inference mode: it has no version, and refuses to be saved for backward."""

    writer = None
    memory = None
    mirrors = None
    born = 0

    def note_detached(self) -> None:
        """Do nothing: no node saved it."""

    @property
    def version(self) -> int:
        raise GraphError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and "
            "use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
        )

    def before_write(self) -> None:
        """Refuse to be written to outside of inference mode."""
        if not modes.inference:
            raise GraphError(
                "Inplace update to inference tensor outside InferenceMode is not allowed."
                "You can make a clone to get a normal tensor before doing inplace update."
                "See https://github.com/pytorch/rfcs/pull/17 for more details."
            )

    def wrote(self, op_name: str, place: tuple) -> None:
        """Writes inside inference mode are not counted."""


def new_storage():
    """Return the storage of a new tensor if `modes.marks` is set."""
    if modes.inference:
        return InferenceStorage()
    made = Storage()
    made.born = modes.born
    return made
