"""Which engines a program can run on, as the lens sees them.

NOTE [An engine]
All of the lens works on an `Engine`: our own (`lens/native.py`) or PyTorch's (`adapters/torch_engine.py`, the one file
that may import torch for the lens). Nodes are `grad_fn` objects with PyTorch's face: `name()`, `next_functions`,
`variable` of an AccumulateGrad, `metadata`. What the two do not share is behind these methods.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CodeType, ModuleType
from typing import Any, Protocol

import numpy as np

from backlight.adapters.torch_engine import torch_engine
from backlight.dispatch.observation import EVENTS, wants
from backlight.dispatch.observers import Line, SavedValue, Watcher
from backlight.engine.node import Node
from backlight.engine.tensor_state import TensorState
from backlight.errors import InputError
from backlight.kernels.native import core
from backlight.lens.native import NATIVE
from backlight.nn.modules.module import Module
from backlight.training.engine_types import AnyNode, AnyTensor


class Engine(Protocol):
    """See NOTE [An engine]."""

    name: str  # "backlight" or "torch"
    module: ModuleType  # what a script imports: has Tensor, nn, optim, autograd, no_grad …
    leaf_class: type  # of the nodes that add to a leaf's `.grad`
    kinds_in_records: dict[type, tuple]  # what records need of each class of nodes, for the compiled builder
    reads_in_c: dict[str, Any]  # what that needs to read nodes and tensors (NOTE [The builder in C])
    backwards_elsewhere: int  # backwards in threads without a watcher, while another one had one
    calls_modules: CodeType  # of the frame in which a module's forward is called

    def is_tensor(self, value: object) -> bool:
        """Return whether a value is a tensor of this engine."""

    def array(self, tensor: AnyTensor) -> np.ndarray:
        """Return a tensor's values, not copied where that is possible; bfloat16 as float32."""

    def node_of(self, tensor: AnyTensor) -> tuple[Any, int] | None:
        """Return (node, output number) that gets the tensor's gradient, a leaf's AccumulateGrad; None without one."""

    def made_by(self, tensor: AnyTensor) -> tuple[Any, int] | None:
        """Return (node, output number) of a tensor that an op made and that has a graph; None of all others."""

    def requires_grad(self, tensor: AnyTensor) -> bool:
        """Return whether a tensor is a leaf that gets a gradient, or has a graph."""

    def inputs_of(self, node: AnyNode) -> list[tuple[Any, int]]:
        """Return for each edge of a node (the node that it leads to, the number of that one's output).

        (None, 0) for none; (the leaf itself, OF_LEAF) for one that leads to a leaf.
        """

    def shape_and_dtype(self, tensor: AnyTensor) -> tuple[tuple[int, ...], object]:
        """Return a tensor's shape, and its dtype or NumPy's of the same name."""

    def is_leaf_node(self, node: AnyNode) -> bool:
        """Return whether a node adds to a leaf's `.grad`."""

    def key_of(self, node: AnyNode) -> int:
        """Return a number that only this node ever has, for who must know it again without keeping it alive.

        An AccumulateGrad has none of its own: its `variable` is what stays.
        """

    def next_number(self) -> int:
        """Return a number above the sequence numbers of all nodes that this thread has made; later ones reach it."""

    def memory_of(self, tensor: AnyTensor) -> tuple[int, int]:
        """Return (a key of the memory that the tensor shares with its views, the size of that memory in bytes)."""

    def in_graph(self, tensor: AnyTensor):
        """Return the tensor that the graph knows: ours holds all elements of vmap's batch, the batch as first dim."""

    def why_unread(self, tensor: AnyTensor) -> str:
        """Explain why a tensor's values cannot be read: "batched by vmap"."""

    def version_of(self, tensor: AnyTensor) -> int:
        """Return how often the tensor's memory has been written to."""

    def saved_by(self, node: AnyNode) -> list[SavedValue]:
        """Return the tensors that a node keeps for backward, by PyTorch's names without `_saved_`: `self`, `result`."""

    def kept_by(self, node: AnyNode) -> list[tuple[str, Any]]:
        """Return those of `saved_by` that can be read, with their names."""

    def saves_as(self, node_class: type) -> tuple:
        """Return the names under which nodes of a class may keep tensors; empty if they keep none."""

    def formulas_of(self, node: AnyNode) -> dict[str, str]:
        """Return each differentiable input's derivative: {"input": "grad · other"}; {} for a user's Function."""

    def line_of(self, node: AnyNode) -> Line | None:
        """Return the user's line that made a node; on PyTorch only of nodes made while observed."""

    def hooks_of(self, tensor: AnyTensor) -> list[str]:
        """Return the names of the user's hooks on a tensor and on its node."""

    def observe(self, watcher: Watcher) -> AbstractContextManager:
        """Report to a watcher what this thread does inside the block (NOTE [Watching]); blocks may be nested."""

    def wants_changed(self) -> None:
        """Look again at which calls this thread's watchers want."""

    def unobserved(self) -> AbstractContextManager:
        """Report to no watcher what this thread does inside the block: what the lens itself does to answer."""


def loaded_engines() -> list[Engine]:
    """Return the engines whose tensors the program may have: backlight, and PyTorch once it has been imported."""
    compiled = getattr(sys.modules.get("torch"), "_C", None)
    real = getattr(compiled, "__file__", None) is not None  # a script may be run with backlight under PyTorch's name
    return [NATIVE, torch_engine()] if real else [NATIVE]


def engine_of(value: object) -> Engine:
    """Return the engine of a tensor, a node or a module.

    Raises:
        InputError: it is none of these.
    """
    if isinstance(value, (TensorState, Node, Module)):
        return NATIVE
    for engine in loaded_engines()[1:]:
        if isinstance(value, (engine.module.Tensor, engine.module.nn.Module)) or hasattr(value, "next_functions"):
            return engine
    raise InputError(
        f"value must be a tensor, a node (grad_fn) or a module of backlight or PyTorch, got {type(value).__name__}: "
        "pass the tensor itself, not its values"
    )


def engine_named(name: str) -> Engine:
    """Return the engine called `backlight` or `torch`.

    Raises:
        InputError: there is no such engine, or PyTorch is not installed.
    """
    if name == "backlight":
        return NATIVE
    if name == "torch":
        return torch_engine()
    raise InputError(f"engine must be backlight or torch, got {name}")


class Guarded(Watcher):
    """Forwards events to a watcher until one of its methods raises.

    Args:
        watcher: the receiver of the events.
        give_up: called once with the exception that a method raised.
    """

    def __init__(self, watcher: Watcher, give_up: Callable[[Exception], None]):
        self.watcher = watcher
        guard = _Guard(give_up)  # an object of its own, so that nothing here refers to itself
        for event in EVENTS:
            if wants(watcher, event):
                setattr(self, event, guarded(getattr(watcher, event), guard))

    @property
    def only_nodes(self) -> bool:
        """What the watcher says, who may change his mind."""
        return self.watcher.only_nodes

    @property
    def only_recorded(self) -> bool:
        """What the watcher says now."""
        return self.watcher.only_recorded


class _Guard:
    """What listeners share of which one may fail."""

    def __init__(self, give_up: Callable[[Exception], None]):
        self.give_up = give_up
        self.failed = False

    def __call__(self, problem: Exception) -> None:
        """Note that a listener failed."""
        self.failed = True
        self.give_up(problem)


def _python_guarded(listener: Callable[..., None], guard: _Guard) -> Callable[..., None]:
    """Return a listener that no longer runs once it or another one has failed."""

    def notify(*args) -> None:
        if guard.failed:
            return
        try:
            listener(*args)
        except Exception as problem:
            guard(problem)

    return notify


guarded = _python_guarded if core is None else core.GuardedCall
