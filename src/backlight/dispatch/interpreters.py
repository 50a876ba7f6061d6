"""What may stand between a call of an op and the op: forward-mode tangents, vmap's batches, hooks on what is saved.

NOTE [Interpreters]
`with interpreting(it):` puts an interpreter on top of this thread's stack. While any thread has one, the public
function of each declared op, compiled or not, asks the topmost of its own thread first:

    it.op(op, function, args, kwargs)    gives the call's result, or UNHANDLED: then the next below is asked, and where
                                         none is left the op runs as ever
    it.whole(function, args, kwargs)     the same for functions that are no ops and that `asked_as_a_whole`
                                         (dispatch/dispatcher.py) was told of

While that method runs, its interpreter is off the stack, so what it calls (`function(*args)` too) goes to the ones
below: this is how transforms nest. Those that open batches (`opens_batches`: vmap) are asked before all others, the
innermost first, and leave these on the stack: a batched tensor stands for one of more dims, and what belongs to a
tensor (its history, its tangents) belongs to that one, whatever the order of the blocks; vmap commutes with all of it.
So an interpreter that opens no batches never meets a batched tensor. An op that hands other numbers of dims over to
other ops (`Op.elsewhere`) is not asked about for these; the ops it is made of are. Of the ops that a backward calls
only those are asked that `sees_backward`: it then runs on tensors. While no thread has an interpreter, nothing of this
costs anything: functions are given other code (NOTE [Replaced code] in dispatch/dispatcher.py), and the compiled core
tests a C global.
"""

from collections.abc import Iterator

from backlight.engine.threads import ThreadState
from backlight.kernels.state_blocks import block

UNHANDLED = object()


class Interpreter:
    """Sees each call of an op in a thread."""

    __slots__ = ()

    opens_batches = False
    has_batches = False  # whether it opens batches of its own, while it is asked
    sees_backward = False  # whether backward runs its rules on tensors, so that this interpreter is asked about them

    def op(self, op, function, args: tuple, kwargs: dict):
        """Return what a call gives, or UNHANDLED to let it go on below."""
        return UNHANDLED

    def whole(self, function, args: tuple, kwargs: dict):
        """Return what a call of a function that is no op gives, or UNHANDLED."""
        return UNHANDLED


class _Stack(ThreadState):
    """This thread's interpreters, the outermost first."""

    def __init__(self):
        self.interpreters: list[Interpreter] = []


class _Interpreted:
    """How many blocks, of all threads, have an interpreter on now: a plain attribute, cheap to ask."""

    __slots__ = ("blocks",)

    def __init__(self):
        self.blocks = 0


local = _Stack()
interpreted = _Interpreted()


def innermost() -> Interpreter | None:
    """Return the interpreter that is asked first in this thread, None if there is none."""
    return local.interpreters[-1] if local.interpreters else None


def backward_is_seen() -> bool:
    """Tell whether an interpreter of this thread is to be asked about the ops of a backward."""
    return interpreted.blocks > 0 and any(one.sees_backward for one in local.interpreters)


def interpret(op, function, args: tuple, kwargs: dict):
    """Ask this thread's interpreters about a call of an op; UNHANDLED if none wants it."""
    if not local.interpreters or (op.dims is not None and _goes_elsewhere(op, args)):
        return UNHANDLED
    return _first_answer(lambda interpreter: interpreter.op(op, function, args, kwargs))


def interpret_whole(function, args: tuple, kwargs: dict):
    """Ask this thread's interpreters about a call of a function that is no op; UNHANDLED if none wants it."""
    return _first_answer(lambda interpreter: interpreter.whole(function, args, kwargs))


def _first_answer(ask):
    """Ask one interpreter after the other, each with those asked before off the stack, and put all back."""
    stack = local.interpreters
    if len(stack) == 1:
        only = stack[0]
        try:
            del stack[:]
            return ask(only)
        finally:
            stack[:] = (only,)
    before = list(stack)
    order = before[::-1]
    order.sort(key=_opens_no_batches)
    try:
        for interpreter in order:
            stack.remove(interpreter)
            out = ask(interpreter)
            if out is not UNHANDLED:
                return out
    finally:
        stack[:] = before
    return UNHANDLED


def _opens_no_batches(interpreter: Interpreter) -> bool:
    return not interpreter.opens_batches


def _goes_elsewhere(op, args: tuple) -> bool:
    return any(hasattr(one, "_data") and one._data.ndim != op.dims for one in args)


@block
def without(interpreter: Interpreter) -> Iterator[None]:
    """Take an interpreter, and those inside it, off this thread's stack within the block."""
    stack = local.interpreters
    at = stack.index(interpreter)
    before = stack[:]
    try:
        del stack[at:]
        yield
    finally:
        stack[:] = before


@block
def uninterpreted() -> Iterator[None]:
    """Take all interpreters off this thread's stack within the block."""
    stack = local.interpreters
    before = stack[:]
    try:
        del stack[:]
        yield
    finally:
        stack[:] = before
