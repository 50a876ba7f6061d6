"""`__torch_function__`: calls of PyTorch's functions that a mode or a tensor subclass handles.

NOTE [Overriding]
A handler comes before everything else that dispatch does (interpreters, observers). The topmost mode of this thread is
called first, then `__torch_function__` of the arguments whose class defines its own. Public functions dispatch to
handlers only while such a class is alive or a mode is on (overrides.py), so that a program without them pays nothing.
While a mode's handler runs, that mode is off the stack; the default handler of Tensor turns classes off while the
function runs.
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

PLAIN_TYPES = frozenset({int, float, bool, str, type(None), dtype, device})  # what most arguments are, beside tensors


class _Local(ThreadState):
    """This thread's modes, the outermost first, and whether calls dispatch to classes and to modes."""

    def __init__(self):
        self.modes = []
        self.classes_on = self.modes_on = True
        self.casts = None  # autocast's rule, which comes last (NOTE [Autocast] in amp/autocasting.py)


class _OverridesState:
    """Whether public functions dispatch to handlers, and what overrides.py, which knows them, says of them.

    Attributes:
        install_for: lets public functions dispatch to a class while it is alive: `overrides.dispatch_while_alive`,
            put here by the package.
        held: a token for each class with a handler (a ClassToken), and for each mode that is on.
        only_classes: whether no mode is on in any thread: calls with plain arguments have no handler then.
        shown: a function that does the work of a public one -> that one, which handlers are given.
        operators: functions that Python calls for its operators.
        names: a public function -> PyTorch's name for it, with its namespace.
        overridable: a public function that is no op -> whether only modes may handle it, no classes.
    """

    __slots__ = ("held", "install_for", "names", "on", "only_classes", "operators", "overridable", "shown")

    def __init__(self):
        self.on = self.only_classes = False
        self.held, self.operators = [], set()
        self.shown, self.names, self.overridable = {}, {}, {}


class ClassToken:
    """Held by `overrides_state` for a class with a handler, as long as the class exists."""


local = _Local()
overrides_state = _OverridesState()


def disabled(func, types, args=(), kwargs=None):
    """Call the function: the `__torch_function__` of classes without a handler of their own."""
    return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass(Block):
    """Dispatch to no class inside a `with` block."""

    def _block_state(self):
        return local.classes_on, local.modes_on, local.casts

    def _block_change(self, state):
        local.classes_on = False

    def _block_restore(self, state):
        local.classes_on, local.modes_on, local.casts = state


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Dispatch to no class and no mode inside a `with` block."""

    def _block_change(self, state):
        local.classes_on = local.modes_on = False


class DisableTorchFunctionAndAutocast(DisableTorchFunction):
    """Dispatch to no class, no mode and not to autocast inside a `with` block."""

    def _block_change(self, state):
        local.classes_on = local.modes_on = False
        local.casts = None


def implements_torch_function(cls: type) -> bool:
    """Tell whether a class has a handler of its own: exact tensors, parameters and PyTorch's own classes have none."""
    if cls.__module__.partition(".")[0] == "torch":
        return False
    handler = getattr(cls, "__torch_function__", None)
    return handler is not None and handler is not disabled and cls is not the_tensor_class()


def overloaded_args(values) -> list:
    """Return the first argument of each class with a handler, subclasses before the classes they derive from."""
    found = []
    for value in values:
        cls = value.__class__
        if implements_torch_function(cls) and not isinstance(value, type) and all(cls is not type(x) for x in found):
            place = next((at for at, one in enumerate(found) if issubclass(cls, type(one))), len(found))
            found.insert(place, value)
    return found


def flat(values) -> list:
    """Return arguments with lists among them taken apart."""
    return [inner for one in values for inner in (one if isinstance(one, (list, tuple)) else (one,))]


def dispatch_torch_function(public, args: tuple, kwargs: dict, only_modes: bool = False):
    """Return what a mode, the class of an argument or autocast returns for a call; UNHANDLED if none handles it."""
    overloaded = []
    if local.classes_on and not only_modes:
        values = (*args, *kwargs.values()) if kwargs else args
        tensor = the_tensor_class()
        for value in values:
            if value.__class__ is not tensor and value.__class__ not in PLAIN_TYPES:
                overloaded = overloaded_args(flat(values))
                break
    if overloaded or (local.modes and local.modes_on):
        call = _call_for_operator if public in overrides_state.operators else call_torch_function
        return call(overrides_state.shown.get(public, public), overloaded, args, kwargs)
    return UNHANDLED if local.casts is None else local.casts(public, args, kwargs)


def _call_for_operator(public, overloaded: list, args: tuple, kwargs: dict):
    """Call the handlers; return NotImplemented where they raise TypeError, so that Python tries the other operand."""
    try:
        return call_torch_function(public, overloaded, args, kwargs)
    except TypeError:
        return NotImplemented


def call_torch_function(public, overloaded: list, args: tuple, kwargs: dict):
    """Return the first result that is not NotImplemented: the topmost mode's, then the arguments'.

    Raises:
        TypeError: all handlers returned NotImplemented.
    """
    types = tuple(type(one) for one in overloaded)
    if local.modes and local.modes_on:
        modes = local.modes
        mode, before = modes[-1], modes[:]
        try:
            del modes[-1]
            result = mode.__torch_function__(public, types, args, kwargs)
        finally:
            modes[:] = before
        if result is not NotImplemented:
            return result
    for one in overloaded:
        method = one.__torch_function__
        if getattr(method, "__self__", None) is one:
            warn_outside(PLAIN_METHOD, DeprecationWarning)
        result = method(public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise ArgumentError(_no_implementation(overrides_state.names.get(public, getattr(public, "__name__", "?")), types))


def _no_implementation(name: str, types: tuple) -> str:
    if not types or not name.startswith("torch.") or name.startswith("torch.nn."):
        mode = f" nor in mode {local.modes[-1]}" if local.modes and local.modes_on else ""
        return f"no implementation found for '{name}' on types that implement __torch_function__: {[*types]}{mode}"
    listed = "".join(f"\n  - tensor subclass {one}" for one in types)
    return f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{listed}"
