"""Nodes that keep packed tensors, and the interpreter that packs what ops save (NOTE [Packed tensors]).

A node with packed tensors has a subclass of its class, made once, with the same slots and name; it runs a copy of
itself in which everything is unpacked. So generated code, and the core's pass over ordinary nodes, need not know of
packing.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from backlight.codegen.declaration import Op
from backlight.codegen.runtime_support import NOT_SAVED, version_of
from backlight.dispatch.interpreters import UNHANDLED, Interpreter
from backlight.dispatch.observation import local, notify_op
from backlight.engine.grad_mode import modes, set_recording
from backlight.engine.node import Edges, Gradients, Node, node_and_number
from backlight.engine.saved_tensors import Hooks, Packed, innermost_hooks, kept_edge
from backlight.engine.storage import Storage
from backlight.engine.tensor_state import TensorState, new, storage_of, wrap, writable
from backlight.errors import ArgumentError, GraphError

TENSOR, LIST, ARRAY, OUT = "tensor", "list", "array", "out"  # what a slot holds
ONLY_ONE_PAIR = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)
AFTER_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
    "the graph a second time or if you need to access saved variables after calling backward."
)


class PackedNode(Node):
    """The common part of nodes with packed tensors."""

    __slots__ = ()

    def backward(self, grad: Gradients, edges: Edges, keep: bool):
        """Unpack, and run backward on arrays."""
        found = self.unpacked().backward(grad, edges, True)
        if not keep:
            self.free()
        return found

    def backward_graph(self, grad: Gradients, edges: Edges):
        """Unpack, and run backward on tensors."""
        return self.unpacked().backward_graph(grad, edges)

    def unpacked(self) -> Node:
        """Return a copy of the node in which everything is unpacked."""
        copy = new(_unpacked_class(self.__class__))
        copy.copy_from(self)
        for slot, kind in self.saved_slots:
            value = getattr(self, slot)
            if value.__class__ is Packed or (
                isinstance(value, (list, tuple)) and any(one.__class__ is Packed for one in value)
            ):
                _UNPACK[kind](copy, slot, value)
        return copy


@cache
def packed_class(node_class: type) -> type:
    """Return the class of those nodes of a class that have packed tensors."""
    if issubclass(node_class, PackedNode):
        return node_class
    body = {"__slots__": (), "__module__": node_class.__module__}
    return type(node_class.__name__, (PackedNode, node_class), body)


@cache
def _unpacked_class(packed: type) -> type:
    """Return the class of the copies that run for nodes of a packed class."""
    original = packed.__mro__[2]
    names = [name for one in original.__mro__ for name in getattr(one, "__slots__", ()) if name != "__weakref__"]
    lines = [
        "def copy_from(copy, node):",
        "    copy.itself = node",
        *(f"    copy.{name} = node.{name}" for name in names),
    ]
    namespace: dict = {}
    exec(compile("\n".join(lines), "<backlight copied node>", "exec", dont_inherit=True), namespace)
    body = {"__slots__": ("itself",), "__module__": original.__module__, "copy_from": namespace["copy_from"]}
    return type(original.__name__, (original,), body)


def _unpack_tensor(copy: Node, slot: str, packed: Packed) -> None:
    tensor = packed.unpack()
    setattr(copy, slot, tensor)
    setattr(copy, slot + "_version", version_of(tensor))


def _unpack_list(copy: Node, slot: str, values: Sequence) -> None:
    tensors = [one.unpack() if isinstance(one, Packed) else one for one in values]
    setattr(copy, slot, tensors)
    before = getattr(copy, slot + "_version")
    versions = (0 if isinstance(one, Packed) else version for one, version in zip(values, before))
    setattr(copy, slot + "_version", list(versions))


def _unpack_array(copy: Node, slot: str, packed: Packed | Sequence) -> None:
    several = not isinstance(packed, Packed)
    setattr(copy, slot, type(packed)(map(_array, packed)) if several else _array(packed))


def _unpack_out(copy: Node, slot: str, packed: Packed | Sequence) -> None:
    if isinstance(packed, Packed):
        copy.out, copy.out_storage, copy.out_version = _array(packed), Storage(), 0
        return
    copy.out_storage = [Storage() if isinstance(p, Packed) else s for p, s in zip(packed, copy.out_storage)]
    copy.out_version = [0 if isinstance(p, Packed) else v for p, v in zip(packed, copy.out_version)]
    copy.out = [_array(one) for one in packed]


def _array(one: object):
    return one.unpack()._data if isinstance(one, Packed) else one


_UNPACK = {TENSOR: _unpack_tensor, LIST: _unpack_list, ARRAY: _unpack_array, OUT: _unpack_out}


class Packing(Interpreter):
    """Packs what the ops of its block save, unless an inner block does."""

    __slots__ = ("hooks",)

    def __init__(self, hooks: Hooks):
        self.hooks = hooks

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Run the op, and pack what its node saved; it is reported to watchers afterwards."""
        if not modes.grad_enabled or innermost_hooks() is not self.hooks:
            return UNHANDLED
        observation = local.observation
        if observation is None or observation.inside:
            return self._packed(op, function, args, kwargs)
        observation.inside = True
        try:
            out = self._packed(op, function, args, kwargs)
        finally:
            observation.inside = False
        if out is not NotImplemented:
            observation.last = out
            notify_op(observation, op, args, kwargs, out, sys._getframe(1))
        return out

    def _packed(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        out = function(*args, **kwargs)
        outs = (out,) if isinstance(out, TensorState) else out if isinstance(out, (tuple, list)) else ()
        node = next((node_and_number(one._edge)[0] for one in outs if _is_made(one)), None)
        if node is not None and node.__class__ is getattr(op, "node_class", None):
            given = set(map(id, args))
            for one in (*args, *kwargs.values()):
                given.update(map(id, one) if isinstance(one, (list, tuple)) else (id(one),))
            if id(outs[0]) not in given:  # it was not handed through
                pack_saved(node, outs, given, self.hooks)
        return out


def _is_made(tensor: object) -> bool:
    return isinstance(tensor, TensorState) and tensor._edge is not None


def pack_saved(node: Node, outs: Sequence, given: set[int], hooks: Hooks) -> None:
    """Pack all that a new node saves, in PyTorch's order: inputs by name, then the forward's results.

    Args:
        outs: the op's outputs.
        given: the ids of the tensors that the op was called with; a number, which became a 0-d tensor, is not packed.
    """
    recording = modes.requested
    try:
        set_recording(False)
        _pack_slots(node, outs, given, hooks)
    finally:
        set_recording(recording)


def _pack_slots(node: Node, outs: Sequence, given: set[int], hooks: Hooks) -> None:
    for slot, kind in node.saved_slots:
        value = getattr(node, slot)
        if kind is TENSOR:
            packed = _packed_input(value, given, hooks)
        elif kind is LIST:
            packed = tuple(_packed_input(one, given, hooks) for one in value)
        elif kind is ARRAY:
            packed = _packed_array(value, hooks)
        elif isinstance(value, (list, tuple)):
            packed = [Packed(hooks, out, None) for out in outs]
        else:
            packed = Packed(hooks, outs[0], None)
        if packed is not value:
            put(node, slot, packed)


def put(node: Node, slot: str, packed: Packed | Sequence) -> None:
    """Put a packed value into a slot."""
    setattr(node, slot, packed)
    node.__class__ = packed_class(node.__class__)


def _packed_input(value: TensorState | object, given: set[int], hooks: Hooks):
    if value is None or value is NOT_SAVED or (id(value) not in given and value._data.ndim == 0):
        return value
    return Packed(hooks, value, kept_edge(value))


def _packed_array(value: object, hooks: Hooks):
    if isinstance(value, np.ndarray):
        return Packed(hooks, wrap(value), None)
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, np.ndarray) for one in value):
        return type(value)(Packed(hooks, wrap(one), None) for one in value)
    return value


class SavedTensor:
    """One tensor that a node saves, packed or not: what `grad_fn._raw_saved_self` returns.

    Args:
        read: returns what is saved: a `Packed` or (tensor, its edge), None for nothing, the error if it was freed.
        write: puts a `Packed` in its place.
        unpack: returns the tensor.
    """

    __slots__ = ("_read", "_unpack", "_write")

    def __init__(self, read: Callable, write: Callable, unpack: Callable):
        self._read = read
        self._write = write
        self._unpack = unpack

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Keep what `pack_hook(tensor)` returns instead of the tensor; `unpack_hook` makes it again when it is needed.

        Raises:
            RuntimeError: it has hooks already, nothing is saved here, or it was freed.
            TypeError: a hook is no function.
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise ArgumentError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n    "
                "1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                f"collections.abc.Callable) -> None\n\nInvoked with: {self}, {pack_hook}, {unpack_hook}"
            )
        found = self._read()
        if isinstance(found, GraphError):
            raise found
        if found is None:
            raise GraphError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(found, Packed):
            raise GraphError(ONLY_ONE_PAIR)
        tensor, edge = found
        seen = wrap(writable(tensor), None, storage_of(tensor))
        self._write(Packed.unrecorded(Hooks(pack_hook, unpack_hook), seen, edge))

    @property
    def unpack_hook(self):
        """The hook that makes the tensor again, or None if it is not packed."""
        found = self._read()
        return found.hooks.unpack if isinstance(found, Packed) else None

    @property
    def data(self):
        """What is kept: what the pack hook returned, or the tensor."""
        found = self._read()
        return found.held if isinstance(found, Packed) else found[0] if isinstance(found, tuple) else None

    def unpack(self):
        """Return the tensor, unpacked if it was packed."""
        return self._unpack()


def raw_saved_property(slot: str, kind: str, name: str) -> property:
    """Return the property that shows a node's slot as a SavedTensor, a list as a tuple of them."""

    def raw(node: Node):
        value = getattr(node, slot)
        if isinstance(value, (list, tuple)):
            given = getattr(type(node), name).fget
            return tuple(_in_list(node, slot, number, given) for number in range(len(value)))
        return SavedTensor(
            lambda: _read(node, slot, kind), lambda packed: put(node, slot, packed), lambda: getattr(node, name)
        )

    return property(raw)


def raw_item_property(slot: str, number: int, given: Callable) -> property:
    """Return the property that shows one tensor of a slot's list as a SavedTensor; `given(node)` is the list."""
    return property(lambda node: _in_list(node, slot, number, given))


def _read(node: Node, slot: str, kind: str):
    value = getattr(node, slot)
    if value is None and all(getattr(node, name) is None for name in node.freed_slots):
        return freed_before(node)
    if isinstance(value, Packed):
        return value
    if value is None or value is NOT_SAVED:
        return None
    if kind is OUT:
        return wrap(value, None, node.out_storage), None
    return (wrap(value), None) if kind is ARRAY else (value, kept_edge(value))


def freed_before(node: Node) -> GraphError:
    """Return the error of hooks that come too late."""
    return GraphError(f"{AFTER_FREED}\n  {node.name()} was made at {node.where}")


def _in_list(node: Node, slot: str, number: int, given: Callable) -> SavedTensor:
    def read():
        value = getattr(node, slot)
        if value is None:
            return freed_before(node)
        one = value[number]
        if one is None or isinstance(one, Packed):
            return one
        return (one, kept_edge(one)) if isinstance(one, TensorState) else (wrap(one), None)

    def write(packed: Packed) -> None:
        value = getattr(node, slot)
        put(node, slot, type(value)([*value[:number], packed, *value[number + 1 :]]))

    return SavedTensor(read, write, lambda: given(node)[number])
