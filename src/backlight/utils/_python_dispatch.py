"""PyTorch's `torch.utils._python_dispatch`: modes that handle every op below autograd, also those of a backward."""

from collections.abc import Callable, Sequence

from backlight.engine.tensor_state import TensorState
from backlight.ops.aten import OpOverload
from backlight.transforms.torch_dispatch.interpreter import ModeBlock, current_modes, without_modes

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing"]

_disable_current_modes = without_modes


class TorchDispatchMode(ModeBlock):
    """Handles the ops of this thread inside a `with` block, those of a backward too: override `__torch_dispatch__`."""

    def __torch_dispatch__(self, func: OpOverload, types: Sequence[type], args: tuple = (), kwargs: dict | None = None):
        """Handle an op: `func(*args, **kwargs)` computes it; ops called in here go to the outer modes."""
        raise NotImplementedError


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """Return the mode that would handle an op now."""
    return current_modes()[-1] if current_modes() else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """Return the modes of this thread, the outermost first."""
    return current_modes()


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Tell whether a value is a tensor subclass that can be taken apart and put together again."""
    return (
        isinstance(t, TensorState)
        and type(t) is not TensorState
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def return_and_correct_aliasing(func: Callable, args: tuple, kwargs: dict, out: object):
    """Return the result of a handler: of an op that writes in place, the tensor that was written to."""
    return args[0] if func._schema.is_mutable else out
