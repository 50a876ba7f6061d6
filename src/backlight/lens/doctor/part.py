"""What the parts of the silent detector share: events beyond a watcher's, and careful reading of a program's state.

NOTE [Careful reading]
A part looks at a program's tensors and never changes what the program sees: it writes nothing, makes no hooks, keeps
no tensor alive (weak references and numbers only), and reads values through `Part.values`, which gives None for what
cannot be read cheaply.
"""

import io
import sys
import tokenize
from functools import cache
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

import numpy as np

from backlight.dispatch.observers import Run, Watcher
from backlight.lens.doctor.places import is_users, place_of
from backlight.lens.engines import Engine
from backlight.lens.records.record import Place

COPIED = sys.version_info < (3, 13)  # whether `frame.f_locals` is a copy, which the frame keeps
HELD_BY_FRAME = 3  # references to it then: the frame's, ours, the count's


class Part(Watcher):
    """One kind of mistake that no engine reports; a subclass overrides the events that it needs.

    Args:
        silent: the detector that it is a part of (lens/doctor/silent.py).
    """

    calls: frozenset[str] | None = None  # names of the calls that it wants, plain or not; None for all

    def __init__(self, silent):
        self.silent = silent
        self.session = silent.session
        self.engine = silent.engine

    def begin(self) -> None:
        """The block begins: patch what has to be patched."""

    def end(self, problem: BaseException | None) -> None:
        """The block has ended: look at what is left."""

    def stepping(self, optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.step()` begins; `grads` are the `.grad`s of the parameters."""

    def stepped(self, optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.step()` has ended."""

    def cleared(self, optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.zero_grad()` has ended."""

    def read_grad(self, tensor, grad, frame: FrameType) -> None:
        """The user's own code, which runs in `frame`, read `.grad`."""

    def going_back(self, tensor, keep: bool, place: Place | None) -> None:
        """`tensor.backward()` is called."""

    def assigned(self, module, name: str, value, old, frame: FrameType) -> None:
        """An attribute of a module was set; `old` is the parameter or module that had its place."""

    def values(self, tensor) -> np.ndarray | None:
        """Return a tensor's values, or None if they are not to be had."""
        if not self.silent.is_plain(tensor):
            return None
        try:
            return self.engine.array(self.engine.in_graph(tensor))
        except (RuntimeError, TypeError, NotImplementedError):  # a subclass without values, one of is_grads_batched
            return None


def root_nodes(run: Run) -> list:
    """Return the nodes that a backward starts from."""
    return [root[0] for root in run.roots if root is not None]


def is_computed(tensor) -> bool:
    """Return whether a tensor has a graph; not of a view made under no_grad() and written to since: PyTorch refuses."""
    try:
        return tensor.requires_grad and not tensor.is_leaf
    except RuntimeError:
        return False


def is_wanting(tensor) -> bool:
    """Return whether a tensor is a leaf that requires grad."""
    try:
        return tensor.requires_grad and tensor.is_leaf
    except RuntimeError:
        return False


def name_in(frame: FrameType | None, value: Any) -> str | None:
    """Return the user's variable that holds a value, in a frame or those outside of it."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            name = _local_name(frame, value) or _name_among(frame.f_globals, value)
            if name is not None:
                return name
        frame = frame.f_back
    return None


def owned_name(frame: FrameType | None, tensor: Any, engine: Engine) -> str | None:
    """Return a parameter's name as that of a part of a module that a variable holds: `old.weight`."""
    kind = engine.module.nn.Module
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            for space in (frame.f_globals, frame.f_locals):
                name = _owned_among(dict(space), tensor, kind)
                if name is not None:
                    return name
        frame = frame.f_back
    return None


def _owned_among(names: dict, tensor: Any, kind: type) -> str | None:
    for name, value in names.items():
        if isinstance(value, kind) and name.isidentifier():
            for path, parameter in value.named_parameters():
                if parameter is tensor:
                    return f"{name}.{path}"
    return None


def _local_name(frame: FrameType, value: Any) -> str | None:
    """Return the local variable that holds a value, and let go of the copy of all locals that looking has made.

    Before Python 3.13 a function's frame keeps that copy, and with it what the program deletes later. It is emptied
    unless something else has it, from `locals()`.
    """
    names = frame.f_locals
    found = _name_among(names, value)
    if COPIED and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(names) <= HELD_BY_FRAME:
        names.clear()
    return found


def _name_among(names, value: Any) -> str | None:
    return next((name for name, held in list(names.items()) if held is value and name.isidentifier()), None)


def code_of(place: Place) -> str:
    """Return a line without its comment."""
    text = place.text
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                return text[: token.start[1]].rstrip()
    except (tokenize.TokenError, SyntaxError):
        return text
    return text


def way(*steps: str) -> tuple[str, ...]:
    """Return the way from a loss, as findings show it: `loss ← MulBackward0 ← w`."""
    return steps[0], *(f"← {step}" for step in steps[1:])


def said(place: Place | None) -> str:
    """Return a line as evidence names it: `train.py:12`."""
    return "an unknown line" if place is None else f"{place.file.rpartition('/')[2]}:{place.line}"


def said_at(code: CodeType, lasti: int) -> str:
    """Return the line of an instruction as evidence names it."""
    return said(place_of(code, lasti))


@cache
def plain(name: str) -> str:
    """Return a function's name without what marks it as a method or as in place: `__iadd__`, `add_` → `add`."""
    name = name.strip("_")
    return {"iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "truediv": "div"}.get(name, name)


def short(number: float) -> str:
    """Return a number in a few digits."""
    return f"{number:.4g}"
