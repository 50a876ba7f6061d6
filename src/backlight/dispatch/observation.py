"""The watchers of this thread, and how an event reaches them: see NOTE [Watching] in dispatch/observers.py.

NOTE [What watching costs]
While no thread has a watcher, `observers.active` is False. Backward, and ops that write in place, test it once,
and public functions test the flag of the dispatcher: NOTE [Dispatch] in dispatch/dispatcher.py.
"""

import sys
from collections.abc import Iterator
from functools import cache

from backlight.dispatch.observers import Call, Watcher
from backlight.dispatch.torch_function import flat
from backlight.engine.grad_mode import modes
from backlight.engine.node import Node
from backlight.engine.provenance import user_frame
from backlight.engine.storage import InferenceStorage
from backlight.engine.tensor_state import LEAF, TensorState, storage_of
from backlight.engine.threads import ThreadState
from backlight.kernels.state_blocks import block
from backlight.system.fork_safety import fork_safe_lock

EVENTS = tuple(name for name, what in vars(Watcher).items() if not name.startswith("_") and callable(what))


TO_NUMBERS = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__complex__"}


class _Observers:
    """How many blocks, of all threads, are observed now: a plain attribute, since a thread-local one costs more.

    Attributes:
        backwards_elsewhere: how many backwards began in threads without a watcher while another thread had one.
    """

    __slots__ = ("blocks", "lock", "active", "backwards_elsewhere")

    def __init__(self):
        self.blocks = self.backwards_elsewhere = 0
        self.active = False
        self.lock = fork_safe_lock()


class SharedSwitch:
    """A switch that is on while any thread holds a token for it; an interrupted call may be repeated.

    Attributes:
        applied: the state that was applied last, a bool or a number; None while it is being switched.
    """

    __slots__ = ("applied", "tokens")

    def __init__(self):
        self.tokens: set[object] = set()
        self.applied: int | None = False

    def hold(self, token: object) -> None:
        """Add a token."""
        self.tokens.add(token)

    def release(self, token: object) -> None:
        """Remove a token, if it is there."""
        self.tokens.discard(token)

    def apply(self, wanted: int, switch) -> None:
        """Call `switch()` if the wanted state is not the one applied last, or applying it was interrupted."""
        if self.applied is not wanted:
            self.applied = None
            switch()
            self.applied = wanted


class _Local(ThreadState):
    """This thread's watchers."""

    observation = None


observers = _Observers()
local = _Local()


class Observation:
    """The watchers of one thread by the events that they override, the outermost block's first; and running modules.

    `inside` is set while a reported function runs, or a watcher: ops are not reported then. `silent` is set while a
    watcher runs: nothing is reported then.
    """

    __slots__ = (*EVENTS, "inside", "silent", "watchers", "runs", "last", "modules")

    def __init__(self, watchers: tuple):
        self.inside = self.silent = False
        self.runs = 0
        self.last = None  # what the last reported op returned
        self.modules = []  # (module, path) of those that run, the outermost first
        self.set_watchers(watchers)

    def set_watchers(self, watchers: tuple) -> None:
        """Set the watchers that are notified."""
        self.watchers = watchers
        for event in EVENTS:
            setattr(self, event, tuple([getattr(one, event) for one in watchers if wants(one, event)]))

    def notify(self, listeners: tuple, *event) -> None:
        """Call the listeners of an event; what they do themselves is not reported."""
        if self.silent:
            return
        inside = self.inside
        self.silent = self.inside = True
        try:
            for listener in listeners:
                listener(*event)
        finally:
            self.silent, self.inside = False, inside

    @block
    def silence(self) -> Iterator[None]:
        """Report nothing that is done inside the block."""
        before = self.silent, self.inside
        self.silent = self.inside = True
        try:
            yield
        finally:
            self.silent, self.inside = before


def wants(watcher, event: str) -> bool:
    """Tell whether a watcher overrides the method of an event."""
    return event in _overridden_by(type(watcher)) or event in getattr(watcher, "__dict__", ())


@cache
def _overridden_by(kind: type) -> frozenset[str]:
    """Return the events whose methods a class of watchers overrides."""
    return frozenset(event for event in EVENTS if getattr(kind, event) is not getattr(Watcher, event))


def notify_call(observation: Observation, name: str, args: tuple, kwargs: dict, out, frame) -> None:
    """Report a call that returned; `frame` may be the engine's own."""
    if observation.called and not observation.silent:
        if not _is_wanted(observation) and not _concerns_graph(name, args, kwargs, out):
            return
        place = user_frame(frame)
        observation.notify(observation.called, Call(name, args, kwargs, out, place.f_code, place.f_lasti))


def _is_wanted(observation: Observation) -> bool:
    """Tell whether a watcher wants calls that do not concern the graph now."""
    recording = modes.grad_enabled
    return any(not one.only_nodes and (recording or not one.only_recorded) for one in observation.watchers)


def _concerns_graph(name: str, args: tuple, kwargs: dict, out) -> bool:
    """Tell whether a call made a node, or read a tensor with a graph and returned a value without one."""
    if not isinstance(out, TensorState):
        return not isinstance(out, (bool, int, float)) or name in TO_NUMBERS
    if out._edge is not None:
        return out._edge is not LEAF
    return any(isinstance(one, TensorState) and one._edge is not None for one in flat((*args, *kwargs.values())))


def reports_ops() -> bool:
    """Tell whether an op that is called now, in this thread, is to be reported."""
    return local.observation is not None and not local.observation.inside


def reported(function, args: tuple, kwargs: dict):
    """Call a function and report it as one op; the ops that it calls are not reported."""
    observation = local.observation
    observation.inside = True
    try:
        out = function(*args, **kwargs)
    finally:
        observation.inside = False
    notify_call(observation, function.__name__, args, kwargs, out, sys._getframe(1))
    return out


def begin_write(tensor, name: str, place) -> None:
    """Count an op's write to a tensor's storage, and note its line: before the memory changes.

    If an interrupt comes in between, backward refuses saved values that may have changed.
    """
    storage_of(tensor).wrote(name, place)


def end_write(tensor) -> None:
    """Bring mirrors of the memory up to date, and notify watchers that the write that `begin_write` counted is done."""
    mirrors = tensor._storage.mirrors
    if mirrors is not None:
        mirrors.reflect(tensor._storage)
    if observers.active and (writer := tensor._storage.writer) is not None:
        notify_write(tensor, writer[0], writer[1:])


def count_write(tensor, name: str, place) -> None:
    """Count a write that happened elsewhere, or changes nothing."""
    begin_write(tensor, name, place)
    end_write(tensor)


def notify_op(observation: Observation, op, args: tuple, kwargs: dict, out, frame) -> None:
    """Report a declared op, as users call it; its node knows the user's line."""
    if observation.called:
        name = op.display_name
        if op.called_as is not None:
            args = tuple([args[place] for place in op.called_as])
        node = getattr(out, "_edge", None)
        if isinstance(node, Node):
            observation.notify(observation.called, Call(name, args, kwargs, out, node.code, node.lasti))
        else:
            notify_call(observation, name, args, kwargs, out, frame)


def notify_write(tensor, name: str, place) -> None:
    """Report that a tensor was written to and the write counted; called if `observers.active`."""
    observation = local.observation
    if observation is not None and observation.wrote and tensor._storage.__class__ is not InferenceStorage:
        observation.notify(observation.wrote, tensor, name, *place)
