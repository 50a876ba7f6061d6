"""Hooks on a module's call: before forward, after it, and on the gradients that pass through it.

Old backward hooks (`register_backward_hook`) and full ones exclude each other: see
`nn/internal/backward_hooks.py`.

NOTE [Hooks everywhere]
A module without hooks has no `Hooks`: its call looks once and goes to `forward`. The first hook for all modules puts
`EVERYWHERE` in the place where modules without their own find theirs; a module's own `Hooks` run those first.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from backlight.engine.hooks import HookDict, RemovableHandle
from backlight.errors import GraphError
from backlight.nn.internal.backward_hooks import GradientWatch, hook_last_node


@dataclass(frozen=True)
class Hook:
    """A hook function with its options: called with keyword arguments too, and even if forward raised."""

    function: Callable
    with_kwargs: bool = False
    always_call: bool = False


class Hooks:
    """All hooks of one module, created when the first hook is registered."""

    def __init__(self):
        self.before = HookDict()
        self.after = HookDict()
        self.backward_before = HookDict()
        self.backward = HookDict()
        self.last_node = HookDict()
        self.full: bool | None = None  # whether backward hooks are full ones; None before the first

    def _joined(self, moment: str) -> dict:
        """Return the hooks of one kind, global ones first."""
        own, everywhere = getattr(self, moment), getattr(EVERYWHERE, moment)
        return {**everywhere, **own} if everywhere else own

    def call(self, module: object, args: tuple, kwargs: dict):
        """Call the module's forward between its hooks."""
        result, finished = None, set()
        try:
            args, kwargs = self._run_before(module, args, kwargs)
            backward_hooks = self._full_backward_hooks(module)
            if backward_hooks is not None:
                args = backward_hooks.hook_inputs(args)
            result = module.forward(*args, **kwargs)
            for number, hook in list(self._joined("after").items()):
                finished.add(number)
                answer = _run_after(hook, module, args, kwargs, result)
                result = result if answer is None else answer
            result = result if backward_hooks is None else backward_hooks.hook_outputs(result)
            last_node = self._joined("last_node")
            if last_node:
                hook_last_node(module, args, result, [hook.function for hook in last_node.values()])
            return result
        except Exception:
            self._run_always_called(module, args, kwargs, result, finished)
            raise

    def choose(self, full: bool, where: str) -> None:
        """Record which kind of backward hooks there are.

        Raises:
            RuntimeError: there were hooks of the other kind.
        """
        if self.full is not None and self.full is not full:
            raise GraphError(
                f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
            )
        self.full = full

    def _run_before(self, module: object, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for hook in list(self._joined("before").values()):
            if hook.with_kwargs:
                answer = hook.function(module, args, kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise GraphError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
            else:
                answer = hook.function(module, args)
                if answer is not None:
                    args = answer if isinstance(answer, tuple) else (answer,)
        return args, kwargs

    def _full_backward_hooks(self, module: object) -> GradientWatch | None:
        before, after = self._joined("backward_before"), self._joined("backward")
        if not (before or after):
            return None
        return GradientWatch(
            module, [hook.function for hook in before.values()], [hook.function for hook in after.values()]
        )

    def _run_always_called(self, module: object, args: tuple, kwargs: dict, result: object, finished: set) -> None:
        """After an error, run the forward hooks with `always_call` that have not run yet."""
        for number, hook in self._joined("after").items():
            if not hook.always_call or number in finished:
                continue
            try:
                answer = _run_after(hook, module, args, kwargs, result)
                result = result if answer is None else answer
            except Exception as problem:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {problem}",
                    stacklevel=4,
                )


def _run_after(hook: Hook, module: object, args: tuple, kwargs: dict, result: object):
    return hook.function(module, args, kwargs, result) if hook.with_kwargs else hook.function(module, args, result)


EVERYWHERE = Hooks()


class HookRegistration:
    """Module's methods that register hooks."""

    _hooks: Hooks | None = None

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; it may return other arguments.

        Args:
            prepend: call it before the hooks that are there.
            with_kwargs: call `hook(module, args, kwargs)`; it may return both.
        """
        return self._register("before", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; it may return another output.

        Args:
            prepend: call it before the hooks that are there.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: call it even if forward raises.
        """
        return self._register("after", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before gradients pass backward through the module; it may replace them."""
        return self._register("backward_before", Hook(hook), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known.

        The hook may return other gradients for the inputs.
        """
        self._own_hooks().choose(True, "on a single Module")
        return self._register("backward", Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the last node of the module's forward; PyTorch's old hook.

        It sees one node, the one that made the result, not the module. The hook may return other gradients for that
        node's inputs, as a tuple or alone.

        Raises:
            RuntimeError: the module has full backward hooks.
        """
        self._own_hooks().choose(False, "on a single Module")
        return self._register("last_node", Hook(hook), False)

    def _own_hooks(self) -> Hooks:
        if "_hooks" not in self.__dict__:
            object.__setattr__(self, "_hooks", Hooks())
        return self._hooks

    def _register(self, moment: str, hook: Hook, prepend: bool) -> RemovableHandle:
        hooks = getattr(self._own_hooks(), moment)
        earlier = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        handle = RemovableHandle(hooks, hook)
        hooks.update(earlier)
        return handle


# --- for all modules --------------------------------------------------------------------------------------------------


def _register_everywhere(moment: str, hook: Hook) -> RemovableHandle:
    HookRegistration._hooks = EVERYWHERE
    return RemovableHandle(getattr(EVERYWHERE, moment), hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; it may return other arguments."""
    return _register_everywhere("before", Hook(hook))


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; it may return another output."""
    return _register_everywhere("after", Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before gradients pass backward through any module."""
    return _register_everywhere("backward_before", Hook(hook))


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    EVERYWHERE.choose(True, "as a global Module hook")
    return _register_everywhere("backward", Hook(hook))


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the last node of any module's forward; PyTorch's old hook."""
    EVERYWHERE.choose(False, "as a global Module hook")
    return _register_everywhere("last_node", Hook(hook))
