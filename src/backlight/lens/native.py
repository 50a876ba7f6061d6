"""Our own engine as the lens sees it (NOTE [An engine] in lens/engines.py)."""

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType

import numpy as np

from backlight.autograd.function import applied
from backlight.codegen.declaration import TABLE
from backlight.codegen.packed_nodes import ARRAY, OUT
from backlight.codegen.runtime_support import NOT_SAVED, output_tensor
from backlight.dispatch.arguments.checked import wrapper_of
from backlight.dispatch.dispatcher import Observe, report_calls, report_calls_by
from backlight.dispatch.observation import Observation, local, notify_call, observers
from backlight.dispatch.observers import OF_LEAF, Line, SavedValue, Watcher, line_at
from backlight.dispatch.profile_names import public_name
from backlight.engine.node import AccumulateGrad, next_sequence, node_and_number, public_edge
from backlight.engine.storage import InferenceStorage, Storage
from backlight.engine.tensor_state import TensorState, below_batches, edge_of, wrap, writable
from backlight.errors import GraphError
from backlight.kernels.half_precision import is_half, widened
from backlight.kernels.reduction.summaries import whole_memory
from backlight.kernels.sparse_array import is_sparse
from backlight.nn.modules.module import Module
from backlight.ops.indexing import index_selection, masking
from backlight.tensor import creation, factories, random_factories, ranges
from backlight.tensor.tensor import Tensor
from backlight.training.engine_types import AnyModule, AnyNode, AnyTensor

METHODS = (
    *("detach", "numpy", "item", "tolist", "__array__", "__bool__", "__float__", "__int__"),  # out of the graph
    *("new_empty", "new_ones", "new_tensor", "new_zeros", "new_full", "new_empty_strided", "__array_wrap__"),
    *("__setitem__", "register_hook", "retain_grad"),
)
REPORT_THEMSELVES = ("writes", "reshapes")  # what functions of ops/inplace.py have


@cache  # what fails or is interrupted is not cached: it is noted again
def note_functions() -> None:
    """Note all of them once, when the first watcher is added."""
    writes = (name for name in dir(Tensor) if name.endswith("_") and not name.endswith("__"))
    data = next(vars(kind)["data"] for kind in Tensor.__mro__ if "data" in vars(kind))
    package = importlib.import_module("backlight")  # the top package is in no layer
    modules = (creation, random_factories, factories, ranges)
    named = {getattr(package, name): name for module in modules for name in module.__all__}
    named |= {getattr(Tensor, name): name for name in (*METHODS, *writes)}
    named |= {data.fget: "data", data.fset: "data"}
    named |= {wrapper_of(masking.nonzero): "nonzero", wrapper_of(index_selection.one_hot): "one_hot"}
    for function, name in named.items():
        if not any(hasattr(function, mark) for mark in REPORT_THEMSELVES) and not hasattr(function, "op"):
            report_calls(function, name)
    report_calls_by(Module.__call__, run_module)
    report_calls_by(applied, apply_function)
    for declared in TABLE.values():
        declared.display_name = public_name(declared.name)


def apply_function(observation: Observation, function: Callable, args: tuple, kwargs: dict):
    """Apply a user's Function, and report that by its class's name, after the ops of its forward."""
    out = function.__wrapped__(*args, **kwargs)
    notify_call(observation, args[0].__name__, args[1:], kwargs, out, sys._getframe(1))
    return out


def run_module(observation: Observation, function: Callable, args: tuple, kwargs: dict):
    """Run a module, and tell when it begins and ends."""
    if observation.silent:
        return function.__wrapped__(*args, **kwargs)
    module, running = args[0], observation.modules
    path = path_of(module, observation)
    running.append((module, path))
    out = None
    try:
        observation.notify(observation.entered, module, path)
        out = function.__wrapped__(*args, **kwargs)
        return out
    finally:
        running.pop()
        observation.notify(observation.left, module, path, out)


CALLS_MODULES = run_module.__code__


def path_of(module: AnyModule, observation: Observation) -> str:
    """Return a module's dotted name in the outermost one that runs; `….(Linear)` for one that is not registered."""
    running = observation.modules
    for outer, path in reversed(running):
        name = _name_in(outer, module)
        if name is not None:
            return f"{path}.{name}" if path else name
    return f"{running[-1][1]}.({type(module).__name__})".lstrip(".") if running else ""


def _name_in(outer, module: AnyModule) -> str | None:
    """Return the dotted name of a module inside another: its own child's, if it is one, else deeper down."""
    children = outer._modules
    for name, child in children.items():
        if child is module:
            return name
    for name, child in children.items():
        below = _name_in(child, module) if child is not None and child._modules else None
        if below is not None:
            return f"{name}.{below}"
    return None


class NativeEngine:
    """Our engine's side of NOTE [An engine]; methods without a text of their own do what `Engine` says."""

    name = "backlight"
    leaf_class = AccumulateGrad
    calls_modules = CALLS_MODULES
    reads_in_c = dict.fromkeys(("key", "next_key", "strided", "is_wrapped"))  # nothing but slots

    def __init__(self):
        self.kinds_in_records: dict[type, tuple] = {}

    @property
    def backwards_elsewhere(self) -> int:
        return observers.backwards_elsewhere

    @property
    def module(self) -> ModuleType:
        """What a script imports."""
        return importlib.import_module("backlight")

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, TensorState)

    def array(self, tensor: AnyTensor) -> np.ndarray:
        data = tensor._data.to_dense() if is_sparse(tensor) else np.asarray(tensor._data)
        return widened(data) if is_half(data) and data.dtype.kind == "V" else data

    def node_of(self, tensor: AnyTensor):
        return None if tensor._edge is None else public_edge(edge_of(tensor))

    def made_by(self, tensor: AnyTensor) -> tuple[AnyNode, int] | None:
        edge = tensor._edge
        return None if edge is None or edge.is_leaf_edge else node_and_number(edge)

    def requires_grad(self, tensor: AnyTensor) -> bool:
        return tensor._edge is not None

    def inputs_of(self, node: AnyNode) -> list[tuple[object, int]]:
        return [
            (None, 0) if edge is None else (edge, OF_LEAF) if edge.is_leaf_edge else node_and_number(edge)
            for edge in node.edges
        ]

    def is_leaf_node(self, node: AnyNode) -> bool:
        return node.__class__ is AccumulateGrad

    def shape_and_dtype(self, tensor: AnyTensor) -> tuple[tuple[int, ...], object]:
        data = tensor._data
        return data.shape, data.dtype

    def key_of(self, node: AnyNode) -> int:
        """Return the node's sequence number, which no other node has."""
        return node.sequence

    def next_number(self) -> int:
        return next_sequence()

    def memory_of(self, tensor: AnyTensor) -> tuple[int, int]:
        """Return (the address of the memory that the tensor shares with its views, its size in bytes)."""
        return whole_memory(writable(below_batches(tensor)))

    def in_graph(self, tensor: AnyTensor):
        """Return the tensor that the graph knows: the one with all elements of vmap's batches."""
        return below_batches(tensor)

    def why_unread(self, tensor: AnyTensor) -> str:
        return BATCHED if below_batches(tensor) is not tensor else NO_VALUES

    def version_of(self, tensor: AnyTensor) -> int:
        """Return how often the tensor's memory has been written to; 0 for one made in inference mode."""
        storage = tensor._storage
        return 0 if storage is None or storage.__class__ is InferenceStorage else storage.version

    def saved_by(self, node: AnyNode) -> list[SavedValue]:
        if hasattr(node, "ctx"):
            try:
                if is_packed(node.ctx._raw_saved_tensors):
                    return [SavedValue("tensors", None, PACKED)]
                saved = node.ctx.saved_tensors
            except GraphError as problem:
                return [SavedValue("saved_tensors", None, str(problem))]
            return [
                SavedValue(f"saved_tensors[{number}]", one, None) for number, one in enumerate(saved) if one is not None
            ]
        found: list[SavedValue] = []
        for attribute, name in saved_names(type(node)):
            _keep(node, attribute, name, found)
        return found

    def kept_by(self, node: AnyNode) -> list[tuple[str, AnyTensor]]:
        """Read the slots of a declared op's node; what is packed, or a list of tensors, as `saved_by` does."""
        if hasattr(node, "ctx"):
            return [(kept.name, kept.tensor) for kept in self.saved_by(node) if kept.tensor is not None]
        found: list[tuple[str, AnyTensor]] = []
        for attribute, name, slot, kind in shown_slots(node.__class__):
            value = None if slot is None else getattr(node, slot)
            if slot is not None and (value is None or value is NOT_SAVED):
                continue
            if isinstance(value, TensorState):
                if kind is None or _is_unchanged(value._storage, getattr(node, slot + "_version")):
                    found.append((name, value))
            elif kind is ARRAY and isinstance(value, ARRAYS):
                found.append((name, wrap(value)))
            elif kind is OUT and isinstance(value, ARRAYS):
                if _is_unchanged(node.out_storage, node.out_version):
                    found.append((name, output_tensor(node)))
            elif slot is None or kind is not None or isinstance(value, (tuple, list)):
                several: list[SavedValue] = []
                _keep(node, attribute, name, several)
                found += [(kept.name, kept.tensor) for kept in several if kept.tensor is not None]
        return found

    def saves_as(self, node_class: type) -> tuple:
        return shown_slots(node_class) or (("ctx",) if hasattr(node_class, "ctx") else ())

    def formulas_of(self, node: AnyNode) -> dict[str, str]:
        op = getattr(type(node), "op", None)
        if op is None:
            return {}
        formulas = op.formulas()
        return {param.name: formulas[param.name] for param in op.arrays if param.name in formulas}

    def line_of(self, node: AnyNode) -> Line | None:
        """Return the user's line that made a node; None for a leaf's."""
        return line_at(node.code, node.lasti)

    def hooks_of(self, tensor: AnyTensor) -> list[str]:
        hooks = [*(tensor._hooks or {}).values(), *(tensor._post_accumulate_hooks or {}).values()]
        if tensor._edge is None:
            return [name_of(hook) for hook in hooks]
        end, number = node_and_number(edge_of(tensor))
        node = end if not end.is_leaf_edge else None if end._accumulator is None else end._accumulator()
        extra = None if node is None else node.extra
        if extra is not None:
            hooks += [hook for of, hook in extra.tensor_hooks.values() if of == number]
            hooks += [*extra.prehooks.values(), *extra.posthooks.values()]
        return [name_of(hook) for hook in hooks]

    def observe(self, watcher: Watcher) -> AbstractContextManager:
        note_functions()
        return Observe(watcher)

    def wants_changed(self) -> None:
        """Watchers are read at each call."""

    def unobserved(self) -> AbstractContextManager:
        return nullcontext() if local.observation is None else local.observation.silence()


ARRAYS = (np.ndarray, np.generic)


def _is_unchanged(storage: Storage | InferenceStorage | None, version: int) -> bool:
    """Return whether what a node saved at a version can still be read."""
    return storage is None or (storage.__class__ is not InferenceStorage and storage.version == version)


@cache
def shown_slots(node_class: type) -> tuple[tuple[str, str, str | None, str | None], ...]:
    """Return under which names nodes of a class show what they keep, the slot of each, and its kind if that is saved.

    An attribute that is more than a slot has None as its slot.
    """
    kinds = dict(getattr(node_class, "saved_slots", ()))
    slots = {one: getattr(getattr(node_class, one), "slot", None) for one, _ in saved_names(node_class)}
    return tuple((one, name, slots[one], kinds.get(slots[one])) for one, name in saved_names(node_class))


BATCHED, NO_VALUES = "batched by vmap", "without values"
PACKED = "packed by saved_tensors_hooks"


@cache
def saved_names(node_class: type) -> tuple[tuple[str, str], ...]:
    """Return the names under which nodes of a class show what they saved: `_saved_self`, and what to call it."""
    names = sorted(name for name in dir(node_class) if name.startswith("_saved_"))
    return tuple((name, name.removeprefix("_saved_")) for name in names)


def name_of(hook: Callable) -> str:
    """Return what a hook is called."""
    return getattr(hook, "__name__", None) or type(hook).__name__


def is_packed(raw: object) -> bool:
    """Return whether hooks packed what was saved: unpacking it could run anything."""
    several = raw if isinstance(raw, tuple) else () if raw is None else (raw,)
    return any(one.unpack_hook is not None for one in several)


def _keep(node: AnyNode, attribute: str, name: str, found: list[SavedValue]) -> None:
    """Add what a node saved under a name: several tensors get numbers, options are left out."""
    if is_packed(getattr(node, f"_raw{attribute}", None)):
        found.append(SavedValue(name, None, PACKED))
        return
    try:
        value = getattr(node, attribute)
    except GraphError as problem:
        found.append(SavedValue(name, None, str(problem)))
        return
    if isinstance(value, TensorState):
        found.append(SavedValue(name, value, None))
    elif isinstance(value, (tuple, list)):
        several = (pair for pair in enumerate(value) if isinstance(pair[1], TensorState))
        found += [SavedValue(f"{name}[{number}]", one, None) for number, one in several]


NATIVE = NativeEngine()
