"""What is done with a call that a mode or a tensor class with `__torch_dispatch__` handles.

The handler gets PyTorch's op and its arguments (ops/aten.py), with recording off; what it returns becomes the op's
result, and the node that the op declares is made around it: NOTE [Below autograd] in dispatch/torch_dispatch.py. Some
ops are handled as the ops that PyTorch composes them of (`COMPOSED`), and some nodes run PyTorch's formula rather than
ours (formulas.py).
"""

import importlib
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache

import numpy as np

from backlight.codegen.declaration import OPTION, Op
from backlight.codegen.generate import generate_noting
from backlight.codegen.op_schema import OpSchema
from backlight.codegen.packed_nodes import Packing
from backlight.dispatch.dispatcher import dispatching, hold_interpreters, release_interpreters
from backlight.dispatch.interpreters import UNHANDLED, local
from backlight.dispatch.observation import observers
from backlight.dispatch.torch_dispatch import handles, has_handler, torch_dispatch
from backlight.dispatch.torch_function import flat, overrides_state
from backlight.dtypes import get_default_dtype
from backlight.engine.accumulate_grad import own_copy
from backlight.engine.grad_mode import modes, set_recording
from backlight.engine.node import Node, extra_of, node_and_number
from backlight.engine.saved_tensors import Packed
from backlight.engine.tensor_state import LEAF, TensorState, the_tensor_class, wrap_gradient
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError, UnsupportedError
from backlight.kernels.memory_order import strided
from backlight.kernels.sparse_array import is_sparse
from backlight.kernels.state_blocks import Block
from backlight.ops.aten import OpOverload, aten_call, bound
from backlight.tensor.tensor import Tensor
from backlight.transforms.torch_dispatch.calls import HandlerOfMode, handle_by_class, handlers_of_modes
from backlight.transforms.torch_dispatch.calls import call as call_op
from backlight.transforms.torch_dispatch.formulas import COMPOSED, FORMULAS

PASSED_ON = ("alias", "view_of_parts")  # what only the engine calls
RENAMED = {"zero_into": "zero_", "fill_into": "fill_", "copy_into": "copy_", "item": "_local_scalar_dense"}
_PACKAGE = importlib.import_module("backlight")  # the top package is in no layer
FACTORIES = {getattr(_PACKAGE, name) for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros")}
_MAKERS = """
_local_scalar_dense arange bernoulli detach empty empty_like eye full full_like linspace multinomial new_empty new_full
new_ones new_zeros normal ones ones_like poisson rand rand_like randint randint_like randn randn_like randperm zeros
zeros_like
"""
MAKERS = frozenset(_MAKERS.split())  # what they return has no history
BINARY = ("add_", "sub_", "mul_", "div_", "fill_", "remainder_")
dispatching.composites |= FACTORIES | {Tensor.item}  # only modes and classes handle them
SIZED = ("rand", "randn", "zeros", "ones", "empty", "new_empty", "new_zeros", "new_ones")
NUMBERS = {Tensor.__bool__: bool, Tensor.__float__: float, Tensor.__int__: int, Tensor.__index__: int}
READERS = {getattr(Tensor, name): name for name in ("numpy", "tolist", "data_ptr", "__array__", "untyped_storage")}


class DispatchMode(HandlerOfMode):
    """The interpreter of a `TorchDispatchMode`."""

    __slots__ = ()

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Have the mode handle an op."""
        return handled(op, args, kwargs, self.handle, self.reenter)

    def composite(self, function: Callable, args: tuple, kwargs: dict):
        """Have the mode handle a write in place, or a function that makes tensors."""
        return handled_function(function, args, kwargs, self.handle, self.reenter)


class ModeBlock(Block):
    """A mode as a context manager: it handles the ops of this thread inside the block."""

    def _block_state(self) -> DispatchMode:
        return DispatchMode(self)

    def _block_change(self, handler: DispatchMode):
        hold_interpreters(handler)
        torch_dispatch.modes.add(handler)
        local.interpreters.append(handler)
        return self

    def _block_restore(self, handler: DispatchMode) -> None:
        local.interpreters[:] = [one for one in local.interpreters if one is not handler]
        torch_dispatch.modes.discard(handler)
        release_interpreters(handler)


def current_modes() -> list:
    """Return the modes of this thread, the outermost first."""
    return [one.mode for one in handlers_of_modes()]


class without_modes(Block):  # noqa: N801 - used as a function
    """Take all modes off this thread's stack within the block."""

    def _block_state(self) -> list:
        return local.interpreters[:]

    def _block_change(self, before: list) -> list:
        local.interpreters[:] = [one for one in before if not isinstance(one, HandlerOfMode)]
        return [one.mode for one in before if isinstance(one, HandlerOfMode)]

    def _block_restore(self, before: list) -> None:
        local.interpreters[:] = before


# --- one call ---------------------------------------------------------------------------------------------------------


def handled(op: Op, args: tuple, kwargs: dict, handle: Callable, again: Callable):
    """Return the result of an op that a handler computes, with the node that the op records.

    Args:
        handle: calls the handler: (func, args, kwargs).
        again: a block in which the ops that are called go to the handler, too.
    """
    if (op.name in PASSED_ON and not has_handler(args[0])) or not _takes(op, args):
        return UNHANDLED
    if op.name in COMPOSED:
        with again():
            return COMPOSED[op.name](*bound(op, args, kwargs).values())
    func, given, named = aten_call(op, args, kwargs)
    tensors = [one for one in flat((*args, *kwargs.values())) if isinstance(one, TensorState)]
    if not (op.rules and modes.grad_enabled and any(one._edge is not None for one in tensors)):
        return _as_many(op, handle(func, given, named))
    return recorded(op, args, kwargs, _unrecorded(handle, func, given, named), handle)


def _takes(op: Op, args: tuple) -> bool:
    """Tell whether the operands are tensors and numbers: a foreign one is for the op to refuse."""
    return all(
        isinstance(value, TensorState | int | float | complex | list | tuple | None)
        for param, value in zip(op.params, args)
        if param.kind != OPTION
    )


def _unrecorded(handle: Callable, func: OpOverload, args: tuple, kwargs: dict):
    recording = modes.requested
    try:
        set_recording(False)
        return handle(func, args, kwargs)
    finally:
        set_recording(recording)


def _as_many(op: Op, out: object):
    """Return as many results as our op has: PyTorch's may have more, for its backward."""
    if op.outputs == 1:
        return out[0] if isinstance(out, (tuple, list)) else out
    return op.returns(*out) if op.returns is not None else out


def recorded(op: Op, args: tuple, kwargs: dict, out: object, handle: Callable):
    """Return a handler's result as the op's output: with its edge, and in the node what the op's rules need."""
    out = _as_many(op, out)
    several = op.outputs != 1
    outs = list(out) if several else [out]
    if not all(isinstance(one, TensorState) for one in outs):
        raise ArgumentError(
            f"the __torch_dispatch__ that handled {op.display_name} must return a tensor for each of its outputs, got "
            f"{[type(one).__name__ for one in outs]}: return what func(*args, **kwargs) returned, or its like"
        )
    _refuse_residuals(op, args)
    packing = next((one for one in reversed(local.interpreters) if isinstance(one, Packing)), None)
    try:
        found.data = [one._data for one in outs] if several else outs[0]._data
        found.indices = outs[1] if several and len(outs) > 1 and has_handler(outs[1]) else None
        made = UNHANDLED if packing is None else packing.op(op, noting(op), args, kwargs)
        made = noting(op)(*args, **kwargs) if made is UNHANDLED else made
    finally:
        found.data = found.indices = None  # or they would keep the wrapper's class, and its handler, alive
    results = [_with_edge(op, one, mine, args) for one, mine in zip(outs, made if several else [made])]
    if packing is None and _saves_output(op):
        _save_outputs(op, results, handle)
    if not several:
        return results[0]
    return op.returns(*results) if op.returns is not None else tuple(results)


def _refuse_residuals(op: Op, args: tuple) -> None:
    """Raise where a node needs more of a wrapper's op than the handler returned."""
    wrappers = [one for one in flat(args) if is_wrapper(one)]
    given = op.residuals == ("indices",) or (op.name == "nll_loss" and len(wrappers) == 1 and wrappers[0] is args[0])
    if wrappers and op.residuals and not given and op.decomposed is None:
        raise UnsupportedError(
            f"{op.display_name} of a {type(wrappers[0]).__name__} that requires grad is not recorded: its backward "
            f"needs {', '.join(op.residuals)}, which __torch_dispatch__ does not return. Compose it of other ops"
        )


class _Found(ThreadState):
    """The result that the forward of the current op returns, in this thread."""

    data = indices = None


found = _Found()


@cache
def noting(op: Op):
    """Return a variant of an op's function whose forward returns what a handler computed."""

    def forward(*args, **kwargs):
        if not op.residuals:
            return found.data
        if found.indices is not None and op.residuals == ("indices",):
            return found.data, found.indices
        return found.data, *op.forward(*args, **kwargs)[1:]

    return generate_noting(op, forward)


def _with_edge(op: Op, out: TensorState, made: TensorState, args: tuple):
    """Return a handler's tensor at the edge that the op recorded."""
    taken = any(out is one for one in args) or out._edge is not None
    if type(out) is the_tensor_class() and (op.view or taken or out._view is not None):
        return made
    out = _alias(out) if taken else out
    out._edge = made._edge
    if made._storage is not None:
        out._storage = made._storage
    return out


def _alias(tensor: TensorState):
    """Return another tensor of the same class with the same attributes."""
    made = object.__new__(type(tensor))
    made.__dict__.update(tensor.__dict__)
    made._data, made._edge, made._storage, made._view = tensor._data, None, tensor._storage, tensor._view
    return made


@cache
def _saves_output(op: Op) -> bool:
    return bool(OpSchema(op).out)


def _save_outputs(op: Op, outs: Sequence, handle: Callable) -> None:
    """Save outputs as PyTorch does, detached: that is a call, too."""
    for out in outs:
        if out._edge is not None and out._edge is not LEAF:
            node, number = node_and_number(out._edge)
            extra_of(node).outputs[number] = _unrecorded(handle, DETACH, (out,), {})


DETACH = OpOverload("detach")
ONES_LIKE = OpOverload("ones_like")
ADD = OpOverload("add_", "Tensor")


def handled_function(function: Callable, args: tuple, kwargs: dict, handle: Callable, again: Callable):
    """Have a handler compute a write in place, or a function that is no op here but one in PyTorch."""
    name = getattr(function, "writes_as", None) or RENAMED.get(function.__name__, function.__name__)
    if name in MAKERS and kwargs.get("out") is None:
        return _made(name, args, dict(kwargs), handle)
    if name == "dropout":
        return _dropout(args, kwargs, handle, again)
    if not name.endswith("_") or not isinstance(args[0], TensorState):
        return UNHANDLED
    scalar = name == "fill_" and not isinstance(args[1], TensorState)
    func = OpOverload(name, "Scalar" if scalar else "Tensor" if name in BINARY else "default")
    if not has_handler(args[0]) or not modes.grad_enabled or not _needs_grad(args):
        handle(func, args, kwargs)
        return args[0]
    return _written(function, func, args, kwargs, handle)


def _dropout(args: tuple, kwargs: dict, handle: Callable, again: Callable):
    """Draw as PyTorch does: a new tensor of zeros and ones, divided by how many are kept."""
    names = ("input", "p", "train", "inplace")
    given = {"p": 0.5, "train": True, "inplace": False} | dict(zip(names, args)) | kwargs
    input, p, train, inplace = [given[name] for name in names]
    if not train or inplace or not 0 < p < 1:
        return UNHANDLED
    noise = handle(OpOverload("empty_like"), (input,), {})
    noise = handle(OpOverload("bernoulli_", "float"), (noise, 1 - p), {})
    noise = handle(OpOverload("div_", "Scalar"), (noise, 1 - p), {})
    with again():
        return input * noise


def _made(name: str, args: tuple, named: dict, handle: Callable):
    """Have a handler compute what a function makes: sizes are one list, and `requires_grad` comes afterwards."""
    requires_grad = named.pop("requires_grad", False)
    sizes = next((at for at, one in enumerate(args) if isinstance(one, int)), len(args))
    listed = name in SIZED and all(isinstance(one, int) for one in args[sizes:])
    given = (*args[:sizes], list(args[sizes:])) if listed and sizes < len(args) else args
    func = OpOverload(name, "memory_format" if name == "empty" else "default")
    out = handle(func, tuple(list(one) if isinstance(one, tuple) else one for one in given), named)
    return out.requires_grad_() if requires_grad else out


def _needs_grad(args: tuple) -> bool:
    return any(getattr(one, "_edge", None) is not None for one in args)


def _written(function: Callable, func: OpOverload, args: tuple, kwargs: dict, handle: Callable):
    """Record a write to a tensor whose class computed it."""
    target, op = args[0], getattr(getattr(function, "writes", None), "op", None)
    if op is None or target._edge is LEAF:
        raise UnsupportedError(
            f"{func} of a {type(target).__name__} that requires grad is not recorded: use the op that is not in place"
        )
    before = _unrecorded(handle, OpOverload("clone"), (target,), {})
    before._edge = target._edge
    _unrecorded(handle, func, args, kwargs)
    found.data, found.indices = target._data, None
    target._edge = noting(op)(before, *args[1:], **kwargs)._edge
    if _saves_output(op):
        _save_outputs(op, [target], handle)
    return target


# --- classes ----------------------------------------------------------------------------------------------------------


def call(op: Op | None, function: Callable, args: tuple, kwargs: dict):
    """Have the classes of arguments handle a call; UNHANDLED if it is no op."""
    if op is not None:
        if op.dims is not None and any(hasattr(one, "_data") and one._data.ndim != op.dims for one in args):
            return UNHANDLED
        return handled(op, args, kwargs, handle_by_class, nullcontext)
    if function in dispatching.composites:
        return handled_function(function, args, kwargs, handle_by_class, nullcontext)
    if function in NUMBERS and is_wrapper(args[0]):
        return NUMBERS[function](args[0].item())
    if function in READERS and is_wrapper(args[0]):
        raise UnsupportedError(
            f"Cannot access data pointer of Tensor that doesn't have storage: a {type(args[0]).__name__} made by "
            f"_make_wrapper_subclass has no numbers of its own for {READERS[function]}(); call it on the tensor inside"
        )
    return UNHANDLED


def is_wrapper(value: object) -> bool:
    """Tell whether a value is a tensor without numbers of its own."""
    return getattr(value, "_is_wrapper", False) is True


def made(cls: type) -> None:
    """Have the public functions call a class's `__torch_dispatch__`, as long as the class exists."""
    with observers.lock:
        torch_dispatch.classes += 1
    weakref.finalize(cls, _class_ended).atexit = False
    overrides_state.install_for(cls)


def _class_ended() -> None:
    with observers.lock:
        torch_dispatch.classes -= 1


# --- what the engine calls --------------------------------------------------------------------------------------------


def ones_like(tensor: TensorState):
    """Return the gradient that a backward of one number starts with."""
    return call_op(ONES_LIKE, tensor)


def accumulate(leaf: TensorState, grad: TensorState) -> bool:
    """Add a gradient to a leaf's `.grad`, as calls of PyTorch's ops; False if nothing handles these."""
    present = leaf._grad
    if not (current_modes() or has_handler(grad)) or is_sparse(grad) or is_sparse(present):
        return False
    if present is not None:
        call_op(ADD, present, grad)
        return True
    leaf._grad = call_op(DETACH, grad)
    if type(leaf._grad) is Tensor:  # others may hold its memory
        leaf._grad = wrap_gradient(own_copy(leaf._grad._data).astype(leaf._data.dtype, copy=False))
    return True


def saved(kept: TensorState, edge: object):
    """Return an output that a node saved: detached once more, since that is a call."""
    out = call_op(DETACH, kept)
    out._edge = edge if modes.grad_enabled else None
    return out


def backward(node: Node, grad: object, edges: Sequence):
    """Return the gradients of a node: by PyTorch's formula where its ops are handled, else by the op's own rules."""
    op = getattr(node, "op", None)
    formula = None if op is None else FORMULAS.get(op.name)
    if formula is None or not (current_modes() or has_handler(grad)) or _is_packed(node):
        return node.backward_graph(grad, edges)
    return formula(node, grad, edges)


def _is_packed(node: Node) -> bool:
    """Tell whether a node saved tensors through a user's hooks."""
    return any(isinstance(getattr(node, slot), Packed) for slot, _ in node.saved_slots)


def make_wrapper_subclass(
    cls: type,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: object = None,
    dtype: object = None,
    layout: object = None,
    device: object = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
):
    """Return a tensor of a class with `__torch_dispatch__` that has a shape and a dtype, and no numbers of its own."""
    if not isinstance(cls, type) or not handles(cls):
        raise ArgumentError(f"{getattr(cls, '__name__', cls)} must define __torch_dispatch__ to have no storage")
    shape, kind = tuple(size), get_default_dtype() if dtype is None else dtype
    made = object.__new__(cls)
    reach = sum((one - 1) * step for one, step in zip(shape, strides or ())) + 1
    memory = np.zeros(shape if strides is None else max(reach, 1), kind.numpy)
    if memory.dtype.kind in "fc":
        memory.fill(np.nan)  # what reads them by mistake shows it
    made._data = memory
    if strides is not None:
        made._data = strided(memory, shape, [step * kind.itemsize for step in strides])
    made._edge, made._storage, made._view = LEAF if requires_grad else None, None, None
    made._is_wrapper = True
    return made
