"""Handles that remove a hook again."""

import itertools
import weakref
from collections.abc import Callable

from backlight.kernels.state_blocks import Block

_next_id = itertools.count().__next__


class RemovableHandle(Block):
    """Removes its hook on `remove()`, or at the end of a `with` block."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict, hook: Callable):
        self.id = _next_id()
        hooks[self.id] = hook
        self._hooks = weakref.ref(hooks) if isinstance(hooks, HookDict) else lambda: hooks

    def remove(self) -> None:
        """Remove the hook; calling it twice does no harm."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def _block_state(self):
        return None

    def _block_change(self, state: None):
        return self

    def _block_restore(self, state: None):
        self.remove()


class HookDict(dict):
    """A dict that can be referred to weakly, so that a handle does not keep hooks alive."""

    __slots__ = ("__weakref__",)
