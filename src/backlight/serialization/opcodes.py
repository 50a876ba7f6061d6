"""A reader of pickles that cannot run code.

NOTE [Reading without running]
A pickle is a program for a small stack machine. Python's own machine calls any function that the file names; this one
supports plain values, containers, and a table of a few builders, and raises for all else. It never imports, and sets
attributes only on an OrderedDict that it made itself. What a program allows (`add_safe_globals`) is called, too, and
gets its state.
"""

import pickletools
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pickle import UnpicklingError
from types import MappingProxyType
from typing import BinaryIO

from backlight.errors import BacklightError


class LoadError(BacklightError, UnpicklingError):
    """A file cannot be loaded: it is damaged, of another format, or needs something that is not allowed."""


class Builder:
    """A name in the pickle that may be called."""

    def __init__(self, call: Callable):
        self.call = call


FAILED = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, "
    "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n"
    "\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source; better save model.state_dict(), "
    "not the model.\n"
    "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the following error "
    "message."
)
MARK = object()
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError, EOFError)
MOST_IN_KEY = 1000  # a tuple of tuples of tuples … would take forever to hash
PLAIN = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "BINFLOAT", "FLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
TEXTS = ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE")
PUTS, GETS = {"PUT", "BINPUT", "LONG_BINPUT"}, {"GET", "BINGET", "LONG_BINGET"}


def read_pickle(
    content: bytes | BinaryIO,
    names: Mapping[str, object],
    stored: Callable,
    allowed: Mapping[str, object] = MappingProxyType({}),
):
    """Return the value of a pickle.

    Args:
        content: the pickle, or a file positioned at its beginning; afterwards it is positioned after its end.
        names: the allowed names, by "module.name": values, and Builders for functions that may be called.
        stored: returns the value of a persistent id.
        allowed: classes and functions, by "module.name", that a program allows to be called.

    Raises:
        UnpicklingError: the pickle is damaged, or names something else.
    """
    machine = Machine(names, stored, allowed)
    try:
        with warnings.catch_warnings():  # damaged bytes may look like deprecated escapes: Python warns
            warnings.simplefilter("ignore", DeprecationWarning)
            for opcode, argument, _ in pickletools.genops(content):
                machine.run(opcode.name, argument)
        return machine.result()
    except LoadError:
        raise
    except DAMAGE as problem:
        raise LoadError(f"Weights only load failed: the file is damaged ({problem}); save it again") from problem


def hashable(key: object):
    """Return a key, if hashing it takes at most linear time in the file's size."""
    inside, seen = [key], 0
    while inside:
        value = inside.pop()
        seen += 1
        if seen > MOST_IN_KEY:
            raise ValueError(f"a key holds more than {MOST_IN_KEY} values")
        if isinstance(value, tuple):
            inside.extend(value)
    return key


def _set_state(made: object, state: object) -> None:
    """Give an object of an allowed class its state, as pickle does."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        made.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


class Machine:
    """The stack machine (see NOTE [Reading without running])."""

    def __init__(self, names: Mapping[str, object], stored: Callable, allowed: Mapping[str, object]):
        self.names = names
        self.stored = stored
        self.allowed = allowed
        self.called = list(allowed.values())  # compared by identity: they may define ==
        self.stack: list = []
        self.memo: dict[int, object] = {}

    def run(self, name: str, argument: object) -> None:
        """Execute one instruction."""
        if name in PLAIN:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in EMPTY:
            self.stack.append(EMPTY[name]())
        elif name in TUPLES:
            self.stack.append(tuple(self._popped(TUPLES[name])))
        elif name in PUTS:
            self.memo[argument] = self.stack[-1]
        elif name in GETS:
            self.stack.append(self.memo[argument])
        elif name not in ("PROTO", "FRAME", "STOP"):
            method = getattr(self, f"do_{name.lower()}", None)
            if method is None:
                raise LoadError(f"Weights only load failed. Unsupported operand {name}: it could run code")
            method(argument)

    def _popped(self, count: int) -> list:
        taken = self.stack[-count:]
        if len(taken) != count or any(value is MARK for value in taken):
            raise IndexError("a value is missing")
        del self.stack[-count:]
        return taken

    def result(self):
        """Return the only value left on the stack."""
        (value,) = self.stack
        if value is MARK or isinstance(value, Builder):
            raise ValueError("there is no value in it")
        return value

    def _since_mark(self) -> list:
        taken = []
        while (value := self.stack.pop()) is not MARK:
            taken.append(value)
        return taken[::-1]

    def do_mark(self, _: object) -> None:
        self.stack.append(MARK)

    def do_memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def do_tuple(self, _: object) -> None:
        self.stack.append(tuple(self._since_mark()))

    def do_append(self, _: object) -> None:
        (value,) = self._popped(1)
        self._top(list).append(value)

    def do_appends(self, _: object) -> None:
        values = self._since_mark()
        self._top(list).extend(values)

    def do_additems(self, _: object) -> None:
        values = self._since_mark()
        self._top(set).update(map(hashable, values))

    def do_setitem(self, _: object) -> None:
        key, value = self._popped(2)
        self._top(dict)[hashable(key)] = value

    def do_setitems(self, _: object) -> None:
        values = self._since_mark()
        if len(values) % 2:
            raise IndexError("a value is missing")
        self._top(dict).update(zip(map(hashable, values[::2]), values[1::2]))

    def _top(self, kind: type):
        if not isinstance(self.stack[-1], kind):
            raise TypeError(f"a {kind.__name__} is missing")
        return self.stack[-1]

    def do_global(self, argument: str) -> None:
        self._name(*argument.split(" ", 1))

    def do_stack_global(self, _: object) -> None:
        self._name(*self._popped(2))

    def _name(self, module: str, name: str) -> None:
        path = f"{module}.{name}"
        for each in (path, _path_now(module, name)):
            if each in self.allowed:
                self.stack.append(self.allowed[each])
                return
        if path not in self.names:
            raise LoadError(
                f"{FAILED}\n\tWeightsUnpickler error: Unsupported global: GLOBAL {path} was not an allowed global by "
                f"default. Please use `torch.serialization.add_safe_globals([{path}])` or the "
                f"`torch.serialization.safe_globals([{path}])` context manager to allowlist this global if you trust "
                "this class/function."
            )
        self.stack.append(self.names[path])

    def _is_allowed(self, value: object) -> bool:
        return any(value is each for each in self.called)

    def do_reduce(self, _: object) -> None:
        builder, arguments = self._popped(2)
        if not isinstance(arguments, tuple):
            raise TypeError("something is called that may not be")
        if self._is_allowed(builder):
            self.stack.append(builder(*arguments))
            return
        if not isinstance(builder, Builder):
            raise TypeError("something is called that may not be")
        self.stack.append(builder.call(*arguments))

    def do_newobj(self, _: object) -> None:
        kind, arguments = self.stack[-2:]
        if not self._is_allowed(kind):
            self.do_reduce(None)
            return
        del self.stack[-2:]
        self.stack.append(kind.__new__(kind, *arguments))

    def do_build(self, _: object) -> None:
        (state,) = self._popped(1)
        made = self.stack[-1]
        if self._is_allowed(type(made)):
            _set_state(made, state)
            return
        if type(made) is not OrderedDict or not isinstance(state, dict):
            raise LoadError(f"Weights only load failed. Can not build {type(made).__name__} from a state")
        made.__dict__.update(state)

    def do_binpersid(self, _: object) -> None:
        (key,) = self._popped(1)
        self.stack.append(self.stored(key))


def _path_now(module: str, name: str) -> str:
    """Return the full name that Python 3 has for what a pickle of protocol 2 names."""
    return ".".join(NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name)))


def names_in(content: bytes) -> set[str]:
    """Return the full names of the classes and functions that a pickle names; nothing is called."""
    found, texts, memo = set(), [], {}
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "GLOBAL":
            found.add(_path_now(*argument.split(" ", 1)))
        elif opcode.name == "STACK_GLOBAL":
            found.add(_path_now(*texts[-2:]))
        elif opcode.name in TEXTS:
            texts.append(argument)
        elif opcode.name == "MEMOIZE" or opcode.name in PUTS:
            memo[len(memo) if argument is None else argument] = texts[-1] if texts else ""
        elif opcode.name in GETS:
            texts.append(memo.get(argument, ""))
    return found
