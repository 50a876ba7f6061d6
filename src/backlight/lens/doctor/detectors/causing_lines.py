"""Lines that a later error is the consequence of: what switched recording off, froze parameters, registered a hook."""

from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.places import place_of_frame
from backlight.lens.doctor.source import spot_of
from backlight.lens.records.record import Place

MOST_HOOKS = 1000


class CausingLines(Detector):
    """Remembers such lines; it finds nothing itself."""

    calls = frozenset({"requires_grad", "requires_grad_", "register_hook"})

    def __init__(self, watch):
        super().__init__(watch)
        self.switched_off: Place | None = None  # the last set_grad_enabled(False)
        self.frozen: Place | None = None  # the last line that switched requires_grad off
        self.hooks: list[tuple[str, Place]] = []  # a hook's name, where it was registered

    def begin(self) -> None:
        """Watch set_grad_enabled and the freezing of modules."""
        self.watch.after(self.engine.module.set_grad_enabled, "__init__", self._set)
        self.watch.after(self.engine.module.nn.Module, "requires_grad_", self._freezes)

    def _set(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        mode = args[1] if len(args) > 1 else kwargs.get("mode")
        self.switched_off = None if mode else place_of_frame(frame)

    def _freezes(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if not (args[1] if len(args) > 1 else kwargs.get("requires_grad", True)):
            self.frozen = place_of_frame(frame)

    def called(self, call: Call) -> None:
        """Note a freeze or a hook."""
        if call.name == "register_hook" and len(call.args) > 1 and len(self.hooks) < MOST_HOOKS:
            name = getattr(call.args[1], "__name__", "")
            self.hooks.append((name, spot_of(call).place))
        elif call.name != "register_hook" and len(call.args) > 1 and call.args[1] is False:
            self.frozen = spot_of(call).place

    def hook(self, name: str) -> Place | None:
        """Return where a hook was registered, if only one line registers hooks of that name."""
        places = {place for known, place in self.hooks if known == name}
        return places.pop() if len(places) == 1 else None
