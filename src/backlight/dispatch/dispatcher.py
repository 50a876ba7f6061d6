"""Python functions whose calls are reported while somebody watches, or interpreted, by replacing their code objects.

NOTE [Replaced code]
A function keeps its identity, so that whoever imported it before is watched too, and afterwards it has the very code
object again that it had before: nothing is left behind that could cost. A twin with the old code does the work.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType

from backlight.dispatch import anomaly_mode, interpreters, torch_function
from backlight.dispatch.anomaly_checks import odd_op
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, interpreted
from backlight.dispatch.observation import Holders, Observation, local, somebody, tell_call, tell_op
from backlight.kernels.native import core
from backlight.kernels.state_blocks import Block

getframe = sys._getframe
_HANDLER = "the handler"


class Interception:
    """A function that is reported as one op; what it is made of is not."""

    whole = True
    tell = staticmethod(tell_call)

    def __init__(self, function: FunctionType, name: str | None = None):
        self.function = function
        self.target = _overridden[function].twin if function in _overridden else function  # what gets the code
        self.name = name or function.__name__
        self.code = self.target.__code__
        self.twin = FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.twin.__kwdefaults__ = function.__kwdefaults__
        self.replacement = calling(self.called, self.code.co_freevars)

    def set_installed(self, wanted: bool) -> None:
        """Replace the function's code, or give it its own again."""
        code = self.replacement if wanted else self.twin.__code__
        if self.target.__code__ is not code:
            self.target.__code__ = code

    def called(self, args: tuple, kwargs: dict):
        """Do what the function does, and report it."""
        observation = local.observation
        if observation is None or observation.inside:
            return self.twin(*args, **kwargs)
        observation.inside = self.whole
        try:
            out = self.twin(*args, **kwargs)
        finally:
            observation.inside = False
        if out is not NotImplemented and (self.whole or out is not observation.last):
            observation.last = out
            self.tell(observation, self.name, args, kwargs, out, getframe(1))
        return out


class OpInterception(Interception):
    """An op. One that for some inputs is made of other ops is reported as these."""

    whole = False
    tell = staticmethod(tell_op)

    def __init__(self, function: FunctionType, op, checked: Callable[[], CodeType]):
        super().__init__(function, op.told_as)
        self.op = op
        self.checked = cache(checked)

    def set_checked(self, wanted: bool) -> None:
        """Let the function check what it returns (NOTE [Anomalies] in dispatch/anomaly_mode.py), or no longer."""
        self.twin.__code__ = self.checked() if wanted else self.code

    def called(self, args: tuple, kwargs: dict):
        """Ask modes and classes (NOTE [Overriding]) first, then this thread's interpreters."""
        if torch_function.installed.on:
            out = torch_function.asked(self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        if interpreters.local.interpreters:
            out = interpreters.interpret(self.op, self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        return super().called(args, kwargs)


class WholeInterception(Interception):
    """A function that is no op, and which interpreters are asked about; nobody is told of it."""

    def called(self, args: tuple, kwargs: dict):
        """Ask this thread's interpreters first."""
        if interpreters.local.interpreters:
            out = interpreters.interpret_whole(self.function, args, kwargs)
            if out is not UNHANDLED:
                return out
        return self.twin(*args, **kwargs)


class Surrounded(Interception):
    """A function that runs inside a block of its own."""

    def __init__(self, function: FunctionType, block):
        super().__init__(function)
        self.block = block

    def called(self, args: tuple, kwargs: dict):
        """Call it inside the block."""
        with self.block():
            return self.twin(*args, **kwargs)


class Override(Interception):
    """A function that is no op, which modes and classes of arguments may answer for."""

    def __init__(self, function: FunctionType, only_modes: bool):
        super().__init__(function)
        self.only_modes = only_modes

    def called(self, args: tuple, kwargs: dict):
        """Ask them first."""
        out = torch_function.asked(self.function, args, kwargs, self.only_modes)
        return self.twin(*args, **kwargs) if out is UNHANDLED else out


def calling(handler, free: tuple[str, ...]) -> CodeType:
    """Return code that hands all arguments to `handler`, for a function with these variables of its surroundings."""
    code = _template(free)
    constants = tuple(handler if one == _HANDLER else one for one in code.co_consts)
    return code.replace(co_consts=constants)


@cache
def _template(free: tuple[str, ...]) -> CodeType:
    """Return code with a place for the handler: as a constant, since a function's globals belong to its module."""
    lines = ["def surroundings():", *(f"    {name} = None" for name in free), "    def intercepted(*args, **kwargs):"]
    lines += [*(f"        {name}" for name in free), f"        handler = {_HANDLER!r}"]
    lines += ["        return handler(args, kwargs)"]
    lines += ["    return intercepted"]
    namespace = {}
    exec(compile("\n".join(lines), "<backlight intercepted>", "exec", dont_inherit=True), namespace)
    return namespace["surroundings"]().__code__


_built: dict[FunctionType, Interception] = {}  # ops that have been called at least once
_others: dict[FunctionType, Interception] = {}
_wholes: dict[FunctionType, Interception] = {}
_overridden: dict[FunctionType, Interception] = {}  # functions that ask modes and classes now


def op_was_built(function: FunctionType, op, checked: Callable[[], CodeType]) -> None:
    """Note an op's Python function, which has its code now, to be reported while somebody watches.

    Args:
        checked: makes the code that it gets while anomaly mode looks at ops.
    """
    with somebody.lock:
        interception = _built[function] = OpInterception(function, op, checked)
        interception.set_checked(anomaly_mode.anomaly.wanted_of_ops != 0)
        interception.set_installed(somebody.blocks > 0 or interpreted.blocks > 0 or torch_function.installed.on)


def asked_as_a_whole(function: FunctionType) -> FunctionType:
    """Let interpreters be asked about a function that is no op, and return it."""
    with somebody.lock:
        interception = _wholes[function] = WholeInterception(function)
        interception.set_installed(interpreted.blocks > 0)
    return function


def add_interception(interception: Interception) -> None:
    """Note another function."""
    with somebody.lock:
        _others[interception.function] = interception
        if somebody.blocks:
            interception.set_installed(True)


def rename_ops() -> None:
    """Take over what ops are told as now."""
    for interception in _built.values():
        interception.name = interception.op.told_as


_watched = Holders()  # a token for each block that is watched, in whichever thread
_interpreted = Holders()  # and for each with an interpreter


class Observe(Block):
    """Tells a watcher of what this thread does inside a `with` block; blocks may be nested."""

    def __init__(self, watcher):
        self.watcher = watcher

    def _block_state(self):
        return object()

    def _block_change(self, token):
        _watched.hold(token)
        _count_watched()
        if local.observation is None:
            local.observation = Observation((self.watcher,))
        else:
            local.observation.tell_only((*local.observation.watchers, self.watcher))
        return self.watcher

    def _block_restore(self, token):
        observation = local.observation
        if observation is not None:
            left = tuple(one for one in observation.watchers if one is not self.watcher)
            if left:
                observation.tell_only(left)
            else:
                local.observation = None
                observation.silent = True  # a backward that runs now knows it still
        _watched.release(token)
        _count_watched()


def _count_watched() -> None:
    """Count the blocks that are watched; install or remove what tells of calls."""
    with somebody.lock:
        somebody.blocks = len(_watched.tokens)
        _watched.apply(somebody.blocks > 0, _switch_watching)


class interpreting(Block):  # noqa: N801 - used as a function
    """Let an interpreter see what this thread calls inside the block: see NOTE [Interpreters]."""

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
    """Let public functions ask interpreters until `release_interpreters` is called with the same token."""
    _interpreted.hold(token)
    _count_interpreted()


def release_interpreters(token: object) -> None:
    """Let them ask no longer, if no other block of any thread has an interpreter; may be called twice."""
    _interpreted.release(token)
    _count_interpreted()


def _count_interpreted() -> None:
    with somebody.lock:
        interpreted.blocks = len(_interpreted.tokens)
        _interpreted.apply(interpreted.blocks > 0, _asking_changed)


def install_overrides(overrides: list[Interception]) -> None:
    """Let each op, and these functions that are no ops, ask modes and classes: NOTE [Overriding].

    What is to be done with the code of one of these is done with that of its twin, which does the work.
    """
    with somebody.lock:
        torch_function.installed.on = True
        for override in overrides:
            _overridden[override.function] = override
            if override.function.__code__ is not override.replacement:  # it is after an interrupted call of this
                override.twin.__code__ = override.function.__code__
            _retarget(override.function, override.twin)
            override.set_installed(True)
        _asking_changed()


def remove_overrides() -> None:
    """Let nothing ask them any longer."""
    with somebody.lock:
        torch_function.installed.on = False
        for function, override in _overridden.items():
            override.set_installed(False)
            _retarget(function, function)
        _overridden.clear()
        _asking_changed()


def _retarget(function: FunctionType, target: FunctionType) -> None:
    for noted in (_others, _wholes):
        if function in noted:
            noted[function].target = target


def _asking_changed() -> None:
    """Install or remove what asks interpreters, modes and classes about ops."""
    _set_replacements()
    if core is not None:
        core.core_interpret(_asked_by_core if interpreted.blocks or torch_function.installed.on else None)


def _asked_by_core(op, function, args: tuple, kwargs: dict):
    """Ask who may answer for an op that the core would run; None lets it. The core calls this."""
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
    """Look at what ops return from now on, or no longer: see NOTE [Anomalies] in dispatch/anomaly_mode.py."""
    with somebody.lock:
        somebody.watches = somebody.blocks > 0 or wanted != 0
        for interception in _built.values():
            interception.set_checked(wanted != 0)
        _replace_ops()
        if core is not None:
            core.core_check(odd_op if wanted else None, wanted)


def _switch_watching() -> None:
    somebody.watches = somebody.blocks > 0 or anomaly_mode.anomaly.wanted_of_ops != 0
    if core is not None:
        core.core_report(compiled_op_returned if somebody.blocks else None)
    _set_replacements()


def _replace_ops() -> None:
    """Give each op the code that who watches, interprets or looks for anomalies now needs."""
    if somebody.blocks or interpreted.blocks or torch_function.installed.on:
        for function, interception in _built.items():  # written out: each vmap comes here twice
            function.__code__ = interception.replacement
    else:
        for function, interception in _built.items():
            function.__code__ = interception.twin.__code__


def _set_replacements() -> None:
    """Give each function the code that who watches or interprets now needs."""
    interprets = interpreted.blocks > 0
    _replace_ops()
    for interception in _others.values():
        interception.set_installed(somebody.blocks > 0)
    for function, interception in _wholes.items():
        if interprets:
            interception.target.__code__ = interception.replacement
        elif function not in _others:
            interception.target.__code__ = interception.code


def compiled_op_returned(op, args: tuple, kwargs: dict, out) -> None:
    """Report an op that the core ran; the core calls this."""
    observation = local.observation
    if observation is not None and not observation.inside:
        observation.last = out
        tell_op(observation, op.told_as, args, kwargs, out, getframe(1))
