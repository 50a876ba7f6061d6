"""Refuse in-place writes to captured tensors inside transforms: only arguments and new tensors may be written to.

NOTE [Captured tensors]
`grad(f)(x)` calls f inside a `Transform`. A write in place to a tensor that was there before, and is no argument, would
be lost for the gradient, or outlive the call: PyTorch refuses it, and so do we. To tell such a tensor from a new one,
every tensor made while a transform is open is stamped: `storage.born` is the sequence number at which the thread's
innermost transform was opened. A node's output needs no stamp, since nodes are numbered: `born_of` reads either. Views
and detached aliases share their base's storage, and with it the stamp.

While no transform is open this costs next to nothing: `modes.marks` is read instead of `modes.inference`, the core
tests a C global, and the few functions that have to do more test `transforms.open`. `linearize` is no such transform,
as in PyTorch.
"""

from collections.abc import Iterable, Iterator, Sequence

from backlight.dispatch.interpreters import local as interpreters
from backlight.dispatch.observation import SharedSwitch
from backlight.engine.grad_mode import modes
from backlight.engine.node import Output, next_sequence
from backlight.engine.saved_tensors import disable_inside_transform
from backlight.engine.saved_tensors import local as packing
from backlight.engine.storage import Storage, new_storage
from backlight.engine.tensor_state import (
    LEAF,
    TensorState,
    below_batches,
    storage_of,
    transforms,
)
from backlight.engine.threads import ThreadState
from backlight.errors import GraphError
from backlight.kernels.native import core
from backlight.kernels.state_blocks import Block, block
from backlight.system.fork_safety import fork_safe_lock

INSIDE = (
    "You are attempting to call Tensor.{name}() {more}inside of a function being transformed by a functorch transform. "
    "This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or "
    "call {name}() outside of a function being transformed instead."
)
BACKWARD_INSIDE = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
    "instead or call backward() outside of functorch transforms."
)
CAPTURED = -1  # `born` of an alias of a tensor that is older than all open transforms


class _Local(ThreadState):
    """The transforms open in this thread, the outermost first."""

    def __init__(self):
        self.transforms: list[Transform] = []


local = _Local()
_lock = fork_safe_lock()
_open = SharedSwitch()  # a token for each transform, in all threads


class Transform(Block):
    """One call of a transformed function.

    Args:
        given: its arguments, any values: the tensors among them may be written to.
        leaves: the tensors that it differentiates for in reverse mode. They are leaves to the function, and saved
            tensor hooks are refused, as in PyTorch.
    """

    __slots__ = ("given", "leaves", "opened", "reverse")

    def __init__(self, given: Iterable, leaves: Sequence[TensorState] = ()):
        self.reverse = bool(leaves)
        self.leaves = [below_batches(one) for one in leaves]
        self.given = [storage_of(below_batches(one)) for one in given if isinstance(one, TensorState)]

    def _block_state(self):
        return object(), modes.marks, modes.born, packing.disabled, local.transforms[:]

    def _block_change(self, state: tuple):
        if self.reverse:
            disable_inside_transform()
        _open.hold(state[0])
        _count_open()
        self.opened = modes.born = next_sequence()
        modes.marks = True
        local.transforms.append(self)
        return self

    def _block_restore(self, state: tuple) -> None:
        token, modes.marks, modes.born, disabled, local.transforms[:] = state
        if self.reverse:
            packing.disabled = disabled
        _open.release(token)
        _count_open()

    def may_write(self, tensor: TensorState) -> bool:
        """Tell whether the function was given a tensor, or made it."""
        return born_of(tensor) >= self.opened or any(one is tensor._storage for one in self.given)


def inside_reverse_transform() -> bool:
    """Tell whether this thread is inside a transformed function that is differentiated in reverse mode."""
    return transforms.open > 0 and any(one.reverse for one in local.transforms)


def _count_open() -> None:
    with _lock:
        transforms.open = len(_open.tokens)
        _open.apply(transforms.open > 0, _switch)


def _switch() -> None:
    if core is not None:
        core.core_mark(_marked if transforms.open else None)


def _marked() -> Storage | None:
    return new_storage() if modes.marks else None


def born_of(tensor: TensorState) -> int:
    """Return the sequence number at which a tensor's memory was made; 0 if outside of all transforms."""
    base = tensor if tensor._view is None else tensor._view[0]
    if base._storage is not None and base._storage.born:
        return base._storage.born
    edge = base._edge
    if edge is None or edge is LEAF:
        return 0
    return getattr(edge.node if edge.__class__ is Output else edge, "sequence", 0)  # a leaf may stand for itself


def is_leaf_inside(tensor: TensorState) -> bool:
    """Tell whether a transform of this thread, which differentiates for it, gave the function this tensor."""
    return any(tensor is leaf for one in local.transforms for leaf in one.leaves)


def mark_as_alias(tensor: TensorState, older: TensorState) -> None:
    """Give a tensor that shares the memory of an older one the same age, if a transform is open."""
    if not local.transforms or modes.inference:
        return
    storage = tensor._storage = Storage()
    storage.born = born_of(older) or CAPTURED
    for one in local.transforms:
        if any(each is older._storage for each in one.given):
            one.given.append(storage)


@block
def unchecked() -> Iterator[None]:
    """Allow all writes within the block, for the engine."""
    before, local.transforms = local.transforms, []
    try:
        yield
    finally:
        local.transforms = before


def refuse_inside(name: str, more: str = "") -> None:
    """Raise PyTorch's error if a method that changes what is recorded is called inside a transform, or inside vmap.

    Raises:
        RuntimeError: it is.
    """
    if local.transforms or any(one.opens_batches for one in interpreters.interpreters):
        raise GraphError(INSIDE.format(name=name, more=more))


def refuse_backward() -> None:
    """Raise PyTorch's error if this thread is inside a transform: its tensors have no `.grad`.

    Raises:
        RuntimeError: it is.
    """
    if local.transforms:
        raise GraphError(BACKWARD_INSIDE)


def refuse_captured(target: TensorState, name: str, args: tuple = (), kwargs: dict | None = None) -> None:
    """Raise PyTorch's error if a transform of this thread captured the tensor to be written to.

    Raises:
        RuntimeError: it did.
    """
    tensor = below_batches(target)
    if not local.transforms or modes.inference or all(one.may_write(tensor) for one in local.transforms):
        return
    raise GraphError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"(aten::{name}{_overload(name, args, kwargs or {})}) that would mutate a captured Tensor. This is not "
        "supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as "
        f"inputs. The tensor, of shape {list(target._data.shape)}, was made before the transform began and is no "
        "argument of the function: hand it over as one, or compute a new tensor instead"
    )


# --- how PyTorch spells an op's overload -----------------------------------------------------------------------------

_ALWAYS = dict.fromkeys(
    ["add_", "sub_", "subtract_", "mul_", "multiply_", "div_", "divide_", "true_divide_"], ".Tensor"
)
_ALWAYS |= {"floor_divide_": ".Tensor", "xlogy_": ".Tensor", "scatter_reduce_": ".two", "set_": ".source_Tensor"}
_COMPARED = ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "remainder_", "fmod_", "pow_", "fill_", "copysign_"]
_BITWISE = [f"bitwise_{name}_" for name in ("and", "or", "xor", "left_shift", "right_shift")]
_BY_OPERAND = {**dict.fromkeys(_COMPARED + _BITWISE, 0), "masked_fill_": 1, "lerp_": 1}  # the place of the operand
_BOUNDS = {"clamp_", "clip_", "clamp_min_", "clamp_max_"}


def _overload(name: str, args: tuple, kwargs: dict) -> str:
    """Return the name of the overload that PyTorch calls with these arguments, with its dot."""
    if kwargs.get("rounding_mode") is not None:
        return ".Tensor_mode"
    if name == "round_" and kwargs.get("decimals"):
        return ".decimals"
    operands = (*args, *kwargs.values())
    if name in _BOUNDS:
        return ".Tensor" if any(isinstance(one, TensorState) for one in operands) else ""
    if name in ("index_fill_", "scatter_") and len(operands) > 2:
        tensor = isinstance(operands[2], TensorState)
        return (".int_" if name == "index_fill_" else ".") + _SPELLED[name][tensor]
    if name == "squeeze_" and operands:
        return ".dims" if isinstance(operands[0], (tuple, list)) else ".dim"
    if name in _BY_OPERAND and len(operands) > _BY_OPERAND[name]:
        return ".Tensor" if isinstance(operands[_BY_OPERAND[name]], TensorState) else ".Scalar"
    return _ALWAYS.get(name, "")


_SPELLED = {"index_fill_": ("Scalar", "Tensor"), "scatter_": ("value", "src")}
