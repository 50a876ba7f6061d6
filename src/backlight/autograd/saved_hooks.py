"""Hooks on saved tensors: a block in which each saved tensor is packed, and unpacked when it is needed."""

from collections.abc import Callable, Iterator
from typing import Any

from backlight.codegen.packed_nodes import Packing
from backlight.dispatch import interpreters
from backlight.dispatch.dispatcher import hold_interpreters, release_interpreters
from backlight.engine import saved_tensors
from backlight.engine.saved_tensors import Hooks, refuse_disabled, set_disabled
from backlight.errors import ArgumentError
from backlight.kernels.state_blocks import Block, block
from backlight.tensor.tensor import Tensor


class saved_tensors_hooks(Block):  # noqa: N801 - PyTorch's name
    """Keep what `pack_hook(tensor)` returns, in place of each tensor that is saved for backward inside the block.

    Whenever backward needs the tensor, `unpack_hook` is called with that and must return a tensor equal to the first.
    Writes to a tensor after it was packed are not detected. Of nested blocks the innermost one's hooks are used.

    Args:
        pack_hook: takes a tensor and returns anything; it must not write to the tensor.
        unpack_hook: takes that and returns a tensor.

    Raises:
        RuntimeError: the block stands inside `disable_saved_tensors_hooks`.
    """

    _of_checkpoint = False

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _block_state(self):
        if not callable(self.pack_hook) or not callable(self.unpack_hook):
            raise ArgumentError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                f"Invoked with: {self.pack_hook}, {self.unpack_hook}; saved_tensors_hooks takes two functions"
            )
        hooks = Hooks(self.pack_hook, self.unpack_hook, self._of_checkpoint)
        refuse_disabled(hooks)
        return hooks, saved_tensors.local.hooks[:]

    def _block_change(self, state: tuple) -> None:
        hooks, _ = state
        saved_tensors.local.hooks.append(hooks)
        hold_interpreters(hooks)
        interpreters.local.interpreters.append(Packing(hooks))

    def _block_restore(self, state: tuple) -> None:
        hooks, saved_tensors.local.hooks[:] = state
        stack = interpreters.local.interpreters
        stack[:] = [one for one in stack if not (isinstance(one, Packing) and one.hooks is hooks)]
        release_interpreters(hooks)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Move tensors that are saved for backward inside the block to the CPU; no effect on CPU tensors.

    Args:
        pin_memory: copy it, as PyTorch does, which pins the copy where there is an accelerator.
        device_type: the device of the tensors.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack_to_cpu(tensor: Tensor):
            return tensor.device, tensor.clone() if pin_memory else tensor.cpu()

        def unpack_from_cpu(packed: tuple):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@block
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Make `saved_tensors_hooks` raise RuntimeError with this message inside the block.

    Raises:
        RuntimeError: such hooks are active around the block.
    """
    before = saved_tensors.local.disabled
    try:
        set_disabled(error_message)
        yield
    finally:
        saved_tensors.local.disabled = before
