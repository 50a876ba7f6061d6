"""Modes that are not what they look like: bare no_grad(), backward() inside it, eval() that records."""

from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of
from backlight.lens.doctor.graph import Module, Optimizer, Tensor, is_computed
from backlight.lens.doctor.places import brief, is_users, place_of, place_of_frame
from backlight.lens.doctor.source import is_dropped
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

MODES = ("no_grad", "enable_grad", "inference_mode")
FACTORIES = {"ones", "zeros", "rand", "randn", "tensor", "full", "empty", "arange", "linspace", "eye"}


class GradModes(Detector):
    """Watches how modes are made, and what runs in them."""

    calls = frozenset(FACTORIES)

    def __init__(self, watch):
        super().__init__(watch)
        self.evaluated: dict[tuple, tuple[Place | None, str]] = {}
        self.set_to_none: WeakIdDict[Place | None] = WeakIdDict()  # parameters -> the zero_grad() that did it

    def begin(self) -> None:
        """Watch the making of modes."""
        for name in MODES:
            self.watch.after(getattr(self.engine.module, name), "__init__", self._made)
        self.watch.after(self.engine.module.no_grad, "__call__", self._decorated)

    def _made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        """Report a mode that is dropped where it was made."""
        if is_users(frame.f_code.co_filename) and is_dropped(frame.f_code, frame.f_lasti):
            self._report_bare(place_of_frame(frame), type(args[0]).__name__)

    def _report_bare(self, place: Place, name: str) -> None:
        text = code_of(place)
        self.report(
            "bare-no-grad",
            place,
            f"{name}() was created at {brief(place)} and discarded: it was neither entered nor used as a decorator.",
            f"Recording is {'on' if self.engine.module.is_grad_enabled() else 'off'} after that line as before it.",
            title=f"torch.{name}() as a separate statement does nothing",
            cure=f"with torch.{name}(): around the code that needs it; @torch.{name}() before a function",
            corrected=f"with {text}:" if text.endswith("()") else None,
        )

    def _decorated(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        """Report the class as a decorator, without parentheses."""
        user = frame.f_back
        if frame.f_code.co_name == "__new__" and user is not None and is_users(user.f_code.co_filename):
            seen = f"{getattr(args[1], '__name__', 'a function')} is decorated with the class itself."
            self.report("no-grad-decorator-without-parentheses", place_of_frame(user), seen)

    def called(self, call: Call) -> None:
        """Note a leaf that is made to require grad where nothing is recorded."""
        if call.name in FACTORIES and call.kwargs.get("requires_grad") and not self.engine.module.is_grad_enabled():
            seen = "requires_grad is True, and is_grad_enabled() is False."
            self.report("leaf-made-in-no-grad", place_of(call), seen)

    def started(self, run: Run) -> None:
        """Note that what was evaluated is differentiated after all."""
        self.evaluated.clear()

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note backward() where recording is off."""
        if not self.engine.module.is_grad_enabled():
            seen = f"is_grad_enabled() is False at {brief(place)}; the graph was made before."
            self.report("backward-in-no-grad", place, seen)

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note a model in eval mode whose output is recorded."""
        if path or module.training or not self.engine.module.is_grad_enabled():
            return
        if any(is_computed(one) for one in self.watch.tensors_in(out)):
            place = place_of_frame()
            self.evaluated.setdefault((place.file, place.line) if place else (), (place, type(module).__name__))

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Remember what zero_grad set to None."""
        self.set_to_none.clear()
        for param, grad in zip(params, grads):
            if grad is None:
                self.set_to_none[param] = place

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Forget what has a gradient again."""
        self.set_to_none.pop(tensor)

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note that a gradient which zero_grad set to None is read."""
        if grad is None and tensor in self.set_to_none:
            seen = f"zero_grad() at {brief(self.set_to_none.get(tensor))} set it to None."
            self.report("zero-grad-sets-none", place_of_frame(frame), seen)

    def end(self, problem: BaseException | None) -> None:
        """Note evaluations that were recorded for nothing."""
        for place, name in self.evaluated.values():
            seen = f"{name} ran in eval() mode; its output requires grad, and no backward() followed."
            self.report("eval-records", place, seen)
