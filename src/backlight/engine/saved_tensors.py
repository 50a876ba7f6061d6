"""Saved tensors packed by a user's hooks (`saved_tensors_hooks`).

NOTE [Packed tensors]
Inside `saved_tensors_hooks(pack, unpack)` a node keeps, in place of a tensor, a `Packed` that holds what `pack(tensor)`
returned, and where the tensor's gradient goes. Each time that the node needs the tensor, it calls `unpack`. Hooks are
thread-local; of several blocks the innermost one's are used.
"""

from collections.abc import Callable, Sequence

from backlight.engine.grad_mode import modes, set_recording
from backlight.engine.tensor_state import LEAF, TensorState, wrap
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError, GraphError

MODIFIED_BY_PACK = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)


NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
    "case. Put them around nothing that a transform does; backlight's checkpoint, use_reentrant=False, goes with both"
)


class _Local(ThreadState):
    """This thread's hooks."""

    def __init__(self):
        self.hooks: list[Hooks] = []  # the innermost last
        self.disabled: str | None = None  # the reason, if hooks are forbidden


local = _Local()


class Hooks:
    """A pair of hooks."""

    __slots__ = ("of_checkpoint", "pack", "unpack")

    def __init__(self, pack: Callable, unpack: Callable, of_checkpoint: bool = False):
        self.pack = pack
        self.unpack = unpack
        self.of_checkpoint = of_checkpoint  # a checkpoint's are allowed inside transforms, a user's are not


def innermost_hooks() -> Hooks | None:
    """Return the hooks that pack tensors that this thread saves now."""
    return local.hooks[-1] if local.hooks else None


def set_disabled(message: str | None) -> str | None:
    """Forbid hooks in this thread, with the message of the error (None allows them); return the previous one.

    Raises:
        RuntimeError: hooks are active.
    """
    if message is not None and local.hooks:
        raise GraphError(message)
    before, local.disabled = local.disabled, message
    return before


def disable_inside_transform() -> str | None:
    """Forbid hooks in this thread, except checkpoints'; return the previous message.

    Raises:
        RuntimeError: a user's hooks are active.
    """
    if not all(one.of_checkpoint for one in local.hooks):
        raise GraphError(NO_HOOKS)
    before = local.disabled
    local.disabled = NO_HOOKS if before is None else before
    return before


def refuse_disabled(hooks: Hooks) -> None:
    """Raise if hooks are forbidden.

    Raises:
        RuntimeError: they are; its message is the one set.
    """
    disabled = local.disabled
    if disabled is not None and not (hooks.of_checkpoint and disabled is NO_HOOKS):
        raise GraphError(disabled)


class Packed:
    """A saved tensor as a pack hook returned it.

    Args:
        hooks: the pair; its pack hook is called at once. The caller must have switched recording off.
        tensor: what is saved.
        edge: where the gradient of the tensor, unpacked, goes; None for nowhere.
    """

    __slots__ = ("edge", "held", "hooks", "tangents")

    def __init__(self, hooks: Hooks, tensor: TensorState, edge: object):
        self.hooks = hooks
        self.edge = edge
        self.tangents = tensor._tangents
        version = _version(tensor)
        self.held = hooks.pack(tensor)
        if _version(tensor) != version:
            raise GraphError(MODIFIED_BY_PACK)

    @classmethod
    def unrecorded(cls, hooks: Hooks, tensor: TensorState, edge: object) -> "Packed":
        """Pack a tensor without recording what the hook does."""
        recording = modes.requested
        try:
            set_recording(False)
            return cls(hooks, tensor, edge)
        finally:
            set_recording(recording)

    def unpack(self, edge: object | None = None):
        """Return the tensor again, attached to the graph as before: at `edge`, for a node's own output.

        Raises:
            TypeError: the unpack hook did not return a tensor.
        """
        made = self.hooks.unpack(self.held)
        if not isinstance(made, TensorState):
            raise ArgumentError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(made).__name__}; it must return what the pack hook was given, or its equal"
            )
        tensor = wrap(made._data, self.edge if edge is None else edge)
        if self.tangents is not None:
            tensor._tangents = self.tangents
        return tensor


def kept_edge(tensor: TensorState):
    """Return where the gradient of a saved tensor goes: a leaf stands for itself."""
    return tensor if tensor._edge is LEAF else tensor._edge


def unpacked_list(values: Sequence) -> list:
    """Return saved tensors, unpacking those that are packed."""
    return [one.unpack() if isinstance(one, Packed) else one for one in values]


def _version(tensor: TensorState) -> int:
    return 0 if tensor._storage is None else tensor._storage.version
