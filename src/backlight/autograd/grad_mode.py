"""Everything that PyTorch keeps in `torch.autograd.grad_mode`: the modes, and two rarer switches."""

from collections.abc import Sequence

from backlight.engine.grad_mode import Mode, enable_grad, inference_mode, no_grad, set_grad_enabled
from backlight.engine.tensor_state import TensorState, storage_of
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError
from backlight.kernels.state_blocks import Block
from backlight.tensor.tensor import Tensor

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _ThreadingState(ThreadState):
    """The value that this thread set with `set_multithreading_enabled`."""

    multithreading = True


_threading = _ThreadingState()


def is_multithreading_enabled() -> bool:
    """Return the last value of `set_multithreading_enabled` in this thread; True by default."""
    return _threading.multithreading


class set_multithreading_enabled(Mode, Block):  # noqa: N801 - PyTorch's name
    """Set whether a backward may use its own threads for accelerators: at once, and until the end of a `with`.

    On the CPU a backward runs in the thread that called it, here as in PyTorch, with either setting.
    """

    def __init__(self, mode: bool):
        self.mode, self.previous = bool(mode), _threading.multithreading
        _threading.multithreading = self.mode

    def _block_state(self):
        return self.previous

    def _block_change(self, state):
        pass

    def _block_restore(self, state):
        _threading.multithreading = state

    def clone(self):
        """Return the same switch again, for another call of the decorated function."""
        return set_multithreading_enabled(self.mode)


class _unsafe_preserve_version_counter(Mode, Block):  # noqa: N801 - PyTorch's name
    """Hide writes to tensors inside a `with` block from the version counters that backward compares.

    Gradients are silently wrong if a saved tensor does not have its old values again when backward reads it.
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
