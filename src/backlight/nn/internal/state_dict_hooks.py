"""Hooks on saving and loading a module's state, and state that is no tensor."""

from collections.abc import Callable

from backlight.engine.hooks import HookDict, RemovableHandle
from backlight.errors import GraphError

EXTRA = "_extra_state"  # the key of what `get_extra_state` returns


class StateHooks:
    """All hooks on the state of one module."""

    def __init__(self):
        self.before_saving = HookDict()
        self.after_saving = HookDict()
        self.before_loading = HookDict()
        self.after_loading = HookDict()


class StateHookRegistration:
    """Module's methods that register hooks on its state."""

    _state_hooks: StateHooks | None = None

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is collected."""
        return self._register_state_hook("before_saving", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` when it is collected; the hook may change the dict."""
        return self._register_state_hook("after_saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading.

        The hook may change the dict and the lists.
        """
        return self._register_state_hook("before_loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; the hook may change the lists of keys."""
        return self._register_state_hook("after_loading", hook)

    def _register_state_hook(self, moment: str, hook: Callable) -> RemovableHandle:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", StateHooks())
        return RemovableHandle(getattr(self._state_hooks, moment), hook)

    def _run_state_hooks(self, moment: str, *args) -> None:
        if self._state_hooks is None:
            return
        for hook in list(getattr(self._state_hooks, moment).values()):
            answer = hook(self, *args)
            if answer is not None and moment == "after_saving":
                raise GraphError("state_dict post-hook must return None; change the dict that the hook is given")
            if answer is not None and moment == "after_loading":
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def get_extra_state(self):
        """Return further state; a class that has some overrides this and `set_extra_state`."""
        raise GraphError(
            "Reached a code path in Module.get_extra_state() that should never be called. A class that has extra state "
            "overrides it."
        )

    def set_extra_state(self, state: object) -> None:
        """Take what `get_extra_state` returned."""
        raise GraphError(
            "Reached a code path in Module.set_extra_state() that should never be called. A class that has extra state "
            "overrides it."
        )

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateHookRegistration, method)
