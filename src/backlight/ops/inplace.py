"""In-place ops: an op's result is written into its first input, whose history is rewritten.

Where that input is a view, see NOTE [Writing to a view] in ops/view_history.py.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from backlight.codegen.declaration import Array
from backlight.codegen.forward_mode import copy_tangents, has_tangents, write_tangents
from backlight.codegen.runtime_support import is_operand
from backlight.dispatch import observation
from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.interpreters import interpreted
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.mutation_checks import refuse_captured
from backlight.engine.node import rename_node
from backlight.engine.provenance import user_place
from backlight.engine.storage import Storage
from backlight.engine.tensor_state import TensorState, storage_of, transforms, wrap, writable
from backlight.engine.views import check_may_write, has_history
from backlight.errors import ShapeError, UnsupportedError
from backlight.ops.memory_overlap import overlaps_itself, refuse_expanded, refuse_overlaps, write_changes
from backlight.ops.type_promotion import LONG, category, scalar_dtype
from backlight.ops.view_history import edge_of_values, rewritten_history


def inplace(public: Callable, name: str | None = None, *, ufunc: Callable | None = None, operator: bool = False):
    """Return the in-place form of an op's public function: it writes into its first argument and returns it.

    Args:
        ufunc: NumPy's function for the op, used where nothing is recorded and no dtype has to change.
        operator: whether it is a Python operator, which returns NotImplemented for an operand that is foreign to it.
    """
    name = name or public.__name__ + "_"

    @functools.wraps(public)
    def write_result(self, *args, **kwargs):
        if observation.observers.active:
            if observation.reports_ops():
                return observation.reported(write_result, (self, *args), kwargs)
            if anomaly.wanted_of_ops:  # the op checks its result, a ufunc does not
                return write_op(public, name, self, args, kwargs)
        if ufunc is not None and len(args) == 1 and not kwargs and written_directly(self, args[0], ufunc, name):
            if observation.observers.active or self._storage.mirrors is not None:
                observation.end_write(self)
            return self
        if operator and not (is_operand(args[0]) or isinstance(args[0], (np.ndarray, np.generic))):
            return NotImplemented
        return write_op(public, name, self, args, kwargs)

    write_result.__name__ = write_result.__qualname__ = name
    write_result.writes, write_result.writes_as = public, name  # overrides give an operator the name `__iadd__`
    return composite_function(write_result)


def write_op(public: Callable, name: str, target: TensorState, args: tuple, kwargs: dict):
    """Write an op's result into its first argument, recorded if need be; return that."""
    if transforms.open:
        refuse_captured(target, name, args, kwargs)
    recording = modes.grad_enabled
    if recording and (has_history(target) or _any_requires_grad(args, kwargs)):
        check_may_write(target)
        refuse_overlaps(target, (*args, *kwargs.values()), name)
        source = wrap(np.array(target._data), edge_of_values(target))  # what the node saves must stay as it is now
        if interpreted.blocks:
            copy_tangents(target, source, cloned=True)
    else:
        refuse_overlaps(target, (*args, *kwargs.values()), name)
        source = target
    adds = name == "index_put_" and bool(kwargs.get("accumulate", len(args) > 2 and args[-1] is True))
    try:
        result = public(source, *args, **kwargs)
    except UnsupportedError:
        if name.startswith("bitwise_"):
            _check_operand(target, args)
        raise
    _check_result(name, target._data.dtype, result._data.dtype)
    write(target, result, name, before=source._edge, adds=adds)
    return target


def _check_result(name: str, kind: np.dtype, found: np.dtype) -> None:
    """Raise PyTorch's error of an op whose result does not go into a tensor of a dtype that could be cast to it."""
    if name == "float_power_" and found != kind:
        names = [from_numpy_dtype(one).old_name for one in (kind, found)]
        raise ShapeError(
            f"the base given to float_power_ has dtype {names[0]} but the operation's result requires dtype {names[1]}"
        )
    if name in ("abs_", "absolute_") and category(kind) > category(found):
        raise ShapeError("In-place abs is not supported for complex tensors.")


def _check_operand(target: TensorState, args: tuple) -> None:
    """Raise PyTorch's error, which comes before a kernel's, if the dtype of an operand does not fit into `target`."""
    for value in args[:1]:
        kind = value._data.dtype if isinstance(value, TensorState) else None
        if kind is None and isinstance(value, (int, float, complex)):
            kind = scalar_dtype(value)
        if kind is not None and category(kind) > category(target._data.dtype):
            raise _does_not_fit(kind, target._data.dtype)


def written_directly(target: TensorState, operand: TensorState | float, ufunc: Callable, name: str) -> bool:
    """Let a ufunc write its result into a tensor's memory, if nothing else is to be done; return whether it did."""
    if transforms.open:
        return False
    data, edge = target._data, target._edge
    if data.__class__ is not np.ndarray or data.dtype.kind != "f" or interpreted.blocks:
        return False
    if operand.__class__ is not float and operand.__class__ is not int:
        values = getattr(operand, "_data", None)
        if values is None or values.dtype is not data.dtype or (values.ndim and values.shape != data.shape):
            return False
        if operand._storage is target._storage is not None and operand is not target:
            return False
        edge = edge or operand._edge
        operand = values
    elif operand.__class__ is int and not -LONG <= operand < LONG:
        return False
    if (edge is not None or target._view is not None) and modes.grad_enabled:
        return False
    refuse_writing(target)
    storage_of(target).wrote(name, user_place(3))
    ufunc(data, operand, data)
    return True


def _any_requires_grad(args: Sequence, kwargs: dict) -> bool:
    return any(getattr(value, "_edge", None) is not None for value in (*args, *kwargs.values()))


def write_over(target: TensorState, public: Callable, values: tuple, name: str) -> None:
    """Overwrite `target` with what an op makes of its shape and dtype and of other values; the write is recorded.

    No gradient flows to the old values of a view; the gradient of its base's other elements bypasses the view.
    """
    if transforms.open:
        refuse_captured(target, name, values)
    if target._view is None:
        write(target, public(target, *values), name)
        return
    source = wrap(target._data)
    if interpreted.blocks:
        copy_tangents(target, source, cloned=True)
    result = public(source, *values)
    recorded = result._edge is not None or (modes.grad_enabled and has_history(target))
    ends = 1 + sum(isinstance(value, TensorState) for value in values)
    write(target, result, name, replaces=ends if recorded else 0)


def write(
    target: TensorState, result: TensorState, name: str, *, replaces: int = 0, before=None, adds: bool = False
) -> None:
    """Write the value and the history of `result` into `target`.

    Args:
        replaces: how many edges the node of a result has that does not depend on `target`.
        before: the edge that `target` had when the result was computed from it.
        adds: whether the op adds to what is there, also several times to one place.

    Raises:
        RuntimeError: the shapes differ, the dtype cannot hold the result, the memory overlaps itself, or `target` was
            made in inference mode and recording is on.
    """
    refuse_writing(target, name)
    check_fits(target, result)
    if result._edge is not None and result._data.dtype != target._data.dtype:
        result = result.to(from_numpy_dtype(target._data.dtype))
    begin_write(target, name)
    if interpreted.blocks:
        write_tangents(target, result)
    data, values, history = target._data, result._data, None
    if data.__class__ is not np.ndarray:
        values = data.dtype.type(values)
    if result._edge is not None or replaces:
        _save_written_output(result, target, data if data.__class__ is np.ndarray else values)
        history = rewritten_history(target, result, before, replaces)
    if data.__class__ is np.ndarray:  # from here on in one step: NOTE [Interrupts] in kernels/state_blocks.py
        if overlaps_itself(data) and name not in ("fill_", "zero_"):
            write_changes(data, values, adds)
        else:
            data[...] = values
    else:
        target._data = values
    if history is not None:
        tuple(history)
    observation.end_write(target)


def will_record(target: TensorState, source: TensorState | None = None) -> bool:
    """Tell whether writing `source` into `target` must be recorded; raise if that is not allowed.

    It must if one of them has a history and grad mode is on, or if one of them has a tangent.
    """
    if interpreted.blocks and has_tangents(target, source):
        if modes.grad_enabled:
            check_may_write(target)
        return True
    if not modes.grad_enabled or not (has_history(target) or (source is not None and source._edge is not None)):
        return False
    check_may_write(target)
    return True


def store(target: TensorState, values: Array | float, name: str) -> None:
    """Store values (an array or a number) in a tensor's memory, and count the write; its history does not change.

    Raises:
        RuntimeError: the memory overlaps itself, or the tensor was made in inference mode and recording is on.
    """
    if transforms.open and name.endswith("_"):  # `out=` may write to what was captured, as in PyTorch
        refuse_captured(target, name, (wrap(values) if isinstance(values, (np.ndarray, np.generic)) else values,))
    refuse_writing(target, name)
    begin_write(target, name)
    _put(target, values)
    observation.end_write(target)
    if interpreted.blocks:
        write_tangents(target, None)


def _put(target: TensorState, values: Array | float) -> None:
    data = target._data
    if data.__class__ is np.ndarray:
        data[...] = values
    else:
        target._data = data.dtype.type(values)


def begin_write(target: TensorState, name: str) -> None:
    """Count an op's write to a tensor's storage, and note its line; `observation.end_write` follows."""
    storage_of(target).wrote(name, user_place(3))


def refuse_writing(target: TensorState, name: str = "") -> None:
    """Raise if a tensor's memory may not be written to: it overlaps itself, or was made in inference mode.

    Guards of the memory (`GuardedStorage`) are called.
    """
    if transforms.open and name.endswith("_"):
        refuse_captured(target, name)
    storage = storage_of(target)
    if storage.__class__ is not Storage:
        storage.before_write()
    refuse_expanded(target, name)


def _prepare_storage(target: TensorState) -> None:
    storage = storage_of(target)
    if storage.__class__ is not Storage:
        storage.before_write()


def count_unchanged(target: TensorState, name: str) -> None:
    """Check and count a write that leaves a tensor and its history as they are."""
    will_record(target)  # raises if it may not be written to
    _prepare_storage(target)
    begin_write(target, name)
    observation.end_write(target)


def check_fits(target: TensorState, result: TensorState) -> None:
    """Raise PyTorch's error unless a result may be written into a tensor: its shape is equal, its dtype no larger."""
    if tuple(result._data.shape) != tuple(target._data.shape):
        raise ShapeError(
            f"output with shape {list(target._data.shape)} doesn't match the broadcast shape "
            f"{list(result._data.shape)}; an in-place operation cannot change the shape of its tensor"
        )
    found, wanted = result._data.dtype, target._data.dtype
    if found != wanted and category(found) > category(wanted):
        raise _does_not_fit(found, wanted)


def _does_not_fit(found: np.dtype, wanted: np.dtype) -> ShapeError:
    return ShapeError(
        f"result type {from_numpy_dtype(found).old_name} can't be cast to the desired output type "
        f"{from_numpy_dtype(wanted).old_name}"
    )


def _save_written_output(result: TensorState, target: TensorState, data: Array) -> None:
    """If the node saved its own output, make it refer to the memory that will hold the output."""
    node = result.grad_fn
    if getattr(node, "out", None) is result._data and not isinstance(node.out, (list, tuple)):
        node.out = data
        node.out_storage = storage_of(target)
        node.out_version = node.out_storage.version


_IN_PLACE = {  # PyTorch's names of the nodes of these ops' in-place forms
    "AsStridedBackward0": "AsStridedBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
}


def _inplace_form(node):
    """Give a node of an op that makes a view the name of the op's in-place form."""
    if node is not None and type(node).__name__ in _IN_PLACE:
        rename_node(node, _IN_PLACE[type(node).__name__])
    return node


def inplace_view(public: Callable, name: str):
    """Return the in-place form of an op that makes a view: the tensor takes the view's shape and history."""

    def take_shape(self, *args, **kwargs):
        if observation.observers.active and observation.reports_ops():
            return observation.reported(take_shape, (self, *args), kwargs)
        recording = modes.grad_enabled
        if recording and has_history(self):
            check_may_write(self)
        _prepare_storage(self)
        if transforms.open:
            refuse_captured(self, name, args)
        source = wrap(writable(self), self._edge)
        if interpreted.blocks:
            copy_tangents(self, source, cloned=False)
        out = public(source, *args, **kwargs)
        edge = _inplace_form(out._edge) if recording else self._edge
        observation.begin_write(self, name, user_place(2))
        self._data, self._edge, self._tangents = out._data, edge, out._tangents
        observation.end_write(self)
        return self

    take_shape.__name__ = take_shape.__qualname__ = name
    take_shape.__doc__ = f"Do what `{name[:-1]}` does to this tensor itself, and return it."
    take_shape.reshapes = public
    return composite_function(take_shape)
