"""Handles that remove a hook again."""

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable

from backlight.kernels.state_blocks import Block

_next_id = itertools.count().__next__


class RemovableHandle(Block):
    """Removes its hook on `remove()`, or at the end of a `with` block.

    Args:
        hooks_dict: the dictionary of hooks.
        hook: what to put into it under the handle's `id`; None if the caller does so.
        extra_dict: further dictionaries, from which the `id` is removed with the hook.
    """

    __slots__ = ("extra_dict_ref", "hooks_dict_ref", "id")

    def __init__(
        self, hooks_dict: dict, hook: Callable | tuple | None = None, *, extra_dict: dict | Iterable[dict] = ()
    ):
        self.id = _next_id()
        if hook is not None:
            hooks_dict[self.id] = hook
        self.hooks_dict_ref = _reference(hooks_dict)
        extra = (extra_dict,) if isinstance(extra_dict, dict) else extra_dict
        self.extra_dict_ref = tuple(map(_reference, extra)) if extra else ()

    def remove(self) -> None:
        """Remove the hook; calling it twice does no harm."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __reduce__(self):
        return _restored, (self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref))

    def _block_state(self):
        return None

    def _block_change(self, state: None):
        return self

    def _block_restore(self, state: None):
        self.remove()


def _restored(hooks: dict | None, number: int, extra: tuple) -> RemovableHandle:
    """Return the handle of a pickle; its hooks, pickled with it, keep their numbers."""
    global _next_id
    handle = RemovableHandle(
        OrderedDict() if hooks is None else hooks, extra_dict=[one for one in extra if one is not None]
    )
    if number > handle.id:
        _next_id = itertools.count(number + 1).__next__
    handle.id = number
    return handle


class HookDict(dict):
    """A dict that can be referred to weakly, so that a handle does not keep hooks alive."""

    __slots__ = ("__weakref__",)


def _reference(hooks: dict) -> Callable[[], dict | None]:
    """Return a weak reference to a dict of hooks; to a plain dict, which has none, a function that returns it."""
    return weakref.ref(hooks) if isinstance(hooks, (HookDict, OrderedDict)) else lambda: hooks
