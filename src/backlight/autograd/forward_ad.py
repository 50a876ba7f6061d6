"""Forward mode: dual tensors carry a tangent through a computation, which gives Jacobian-vector products.

    with dual_level():
        x = make_dual(primal, tangent)
        out, jvp = unpack_dual(function(x))

NOTE [Duals] in codegen/forward_mode.py says what a dual is and how tangents are computed.
"""

from typing import NamedTuple

from backlight.codegen.forward_mode import Level
from backlight.dispatch.dispatcher import hold_interpreters, release_interpreters
from backlight.dispatch.interpreters import local
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import Mode, modes
from backlight.engine.tensor_state import TensorState
from backlight.engine.threads import ThreadState
from backlight.errors import GraphError, ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.ops.type_promotion import has_gradient
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.interpreter import levels_of, to_batched, to_physical

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "set_fwd_grad_enabled",
    "unpack_dual",
]


class _Entered(ThreadState):
    """The current level of this thread, if any."""

    level: Level | None = None


_entered = _Entered()


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: a tensor without its tangent, and the tangent, or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level of forward mode, and return its number.

    Raises:
        RuntimeError: this thread has entered one before. `func.jvp` may be nested.
    """
    if _entered.level is not None:
        raise GraphError(
            "Nested forward mode AD is not supported at the moment; leave the level first, or nest func.jvp instead"
        )
    entered = Level()
    try:
        _entered.level = entered
        hold_interpreters(entered)
        local.interpreters.append(entered)
    except BaseException:
        _leave(entered)
        raise
    return 0


def _leave(level: Level) -> None:
    """Leave a level; may be called again after an interrupt."""
    local.interpreters[:] = [one for one in local.interpreters if one is not level]
    release_interpreters(level)
    level.forget()
    _entered.level = None


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave a level of forward mode: all tangents of it are gone.

    Raises:
        RuntimeError: it is not the current level of this thread.
    """
    if level is not None and level != (-1 if _entered.level is None else 0):
        raise GraphError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if _entered.level is None:
        raise GraphError("Dual level must be a positive number. No level was entered: enter_dual_level() comes first")
    _leave(_entered.level)


class dual_level(Mode, Block):  # noqa: N801 - PyTorch's name
    """Enter a level of forward mode within the block, or within the decorated function."""

    def _block_state(self) -> Level | None:
        return _entered.level

    def _block_change(self, state) -> int:
        return enter_dual_level()

    def _block_restore(self, state) -> None:
        if _entered.level is not state:
            exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a dual: an alias of `tensor` that carries `tangent`, itself if it lies in memory as the tensor does.

    Raises:
        RuntimeError: no level was entered, the sizes differ, or one of the two carries a tangent already.
        ValueError: one of the two is not floating point.
        AttributeError: one of the two is no tensor.
    """
    at = _level(level)
    if at is None:
        raise GraphError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, one in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(one, TensorState):
            raise AttributeError(
                f"{type(one).__name__!r} object has no attribute 'is_floating_point'; the {name} must be a tensor"
            )
        if not has_gradient(one._data.dtype):
            raise ValueProblem(
                f"Expected {name} to be floating point or complex, but got: {from_numpy_dtype(one._data.dtype)}"
            )
    if unpacked_at(at, tensor)[1] is not None:
        raise GraphError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if unpacked_at(at, tangent)[1] is not None:
        raise GraphError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    return dual_at(at, tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent: None if it has none."""
    at = _level(level)
    if at is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*unpacked_at(at, tensor))


def dual_at(level: Level, tensor: Tensor, tangent: Tensor) -> Tensor:
    """Return a dual of one level; inside vmap, the batch of duals."""
    vmap_levels = levels_of([tensor, tangent])
    return to_batched(level.dual(to_physical(tensor, vmap_levels), to_physical(tangent, vmap_levels)), vmap_levels)


def unpacked_at(level: Level, tensor: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return a tensor without its tangent of one level, and the tangent, or None."""
    vmap_levels = levels_of([tensor])
    primal, tangent = level.unpacked(to_physical(tensor, vmap_levels))
    return to_batched(primal, vmap_levels), None if tangent is None else to_batched(tangent, vmap_levels)


def _level(number: int | None) -> Level | None:
    """Return the level of a number, by default the thread's current one; None if there is none."""
    return _entered.level if number is None or number == 0 else None


def is_fwd_grad_enabled() -> bool:
    """Return whether this thread computes tangents."""
    return modes.forward


class set_fwd_grad_enabled(Mode, Block):  # noqa: N801 - PyTorch's name
    """Switch forward mode on or off: at once when called, and back at the end when used in `with`."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self.previous, modes.forward = modes.forward, self.mode

    def _block_state(self) -> bool:
        return self.previous

    def _block_change(self, state) -> None:
        modes.forward = self.mode

    def _block_restore(self, state) -> None:
        modes.forward = state

    def clone(self):
        """Return one like it, for one call of a decorated function."""
        return set_fwd_grad_enabled(self.mode)


_set_fwd_grad_enabled = set_fwd_grad_enabled
_is_fwd_grad_enabled = is_fwd_grad_enabled
