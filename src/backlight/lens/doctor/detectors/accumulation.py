"""Gradients that add up and were not meant to: a forgotten zero_grad, a second backward through one graph.

NOTE [Stale gradients]
A step uses up the gradients that it finds. If the next backward adds to the very same `.grad`, unchanged since, and the
next step of the same optimiser uses that sum, an old gradient was used twice. One such step may be a slip at the start;
two in a row are a loop without zero_grad(). What another optimiser leaves behind (a GAN's generator, in its
discriminator) is cleared before it is used, and is not counted; nor are several backwards between two steps.
"""

import ast
import sys
import weakref
from dataclasses import dataclass

import numpy as np

from backlight.lens.doctor.part import Part, code_of, name_in, said, short
from backlight.lens.doctor.places import place_of
from backlight.lens.doctor.rule_index import rule
from backlight.lens.records.record import Place

TWICE = 2  # stale steps, or reads, that make it certain


@dataclass(slots=True)
class Used:
    """A gradient that a step used, or the user read: which tensor, at which version."""

    grad: weakref.ref
    version: int


@dataclass(slots=True)
class Stale:
    """A gradient that holds an old one."""

    name: str
    old: float
    new: float
    place: Place


class Accumulation(Part):
    """Finds gradients that add up (see NOTE [Stale gradients])."""

    def __init__(self, silent):
        super().__init__(silent)
        self.used: dict[int, Used] = {}
        self.stale: dict[int, Stale] = {}
        self.steps: dict[int, int] = {}  # optimiser -> stale steps in a row
        self.optimised: set[int] = set()
        self.read: dict[int, Used] = {}
        self.added: dict[int, list[Stale]] = {}  # without an optimiser
        self.roots: dict[int, tuple] = {}  # what backward() was called on -> (weak reference, kept, place)
        self.again: tuple | None = None
        self.doubled: list[tuple] = []

    def stepping(self, optimizer, params, grads, place) -> None:
        """Count a step that uses old gradients once more."""
        self.optimised.update(map(id, params))
        stale = [self.stale.pop(id(param)) for param in params if id(param) in self.stale]
        if not stale:
            self.steps[id(optimizer)] = 0
            return
        self.steps[id(optimizer)] = count = self.steps.get(id(optimizer), 0) + 1
        if count == TWICE:
            self._report_steps(optimizer, stale[0], count, place)

    def _report_steps(self, optimizer, stale: Stale, count: int, place: Place | None) -> None:
        name = name_in(sys._getframe(), optimizer) or "optimizer"
        evidence = (
            f"{stale.name}.grad still held the gradient of the step before, of norm {short(stale.old)}, when "
            f"backward() at {said(stale.place)} added one of norm {short(stale.new)}.",
            f"{name}.step() at {said(place)} used such a sum in {count} steps in a row; nothing cleared it between.",
        )
        before = f"{name}.zero_grad()"
        corrected = preceded(code_of(stale.place), before)
        found = rule("forgotten-zero-grad").found(place=stale.place, evidence=evidence, corrected=corrected)
        self.session.add(found)

    def stepped(self, optimizer, params, grads, place) -> None:
        """Note which gradients are used up."""
        for param, grad in zip(params, grads):
            if grad is not None:
                self.used[id(param)] = Used(weakref.ref(grad), self.engine.version_of(grad))

    def cleared(self, optimizer, params, grads, place) -> None:
        """Forget what was cleared."""
        for param in params:
            self.stale.pop(id(param), None)
            self.used.pop(id(param), None)

    def read_grad(self, tensor, grad, frame) -> None:
        """Note that the user's code has seen a gradient."""
        if grad is not None and tensor.is_leaf:
            self.read[id(tensor)] = Used(weakref.ref(grad), self.engine.version_of(grad))

    def accumulated(self, run, tensor, arrived, before) -> None:
        """Return whether a gradient was added to one that had been used up, or read."""
        key = id(tensor)
        used, read = self.used.pop(key, None), self.read.pop(key, None)
        if before is None:
            self.stale.pop(key, None)
            return
        if self.again is not None and np.any(self.values(before)):
            self.doubled.append((tensor, before, tensor.grad))
        if used is not None and self._unchanged(used, tensor):
            stale = self._stale(run, tensor, arrived, before)
            if stale is not None:
                self.stale[key] = stale
        elif read is not None and self._unchanged(read, tensor):
            stale = self._stale(run, tensor, arrived, before)
            if stale is not None:
                self.added.setdefault(key, []).append(stale)

    def _unchanged(self, used: Used, tensor) -> bool:
        """Return whether the sum is in the tensor that was used, and nothing else was written to it since."""
        grad = tensor.grad
        return grad is not None and used.grad() is grad and self.engine.version_of(grad) == used.version + 1

    def _stale(self, run, tensor, arrived, before) -> Stale | None:
        old = _norm(self.values(before))
        if not old:
            return None
        name = self.silent.flow.name_of(tensor)
        return Stale(name, old, _norm(self.values(arrived)), place_of(run.code, run.lasti))

    def going_back(self, tensor, keep, place) -> None:
        """Return whether a backward starts where one has started before that kept nothing."""
        key = id(tensor)
        known = self.roots.get(key)
        self.again = None
        if known is not None and known[0]() is tensor and not known[1] and not tensor.is_leaf:
            self.again = known[2], place
        roots = self.roots
        self.roots[key] = weakref.ref(tensor, lambda _: roots.pop(key, None)), keep, place

    def ended(self, run) -> None:
        """Report a second backward that went through."""
        again, doubled, self.again, self.doubled = self.again, self.doubled, None, []
        if again is None or not doubled or run.problem is not None:
            return
        tensor, before, after = doubled[0]
        first, second = again
        name = self.silent.flow.name_of(tensor)
        evidence = (
            f"backward() at {said(first)} and again at {said(second)} started from the same tensor.",
            f"{name}.grad had norm {short(_norm(self.values(before)))} after the first, and has "
            f"{short(_norm(self.values(after)))} now.",
        )
        self.session.add(rule("backward-twice-accumulates").found(place=second, evidence=evidence))

    def end(self, problem) -> None:
        """Report sums that the user read one after the other, of tensors that no optimiser has."""
        for key, stale in self.added.items():
            lines = [one for one in stale if one.place == stale[0].place]
            if len(lines) >= TWICE and key not in self.optimised and not self._is_optimised(key):
                first = lines[0]
                evidence = tuple(
                    f"{one.name}.grad held {short(one.old)} (its norm), had been read, and backward() at "
                    f"{said(one.place)} added {short(one.new)}."
                    for one in lines[:TWICE]
                )
                corrected = preceded(code_of(first.place), f"{first.name}.grad = None")
                cure = f"set {first.name}.grad = None (or call zero_grad() of the optimiser) before each backward()"
                found = rule("forgotten-zero-grad").found(
                    place=first.place, evidence=evidence, corrected=corrected, cure=cure
                )
                self.session.add(found)
                return

    def _is_optimised(self, key: int) -> bool:
        return key in self.silent.optimised()


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
