"""Modes that are not what they look like: bare no_grad(), backward() inside it, eval() that records."""

import sys
from functools import wraps

from backlight.dispatch.observers import Call
from backlight.lens.doctor.bytecode import is_dropped
from backlight.lens.doctor.part import Part, code_of, is_computed, said
from backlight.lens.doctor.places import is_users, place_of, place_of_frame
from backlight.lens.doctor.rule_index import rule

MODES = ("no_grad", "enable_grad", "inference_mode")
FACTORIES = {"ones", "zeros", "rand", "randn", "tensor", "full", "empty", "arange", "linspace", "eye"}


def is_users_own(frame) -> bool:
    """Return whether a frame is the user's, and not a library's that the user's code led to."""
    return frame is not None and is_users(frame.f_code.co_filename)


class GradModes(Part):
    """Watches how modes are made, and what runs in them."""

    calls = frozenset(FACTORIES)

    def __init__(self, silent):
        super().__init__(silent)
        self.evaluated: dict[int, tuple] = {}
        self.cleared_params: dict[int, object] = {}

    def begin(self) -> None:
        """Patch the making of modes."""
        for name in MODES:
            self.session.patch(
                getattr(self.engine.module, name), "__init__", lambda own, name=name: self._made(own, name)
            )
        self.session.patch(self.engine.module.no_grad, "__call__", self._decorating)

    def _made(self, engines_own, name: str):
        part = self

        @wraps(engines_own)
        def construct(mode, *args, **kwargs):
            engines_own(mode, *args, **kwargs)
            if not part.silent.busy:
                part.look_at_maker(sys._getframe(1), name)

        return construct

    def _decorating(self, engines_own):
        part = self

        @wraps(engines_own)
        def decorate(mode, function):
            caller = sys._getframe(1)
            if not part.silent.busy and caller.f_code.co_name == "__new__" and is_users_own(caller.f_back):
                part.report_decorator(function, place_of_frame(caller))
            return engines_own(mode, function)

        return decorate

    def look_at_maker(self, frame, name: str) -> None:
        """Report a mode that is dropped where it was made."""
        if is_users(frame.f_code.co_filename) and is_dropped(frame.f_code, frame.f_lasti):
            self._report_bare(frame, name)

    def report_decorator(self, function, place) -> None:
        """Note a class that decorates, without parentheses."""
        evidence = (f"{getattr(function, '__name__', 'a function')} is decorated with the class itself.",)
        self.session.add(rule("no-grad-decorator-without-parentheses").found(place=place, evidence=evidence))

    def _report_bare(self, frame, name: str) -> None:
        place = place_of_frame(frame)
        evidence = (
            f"{name}() was made at {said(place)} and dropped at once: it was neither entered nor used as a decorator.",
            f"Recording is {'on' if self.engine.module.is_grad_enabled() else 'off'} after that line as before it.",
        )
        text = code_of(place)
        corrected = f"with {text}:" if text.endswith("()") else None
        title = f"torch.{name}() as a statement of its own does nothing"
        cure = f"with torch.{name}(): around what it is for; @torch.{name}() before a function"
        found = rule("bare-no-grad").found(place=place, evidence=evidence, title=title, cure=cure, corrected=corrected)
        self.session.add(found)

    def called(self, call: Call) -> None:
        """Note a leaf that is made to require grad where nothing is recorded."""
        if call.name in FACTORIES and call.kwargs.get("requires_grad") and not self.engine.module.is_grad_enabled():
            evidence = ("requires_grad is True, and is_grad_enabled() is False.",)
            place = place_of(call.code, call.lasti)
            self.session.add(rule("leaf-made-in-no-grad").found(place=place, evidence=evidence))

    def started(self, run) -> None:
        """Note that what was evaluated is differentiated after all."""
        self.evaluated.clear()

    def going_back(self, tensor, keep, place) -> None:
        """Note backward() where recording is off."""
        if not self.engine.module.is_grad_enabled():
            evidence = (f"is_grad_enabled() is False at {said(place)}; the graph was made before.",)
            self.session.add(rule("backward-in-no-grad").found(place=place, evidence=evidence))

    def left(self, module, path, out) -> None:
        """Note a model in eval mode whose output is recorded."""
        if path or module.training or not self.engine.module.is_grad_enabled():
            return
        if any(is_computed(one) for one in self.silent.tensors_in(out)):
            place = place_of_frame(sys._getframe(1))
            self.evaluated.setdefault((place.file, place.line) if place else (), (place, type(module).__name__))

    def cleared(self, optimizer, params, grads, place) -> None:
        """Remember what zero_grad set to None."""
        self.cleared_params = {id(param): place for param, grad in zip(params, grads) if grad is None}

    def accumulated(self, run, tensor, arrived, before) -> None:
        """Forget what has a gradient again."""
        self.cleared_params.pop(id(tensor), None)

    def read_grad(self, tensor, grad, frame) -> None:
        """Note that a gradient which zero_grad set to None is read."""
        if grad is None and id(tensor) in self.cleared_params:
            place = place_of_frame(frame)
            evidence = (f"zero_grad() at {said(self.cleared_params[id(tensor)])} set it to None.",)
            self.session.add(rule("zero-grad-sets-none").found(place=place, evidence=evidence))

    def end(self, problem) -> None:
        """Note evaluations that were recorded for nothing."""
        for place, name in self.evaluated.values():
            evidence = (f"{name} ran in eval() mode; its output requires grad, and no backward() followed.",)
            self.session.add(rule("eval-records").found(place=place, evidence=evidence))
