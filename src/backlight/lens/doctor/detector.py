"""What looks for one kind of mistake while a program runs.

NOTE [A detector]
A session watches each engine with one detector of each kind (`DETECTORS` in lens/doctor/engine_watch.py). A detector is
a `Watcher`: it gets the engine's events, and those declared below. With `watch.after` it has a method of its own called
after each call of one of the engine's Python functions. It adds a finding with `report`. `end` is called last, when
nothing is watched or patched any more. A detector must be sure: a healthy program gives no finding.

It looks at a program's tensors and never changes what the program sees: it writes nothing, makes no hooks, keeps no
tensor alive (weak references and plain data only: NOTE [Judged while it lives] in lens/doctor/weak_id_dict.py), and
reads values through `values`, which gives None for what cannot be read cheaply.
"""

import zlib
from collections.abc import Callable
from types import FrameType
from typing import Any, Unpack

import numpy as np

from backlight.dispatch.observers import Call, Watcher
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.graph import Module, Optimizer, Tensor
from backlight.lens.doctor.rule_index import Words, rule
from backlight.lens.records.record import Place

BEGINNING = 64  # elements
MOST_READ = 4  # tensors whose values are kept while an event is passed on: several detectors look at the same ones


def any_nonzero(values: np.ndarray) -> bool:
    """Return whether an element is not 0: of most arrays the first few tell, and NumPy would read them all."""
    return bool(values.flat[:BEGINNING].any() or values.any())


def numbers_of(call: Call) -> list[int | float]:
    """Return the plain numbers among the positional arguments of a call."""
    return [one for one in call.args if isinstance(one, (int, float)) and not isinstance(one, bool)]


def checksum_of(values: np.ndarray) -> int:
    """Return a checksum of an array's values."""
    return zlib.crc32(np.ascontiguousarray(values).reshape(-1).view(np.uint8))


class Detector(Watcher):
    """See NOTE [A detector]; a subclass overrides the events that it needs.

    Args:
        watch: what passes the events on (lens/doctor/engine_watch.py); `watch.flow` knows where values come from.
    """

    calls: frozenset[str] | None = None  # names of the calls that it wants, plain or not; None for all
    every_call = False  # whether it gets the calls, too, that only read a tensor or that an optimizer's step makes
    only_notes = False  # whether all that it finds are notes

    def __init__(self, watch):
        self.watch = watch
        self.session = watch.session
        self.engine = watch.engine

    def begin(self) -> None:
        """The block begins: patch what has to be watched (`watch.after`)."""

    def end(self, problem: BaseException | None) -> None:
        """The block has ended, by `problem` if there is one: look at what is left."""

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.step()` begins; `grads` are the `.grad`s of the parameters."""

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.step()` has ended."""

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """`optimizer.zero_grad()` has ended."""

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """The user's own code, which runs in `frame`, read `.grad`."""

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """`tensor.backward()` is called."""

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """An attribute of a module was set; `old` is the parameter or module that had its place."""

    def report(self, name: str, place: Place | None, *evidence: str, **words: Unpack[Words]) -> None:
        """Add a finding of a rule; `words` are those that differ from the rule's own."""
        self.session.add(rule(name).found(place, *evidence, **words))

    def after_methods_of_distributions(self, **listeners: Callable) -> None:
        """Call a listener after each method of that name of each class of distributions (see `EngineWatch.after`)."""
        module = getattr(self.engine.module, "distributions", None)
        if module is None:
            return
        for kind in {one for one in vars(module).values() if isinstance(one, type)}:
            if issubclass(kind, module.Distribution):
                for name in listeners.keys() & vars(kind).keys():
                    self.watch.after(kind, name, listeners[name])

    def values(self, tensor: Tensor) -> np.ndarray | None:
        """Return a tensor's values, or None if they are not to be had."""
        read = self.watch.read
        known = None if read is None else read.get(id(tensor))
        if known is not None:
            return known[1]
        if not self.watch.is_plain(tensor):
            return None
        try:
            values = self.engine.array(self.engine.in_graph(tensor))
        except (RuntimeError, TypeError, NotImplementedError):  # a subclass without values, one of is_grads_batched
            return None
        if read is not None and len(read) < MOST_READ:
            read[id(tensor)] = tensor, values
        return values

    def square_of(self, tensor: Tensor) -> np.ndarray | None:
        """Return the sum of the squares of a tensor's values, in their own dtype, or None; read once an event."""
        read = self.watch.read
        known = None if read is None else read.get((id(tensor), "square"))
        if known is not None:
            return known[1]
        values = self.values(tensor)
        if values is None:
            return None
        with silent_floats():
            square = np.vdot(values, values)
        if read is not None and id(tensor) in read:
            read[id(tensor), "square"] = tensor, square
        return square

    def number(self, tensor: Tensor) -> float | None:
        """Return the value of a tensor of one real number, or None."""
        values = self.values(tensor)
        return None if values is None or values.size != 1 or values.dtype.kind == "c" else float(values.reshape(()))
