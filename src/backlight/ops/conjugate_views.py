"""Views through a function that is its own inverse: the conjugate of complex numbers, numbers with the other sign.

NOTE [Conjugates]
PyTorch's `conj()` of a complex tensor is a view that is conjugated when it is read, and `imag` of that is one whose
sign is changed when it is read. Kernels here read memory as it is. So the view has memory of its own, a mirror of the
memory of its source: a write to either, or to a view or an alias of either, is followed at once by a write to the
other, of the values and of the history. Both storages count it. `Storage.mirrors` is set on both sides, and
`end_write` of dispatch/observation.py tests it; a tensor without a living mirror pays for that test only. What NumPy,
or another owner of shared memory, writes without a tensor does not reach the mirror.
"""

import weakref
from collections.abc import Callable

import numpy as np

from backlight.dispatch.interpreters import interpreted
from backlight.engine.grad_mode import modes
from backlight.engine.storage import InferenceStorage, Storage
from backlight.engine.tensor_state import TensorState, storage_of, writable
from backlight.engine.views import check_may_write
from backlight.errors import GraphError
from backlight.ops.view_history import rewrite_history

CONJUGATE, NEGATIVE = "conjugate", "negative"


class MirrorStorage(Storage):
    """The storage of a mirror.

    Attributes:
        source: the tensor that is mirrored; None inside a transform, where a mirror cannot be written to.
        pending: CONJUGATE, NEGATIVE or, for the mirror of a mirror, None: what PyTorch does when it reads.
        compute: the op that makes one side of the other.
    """

    def __init__(self, source: TensorState | None, compute: Callable, pending: str | None):
        self.source, self.compute, self.pending = source, compute, pending
        self.mirrors = Mirrors()

    def show(self, made: TensorState) -> None:
        """Become the storage of `made`, the mirror."""
        source = self.source
        self.tensor, self.values, self.shown = weakref.ref(made), writable(made), writable(source)
        self.edges = (source._edge, made._edge)
        storage = storage_of(source)
        if storage.__class__ is not InferenceStorage:
            self.version = storage.version
        if storage.mirrors is None:
            storage.mirrors = Mirrors()
        storage.mirrors.add(self)

    def before_write(self) -> None:
        """Raise unless the source may be written to."""
        source = self.source
        if source is None:
            raise GraphError(
                "a tensor made by conj() inside a transform cannot be written to: write to x.resolve_conj(), or use "
                "x.conj_physical()"
            )
        if source._storage.__class__ is not Storage:
            source._storage.before_write()
        if not modes.grad_enabled:
            return
        if source._edge is not None and source.is_leaf:
            raise GraphError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.\n  Write to a "
                "clone of the leaf, or inside `with torch.no_grad():`"
            )
        check_may_write(source)

    def refresh(self, writer: tuple) -> None:
        """Show what the source holds now."""
        self.values[...] = self._of(self.shown)
        self.wrote(*_op_and_place(writer))
        own, source = self.tensor(), self.source
        if own is not None and source._edge is not self.edges[0] and modes.grad_enabled:
            rewrite_history(own, self.compute(source))
            self.edges = (source._edge, own._edge)

    def write_back(self, writer: tuple) -> None:
        """Write what the mirror holds now to the source."""
        self.shown[...] = self._of(self.values)
        own, source = self.tensor(), self.source
        storage_of(source).wrote(*_op_and_place(writer))
        if own is not None and own._edge is not self.edges[1] and modes.grad_enabled:
            rewrite_history(source, self.compute(own))
            self.edges = (source._edge, own._edge)

    def _of(self, values: np.ndarray) -> np.ndarray:
        return np.conjugate(values) if values.dtype.kind in "cW" and self.pending != NEGATIVE else np.negative(values)


def _op_and_place(writer: tuple | None) -> tuple:
    return ("write", (None, 0)) if writer is None else (writer[0], writer[1:])


class Mirrors:
    """The mirrors of a storage that live."""

    __slots__ = ("living",)

    def __init__(self):
        self.living = None

    def add(self, mirror: MirrorStorage) -> None:
        """Note a mirror, as long as it lives."""
        if self.living is None:
            self.living = weakref.WeakSet()
        self.living.add(mirror)

    def reflect(self, storage: Storage, but: Storage | None = None) -> None:
        """Pass a write on to a storage's mirrors, and to what it is a mirror of; not to `but`, where it came from."""
        for mirror in list(self.living or ()):
            if mirror is not but:
                mirror.refresh(storage.writer)
                mirror.mirrors.reflect(mirror, storage)
        if isinstance(storage, MirrorStorage) and storage.source is not None:
            above = storage_of(storage.source)
            if above is not but:
                storage.write_back(storage.writer)
                above.mirrors.reflect(above, storage)


def mirrored(source: TensorState, compute: Callable, pending: str | None) -> TensorState:
    """Return a mirror of a tensor: what `compute`, an op, makes of it, in memory that is written to with it."""
    made = compute(source)
    plain = not interpreted.blocks and isinstance(source._data, (np.ndarray, np.generic))
    made._storage = MirrorStorage(source if plain else None, compute, pending)
    if plain:
        made._storage.show(made)
    return made


def mirror_of(tensor: TensorState) -> MirrorStorage | None:
    """Return the storage of a mirror, or of a view of one; None for other tensors."""
    storage = tensor._storage
    return storage if storage.__class__ is MirrorStorage else None


def source_base(tensor: TensorState) -> TensorState | None:
    """Return the tensor whose memory a mirror or a view shows, or None."""
    mirror, view = mirror_of(tensor), tensor._view
    if mirror is None or mirror.source is None:
        return None if view is None else view[0]
    source = mirror.source
    return source_base(source) or source


def address(tensor: TensorState) -> int:
    """Return the address of the first element: of a mirror, that of its source."""
    own = writable(tensor).__array_interface__["data"][0]
    mirror = mirror_of(tensor)
    if mirror is None or mirror.source is None:
        return own
    return address(mirror.source) + own - mirror.values.__array_interface__["data"][0]
