"""Interpreters between a call and its op, as in functorch: forward mode, vmap, hooks on saved tensors.

NOTE [Interpreters]
`with interpreting(it):` puts an interpreter on top of this thread's stack. While any thread has one, the public
function of each declared op, compiled or not, calls the topmost of its own thread first:

    it.op(op, function, args, kwargs)       returns the call's result, or UNHANDLED: then the next below is called, and
                                            if none is left the op runs as usual
    it.composite(function, args, kwargs)    the same for functions that are no ops, declared by `composite_function`
                                            (dispatch/dispatcher.py)

While that method runs, its interpreter is off the stack. So what the method calls (`function(*args)` too) goes to the
interpreters below it: this is how transforms nest.

Interpreters that open batches (`opens_batches`: vmap) are called before all others, the innermost first; the others
stay on the stack meanwhile. A batched tensor stands for a physical tensor, which has the batch as one more dim. Its
history and its tangents are kept on the physical tensor, whichever block was entered first, so vmap commutes with the
other transforms, and an interpreter that opens no batches never gets a batched tensor.

An op may pass on inputs whose number of dims it does not handle to other ops (`Op.unless_dims`): then interpreters get
the calls of those ops, not of this one. Only interpreters that set `sees_backward` get the ops of a backward, which
then runs on tensors. While no thread has an interpreter, all this costs the test of one flag: NOTE [Dispatch] in
dispatch/dispatcher.py.
"""

from collections.abc import Iterator

from backlight.engine.threads import ThreadState
from backlight.kernels.state_blocks import block

UNHANDLED = object()


class Interpreter:
    """Sees each call of an op in a thread."""

    __slots__ = ()

    opens_batches = False
    has_batches = False  # whether it has opened batches of its own
    sees_backward = False  # whether backward runs its rules on tensors, so that this interpreter gets their ops

    def op(self, op, function, args: tuple, kwargs: dict):
        """Return the result of a call, or UNHANDLED to pass it on to the next interpreter."""
        return UNHANDLED

    def composite(self, function, args: tuple, kwargs: dict):
        """Return the result of a call of a function that is no op, or UNHANDLED."""
        return UNHANDLED

    @block
    def reenter(self) -> Iterator[None]:
        """Put this interpreter on the stack again within a block that runs below it."""
        before = local.interpreters[:]
        try:
            local.interpreters.append(self)
            yield
        finally:
            local.interpreters[:] = before


class _Stack(ThreadState):
    """This thread's interpreters, the outermost first."""

    def __init__(self):
        self.interpreters: list[Interpreter] = []


class _Interpreted:
    """How many blocks, of all threads, have an interpreter on now: a plain attribute, cheap to read."""

    __slots__ = ("blocks",)

    def __init__(self):
        self.blocks = 0


local = _Stack()
interpreted = _Interpreted()


def innermost() -> Interpreter | None:
    """Return the interpreter on top of this thread's stack, None if there is none."""
    return local.interpreters[-1] if local.interpreters else None


def backward_is_seen() -> bool:
    """Tell whether an interpreter of this thread must get the ops of a backward."""
    return interpreted.blocks > 0 and any(one.sees_backward for one in local.interpreters)


def interpret(op, function, args: tuple, kwargs: dict):
    """Offer a call of an op to this thread's interpreters; UNHANDLED if none takes it."""
    if not local.interpreters or (op.dims is not None and _runs_other_ops(op, args)):
        return UNHANDLED
    return _first_handled(lambda interpreter: interpreter.op(op, function, args, kwargs))


def interpret_composite(function, args: tuple, kwargs: dict):
    """Offer a call of a function that is no op to this thread's interpreters; UNHANDLED if none takes it."""
    return _first_handled(lambda interpreter: interpreter.composite(function, args, kwargs))


def _first_handled(call):
    """Call one interpreter after the other, each with those called before off the stack, and restore the stack."""
    stack = local.interpreters
    if len(stack) == 1:
        only = stack[0]
        try:
            del stack[:]
            return call(only)
        finally:
            stack[:] = (only,)
    before = list(stack)
    order = before[::-1]
    order.sort(key=_opens_no_batches)
    try:
        for interpreter in order:
            stack.remove(interpreter)
            out = call(interpreter)
            if out is not UNHANDLED:
                return out
    finally:
        stack[:] = before
    return UNHANDLED


def _opens_no_batches(interpreter: Interpreter) -> bool:
    return not interpreter.opens_batches


def _runs_other_ops(op, args: tuple) -> bool:
    return any(hasattr(one, "_data") and one._data.ndim != op.dims for one in args)


@block
def without(interpreter: Interpreter) -> Iterator[None]:
    """Remove an interpreter, and those above it, from this thread's stack within the block."""
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
    """Remove all interpreters from this thread's stack within the block."""
    stack = local.interpreters
    before = stack[:]
    try:
        del stack[:]
        yield
    finally:
        stack[:] = before
