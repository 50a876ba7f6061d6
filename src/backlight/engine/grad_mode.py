"""Grad mode and inference mode: per thread, as context managers and as decorators.

Compiled code switches the modes in one step (NOTE [Interrupts] in kernels/state_blocks.py); the Python code below, of
the same names, is the reference, and runs where there is no compiled code.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator, Iterator

import numpy as np

from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError
from backlight.kernels.native import compiled
from backlight.system.fork_safety import fork_safe_lock, in_forked_child
from backlight.system.user_warnings import warn_outside


class _Modes(ThreadState):
    """The modes of the current thread: read by every op, so plain attributes."""

    grad_enabled = True  # whether ops are recorded
    requested = True  # what `is_grad_enabled` returns: inference mode overrules it
    inference = False
    marks = False  # whether a new tensor gets a storage that notes where it was made: inference tensors, transforms
    born = 0  # what that storage notes inside a transform: NOTE [Captured tensors] in engine/mutation_checks.py
    forward = True  # whether tangents are computed inside a level of forward mode


class _Recording:
    """Whether all threads record. An op reads this plain attribute first: a thread-local one costs ten times more."""

    __slots__ = ("everywhere", "lock", "switched_off")

    def __init__(self):
        self.everywhere = True
        self.switched_off = 0  # how many blocks, of all threads, have recording off
        self.lock = fork_safe_lock()


modes = _Modes()
recording = _Recording()


def _switch(requested: bool, inference: bool) -> None:
    """Set grad mode and inference mode, and all that depends on them."""
    recorded, records = modes.grad_enabled, requested and not inference
    modes.requested, modes.grad_enabled, modes.inference = requested, records, inference
    modes.marks = inference or modes.born > 0
    if recorded != records:
        with recording.lock:
            recording.switched_off += -1 if records else 1
            recording.everywhere = recording.switched_off == 0


def _set_recording(value: bool) -> bool:
    """Set grad mode in this thread, and return what it was. Inference mode overrules it."""
    previous = modes.requested
    _switch(bool(value), modes.inference)
    return previous


class _GradBlock:
    """A block with other modes, each True, False or -1 to leave it; reentrant."""

    requested = inferring = returns_to = -1
    _before: tuple = ()

    def __enter__(self):
        requested, inference = modes.requested, modes.inference
        try:
            self._before = (*self._before, (requested, inference))
            _switch(
                requested if self.requested < 0 else bool(self.requested),
                inference if self.inferring < 0 else bool(self.inferring),
            )
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc):
        requested, inference = self._before[-1] if self._before else (False, modes.inference)
        self._before = self._before[:-1]
        requested = requested if self.returns_to < 0 else bool(self.returns_to)
        _switch(requested, modes.inference if self.inferring < 0 else inference)


if compiled is None:
    set_recording = set_recording_now = _set_recording
    GradBlock = _GradBlock
else:
    compiled.grad_setup(modes, recording)
    set_recording = compiled.set_recording
    set_recording_now = (
        compiled.set_recording_now
    )  # for objects that switch when they are created: see `set_grad_enabled`
    GradBlock = compiled.GradBlock


@in_forked_child
def _count_only_this_thread() -> None:
    recording.switched_off = 0 if modes.grad_enabled else 1
    recording.everywhere = modes.grad_enabled


def is_grad_enabled() -> bool:
    """Return whether grad mode is on (inference mode overrules it)."""
    return modes.requested


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside `inference_mode`."""
    return modes.inference


DECORATED_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
    "and nothing else."
)


class Mode:
    """A context manager that is also a decorator, for functions, generators and coroutines, async generators too."""

    def __call__(self, function: Callable):
        if inspect.isclass(function):
            warn_outside(DECORATED_CLASS, FutureWarning)
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)
        if inspect.iscoroutinefunction(function):
            return self._decorate_coroutine(function)
        if inspect.isasyncgenfunction(function):
            return self._decorate_async_generator(function)

        @functools.wraps(function)
        def within_mode(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return within_mode

    def _decorate_generator(self, function: Callable):
        @functools.wraps(function)
        def generator(*args, **kwargs):
            return (yield from self._driven(function(*args, **kwargs)))

        return generator

    def _decorate_coroutine(self, function: Callable):
        @functools.wraps(function)
        async def coroutine(*args, **kwargs):
            return await _Awaitable(self._driven(function(*args, **kwargs)))

        return coroutine

    def _decorate_async_generator(self, function: Callable):
        @functools.wraps(function)
        async def generator(*args, **kwargs):
            inner = function(*args, **kwargs)
            step = inner.asend(None)
            while True:
                try:
                    value = await _Awaitable(self._driven(step))
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                except GeneratorExit:
                    await _Awaitable(self._driven(inner.aclose()))
                    raise
                except BaseException as problem:
                    step = inner.athrow(problem)
                else:
                    step = inner.asend(sent)

        return generator

    def _driven(self, inner: Generator | Coroutine):
        """Run `inner`, a generator or coroutine, with the mode on only while its own body runs.

        Between two of its steps the caller's mode is on, since the caller's code runs then.
        """
        step = functools.partial(inner.send, None)
        try:
            while True:
                with self.clone():
                    value = step()
                try:
                    sent = yield value
                except GeneratorExit:
                    with self.clone():
                        inner.close()
                    raise
                except BaseException as problem:
                    step = functools.partial(inner.throw, problem)
                else:
                    step = functools.partial(inner.send, sent)
        except StopIteration as stop:
            return stop.value

    def clone(self):
        """Return the same mode again, for another call of what is decorated."""
        return type(self)()


class _Awaitable:
    """Lets a coroutine await a generator."""

    def __init__(self, steps: Iterator):
        self.steps = steps

    def __await__(self):
        return (yield from self.steps)


class _GradMode(Mode, GradBlock):
    """Switches recording to `value` inside a `with` block."""

    value = False

    def __new__(cls, function: Callable | None = None, *args, **kwargs):
        made = super().__new__(cls)
        made.requested = cls.value
        if function is not None and callable(function):  # @no_grad without parentheses
            return made.__call__(function)
        return made


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record nothing inside the block or the decorated function."""


class enable_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record again inside a `no_grad` block."""

    value = True


class set_grad_enabled(Mode, GradBlock):  # noqa: N801 - PyTorch's name
    """Switch recording on or off: at once when called, and back at the end when used in `with`."""

    def __init__(self, mode: bool):
        if not isinstance(mode, (bool, np.bool_)):
            kind = type(mode).__name__
            raise ArgumentError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.mode = self.requested = bool(mode)
        before = modes.requested
        try:
            self.returns_to = before
            set_recording_now(self.mode)
        except BaseException:
            set_recording(before)
            raise

    def __call__(self, function: Callable):
        set_recording(bool(self.returns_to))
        return super().__call__(function)

    def clone(self):
        made = GradBlock.__new__(set_grad_enabled)
        made.mode = made.requested = self.mode
        return made


class inference_mode(Mode, GradBlock):  # noqa: N801 - PyTorch's name
    """Like `no_grad`, and tensors made inside can never take part in a recorded computation."""

    def __new__(cls, mode: bool | Callable = True):
        made = super().__new__(cls)
        if callable(mode):
            made.mode = made.inferring = True
            made.requested = False
            return made.__call__(mode)
        return made

    def __init__(self, mode: bool = True):
        if not isinstance(mode, (bool, np.bool_)):
            raise ArgumentError(
                f"inference_mode(): argument 'mode' (position 1) must be bool or a function to decorate, not "
                f"{type(mode).__name__}"
            )
        self.mode = self.inferring = bool(mode)
        self.requested = not self.mode

    def clone(self):
        return inference_mode(self.mode)
