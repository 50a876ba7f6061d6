"""Training that goes on and does nothing: gradients that are exactly 0, clipping before there are any, unused ones.

NOTE [When it is certain]
Gradients of 0 are reported if all that an optimiser holds were exactly 0 in several steps in a row, the loss was not 0,
and an op whose derivative is 0 everywhere ran in those backwards. Clipping is reported if all gradients were None, and
the next step used some, twice in a row at the same line.
"""

import sys
import weakref
from functools import wraps

import numpy as np

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.part import Part, is_computed, name_in, said, said_at, short
from backlight.lens.doctor.places import place_of, place_of_frame
from backlight.lens.doctor.report import counted
from backlight.lens.doctor.rule_index import rule

STAIRS = {"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide"}
IN_A_ROW, TWICE, SHOWN = 3, 2, 4
CLIPS = ("clip_grad_norm_", "clip_grad_value_")


class DeadTraining(Part):
    """Finds what has no effect (see NOTE [When it is certain])."""

    calls = frozenset(STAIRS)

    def __init__(self, silent):
        super().__init__(silent)
        self.stairs: dict[int, tuple] = {}  # nodes -> (op, code, lasti)
        self.passed: tuple | None = None  # the one that a backward came through since the last step
        self.loss: tuple | None = None  # its value, and the line of backward()
        self.zero: dict[int, int] = {}  # optimiser -> steps in a row with gradients of 0 only
        self.clipped: dict[int, tuple] = {}  # parameters -> (reference, what clipped nothing, line)
        self.clips: dict[tuple, int] = {}  # (what, line) -> times in a row
        self.used: dict[int, weakref.ref] = {}  # parameters that a step has changed
        self.steps: dict[int, tuple] = {}  # optimiser -> (name, place of its step)

    def begin(self) -> None:
        """Stand in for what clips."""
        tools = self.engine.module.nn.utils
        for name in CLIPS:
            if hasattr(tools, name):
                self.session.patch(tools, name, self._clipping(name))

    def _clipping(self, name: str):
        def patched(engines_own):
            @wraps(engines_own)
            def clip(parameters, *args, **kwargs):
                given = [parameters] if self.engine.is_tensor(parameters) else list(parameters)
                if not self.silent.busy:
                    self._note_clip(name, given, place_of_frame(sys._getframe(1)))
                return engines_own(given, *args, **kwargs)

            return clip

        return patched

    def _note_clip(self, name: str, params: list, place) -> None:
        if place is None or not params:
            return
        with self.silent.patches.unseen():
            empty = all(self.silent.patches.read(one) is None for one in params)
        if empty:
            self.clipped.update((id(one), (weakref.ref(one), name, place)) for one in params)
        else:
            for one in params:
                self.clipped.pop(id(one), None)
            self.clips.pop((name, place.file, place.line), None)

    def called(self, call: Call) -> None:
        """Note an op whose derivative is 0 everywhere."""
        if self.silent.name in STAIRS and self.engine.is_tensor(call.out) and is_computed(call.out):
            self.stairs[self.engine.key_of(call.out.grad_fn)] = self.silent.name, call.code, call.lasti
            if len(self.stairs) > 1000:
                del self.stairs[next(iter(self.stairs))]

    def going_back(self, tensor, keep, place) -> None:
        """Note the loss, where that may matter."""
        values = self.values(tensor) if self.stairs else None
        self.loss = None if values is None or values.size != 1 else (float(values.reshape(())), place)

    def ran(self, run: Run, node, grad_outputs, grad_inputs) -> None:
        """Note that a backward comes through such an op."""
        if self.stairs:
            found = self.stairs.get(self.engine.key_of(node))
            self.passed = found or self.passed

    def stepping(self, optimizer, params, grads, place) -> None:
        """Count steps of zeros, and clips that came before their gradients."""
        with_grads = [(param, grad) for param, grad in zip(params, grads) if grad is not None]
        self._count_zeros(optimizer, [grad for _, grad in with_grads], place)
        self._count_clips([param for param, _ in with_grads], place)
        if with_grads and self.session.notes:
            self.used.update((id(param), weakref.ref(param)) for param in params)
            self.steps[id(optimizer)] = name_in(sys._getframe(), optimizer) or type(optimizer).__name__, place

    def _count_zeros(self, optimizer, grads: list, place) -> None:
        passed, loss, self.passed = self.passed, self.loss, None
        if not grads or passed is None or loss is None or not loss[0] or any(map(self._is_some, grads)):
            self.zero[id(optimizer)] = 0
            return
        self.zero[id(optimizer)] = count = self.zero.get(id(optimizer), 0) + 1
        if count == IN_A_ROW:
            self._report_zeros(optimizer, passed, loss, place)

    def _is_some(self, grad) -> bool:
        values = self.values(grad)
        return values is None or bool(np.any(values))

    def _report_zeros(self, optimizer, passed: tuple, loss: tuple, place) -> None:
        name, (op, code, lasti) = name_in(sys._getframe(), optimizer) or type(optimizer).__name__, passed
        evidence = (
            f"All gradients that {name}.step() at {said(place)} found were exactly 0, in {IN_A_ROW} steps in a row; "
            f"the loss at {said(loss[1])} was {short(loss[0])}.",
            f"backward() came through {op}() at {said_at(code, lasti)}: its derivative is 0 everywhere.",
        )
        title = f"every gradient is exactly 0: {op}() hands on none"
        cause = f"{op}() returns the same for all numbers nearby, so that the loss does not change with the parameters"
        found = rule("gradients-all-zero").found(
            place=place_of(code, lasti), evidence=evidence, title=title, cause=cause
        )
        self.session.add(found)

    def _count_clips(self, params: list, place) -> None:
        """Count lines that clipped nothing of what a step now uses."""
        lines = {}
        for param in params:
            known = self.clipped.pop(id(param), None)
            if known is not None and known[0]() is param:
                lines.setdefault((known[1], known[2].file, known[2].line), []).append(known)
        for key, members in lines.items():
            self.clips[key] = self.clips.get(key, 0) + 1
            if self.clips[key] == TWICE:
                _, name, where = members[0]
                evidence = (
                    f"{name}() at {said(where)} ran when .grad of {counted(len(members), 'parameter')} was None, all "
                    "that it was given: it clipped nothing.",
                    f"The gradients came after it, and the step at {said(place)} used them unclipped, {TWICE} times.",
                )
                self.session.add(rule("clip-before-backward").found(place=where, evidence=evidence))

    def end(self, problem) -> None:
        """Note parameters of a model in training that get unused gradients."""
        if not self.session.notes or not self.steps or self.session.has(("BL705", "BL708")):
            return
        flow, held = self.silent.flow, self.silent.optimised()
        for reference in flow.modules.values():
            module = reference()
            params = [] if module is None else [one for one in module.parameters() if one.requires_grad]
            idle = [one for one in params if id(one) not in held and id(one) not in self.used and self._reached(one)]
            if idle and any(id(one) in self.used for one in params):
                self._report_unused(idle)

    def _reached(self, param) -> bool:
        info = self.silent.flow.known(param)
        return info is not None and info.leaf is not None and info.leaf.reached

    def _report_unused(self, idle: list) -> None:
        names = [self.silent.flow.name_of(one) for one in idle]
        listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        name, place = next(iter(self.steps.values()))
        evidence = (
            f"{listed}: gradients came to {'it' if len(idle) == 1 else 'them'}; {name}, which steps at {said(place)}, "
            "holds other parameters of the same model, and no optimiser holds these.",
        )
        self.session.add(rule("gradients-nobody-uses").found(place=place, evidence=evidence))
