"""Intercept calls of Python functions, for observers, interpreters and overrides, by replacing their code objects.

NOTE [Replaced code]
A function keeps its identity, so that modules that imported it before are covered too. Afterwards it gets back the code
object that it had before: nothing remains that costs time. A copy with the old code (`original`) does the work.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType

from backlight.dispatch import anomaly_mode, interpreters, torch_function
from backlight.dispatch.anomaly_checks import odd_op
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, interpreted
from backlight.dispatch.observation import Observation, SharedSwitch, local, notify_call, notify_op, observers
from backlight.kernels.native import core
from backlight.kernels.state_blocks import Block

getframe = sys._getframe
_HANDLER = "the handler"


class InterceptedFunction:
    """A function that is reported as one op; the ops that it calls are not reported."""

    as_one_op = True
    notify = staticmethod(notify_call)

    def __init__(self, function: FunctionType, name: str | None = None):
        self.function = function
        self.target = _overridden[function].original if function in _overridden else function  # what gets the code
        self.name = name or function.__name__
        self.code = self.target.__code__
        self.original = FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.original.__kwdefaults__ = function.__kwdefaults__
        self.replacement = trampoline(self.dispatch, self.code.co_freevars)

    def set_installed(self, wanted: bool) -> None:
        """Replace the function's code, or restore its own."""
        code = self.replacement if wanted else self.original.__code__
        if self.target.__code__ is not code:
            self.target.__code__ = code

    def dispatch(self, args: tuple, kwargs: dict):
        """Call the original, and report the call."""
        observation = local.observation
        if observation is None or observation.inside:
            return self.original(*args, **kwargs)
        observation.inside = self.as_one_op
        try:
            out = self.original(*args, **kwargs)
        finally:
            observation.inside = False
        if out is not NotImplemented and (self.as_one_op or out is not observation.last):
            observation.last = out
            self.notify(observation, self.name, args, kwargs, out, getframe(1))
        return out


class InterceptedOp(InterceptedFunction):
    """An op. Where it is computed by other ops, those are reported instead."""

    as_one_op = False
    notify = staticmethod(notify_op)

    def __init__(self, function: FunctionType, op, checked: Callable[[], CodeType]):
        super().__init__(function, op.display_name)
        self.op = op
        self.checked = cache(checked)

    def set_checked(self, wanted: bool) -> None:
        """Switch the check of what the function returns: NOTE [Anomalies] in dispatch/anomaly_mode.py."""
        self.original.__code__ = self.checked() if wanted else self.code

    def dispatch(self, args: tuple, kwargs: dict):
        """Try modes and classes (NOTE [Overriding]) first, then this thread's interpreters."""
        if torch_function.installed.on:
            out = torch_function.asked(self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        if interpreters.local.interpreters:
            out = interpreters.interpret(self.op, self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        return super().dispatch(args, kwargs)


class InterceptedComposite(InterceptedFunction):
    """A function that is no op, offered to interpreters as one call; it is not reported."""

    def dispatch(self, args: tuple, kwargs: dict):
        """Try this thread's interpreters first."""
        if interpreters.local.interpreters:
            out = interpreters.interpret_composite(self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        return self.original(*args, **kwargs)


class InterceptedInBlock(InterceptedFunction):
    """A function that runs inside a `with` block."""

    def __init__(self, function: FunctionType, block):
        super().__init__(function)
        self.block = block

    def dispatch(self, args: tuple, kwargs: dict):
        """Call the original inside the block."""
        with self.block():
            return self.original(*args, **kwargs)


class InterceptedOverride(InterceptedFunction):
    """A function that is no op, which modes and classes of arguments may override."""

    def __init__(self, function: FunctionType, only_modes: bool):
        super().__init__(function)
        self.only_modes = only_modes

    def dispatch(self, args: tuple, kwargs: dict):
        """Try them first."""
        out = torch_function.asked(self.function, args, kwargs, self.only_modes)
        return self.original(*args, **kwargs) if out is UNHANDLED else out


def trampoline(handler, free: tuple[str, ...]) -> CodeType:
    """Return code that passes all arguments to `handler`, for a function with these free variables."""
    code = _template(free)
    constants = tuple(handler if one == _HANDLER else one for one in code.co_consts)
    return code.replace(co_consts=constants)


@cache
def _template(free: tuple[str, ...]) -> CodeType:
    """Return code with a placeholder constant for the handler: the function's globals belong to its module."""
    lines = ["def enclosing():", *(f"    {name} = None" for name in free), "    def intercepted(*args, **kwargs):"]
    lines += [*(f"        {name}" for name in free), f"        handler = {_HANDLER!r}"]
    lines += ["        return handler(args, kwargs)"]
    lines += ["    return intercepted"]
    namespace = {}
    exec(compile("\n".join(lines), "<backlight intercepted>", "exec", dont_inherit=True), namespace)
    return namespace["enclosing"]().__code__


_built_ops: dict[FunctionType, InterceptedFunction] = {}  # ops that have been called at least once
_observed_functions: dict[FunctionType, InterceptedFunction] = {}
_composites: dict[FunctionType, InterceptedFunction] = {}
_overridden: dict[FunctionType, InterceptedFunction] = {}  # functions that modes and classes may override now


def op_was_built(function: FunctionType, op, checked: Callable[[], CodeType]) -> None:
    """Register an op's Python function, which has its code now, for interception.

    Args:
        checked: makes the code that it gets while anomaly mode checks ops.
    """
    with observers.lock:
        intercepted = _built_ops[function] = InterceptedOp(function, op, checked)
        intercepted.set_checked(anomaly_mode.anomaly.wanted_of_ops != 0)
        intercepted.set_installed(observers.blocks > 0 or interpreted.blocks > 0 or torch_function.installed.on)


def composite_function(function: FunctionType) -> FunctionType:
    """Offer a function that is no op to interpreters as one call, and return it."""
    with observers.lock:
        intercepted = _composites[function] = InterceptedComposite(function)
        intercepted.set_installed(interpreted.blocks > 0)
    return function


def register_intercepted(intercepted: InterceptedFunction) -> None:
    """Register a function that is reported while there are observers."""
    with observers.lock:
        _observed_functions[intercepted.function] = intercepted
        if observers.blocks:
            intercepted.set_installed(True)


def rename_ops() -> None:
    """Take over the ops' display names."""
    for intercepted in _built_ops.values():
        intercepted.name = intercepted.op.display_name


_observation_switch = SharedSwitch()  # a token for each observed block, in all threads
_interpreter_switch = SharedSwitch()  # a token for each block with an interpreter


class Observe(Block):
    """Reports what this thread does inside a `with` block to a watcher; blocks may be nested."""

    def __init__(self, watcher):
        self.watcher = watcher

    def _block_state(self):
        return object()

    def _block_change(self, token):
        _observation_switch.hold(token)
        _count_observers()
        if local.observation is None:
            local.observation = Observation((self.watcher,))
        else:
            local.observation.set_watchers((*local.observation.watchers, self.watcher))
        return self.watcher

    def _block_restore(self, token):
        observation = local.observation
        if observation is not None:
            left = tuple(one for one in observation.watchers if one is not self.watcher)
            if left:
                observation.set_watchers(left)
            else:
                local.observation = None
                observation.silent = True  # a running backward still refers to it
        _observation_switch.release(token)
        _count_observers()


def _count_observers() -> None:
    """Count the observed blocks; install or remove what reports calls."""
    with observers.lock:
        observers.blocks = len(_observation_switch.tokens)
        _observation_switch.apply(observers.blocks > 0, _update_observation)


class interpreting(Block):  # noqa: N801 - used as a function
    """Offer this thread's calls inside the block to an interpreter: see NOTE [Interpreters]."""

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter

    def _block_state(self):
        return object(), interpreters.local.interpreters.count(self.interpreter)

    def _block_change(self, state) -> Interpreter:
        hold_interpreters(state[0])
        interpreters.local.interpreters.append(self.interpreter)
        return self.interpreter

    def _block_restore(self, state) -> None:
        token, count = state
        while interpreters.local.interpreters.count(self.interpreter) > count:
            interpreters.local.interpreters.remove(self.interpreter)
        release_interpreters(token)


def hold_interpreters(token: object) -> None:
    """Have public functions try interpreters until `release_interpreters` is called with the same token."""
    _interpreter_switch.hold(token)
    _count_interpreters()


def release_interpreters(token: object) -> None:
    """Stop that, if no other block of any thread has an interpreter; may be called twice."""
    _interpreter_switch.release(token)
    _count_interpreters()


def _count_interpreters() -> None:
    with observers.lock:
        interpreted.blocks = len(_interpreter_switch.tokens)
        _interpreter_switch.apply(interpreted.blocks > 0, _update_dispatch)


def install_overrides(overrides: list[InterceptedFunction]) -> None:
    """Have each op, and these functions that are no ops, try modes and classes: NOTE [Overriding].

    While that is installed, other interceptions of one of these replace the code of its `original`.
    """
    with observers.lock:
        torch_function.installed.on = True
        for override in overrides:
            _overridden[override.function] = override
            if override.function.__code__ is not override.replacement:  # it is already, after an interrupted call
                override.original.__code__ = override.function.__code__
            _retarget(override.function, override.original)
            override.set_installed(True)
        _update_dispatch()


def remove_overrides() -> None:
    """Stop that."""
    with observers.lock:
        torch_function.installed.on = False
        for function, override in _overridden.items():
            override.set_installed(False)
            _retarget(function, function)
        _overridden.clear()
        _update_dispatch()


def _retarget(function: FunctionType, target: FunctionType) -> None:
    for noted in (_observed_functions, _composites):
        if function in noted:
            noted[function].target = target


def _update_dispatch() -> None:
    """Install or remove the dispatch of ops to interpreters, modes and classes."""
    _set_replacements()
    if core is not None:
        core.core_interpret(_dispatch_for_core if interpreted.blocks or torch_function.installed.on else None)


def _dispatch_for_core(op, function, args: tuple, kwargs: dict):
    """Dispatch an op that the core would run; None lets the core run it. The core calls this."""
    if torch_function.installed.on:
        out = torch_function.asked(function, args, kwargs)
        if out is not UNHANDLED:
            return out
    if not interpreters.local.interpreters:
        return None
    out = interpreters.interpret(op, function, args, kwargs)
    return None if out is UNHANDLED else out


@anomaly_mode.listener
def check_ops(wanted: int) -> None:
    """Switch the check of what ops return: see NOTE [Anomalies] in dispatch/anomaly_mode.py."""
    with observers.lock:
        observers.active = observers.blocks > 0 or wanted != 0
        for intercepted in _built_ops.values():
            intercepted.set_checked(wanted != 0)
        _replace_ops()
        if core is not None:
            core.core_check(odd_op if wanted else None, wanted)


def _update_observation() -> None:
    observers.active = observers.blocks > 0 or anomaly_mode.anomaly.wanted_of_ops != 0
    if core is not None:
        core.core_report(compiled_op_returned if observers.blocks else None)
    _set_replacements()


def _replace_ops() -> None:
    """Give each op the code that observers, interpreters, overrides and anomaly mode need now."""
    if observers.blocks or interpreted.blocks or torch_function.installed.on:
        for function, intercepted in _built_ops.items():  # inlined: each vmap comes here twice
            function.__code__ = intercepted.replacement
    else:
        for function, intercepted in _built_ops.items():
            function.__code__ = intercepted.original.__code__


def _set_replacements() -> None:
    """Give each function the code that observers and interpreters need now."""
    interprets = interpreted.blocks > 0
    _replace_ops()
    for intercepted in _observed_functions.values():
        intercepted.set_installed(observers.blocks > 0)
    for function, intercepted in _composites.items():
        if interprets:
            intercepted.target.__code__ = intercepted.replacement
        elif function not in _observed_functions:
            intercepted.target.__code__ = intercepted.code


def compiled_op_returned(op, args: tuple, kwargs: dict, out) -> None:
    """Report an op that the core ran; the core calls this."""
    observation = local.observation
    if observation is not None and not observation.inside:
        observation.last = out
        notify_op(observation, op.display_name, args, kwargs, out, getframe(1))
