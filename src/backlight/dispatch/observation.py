"""Who watches this thread, and how an event gets to them: see NOTE [Watching] in dispatch/observers.py.

NOTE [What watching costs]
While nobody watches, in any thread, `somebody.watches` is False: the walk, and ops that write in place, test it once,
and compiled ops test a C global. Functions in Python are not even that: while somebody watches, their code objects are
replaced (dispatch/dispatcher.py).
"""

import sys
from collections.abc import Iterator

from backlight.dispatch.observers import Call, Watcher
from backlight.dispatch.torch_function import flat
from backlight.engine.node import Node
from backlight.engine.provenance import user_frame
from backlight.engine.storage import InferenceStorage
from backlight.engine.tensor_state import LEAF, TensorState, storage_of
from backlight.engine.threads import ThreadState
from backlight.kernels.state_blocks import block
from backlight.system.fork_safety import fork_safe_lock

EVENTS = tuple(name for name, what in vars(Watcher).items() if not name.startswith("_") and callable(what))


TO_NUMBERS = {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__complex__"}


class _Somebody:
    """How many blocks, of all threads, are watched now: a plain attribute, since a thread-local one costs more."""

    __slots__ = ("blocks", "lock", "watches")

    def __init__(self):
        self.blocks = 0
        self.watches = False
        self.lock = fork_safe_lock()


class Holders:
    """Who needs a switch on, in whichever thread, and what the switch is on: interrupted calls may be repeated."""

    __slots__ = ("applied", "tokens")

    def __init__(self):
        self.tokens: set[object] = set()
        self.applied: bool | None = False  # None while it is being switched

    def hold(self, token: object) -> None:
        """Note one more."""
        self.tokens.add(token)

    def release(self, token: object) -> None:
        """Forget one, if it is there."""
        self.tokens.discard(token)

    def apply(self, wanted: bool, switch) -> None:
        """Call `switch()` where what is wanted is not what was done last, or that was interrupted."""
        if self.applied is not wanted:
            self.applied = None
            switch()
            self.applied = wanted


class _Local(ThreadState):
    """What this thread's watchers are."""

    observation = None


somebody = _Somebody()
local = _Local()


class Observation:
    """The watchers of one thread, the outermost block's first, by the events that they want; where the program is.

    `inside` is set while something reported runs that is made of other ops, and while a watcher runs: ops are not
    reported then. `silent` is set while a watcher runs: then nothing is.
    """

    __slots__ = (*EVENTS, "inside", "silent", "watchers", "runs", "last", "modules")

    def __init__(self, watchers: tuple):
        self.inside = self.silent = False
        self.runs = 0
        self.last = None  # what the last reported op returned
        self.modules = []  # (module, path) of those that run, the outermost first
        self.tell_only(watchers)

    def tell_only(self, watchers: tuple) -> None:
        """Set who is told."""
        self.watchers = watchers
        for event in EVENTS:
            setattr(self, event, tuple(getattr(one, event) for one in watchers if wants(one, event)))

    def tell(self, listeners: tuple, *event) -> None:
        """Call those who want an event; what they do themselves is not reported."""
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
    return getattr(type(watcher), event) is not getattr(Watcher, event) or event in getattr(watcher, "__dict__", ())


def tell_call(observation: Observation, name: str, args: tuple, kwargs: dict, out, frame) -> None:
    """Report an op that returned, seen from `frame`, which may be the engine's own."""
    if observation.called and not observation.silent:
        if all(one.only_nodes for one in observation.watchers) and not _concerns_graph(name, args, kwargs, out):
            return
        place = user_frame(frame)
        observation.tell(observation.called, Call(name, args, kwargs, out, place.f_code, place.f_lasti))


def _concerns_graph(name: str, args: tuple, kwargs: dict, out) -> bool:
    """Tell whether a call made a node, or read a tensor that has a graph and returned what has none."""
    if not isinstance(out, TensorState):
        return not isinstance(out, (bool, int, float)) or name in TO_NUMBERS
    if out._edge is not None:
        return out._edge is not LEAF
    return any(isinstance(one, TensorState) and one._edge is not None for one in flat((*args, *kwargs.values())))


def reports_ops() -> bool:
    """Tell whether an op that is called now, in this thread, is to be reported."""
    return local.observation is not None and not local.observation.inside


def reported(function, args: tuple, kwargs: dict):
    """Call a function and report it as one op; what it is made of is not reported."""
    observation = local.observation
    observation.inside = True
    try:
        out = function(*args, **kwargs)
    finally:
        observation.inside = False
    tell_call(observation, function.__name__, args, kwargs, out, sys._getframe(1))
    return out


def begin_write(tensor, name: str, place) -> None:
    """Let a tensor's storage count that an op writes to it, and on which line: before the memory changes.

    If an interrupt comes in between, backward refuses what was saved, in place of using values that have changed.
    """
    storage_of(tensor).wrote(name, place)


def end_write(tensor) -> None:
    """Tell whoever watches that what `begin_write` counted is written."""
    if somebody.watches and (writer := tensor._storage.writer) is not None:
        tell_write(tensor, writer[0], writer[1:])


def count_write(tensor, name: str, place) -> None:
    """Count a write that has happened elsewhere, or changes nothing."""
    begin_write(tensor, name, place)
    end_write(tensor)


def tell_op(observation: Observation, name: str, args: tuple, kwargs: dict, out, frame) -> None:
    """Report a declared op, whose node knows the user's line."""
    if observation.called:
        node = getattr(out, "_edge", None)
        if isinstance(node, Node):
            observation.tell(observation.called, Call(name, args, kwargs, out, node.code, node.lasti))
        else:
            tell_call(observation, name, args, kwargs, out, frame)


def tell_write(tensor, name: str, place) -> None:
    """Report that a tensor was written to and the write counted; called where `somebody.watches`."""
    observation = local.observation
    if observation is not None and observation.wrote and tensor._storage.__class__ is not InferenceStorage:
        observation.tell(observation.wrote, tensor, name, *place)
