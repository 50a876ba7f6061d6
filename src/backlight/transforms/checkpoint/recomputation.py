"""Recomputation, in backward, of what a checkpointed block would have saved.

NOTE [Recomputation]
While a checkpointed function runs, the pack hook replaces each saved tensor by a `Holder`. When backward unpacks the
first of them, the function runs again, under hooks that count saved tensors and assign the n-th tensor to the n-th
holder that is still alive. It stops when the last of them is recomputed. A recomputed tensor is dropped after it was
unpacked, and belongs to one backward (engine/graph_task.py): a second backward, with retain_graph, recomputes.
Inner checkpoints hide what they save from outer ones, and their inputs are saved like any tensor of the outer one: so
unpacking a tensor of an inner checkpoint runs the outer one first.
"""

import weakref
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from backlight.autograd.saved_hooks import saved_tensors_hooks
from backlight.codegen.runtime_support import version_of
from backlight.dispatch.observation import local
from backlight.engine.grad_mode import enable_grad
from backlight.engine.graph_task import count_tasks, current_task, unused_number
from backlight.engine.node import modified, name_of_tensor
from backlight.engine.provenance import describe_place, user_place
from backlight.engine.saved_tensors import Packed, innermost_hooks, kept_edge
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.kernels.state_blocks import Block
from backlight.tensor.tensor import Tensor

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint‑debug mode globally.

A function that is checkpointed must compute the same again: from its arguments and from random numbers, not from what
changes between forward and backward (a counter, a cache, a global, a module's mode).
"""


class CheckpointError(GraphError):
    """The recomputed tensors differ from those that the forward saved."""


class Holder:
    """Placeholder of a saved tensor: for each current backward, the key of the recomputed tensor in its frame."""

    __slots__ = ("__weakref__", "keys")

    def __init__(self):
        self.keys: dict = {}


class Key:
    """The key of a recomputed tensor, which is freed with it."""

    __slots__ = ("__weakref__",)


class StopRecomputation(Exception):
    """Ends a recomputation early."""


class SavedInput:
    """A tensor that a checkpointed function was given, and the version it had."""

    __slots__ = ("code", "lasti", "packed", "tensor", "version")

    def __init__(self, tensor: Tensor):
        hooks = innermost_hooks()
        self.code, self.lasti = user_place()
        self.version = version_of(tensor)
        self.packed = None if hooks is None else Packed.unrecorded(hooks, tensor, kept_edge(tensor))
        self.tensor = tensor if hooks is None else None

    def name(self) -> str:
        """Return the name that messages use."""
        return "checkpoint"

    @property
    def where(self) -> str:
        """The line that called `checkpoint`."""
        return describe_place(self.code, self.lasti)

    def unpack(self):
        """Return the tensor.

        Raises:
            RuntimeError: it was written to since.
        """
        if self.packed is not None:
            return self.packed.unpack()
        tensor = self.tensor
        if version_of(tensor) != self.version:
            raise modified(self, tensor._data, tensor._storage, self.version, name_of_tensor(tensor))
        return tensor


class Frame:
    """One call of a checkpointed function.

    Args:
        recompute: runs the function again with the same arguments.
        early_stop: whether to stop when all needed tensors are recomputed.
        facts_of: the properties that must be equal for a saved tensor and the recomputed one.
    """

    def __init__(self, recompute: Callable, early_stop: bool, metadata_of: Callable):
        count_tasks()
        self.recompute = recompute
        self.early_stop = early_stop
        self.metadata_of = metadata_of
        self.arguments: list = []
        self.holders: list[weakref.ref] = []
        self.facts: list = []
        self.recomputed = defaultdict(weakref.WeakKeyDictionary)  # backward -> key -> tensor
        self.counts: dict = defaultdict(int)  # backward -> how many tensors its recomputation has saved
        self.done: set = set()
        self.completed = False  # whether the forward has ended
        self.may_differ = False

    def keep_arguments(self, args: tuple) -> None:
        """Save the arguments of the function, as a node would."""
        self.arguments = [SavedInput(one) if isinstance(one, TensorState) else one for one in args]

    def run_again(self, backward: object) -> None:
        """Recompute the tensors of the holders.

        Raises:
            CheckpointError: something else was saved.
        """
        args = [one.unpack() if isinstance(one, SavedInput) else one for one in self.arguments]
        self.counts[backward] = 0  # more after a recomputation that was interrupted
        try:
            with CheckpointHooks(_Recomputing(self, backward), _identity), enable_grad(), _without_observers():
                self.recompute(*args)
        except StopRecomputation:
            pass
        self.done.add(backward)
        self.check(backward)

    def check(self, backward: object) -> None:
        """Compare the recomputed tensors with those that the forward saved.

        Raises:
            CheckpointError: their numbers, or their facts, differ.
        """
        if self.may_differ:
            return
        if len(self.holders) != self.counts[backward]:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved "
                f"during recomputation: {self.counts[backward]}.\n{TIP}"
            )
        different = "".join(self._differences(backward))
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}.\n{TIP}"
            )

    def _differences(self, backward: object):
        for place, (reference, before) in enumerate(zip(self.holders, self.facts)):
            holder = reference()
            if holder is None:
                continue
            now = self.metadata_of(self.recomputed[backward][holder.keys[backward]])
            if now != before:
                yield f"tensor at position {place}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"


class _Recomputing:
    """The pack hook of a recomputation: assigns each tensor to its holder."""

    def __init__(self, frame: Frame, backward: object):
        self.frame = weakref.ref(frame)
        self.backward = backward

    def __call__(self, tensor: Tensor):
        frame, backward = self.frame(), self.backward
        tensor = tensor.detach() if tensor._edge is not None else tensor
        place = frame.counts[backward]
        frame.counts[backward] += 1
        if place >= len(frame.holders):
            if not frame.completed:  # a backward within the checkpointed function
                frame.may_differ = True
                return tensor
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                f"forward pass.\n{TIP}"
            )
        holder = frame.holders[place]()
        if holder is not None:
            key = holder.keys[backward] = Key()
            frame.recomputed[backward][key] = tensor
        if frame.early_stop and frame.counts[backward] == len(frame.holders):
            raise StopRecomputation
        return tensor


def _without_observers() -> AbstractContextManager:
    """Disable observers: they have already seen these ops in the forward."""
    return nullcontext() if local.observation is None else local.observation.silence()


def _identity(tensor: Tensor):
    return tensor


class GraphExecGroup(Block):
    """Recompute each checkpoint at most once for all backward calls inside the block, which may not overlap."""

    current = None

    def _block_state(self):
        if GraphExecGroup.current is not None:
            raise GraphError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup.current}; leave that "
                "block first"
            )
        return None

    def _block_change(self, state: object):
        GraphExecGroup.current = self
        return self

    def _block_restore(self, state: object) -> None:
        GraphExecGroup.current = None


class CheckpointHooks(saved_tensors_hooks):
    """Saved tensor hooks that restore exactly the saved values, so transforms accept them."""

    _of_checkpoint = True


def checkpoint_hooks(frame: Frame, on_error: Callable | None) -> saved_tensors_hooks:
    """Return the block in which a checkpointed function runs.

    Args:
        on_error: called with a CheckpointError before it is raised; may raise another.
    """

    def pack(tensor: Tensor):
        holder = Holder()
        frame.holders.append(weakref.ref(holder))
        frame.facts.append(frame.metadata_of(tensor))
        return holder

    def unpack(holder: Holder):
        try:
            return _unpacked(frame, holder)
        except CheckpointError as problem:
            if on_error is not None:
                on_error(problem)
            raise

    return CheckpointHooks(pack, unpack)


def _unpacked(frame: Frame, holder: Holder):
    """Return the tensor of a holder; recompute it if this backward has not done so."""
    task = current_task()
    backward = GraphExecGroup.current or (unused_number() if task is None else task.number)
    if backward not in frame.done:
        frame.run_again(backward)
    key = holder.keys[backward]
    if key is None:
        overlap = (
            ""
            if GraphExecGroup.current is None
            else "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
            "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
        )
        raise CheckpointError(
            "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
            f"{overlap}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
            "please open an issue with details on your use case."
        )
    tensor = frame.recomputed[backward][key]
    holder.keys[backward] = None
    return tensor
