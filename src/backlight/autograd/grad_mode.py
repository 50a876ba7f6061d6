"""Everything that PyTorch keeps in `torch.autograd.grad_mode`: the modes, and two rarer switches."""

from collections.abc import Sequence

from backlight.engine.grad_mode import Mode, enable_grad, inference_mode, no_grad, set_grad_enabled
from backlight.engine.tensor_state import TensorState, storage_of
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError
from backlight.kernels.state_blocks import Block
from backlight.tensor.tensor import Tensor

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _Asked(ThreadState):
    """What this thread asked for."""

    multithreading = True


_asked = _Asked()


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` was given last in this thread; True at first."""
    return _asked.multithreading


class set_multithreading_enabled(Mode, Block):  # noqa: N801 - PyTorch's name
    """Say whether a backward may use threads of its own for accelerators: at once, and until the end of a `with`.

    On the CPU a backward runs in the thread that called it, here as in PyTorch, whatever was asked for.
    """

    def __init__(self, mode: bool):
        self.mode, self.previous = bool(mode), _asked.multithreading
        _asked.multithreading = self.mode

    def _block_state(self):
        return self.previous

    def _block_change(self, state):
        pass

    def _block_restore(self, state):
        _asked.multithreading = state

    def clone(self):
        """Return the same switch again, for another call of the decorated function."""
        return set_multithreading_enabled(self.mode)


class _unsafe_preserve_version_counter(Mode, Block):  # noqa: N801 - PyTorch's name
    """Hide writes to tensors inside a `with` block from the version counters that backward compares.

    Gradients are silently wrong if what a node saved is not back in its place when backward reads it.
    """

    def __init__(self, tensors: Tensor | Sequence[Tensor]):
        self.tensors = (tensors,) if isinstance(tensors, TensorState) else tuple(tensors)
        for tensor in self.tensors:
            if not isinstance(tensor, TensorState):
                raise ArgumentError(f"tensors must be a tensor or a tuple of tensors, got {type(tensor).__name__}")
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def _block_state(self):
        return None

    def _block_change(self, state):
        pass

    def _block_restore(self, state):
        for tensor, version in zip(self.tensors, self.versions):
            storage_of(tensor).version = version

    def clone(self):
        """Return the same block again, for another call of the decorated function."""
        return _unsafe_preserve_version_counter(self.tensors)
