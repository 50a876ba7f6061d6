"""The dispatcher: what may stand between a call of a public function and the function.

NOTE [Dispatch]
An op, a function composed of ops, a method, the getter of a property: each is an object that stands for a Python
function and tests one flag when it is called, in the compiled core a C global, without it `dispatching.active`. As a
rule nothing intercepts calls, and they go straight on. Else `dispatch` offers a call, in this order, to

  1. modes, classes of arguments, and autocast: NOTE [Overriding] in dispatch/torch_function.py
  2. this thread's interpreters, such as vmap and forward mode: NOTE [Interpreters] in dispatch/interpreters.py
  3. the rules of sparse tensors, if an argument is one: NOTE [The sparse layout] in kernels/sparse_array.py
  4. classes of arguments with `__torch_dispatch__`: NOTE [Below autograd] in dispatch/torch_dispatch.py
  5. observers, if the function is one that they get as a single call: `report_calls`

and returns UNHANDLED if it goes on. While only classes can handle calls, the core does not offer those whose arguments
are all tensors, numbers, texts or None (`core_dispatch`): a subclass somewhere costs them nothing. Once there was a
sparse tensor, calls with one are offered, and no others because of that (`core_layouts`). While only observers get
calls, it offers those of the functions that they get as a single call. What an op then returns is passed to
`op_returned`, for observers, and to `nonfinite_op`, for anomaly mode. Functions of backlight that are not public are
not dispatched, but the ops that they call are.
"""

import functools
import sys
from collections.abc import Callable
from types import FunctionType

from backlight.dispatch import anomaly_mode, interpreters, torch_function
from backlight.dispatch.anomaly_checks import nonfinite_op
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, interpreted
from backlight.dispatch.observation import Observation, SharedSwitch, local, notify_call, notify_op, observers
from backlight.dispatch.torch_dispatch import has_handler, torch_dispatch
from backlight.kernels.native import core
from backlight.kernels.reduction.summaries import nonfinite_kinds
from backlight.kernels.sparse_array import SparseArray, is_sparse, sparse_use
from backlight.kernels.state_blocks import Block

getframe = sys._getframe


class _Dispatching:
    """What public functions test, and which of them are special.

    Attributes:
        active: whether anything intercepts calls: tested by all functions without the core, with it by those that
            dispatch themselves.
        composites: functions that interpreters get as one call.
        reported: a function -> what calls it and reports that to observers.
        sparse_call: calls a function with a sparse tensor among its arguments, as `dispatch` does.
    """

    __slots__ = ("active", "composites", "reported", "sparse_call")

    def __init__(self):
        self.active = False
        self.composites: set[Callable] = set()
        self.reported: dict[Callable, Callable] = {}
        self.sparse_call: Callable | None = None


dispatching = _Dispatching()


def dispatch(op, function: Callable, args: tuple, kwargs: dict):
    """Offer a call to what intercepts calls now; the core calls this.

    Args:
        op: the declaration of an op, None if the function is no op.
        function: the public function, which may be called again for what is UNHANDLED further in.

    Returns:
        The result of the call, or UNHANDLED: the call goes on.
    """
    if torch_function.overrides_state.on and (op is not None or function in torch_function.overrides_state.overridable):
        only_modes = torch_function.overrides_state.overridable.get(function, False)
        out = torch_function.dispatch_torch_function(function, args, kwargs, only_modes)
        if out is not UNHANDLED:
            return out
    if interpreters.local.interpreters:
        out = UNHANDLED
        if op is not None:
            out = interpreters.interpret(op, function, args, kwargs)
        elif function in dispatching.composites:
            out = interpreters.interpret_composite(function, args, kwargs)
        if out is not UNHANDLED:
            return out
    if sparse_use.begun and dispatching.sparse_call is not None and _any_sparse(args, kwargs):
        out = dispatching.sparse_call(op, function, args, kwargs)
        if out is not UNHANDLED:
            return out
    if torch_dispatch.classes and any(map(has_handler, torch_function.flat((*args, *kwargs.values())))):
        out = torch_dispatch.call(op, function, args, kwargs)
        if out is not UNHANDLED:
            return out
    observation = local.observation
    if op is None and observation is not None and not observation.inside and function in dispatching.reported:
        return dispatching.reported[function](observation, function, args, kwargs)
    return UNHANDLED


def _any_sparse(args: tuple, kwargs: dict) -> bool:
    return any(map(is_sparse, torch_function.flat((*args, *kwargs.values()))))


def op_returned(op, args: tuple, kwargs: dict, out) -> None:
    """Report an op that ran, unless it was another op that ran, which is reported itself; the core calls this."""
    observation = local.observation
    if observation is None or observation.inside or out is NotImplemented or out is observation.last:
        return
    observation.last = out
    notify_op(observation, op, args, kwargs, out, getframe(1))


def call_op(op, function: Callable, implementation: Callable, args: tuple, kwargs: dict):
    """Call an op while something intercepts calls, as the core does."""
    out = dispatch(op, function, args, kwargs)
    if out is not UNHANDLED:
        return out
    out = implementation(*args, **kwargs)
    if anomaly_mode.anomaly.wanted_of_ops and any(map(_nonfinite, out if isinstance(out, tuple) else (out,))):
        nonfinite_op(op, args, kwargs, out)
    op_returned(op, args, kwargs, out)
    return out


def _nonfinite(value) -> bool:
    return hasattr(value, "_data") and bool(nonfinite_kinds(value._data))


# --- public functions that are no ops ---------------------------------------------------------------------------------


def public_function(function: Callable) -> Callable:
    """Return what stands for a function that modes, classes, interpreters or observers may intercept."""
    if core is not None:
        return core.checked_function(function, function.__module__, function.__qualname__)

    @functools.wraps(function)
    def public(*args, **kwargs):
        if dispatching.active:
            out = dispatch(None, public, args, kwargs)
            if out is not UNHANDLED:
                return out
        return function(*args, **kwargs)

    return public


def offer(function: Callable, *args):
    """Dispatch a call of a function that `dispatches_itself`.

    Returns:
        The result, or UNHANDLED: the function goes on.
    """
    return dispatch(None, function, args, {})


def dispatches_itself(function: FunctionType) -> FunctionType:
    """Mark a function that tests the flag itself: it takes no longer than the object that would stand for it."""
    function.dispatches_itself = True
    return function


def composite_function(function: Callable) -> Callable:
    """Return what stands for a function composed of ops that interpreters get as one call."""
    public = public_function(function)
    dispatching.composites.add(public)
    return public


def report_calls(function: Callable, name: str) -> None:
    """Have a public function that is no op reported to observers as one call; the ops that it calls are not."""

    def reported(observation: Observation, function: Callable, args: tuple, kwargs: dict):
        observation.inside = True
        try:
            out = function(*args, **kwargs)
        finally:
            observation.inside = False
        if out is not NotImplemented:
            observation.last = out
            notify_call(observation, name, args, kwargs, out, getframe(2))
        return out

    report_calls_by(function, reported)


def report_calls_by(function: Callable, reported: Callable) -> None:
    """Have `reported(observation, function, args, kwargs)` call a public function that is no op, and report that."""
    dispatching.reported[function] = reported


# --- what intercepts calls now ----------------------------------------------------------------------------------------

_observation_switch = SharedSwitch()  # a token for each observed block, in all threads
_interpreter_switch = SharedSwitch()  # a token for each block with an interpreter


def update_dispatch() -> None:
    """Set the flags that public functions test; may be repeated after an interrupt."""
    by_others = interpreted.blocks > 0 or torch_function.overrides_state.on
    of_ops = by_others or sparse_use.begun
    of_functions = of_ops or observers.blocks > 0
    wanted = anomaly_mode.anomaly.wanted_of_ops
    observers.active = observers.blocks > 0 or wanted != 0
    dispatching.active = of_functions or wanted != 0
    if core is not None:
        core.core_check(nonfinite_op if wanted else None, wanted)
        core.core_returned(op_returned if observers.blocks else None)
        only_classes = torch_function.overrides_state.only_classes and not interpreted.blocks and not observers.blocks
        only_functions = None if of_ops else dispatching.reported
        if sparse_use.begun:
            core.core_layouts(SparseArray, not by_others and not observers.blocks)
        core.core_dispatch(dispatch if of_functions else None, UNHANDLED, of_ops, only_classes, only_functions)


def check_ops(wanted: int) -> None:
    """Switch the check of what ops return: see NOTE [Anomalies] in dispatch/anomaly_mode.py."""
    with observers.lock:
        update_dispatch()


def _offer_sparse_calls() -> None:
    with observers.lock:
        update_dispatch()


anomaly_mode.anomaly.listener = check_ops
sparse_use.listener = _offer_sparse_calls


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
    with observers.lock:
        observers.blocks = len(_observation_switch.tokens)
        _observation_switch.apply(observers.blocks > 0, update_dispatch)


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
    """Give a token back; without any, public functions no longer try interpreters. May be called twice."""
    _interpreter_switch.release(token)
    _count_interpreters()


def _count_interpreters() -> None:
    with observers.lock:
        interpreted.blocks = len(_interpreter_switch.tokens)
        _interpreter_switch.apply(interpreted.blocks > 0, update_dispatch)


def install_overrides(wanted: bool) -> None:
    """Have public functions try modes and classes (NOTE [Overriding]), or no longer try them."""
    with observers.lock:
        torch_function.overrides_state.on = wanted
        update_dispatch()
