"""Gradients that add up and were not meant to: a forgotten zero_grad, a second backward through one graph.

NOTE [Stale gradients]
A step uses up the gradients that it finds. If the next backward adds to the very same `.grad`, unchanged since, and the
next step of the same optimizer uses that sum, an old gradient was used twice. One such step may be a slip at the start;
two in a row are a loop without zero_grad(). What another optimizer leaves behind (a GAN's generator, in its
discriminator) is cleared before it is used, and is not counted; nor are several backwards between two steps.
"""

import ast
import re
import sys
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from backlight.dispatch.observers import Run
from backlight.lens.doctor.corrections.scopes import reached_as
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, locals_of, name_in, short
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import brief, place_of, place_of_frame, users_frames
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.records.record import Place

TWICE = 2  # stale steps, or reads, that make it certain


@dataclass(slots=True)
class Used:
    """A gradient that a step used, or the user read: which tensor, at which version, at which line."""

    grad: weakref.ref
    version: int
    place: Place | None = None


@dataclass(slots=True)
class Stale:
    """A gradient that holds an old one; `code` is that of the backward, `read` the line that used it before."""

    name: str
    old: float
    new: float
    place: Place
    code: CodeType
    read: Place | None = None
    owner: str | None = None  # the module that has the parameter, as the line of the backward names it


class Accumulation(Detector):
    """Finds gradients that add up (see NOTE [Stale gradients])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.used: WeakIdDict[Used] = WeakIdDict()
        self.read: WeakIdDict[Used] = WeakIdDict()
        self.stale: WeakIdDict[Stale] = WeakIdDict()
        self.steps: WeakIdDict[int] = WeakIdDict()  # optimizer -> stale steps in a row
        self.optimised: WeakIdDict[None] = WeakIdDict()  # what a step has changed
        self.added: WeakIdDict[list[Stale]] = WeakIdDict(outlived=OUTLIVED)  # without an optimizer, at one line
        self.roots: WeakIdDict[tuple[bool, Place | None]] = WeakIdDict()  # what backward() started from -> kept, place
        self.again: tuple[Place | None, Place | None] | None = None
        self.doubled: list[tuple] = []

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step that uses old gradients once more."""
        for param in params:
            self.optimised[param] = None
            self.added.pop(param)
        stale = [one for param in params if (one := self.stale.pop(param)) is not None]
        self.steps[optimizer] = count = self.steps.get(optimizer, 0) + 1 if stale else 0
        if count == TWICE:
            self._report_steps(optimizer, stale[0], count, place)

    def _report_steps(self, optimizer: Optimizer, stale: Stale, count: int, place: Place | None) -> None:
        name = name_in(sys._getframe(), optimizer) or "optimizer"
        in_closure = _is_given_closure(optimizer, place)
        clearing = self._clearing_in_closure if in_closure else self._clearing
        corrected, where = clearing(optimizer, stale, place)
        self.report(
            "forgotten-zero-grad",
            stale.place,
            f"{stale.name}.grad still held the gradient of the previous step, with norm {short(stale.old)}, when "
            f"backward() at {brief(stale.place)} added one of norm {short(stale.new)}.",
            f"{name}.step() at {brief(place)} used such a sum in {count} consecutive steps; nothing cleared it in "
            f"between.",
            cure=f"call {name}.zero_grad() in the closure, before backward(): step() calls the closure several times"
            if in_closure
            else None,
            corrected=corrected,
            corrected_at=where,
        )

    def _clearing(self, optimizer: Optimizer, stale: Stale, place: Place | None) -> tuple[str | None, Place | None]:
        """Return a line with zero_grad(): before backward() if its function reaches the optimizer, or after step()."""
        step = next(users_frames(sys._getframe()), None)
        backward = next((one for one in users_frames(step) if one.f_code is stale.code), None)
        name = reached_as(backward, optimizer)
        if name is not None:
            return preceded(code_of(stale.place), f"{name}.zero_grad()"), stale.place
        if place is None or step is None:
            return None, None
        text = code_of(place)
        called = re.search(r"([A-Za-z_][\w.]*)\.step\(", text)
        name = reached_as(step, optimizer) or (called and _is_named(step, called[1], optimizer))
        joint = "; " if text.startswith(("for ", "while ")) else "\n"
        return (f"{text}{joint}{name}.zero_grad()", place) if name and "step(" in text else (None, None)

    def _clearing_in_closure(
        self, optimizer: Optimizer, stale: Stale, place: Place | None
    ) -> tuple[str | None, Place | None]:
        """Return a line with zero_grad() before the backward() of a closure that step() calls several times."""
        step = next(users_frames(sys._getframe()), None)
        if step is None or stale.code not in step.f_code.co_consts:  # made elsewhere: with other names
            return None, None
        name = reached_as(step, optimizer)
        return (preceded(code_of(stale.place), f"{name}.zero_grad()"), stale.place) if name else (None, None)

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note which gradients are used up."""
        for param, grad in zip(params, grads):
            if grad is not None:
                self.used[param] = Used(weakref.ref(grad), self.engine.version_of(grad))

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Forget what was cleared."""
        for param in params:
            self.stale.pop(param)
            self.used.pop(param)

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note that the user's code has seen a gradient."""
        if grad is not None and tensor.is_leaf:
            self.read[tensor] = Used(weakref.ref(grad), self.engine.version_of(grad), place_of_frame(frame))

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note a gradient that was added to one that had been used up, or read."""
        used, read = self.used.pop(tensor), self.read.pop(tensor)
        if before is None:
            self.stale.pop(tensor)
            return
        if self.again is not None and np.any(self.values(before)):
            self.doubled.append((tensor, before, tensor.grad))
        by_step = used is not None and self._is_unchanged(used, tensor)
        if not by_step and not (read is not None and self._is_unchanged(read, tensor)):
            return
        old = _norm(self.values(before))
        if not old:
            return
        name = self.watch.flow.name_of(tensor)
        stale = Stale(name, old, _norm(self.values(arrived)), place_of(run), run.code)
        if by_step:
            self.stale[tensor] = stale
        elif tensor not in self.optimised:
            stale.read, stale.owner = read.place, self._owner(tensor)
            self._note_added(tensor, stale)

    def _note_added(self, tensor: Tensor, stale: Stale) -> None:
        """Note a sum of what no optimizer holds, while optimizer and tensor live."""
        before = self.added.get(tensor, [])
        if id(tensor) in self.watch.optimised():
            self.added.pop(tensor)
        elif not before or (len(before) < TWICE and stale.place == before[0].place):
            self.added[tensor] = [*before, stale]

    def _owner(self, tensor: Tensor) -> str | None:
        """Return the user's name of a module that has a parameter, where backward() is called."""
        for module in self.watch.flow.modules.alive():
            if any(one is tensor for one in module.parameters()):
                return reached_as(sys._getframe(1), module)
        return None

    def _is_unchanged(self, used: Used, tensor: Tensor) -> bool:
        """Return whether the sum is in the tensor that was used, and nothing else was written to it since."""
        grad = tensor.grad
        return grad is not None and used.grad() is grad and self.engine.version_of(grad) == used.version + 1

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note a backward that starts where one has started before that kept nothing."""
        kept, first = self.roots.get(tensor, (True, None))
        self.again = None if kept or tensor.is_leaf else (first, place)
        self.roots[tensor] = keep, place

    def ended(self, run: Run) -> None:
        """Report a second backward that went through."""
        again, doubled, self.again, self.doubled = self.again, self.doubled, None, []
        if again is None or not doubled or run.problem is not None:
            return
        tensor, before, after = doubled[0]
        first, second = again
        name = self.watch.flow.name_of(tensor)
        self.report(
            "backward-twice-accumulates",
            second,
            f"backward() at {brief(first)} and again at {brief(second)} started from the same tensor.",
            f"{name}.grad had norm {short(_norm(self.values(before)))} after the first, and has "
            f"{short(_norm(self.values(after)))} now.",
        )

    def end(self, problem: BaseException | None) -> None:
        """Report sums that the user read one after the other, of tensors that no optimizer has."""
        optimised, added = self.watch.optimised(), self.added.histories()
        for tensor, stale in added:
            first = stale[0]
            if len(stale) >= TWICE and (tensor is None or id(tensor) not in optimised):
                evidence = [
                    f"{one.name}.grad held {short(one.old)} (its norm), had been read, and backward() at "
                    f"{brief(one.place)} added {short(one.new)}."
                    for one in stale
                ]
                corrected, where = cleared_by_hand(first, alone=len(added) == 1)
                self.report(
                    "forgotten-zero-grad",
                    first.place,
                    *evidence,
                    corrected=corrected,
                    corrected_at=where,
                    cure=f"set {first.name}.grad = None (or call zero_grad() of the optimizer) before each backward()",
                )
                return


def cleared_by_hand(stale: Stale, alone: bool) -> tuple[str | None, Place | None]:
    """Return a line with a gradient cleared: by its module, after the update that reads it, or before the backward."""
    if stale.owner is not None:
        return preceded(code_of(stale.place), f"{stale.owner}.zero_grad()"), stale.place
    text = "" if stale.read is None else code_of(stale.read)
    owners = set(re.findall(r"([A-Za-z_][\w.]*(?:\[\w+\])?)\.grad\b", text))
    if len(owners) == 1 and ("-=" in text or "sub_(" in text) and ":" not in text:
        return f"{text}\n{owners.pop()}.grad = None", stale.read
    if alone and stale.name.isidentifier():
        return preceded(code_of(stale.place), f"{stale.name}.grad = None"), stale.place
    return None, None


def _is_given_closure(optimizer: Optimizer, place: Place | None) -> bool:
    """Return whether a line calls `optimizer.step(closure)`; `scaler.step(optimizer)` does not."""
    given = re.search(r"\.step\(\s*(?:closure\s*=\s*)?([A-Za-z_][\w.]*)", "" if place is None else code_of(place))
    step = next(users_frames(sys._getframe()), None)
    return given is not None and step is not None and given[1] != reached_as(step, optimizer)


def _is_named(frame: FrameType, name: str, value: Any) -> str | None:
    """Return a plain name if it stands for a value in a frame."""
    return name if locals_of(frame).get(name) is value else None


def preceded(text: str, before: str) -> str:
    """Return a line with a statement before it; in a loop that stands on one line, before what is repeated."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):  # a part of a statement, or several
        return f"{before}\n{text}"
    if not isinstance(statement, (ast.For, ast.While)):
        return f"{before}\n{text}"
    first = len(text.encode()[: statement.body[0].col_offset].decode())
    return f"{text[:first]}{before}; {text[first:]}"


def _norm(values: np.ndarray | None) -> float:
    return 0.0 if values is None else float(np.linalg.norm(values.ravel()))
