"""PyTorch's engine, as the lens sees engines (NOTE [An engine] in lens/engines.py)."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from types import ModuleType

import numpy as np

from backlight.adapters.torch_calls import LINE
from backlight.adapters.torch_formulas import formulas_of
from backlight.adapters.torch_watching import Block, Hub
from backlight.dispatch.observers import OF_LEAF, Line, SavedValue, Watcher, line_at
from backlight.errors import InputError
from backlight.kernels.state_blocks import block
from backlight.training.tensor_memory import values_of_torch

KEY = "backlight.key"
_next_key = itertools.count().__next__


@cache
def torch_engine() -> "TorchEngine":
    """Return PyTorch's engine. Raises InputError: PyTorch is not installed."""
    try:
        import torch
    except ImportError as problem:
        raise InputError(
            "the engine `torch` needs PyTorch, which is not installed: pip install torch, or use the engine `backlight`"
        ) from problem
    return TorchEngine(torch)


class TorchEngine:
    """PyTorch's graph and its events. What it knows of nodes made while observed stands in their `metadata`."""

    name = "torch"

    def __init__(self, torch: ModuleType):
        self.module = torch
        self.hubs = threading.local()
        self.backwards_elsewhere = 0
        self.calls_modules = torch.nn.Module._call_impl.__code__
        self.functorch = torch._C._functorch
        self.sequence_number = torch._C._autograd._get_sequence_nr
        self.strided, self.bfloat16 = torch.strided, torch.bfloat16
        self.kinds_in_records: dict[type, tuple] = {}  # what a record needs of a class of nodes
        self.reads_in_c = {
            "key": KEY,
            "next_key": _next_key,
            "strided": torch.strided,
            "is_wrapped": torch._C._functorch.is_functorch_wrapped_tensor,
        }
        self.distributes = torch.distributed.is_available()
        self.leaf_class = type(torch.autograd.graph.get_gradient_edge(torch.ones(1, requires_grad=True)).node)

    def is_tensor(self, value) -> bool:
        """Return whether a value is one of PyTorch's tensors."""
        return isinstance(value, self.module.Tensor)

    def array(self, tensor) -> np.ndarray:
        """Return a tensor's values: its own memory if it is plain and in main memory, else a copy."""
        functorch = self.functorch
        if functorch.peek_interpreter_stack() is None and not functorch.is_functorch_wrapped_tensor(tensor):
            return self._plain_array(tensor)
        while functorch.is_gradtrackingtensor(tensor):  # what torch.func differentiates wraps the values
            tensor = functorch.get_unwrapped(tensor)
        with self.module._C._DisableFuncTorch():
            return self._plain_array(tensor)

    def _plain_array(self, tensor) -> np.ndarray:
        if tensor.layout is not self.strided:
            tensor = tensor.detach().to_dense()
        if tensor.dtype is self.bfloat16:
            tensor = tensor.detach().float()
        if self.distributes and self.module.distributed.is_initialized():
            return _array_of_resizable(tensor.detach())
        return values_of_torch(tensor)

    def node_of(self, tensor) -> tuple | None:
        """Return (node, output number) of a tensor that requires grad; a leaf's node is its AccumulateGrad."""
        node = tensor.grad_fn
        if node is not None:
            return node, tensor.output_nr
        if not tensor.requires_grad:
            return None
        try:
            edge = self.module.autograd.graph.get_gradient_edge(tensor)
        except AttributeError:  # of a transform that has returned: PyTorch finds no node there
            return None
        return edge.node, edge.output_nr

    def made_by(self, tensor) -> tuple | None:
        """Return (node, output number) of a tensor that an op made and that has a graph; None of all others."""
        node = tensor.grad_fn if tensor.requires_grad else None
        return None if node is None else (node, tensor.output_nr)

    def requires_grad(self, tensor) -> bool:
        """Return whether a tensor is a leaf that gets a gradient, or has a graph."""
        return tensor.requires_grad

    def inputs_of(self, node) -> list[tuple]:
        """Return where a node's edges lead, a leaf in place of its AccumulateGrad."""
        leaf_class = self.leaf_class
        return [
            (edge[0].variable, OF_LEAF) if edge[0].__class__ is leaf_class else edge for edge in node.next_functions
        ]

    def shape_and_dtype(self, tensor) -> tuple:
        """Return a tensor's shape and dtype."""
        return tensor.shape, tensor.dtype

    def is_leaf_node(self, node) -> bool:
        """Return whether a node adds to a leaf's `.grad`."""
        return node.__class__ is self.leaf_class

    def key_of(self, node) -> int:
        """Return a number of the node, kept in its metadata."""
        metadata = node.metadata
        key = metadata.get(KEY)
        if key is None:
            key = metadata[KEY] = _next_key()
        return key

    def next_number(self) -> int:
        """Return the number of the next node that this thread makes."""
        return self.sequence_number()

    def memory_of(self, tensor) -> tuple[int, int]:
        """Return the storage's address and its size in bytes."""
        if tensor.layout is not self.strided:
            return id(tensor), 0
        while self.functorch.is_functorch_wrapped_tensor(tensor):
            tensor = self.functorch.get_unwrapped(tensor)
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # one of is_grads_batched, or of a subclass, has none
            return id(tensor), 0
        return storage._cdata, storage.nbytes()

    def in_graph(self, tensor):
        """Return the tensor itself: PyTorch's graph knows what is in a user's hands."""
        return tensor

    def why_unread(self, tensor) -> str:
        """Explain why a tensor's values cannot be read."""
        functorch = self.functorch
        while functorch.is_gradtrackingtensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        batched = functorch.is_batchedtensor(tensor) or functorch.is_legacy_batchedtensor(tensor)
        return "batched by vmap" if batched else "without values"

    def version_of(self, tensor) -> int:
        """Return how often the tensor was written to; 0 for an inference tensor, which does not count."""
        try:
            return tensor._version
        except RuntimeError:
            return 0

    def saved_by(self, node) -> list[SavedValue]:
        """Return what a node saved; where hooks packed it, it is not unpacked, which could run anything."""
        found: list[SavedValue] = []
        for raw, name, unpacked in saved_names(node.__class__):
            _keep(node, raw, name, unpacked, found)
        return found

    def kept_by(self, node) -> list[tuple]:
        """Return those of `saved_by` that can be read, with their names."""
        found: list[tuple] = []
        for raw_name, name, unpacked in saved_names(node.__class__):
            try:
                raw = getattr(node, raw_name)
                if raw.__class__ is not tuple:
                    saved = getattr(node, unpacked) if raw.unpack_hook is None else None
                    if saved is not None:
                        found.append((name, saved))
                    continue
            except RuntimeError:  # it was freed, or written to since
                continue
            several: list[SavedValue] = []
            _keep(node, raw_name, name, unpacked, several)
            found += [(one.name, one.tensor) for one in several if one.tensor is not None]
        return found

    def saves_as(self, node_class: type) -> tuple[tuple[str, str, str], ...]:
        """Return the names under which nodes of a class may save."""
        return saved_names(node_class)

    def saves(self, node) -> bool:
        """Return whether a node of this class may save tensors."""
        return bool(saved_names(node.__class__))

    def formulas_of(self, node) -> dict[str, str]:
        """Return the derivatives' formulas, one an edge; {} for a node that is not in our tables."""
        return formulas_of(node.name())

    def line_of(self, node) -> Line | None:
        """Return the user's line that made a node, if it was made while observed."""
        place = node.metadata.get(LINE)
        return None if place is None else line_at(*place)

    def hooks_of(self, tensor) -> list[str]:
        """Return the names of the hooks on a tensor. PyTorch does not tell those on its node."""
        found = [*(tensor._backward_hooks or {}).values()]
        if tensor.grad_fn is None:
            found += (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values()
        return [getattr(hook, "__name__", type(hook).__name__) for hook in found]

    def observe(self, watcher: Watcher) -> AbstractContextManager:
        """Report to a watcher what this thread does inside the block (NOTE [Watching] in dispatch/observers.py)."""
        hub = getattr(self.hubs, "hub", None)
        if hub is None:
            hub = self.hubs.hub = Hub(self)
        return Block(hub, watcher)

    def wants_changed(self) -> None:
        """Look again at which calls this thread's watchers want."""
        hub = getattr(self.hubs, "hub", None)
        if hub is not None:
            hub.update_wanted()

    @block
    def unobserved(self) -> Iterator[None]:
        """Report to no watcher what this thread does inside the block."""
        hub = getattr(self.hubs, "hub", None)
        silent = hub is not None and hub.mode.silent
        try:
            if hub is not None:
                hub.mode.silent = True
            yield
        finally:
            if hub is not None:
                hub.mode.silent = silent


def _array_of_resizable(tensor) -> np.ndarray:
    """Return a tensor's values; `numpy()` would forbid its memory to be resized, as FSDP does.

    Raises:
        RuntimeError: FSDP has freed the memory, or the tensor is a wrapper without memory of its own, as a DTensor.
    """
    if hasattr(tensor, "__tensor_flatten__") or (tensor.numel() and not tensor.untyped_storage().nbytes()):
        raise RuntimeError("the tensor's memory has been freed, or it has none of its own")
    return np.from_dlpack(tensor.cpu().resolve_conj().resolve_neg())


@cache
def saved_names(node_class: type) -> tuple[tuple[str, str, str], ...]:
    """Return under which names nodes of a class show saved tensors: `_raw_saved_self`, what to call it, `_saved_self`.

    A user's Function shows what it calls `saved_tensors`.
    """
    names = (name for name in dir(node_class) if name.startswith("_raw_saved_"))
    plain = ((raw, raw.removeprefix("_raw_saved_")) for raw in names)
    return tuple((raw, name, "saved_tensors" if name == "tensors" else f"_saved_{name}") for raw, name in plain)


def _keep(node, raw_name: str, name: str, unpacked: str, found: list[SavedValue]) -> None:
    """Add what a node keeps under one name: a list of tensors has a number each, None stands for nothing."""
    try:
        raw = getattr(node, raw_name)
        if any(one.unpack_hook is not None for one in raw) if raw.__class__ is tuple else raw.unpack_hook is not None:
            found.append(SavedValue(name, None, "packed by saved_tensors_hooks"))
            return
        saved = getattr(node, unpacked)
    except RuntimeError as problem:
        found.append(SavedValue(name, None, str(problem)))
        return
    if saved.__class__ is not tuple:
        if saved is not None:
            found.append(SavedValue(name, saved, None))
        return
    prefix = "" if name == "tensors" else name
    found += [SavedValue(f"{prefix}[{number}]", one, None) for number, one in enumerate(saved) if one is not None]
