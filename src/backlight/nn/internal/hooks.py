"""Hooks on a module's call: before forward, after it, and on the gradients that pass through it.

Old backward hooks (`register_backward_hook`) and full ones exclude each other: see
`nn/internal/backward_hooks.py`.

NOTE [Hooks everywhere]
A module without hooks has no `Hooks`: its call looks once and goes to `forward`. The first hook for all modules puts
`EVERYWHERE` in the place where modules without their own find theirs; a module's own `Hooks` run after those.

NOTE [Dictionaries of hooks]
PyTorch's programs read and edit a module's dictionaries of hooks (`module._forward_hooks.clear()`). Here a module gets
them when one is first read, set or added to; from then on they are what its calls look at.
"""

import warnings
from collections import OrderedDict
from collections.abc import Callable

from backlight.engine.hooks import RemovableHandle
from backlight.errors import GraphError
from backlight.nn.internal.backward_hooks import GradientWatch, hook_last_node


class Hooks:
    """All hooks of one module under PyTorch's names: functions, and flags of functions, by the ids of their handles."""

    def __init__(self):
        self._forward_pre_hooks = OrderedDict()
        self._forward_pre_hooks_with_kwargs = OrderedDict()
        self._forward_hooks = OrderedDict()
        self._forward_hooks_with_kwargs = OrderedDict()
        self._forward_hooks_always_called = OrderedDict()
        self._backward_pre_hooks = OrderedDict()
        self._backward_hooks = OrderedDict()
        self._is_full_backward_hook: bool | None = None  # what `_backward_hooks` are; None before the first

    def _joined(self, kind: str) -> dict:
        """Return the hooks, or flags, of one kind, global ones first."""
        own, everywhere = getattr(self, kind), getattr(EVERYWHERE, kind)
        return {**everywhere, **own} if everywhere else own

    def _backward_functions(self, full: bool) -> list[Callable]:
        """Return the backward hooks that are full ones, or those that are not, global ones first."""
        own = () if self is EVERYWHERE else (self,)
        return [
            hook
            for hooks in (EVERYWHERE, *own)
            if hooks._is_full_backward_hook is full
            for hook in hooks._backward_hooks.values()
        ]

    def call(self, module: object, args: tuple, kwargs: dict):
        """Call the module's forward between its hooks."""
        result, finished = None, set()
        try:
            args, kwargs = self._run_before(module, args, kwargs)
            backward_hooks = self._full_backward_hooks(module)
            if backward_hooks is not None:
                args = backward_hooks.hook_inputs(args)
            result = module.forward(*args, **kwargs)
            for number, hook in list(self._joined("_forward_hooks").items()):
                finished.add(number)
                answer = self._run_after(number, hook, module, args, kwargs, result)
                result = result if answer is None else answer
            result = result if backward_hooks is None else backward_hooks.hook_outputs(result)
            last_node = self._backward_functions(full=False)
            if last_node:
                hook_last_node(module, args, result, last_node)
            return result
        except Exception:
            self._run_always_called(module, args, kwargs, result, finished)
            raise

    def choose(self, full: bool, where: str) -> None:
        """Record the kind of backward hooks (full or old).

        Raises:
            RuntimeError: the module has hooks of the other kind.
        """
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise GraphError(
                f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _run_before(self, module: object, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for number, hook in list(self._joined("_forward_pre_hooks").items()):
            if number in self._forward_pre_hooks_with_kwargs:
                answer = hook(module, args, kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise GraphError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
            else:
                answer = hook(module, args)
                if answer is not None:
                    args = answer if isinstance(answer, tuple) else (answer,)
        return args, kwargs

    def _run_after(self, number: int, hook: Callable, module: object, args: tuple, kwargs: dict, result: object):
        if number in self._joined("_forward_hooks_with_kwargs"):
            return hook(module, args, kwargs, result)
        return hook(module, args, result)

    def _full_backward_hooks(self, module: object) -> GradientWatch | None:
        before, after = self._joined("_backward_pre_hooks"), self._backward_functions(full=True)
        return GradientWatch(module, list(before.values()), after) if before or after else None

    def _run_always_called(self, module: object, args: tuple, kwargs: dict, result: object, finished: set) -> None:
        """After an error, run the forward hooks with `always_call` that have not run yet."""
        always = self._joined("_forward_hooks_always_called")
        for number, hook in list(self._joined("_forward_hooks").items()):
            if number not in always or number in finished:
                continue
            try:
                answer = self._run_after(number, hook, module, args, kwargs, result)
                result = result if answer is None else answer
            except Exception as problem:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {problem}",
                    stacklevel=4,
                )


EVERYWHERE = Hooks()


class HookAttribute:
    """An attribute of a module that is kept in its `Hooks` (see NOTE [Dictionaries of hooks])."""

    def __set_name__(self, owner: type, name: str):
        self.name = name

    def __get__(self, module: object, owner: type | None = None):
        return self if module is None else getattr(module._own_hooks(), self.name)

    def __set__(self, module: object, value: dict | bool | None) -> None:
        setattr(module._own_hooks(), self.name, value)


class HookRegistration:
    """Module's methods that register hooks."""

    _hooks: Hooks | None = None
    _forward_pre_hooks = HookAttribute()
    _forward_pre_hooks_with_kwargs = HookAttribute()
    _forward_hooks = HookAttribute()
    _forward_hooks_with_kwargs = HookAttribute()
    _forward_hooks_always_called = HookAttribute()
    _backward_pre_hooks = HookAttribute()
    _backward_hooks = HookAttribute()
    _is_full_backward_hook = HookAttribute()

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; it may return other arguments.

        Args:
            prepend: call it before the existing hooks.
            with_kwargs: call `hook(module, args, kwargs)`; it may return both.
        """
        own = self._own_hooks()
        handle = _registered(own._forward_pre_hooks, hook, own._forward_pre_hooks_with_kwargs)
        if with_kwargs:
            own._forward_pre_hooks_with_kwargs[handle.id] = True
        return _put_first(own._forward_pre_hooks, handle) if prepend else handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; it may return another output.

        Args:
            prepend: call it before the existing hooks.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: call it even if forward raises.
        """
        own = self._own_hooks()
        handle = _registered_after(own, hook, with_kwargs, always_call)
        return _put_first(own._forward_hooks, handle) if prepend else handle

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before gradients pass backward through the module; it may replace them."""
        own = self._own_hooks()
        handle = _registered(own._backward_pre_hooks, hook)
        return _put_first(own._backward_pre_hooks, handle) if prepend else handle

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known.

        The hook may return other gradients for the inputs.
        """
        own = self._own_hooks()
        own.choose(True, "on a single Module")
        handle = _registered(own._backward_hooks, hook)
        return _put_first(own._backward_hooks, handle) if prepend else handle

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the last node of the module's forward; PyTorch's old hook.

        It gets the gradients of one node, the one that made the result, not those of the module. The hook may return
        other gradients for that node's inputs, as a tuple or alone.

        Raises:
            RuntimeError: the module has full backward hooks.
        """
        own = self._own_hooks()
        own.choose(False, "on a single Module")
        return _registered(own._backward_hooks, hook)

    def _own_hooks(self) -> Hooks:
        if "_hooks" not in self.__dict__:
            object.__setattr__(self, "_hooks", Hooks())
        return self._hooks


def _registered(hooks: dict, hook: Callable, *flags: dict) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=flags)
    hooks[handle.id] = hook
    return handle


def _registered_after(own: Hooks, hook: Callable, with_kwargs: bool, always_call: bool) -> RemovableHandle:
    flags = own._forward_hooks_with_kwargs, own._forward_hooks_always_called
    handle = _registered(own._forward_hooks, hook, *flags)
    for flag, given in zip(flags, (with_kwargs, always_call)):
        if given:
            flag[handle.id] = True
    return handle


def _put_first(hooks: OrderedDict, handle: RemovableHandle) -> RemovableHandle:
    hooks.move_to_end(handle.id, last=False)
    return handle


# --- for all modules --------------------------------------------------------------------------------------------------


def _everywhere() -> Hooks:
    HookRegistration._hooks = EVERYWHERE
    return EVERYWHERE


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; it may return other arguments."""
    return _registered(_everywhere()._forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; it may return another output."""
    return _registered_after(_everywhere(), hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before gradients pass backward through any module."""
    return _registered(_everywhere()._backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    EVERYWHERE.choose(True, "as a global Module hook")
    return _registered(_everywhere()._backward_hooks, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the last node of any module's forward; PyTorch's old hook."""
    EVERYWHERE.choose(False, "as a global Module hook")
    return _registered(_everywhere()._backward_hooks, hook)
