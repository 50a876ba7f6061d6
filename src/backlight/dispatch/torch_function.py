"""`__torch_function__`: types and modes that answer calls of PyTorch's functions themselves.

NOTE [Overriding]
A call is asked about before anything else sees it (interpreters, watchers): the topmost mode of this thread answers it,
else the arguments whose class has a `__torch_function__` of its own. Public functions are made to ask while there is
such a class, or a mode is on (overrides.py), and not otherwise: a program without them pays nothing. What an answer
calls in turn finds the mode off the stack; the default answer of Tensor turns classes off while the function runs.
"""

from backlight.devices import device
from backlight.dispatch.interpreters import UNHANDLED
from backlight.dtypes import dtype
from backlight.engine.tensor_state import the_tensor_class
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError
from backlight.kernels.state_blocks import Block
from backlight.system.user_warnings import warn_outside

PLAIN_METHOD = (
    "Defining your `__torch_function__ as a plain method is deprecated and will be an error in future, please define "
    "it as a classmethod."
)

SILENT = frozenset({int, float, bool, str, type(None), dtype, device})  # what most arguments are, beside tensors


class _Local(ThreadState):
    """This thread's modes, the outermost first, and whether classes and modes are asked."""

    def __init__(self):
        self.modes = []
        self.classes_on = self.modes_on = True
        self.casts = None  # what is asked last: autocast's rule (NOTE [Autocast] in amp/autocasting.py)


class _Installed:
    """Whether public functions ask.

    Attributes:
        install_for: lets public functions ask a class while it is alive; the package puts
            `overrides.answer_while_alive` here, which knows all public functions.
    """

    __slots__ = ("install_for", "on")

    def __init__(self):
        self.on = False


local = _Local()
installed = _Installed()
shown: dict = {}  # a function that does the work of a public one -> that one, which classes and modes are given
operators: set = set()  # those that Python calls for its operators
names: dict = {}  # a public function -> PyTorch's name for it, with its namespace
overridable: dict = {}  # a public function that is no op -> whether only modes may answer for it, no classes


def disabled(func, types, args=(), kwargs=None):
    """Call the function: the `__torch_function__` of classes that do not answer themselves."""
    return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass(Block):
    """Ask no class inside a `with` block."""

    def _block_state(self):
        return local.classes_on, local.modes_on, local.casts

    def _block_change(self, state):
        local.classes_on = False

    def _block_restore(self, state):
        local.classes_on, local.modes_on, local.casts = state


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Ask no class and no mode inside a `with` block."""

    def _block_change(self, state):
        local.classes_on = local.modes_on = False


class AskNothing(DisableTorchFunction):
    """Ask nothing at all inside a `with` block, autocast neither."""

    def _block_change(self, state):
        local.classes_on = local.modes_on = False
        local.casts = None


def overloads(cls: type) -> bool:
    """Tell whether a class answers calls itself: exact tensors, parameters and PyTorch's own classes do not."""
    if cls.__module__.partition(".")[0] == "torch":
        return False
    answer = getattr(cls, "__torch_function__", None)
    return answer is not None and answer is not disabled and cls is not the_tensor_class()


def overloaded(values) -> list:
    """Return the first argument of each class that answers calls, subclasses before the classes they derive from."""
    found = []
    for value in values:
        cls = value.__class__
        if overloads(cls) and not isinstance(value, type) and all(cls is not type(one) for one in found):
            place = next((at for at, one in enumerate(found) if issubclass(cls, type(one))), len(found))
            found.insert(place, value)
    return found


def flat(values) -> list:
    """Return arguments with lists among them taken apart."""
    return [inner for one in values for inner in (one if isinstance(one, (list, tuple)) else (one,))]


def asked(public, args: tuple, kwargs: dict, only_modes: bool = False):
    """Return what a mode or a class of an argument answers a call, or UNHANDLED."""
    answers = []
    if local.classes_on and not only_modes:
        values = (*args, *kwargs.values()) if kwargs else args
        tensor = the_tensor_class()
        for value in values:
            if value.__class__ is not tensor and value.__class__ not in SILENT:
                answers = overloaded(flat(values))
                break
    if answers or (local.modes and local.modes_on):
        answer = _answer_of_operator if public in operators else answered
        return answer(shown.get(public, public), answers, args, kwargs)
    return UNHANDLED if local.casts is None else local.casts(public, args, kwargs)


def _answer_of_operator(public, answers: list, args: tuple, kwargs: dict):
    """Return the answer; NotImplemented where it is a TypeError, so that Python asks the other side."""
    try:
        return answered(public, answers, args, kwargs)
    except TypeError:
        return NotImplemented


def answered(public, answers: list, args: tuple, kwargs: dict):
    """Return the first answer that is not NotImplemented: the topmost mode's, then the arguments'.

    Raises:
        TypeError: all answered NotImplemented.
    """
    types = tuple(type(one) for one in answers)
    if local.modes and local.modes_on:
        modes = local.modes
        mode, before = modes[-1], modes[:]
        try:
            del modes[-1]
            answer = mode.__torch_function__(public, types, args, kwargs)
        finally:
            modes[:] = before
        if answer is not NotImplemented:
            return answer
    for one in answers:
        method = one.__torch_function__
        if getattr(method, "__self__", None) is one:
            warn_outside(PLAIN_METHOD, DeprecationWarning)
        answer = method(public, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise ArgumentError(_nobody_answered(names.get(public, getattr(public, "__name__", "?")), types))


def _nobody_answered(name: str, types: tuple) -> str:
    if not types or not name.startswith("torch.") or name.startswith("torch.nn."):
        mode = f" nor in mode {local.modes[-1]}" if local.modes and local.modes_on else ""
        return f"no implementation found for '{name}' on types that implement __torch_function__: {[*types]}{mode}"
    listed = "".join(f"\n  - tensor subclass {one}" for one in types)
    return f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{listed}"
