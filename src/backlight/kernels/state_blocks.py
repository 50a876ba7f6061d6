"""Context managers that change state, and restore it even if an interrupt comes at any moment.

NOTE [Interrupts]
Ctrl-C, any other signal with a Python handler, and MemoryError may raise between two instructions. Python looks for
signals where a Python function is entered, where a loop jumps back, and after a call of a C function; never inside C,
and not between plain assignments. So a `with` over a class whose `__exit__` is a Python function may skip its end, if
the signal comes when `__exit__` is entered. The classes here have it in C (csrc/core/blocks.c), and the rules are:

* a `finally` restores by plain assignments first, then by at most one call, of a C function;
* `try:` is entered before the state changes: `before = x.y`, `try:`, `x.y = new`;
* anything more is a `Block`, whose `_block_restore` is called again if it was interrupted: so it must be idempotent
  (it sets the noted state, and never counts up or down);
* a generator becomes a block by `@block`, not by contextlib's decorator: an interrupt that comes when it is resumed
  is raised inside its `try`.

Without compiled kernels the same classes are in Python: an interrupt at the moment when such an `__exit__` is entered
still skips it.
"""

import functools
from collections.abc import Callable
from contextlib import ContextDecorator

from numpy._core import umath

from backlight.kernels.native import compiled

MOST_TRIES = 1000  # of a restoration that is interrupted repeatedly


class _PythonBlock:
    """A reentrant context manager; subclasses implement how to note, change and restore the state.

    `_block_state()` returns the state, `_block_change(state)` the target of `as`; `_block_restore(state)` restores it.
    """

    _states: tuple = ()
    _block_problem: BaseException | None = None  # in `_block_restore`: the exception that ended the block

    def __enter__(self):
        state = self._block_state()
        try:
            given = self._block_change(state)
            self._states = (*self._states, state)
        except BaseException:
            self._until_done(state)
            raise
        return given

    def __exit__(self, *exc):
        if not self._states:
            raise RuntimeError(f"a {type(self).__name__} block was left that had not been entered")
        *left, state = self._states
        self._states = tuple(left)
        try:
            self._block_problem = exc[1] if len(exc) > 1 else None
            self._until_done(state)
        finally:
            self._block_problem = None

    def _until_done(self, state) -> None:
        first = None
        for _ in range(MOST_TRIES):
            try:
                self._block_restore(state)
                break
            except BaseException as problem:
                if first is not None and isinstance(problem, Exception) and not isinstance(problem, MemoryError):
                    break
                first = first or problem
        if first is not None:
            raise first


class _PythonSetting:
    """A block in which an attribute has another value."""

    def __init__(self, target, name: str, value):
        self.target, self.name, self.value = target, name, value

    def __enter__(self) -> None:
        self.before = getattr(self.target, self.name)
        setattr(self.target, self.name, self.value)

    def __exit__(self, *exc) -> None:
        setattr(self.target, self.name, self.before)


class _PythonContextSetting:
    """A block in which a context variable has the value that `make()` returns."""

    def __init__(self, variable, make: Callable):
        self.variable, self.make = variable, make

    def __enter__(self) -> None:
        self.token = self.variable.set(self.make())

    def __exit__(self, *exc) -> None:
        self.variable.reset(self.token)


class _PythonGeneratorBlock:
    """A block that a generator describes, as contextlib does it."""

    def __enter__(self):
        return next(self.steps)

    def __exit__(self, kind, problem, trace):
        if kind is None:
            if next(self.steps, self) is not self:
                raise RuntimeError("generator didn't stop")
            return False
        problem = kind() if problem is None else problem
        try:
            self.steps.throw(problem)
        except StopIteration as stop:
            return stop is not problem
        except RuntimeError as raised:
            if raised is problem or (isinstance(problem, StopIteration) and raised.__cause__ is problem):
                problem.__traceback__ = trace
                return False
            raise
        except BaseException as raised:
            if raised is not problem:
                raise
            problem.__traceback__ = trace
            return False
        raise RuntimeError("generator didn't stop after throw()")


if compiled is None:
    Block, Setting, _ContextSetting = _PythonBlock, _PythonSetting, _PythonContextSetting
    _GeneratorBlock = _PythonGeneratorBlock
else:
    Block, Setting, _ContextSetting = compiled.Block, compiled.Setting, compiled.ContextSetting
    _GeneratorBlock = compiled.GeneratorBlock


class _Generated(_GeneratorBlock, ContextDecorator):
    """What a function that `block` decorates returns: a block, and a decorator."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict):
        self.steps = function(*args, **kwargs)
        self.made_from = function, args, kwargs

    def _recreate_cm(self):
        return _Generated(*self.made_from)


def block(function: Callable):
    """Decorate a generator function that yields once: what `contextlib.contextmanager` does, see NOTE [Interrupts]."""

    @functools.wraps(function)
    def made(*args, **kwargs):
        return _Generated(function, args, kwargs)

    return made


class Several:
    """Blocks that are entered one by one and left together, which a `Block` can restore: `leave()` may be repeated."""

    def __init__(self):
        self.entered: list = []

    def enter(self, one):
        """Enter a block; it will be left, even if this is interrupted."""
        self.entered.append(one)
        return one.__enter__()

    def leave(self) -> None:
        """Leave them all, the last first."""
        while self.entered:
            one = self.entered[-1]
            del self.entered[-1]  # and nothing between this and the call
            one.__exit__(None, None, None)


_ignore_all = functools.partial(umath._make_extobj, all="ignore")


def silent_floats():
    """Return a block in which NumPy warns of no number: `np.errstate(all="ignore")`."""
    return _ContextSetting(umath._extobj_contextvar, _ignore_all)
