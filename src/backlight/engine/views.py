"""Views: tensors that share memory and a version counter with their base."""

import weakref
from collections.abc import Sequence

import numpy as np

from backlight.engine.grad_mode import modes
from backlight.engine.mutation_checks import is_leaf_inside
from backlight.engine.node import Edges, Node, new_node, origin
from backlight.engine.storage import InferenceStorage
from backlight.engine.tensor_state import (
    LEAF,
    Gradient,
    TensorState,
    new,
    storage_of,
    the_tensor_class,
    transforms,
    writable,
)
from backlight.errors import GraphError, ShapeError
from backlight.kernels.elementwise.complex_parts import parts_of
from backlight.kernels.memory_order import strided

PLAIN = "plain"
NO_GRAD = "made while recording was off"
INFERENCE = "made in inference mode"
MULTI = "one of several views made by one op"
CUSTOM = "made by a custom Function"

MADE_BY_CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def made_view(source: TensorState, data: np.ndarray, kind: object):
    """Return a tensor over `data`, which shares memory with `source`; its edge is set by the caller.

    A tensor that shares memory with an inference tensor is one too, and not its view: as in PyTorch it is not tracked.
    """
    out = new(the_tensor_class())
    out._data = data
    out._storage = storage_of(source)
    if out._storage.__class__ is InferenceStorage:
        out._view = None
        if out._storage.memory is None:
            out._storage.memory = writable(source)
        return out
    view = source._view
    if view is None:
        base = source
    else:
        base, inherited = view
        if kind is PLAIN:
            kind = inherited
    out._view = (base, kind)
    if modes.grad_enabled:
        remember_view(base, out)
    return out


def unrecorded_view(out: TensorState) -> None:
    """Note that a view was made while recording was off: writing to it later, with recording on, is ambiguous.

    In inference mode a view of a tensor that requires grad requires it too, as a leaf.
    """
    if not modes.grad_enabled and out._view is not None:
        base = out._view[0]
        out._view = (base, INFERENCE if modes.inference else NO_GRAD)
        if modes.inference and base._edge is not None and out._data.dtype.kind not in "biu":
            out._edge = LEAF


def remember_view(base: TensorState, view: TensorState) -> None:
    """Note a view in its base, so that a write to either can update the history of both.

    Dead references are removed whenever the list has doubled.
    """
    views = base._views
    if views is None:
        base._views = [weakref.ref(view)]
        return
    count = len(views)
    if count >= 16 and count & (count - 1) == 0:
        views[:] = [reference for reference in views if reference() is not None]
    views.append(weakref.ref(view))


def live_views(base: TensorState) -> list:
    """Return the views of a base that still exist."""
    found = (reference() for reference in base._views or ())
    return [view for view in found if view is not None]


def has_history(tensor: TensorState) -> bool:
    """Tell whether a tensor, or the base it is a view of, requires grad."""
    view = tensor._view
    return tensor._edge is not None or (view is not None and view[0]._edge is not None)


def check_may_write(tensor: TensorState) -> None:
    """Raise unless a recorded in-place op may write to this tensor.

    Raises:
        RuntimeError: it is a leaf that requires grad, a view of one, or a view whose history would be ambiguous.
    """
    check_view(tensor)
    if tensor.requires_grad and (tensor.is_leaf or (transforms.open and is_leaf_inside(tensor))):
        raise GraphError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n  Change a leaf inside "
            "`with torch.no_grad():`, or compute a new tensor instead (x = x + 1, not x += 1)"
        )


def check_view(tensor: TensorState) -> None:
    """Raise unless a view may be written to.

    Raises:
        RuntimeError: it is a view of a leaf, or its history would be ambiguous.
    """
    if tensor._view is None:
        return
    base, kind = tensor._view
    grad_fn = tensor.grad_fn
    number = getattr(tensor._edge, "number", 0)
    name = grad_fn.forward_name() if grad_fn is not None else "a view op"
    made = origin(tensor)
    if kind is NO_GRAD:
        raise GraphError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
            "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
            f"both outside (if you want the inplace to be tracked).{made}"
        )
    if kind is INFERENCE:
        raise GraphError(
            "A view was created in inference mode and is being modified inplace in normal mode. Given that this use "
            "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
            "the inplace either both inside the inference_mode block (if you don't want the inplace to be tracked) or "
            f"both outside (if you want the inplace to be tracked).{made}"
        )
    if kind is MULTI:
        raise GraphError(
            f"Output {number} of {name} is a view and is being modified inplace. This view is the output of a function "
            "that returns multiple views. Such functions do not allow the output views to be modified inplace. You "
            f"should replace the inplace operation by an out-of-place one.{made}"
        )
    if kind is CUSTOM:
        raise GraphError(f"Output {number} of {name} is a view and is being modified inplace. {MADE_BY_CUSTOM}{made}")
    if (base.is_leaf or (transforms.open and is_leaf_inside(base))) and (tensor.requires_grad or base.requires_grad):
        raise GraphError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.\n  Write to a clone "
            f"of the leaf, or inside `with torch.no_grad():`{made}"
        )


def positions_in(base: TensorState, view: TensorState) -> np.ndarray:
    """Return, for each element of a view, its flat index in the base, row by row.

    Where one of the two is complex and the other real, both are taken as the real numbers that they consist of, of
    which a complex one has a further dim of size 2.

    Raises:
        RuntimeError: the view covers memory that holds no element of the base.
    """
    memory, part = writable(base), view._data
    if shows_parts(base, view):
        memory, part = parts_of(memory), parts_of(part)
    if part.size == 0:
        return np.empty(part.shape, np.int64)
    places, offset = _places(memory), part.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    start, strides = offset // memory.itemsize * 8, tuple(stride // memory.itemsize * 8 for stride in part.strides)
    steps = [(size - 1) * stride for size, stride in zip(part.shape, strides)]
    first = start + sum(step for step in steps if step < 0)
    last = start + sum(step for step in steps if step > 0)
    inside = first >= 0 and last + 8 <= places.nbytes
    found = np.ndarray(part.shape, np.int64, places, start, strides) if inside else None
    if found is None or found.min() < 0:
        raise ShapeError("a view must show elements of its base only: make a contiguous copy of the base first")
    return found


def shows_parts(base: TensorState, view: TensorState) -> bool:
    """Tell whether a view shows real numbers of a complex base, or complex numbers of a real one."""
    return (base._data.dtype.kind in "cW") != (view._data.dtype.kind in "cW")


def _places(memory: np.ndarray) -> np.ndarray:
    """Return, for each position in an array's memory, the flat index of the element there; -1 in gaps."""
    if memory.flags.c_contiguous:
        return np.arange(memory.size)
    strides = [stride // memory.itemsize for stride in memory.strides]
    places = np.full(1 + sum((size - 1) * stride for size, stride in zip(memory.shape, strides)), -1, np.int64)
    elements = np.ndarray(memory.shape, np.int64, places, 0, [stride * 8 for stride in strides])
    elements[...] = np.arange(memory.size).reshape(memory.shape)
    return places


def shown_by_strides(flat: np.ndarray, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Return a view of a 1-d array by size and by strides in bytes, of which none is negative.

    Raises:
        RuntimeError: it would reach beyond the array: another thread gave the tensor other memory meanwhile.
    """
    reach = sum((size - 1) * step for size, step in zip(shape, strides)) + flat.itemsize
    if reach > flat.nbytes and 0 not in shape:
        raise ShapeError(
            f"setStorage: sizes {list(shape)} need {reach} bytes and are out of bounds for storage of size "
            f"{flat.nbytes}: the tensor was given other memory while this ran"
        )
    return strided(flat, shape, strides)


def same_part(other: np.ndarray, memory: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the part of `other`, which has the memory layout of `memory`, that corresponds to `part` of `memory`."""
    start, first = (array.__array_interface__["data"][0] for array in (part, memory))
    steps = [step // memory.itemsize * other.itemsize for step in part.strides]
    flat = other.ravel(order="K")
    return shown_by_strides(flat[(start - first) // memory.itemsize :] if part.size else flat, part.shape, steps)


class StaleView(Node):
    """The node of a custom Function's view whose base was written to since; its backward raises."""

    __slots__ = ("maker", "number")

    def backward(self, grad: Gradient, edges: Edges, keep: bool):
        """Raise: the custom backward does not include the write."""
        raise GraphError(
            f"Output {self.number} of {self.maker} is a view and its base or another view of its base has been "
            f"modified inplace. {MADE_BY_CUSTOM}"
        )


def stale_view(view: TensorState) -> StaleView:
    """Return the node of a custom Function's view whose base has just been written to."""
    return new_node(StaleView, (view._edge,), number=view.output_nr, maker=view.grad_fn.forward_name())
