"""Where modules, parameters and optimizers were made, and where a model was switched to eval mode."""

import linecache
from types import FrameType
from typing import Any

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Module
from backlight.lens.doctor.places import Instruction, users_frames
from backlight.lens.doctor.weak_id_dict import WeakIdDict


class Constructions(Detector):
    """Remembers lines and their order; it finds nothing itself.

    Attributes:
        modules, optimizers: -> the user's line that made them.
        parameters: -> (line, how many optimizers had been made before, whether a module's forward was running).
        evaluated: modules -> the line that switched them to eval mode last.
        made: how many optimizers were made.
        running: the modules whose forwards are running, one inside the other.
    """

    def __init__(self, watch):
        super().__init__(watch)
        self.modules: WeakIdDict[Instruction] = WeakIdDict()
        self.optimizers: WeakIdDict[tuple[int, Instruction | None]] = WeakIdDict()
        self.parameters: WeakIdDict[tuple[Instruction | None, int, bool]] = WeakIdDict()
        self.evaluated: WeakIdDict[Instruction] = WeakIdDict()
        self.made = 0
        self.running: list[Module] = []

    def begin(self) -> None:
        """Watch the making of modules and optimizers, and train()."""
        torch = self.engine.module
        self.watch.after(torch.nn.Module, "__init__", self._module_made)
        self.watch.after(torch.optim.Optimizer, "__init__", self._optimizer_made)
        self.watch.after(torch.nn.Module, "train", self._switched)

    def _module_made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        line = maker_of(frame)
        if line is not None:
            self.modules[args[0]] = line

    def _optimizer_made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        self.made += 1
        self.optimizers[args[0]] = self.made, maker_of(frame)

    def _switched(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if not (args[1] if len(args) > 1 else kwargs.get("mode", True)):
            line = maker_of(frame)
            if line is not None:
                self.evaluated[args[0]] = line

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """Note where a parameter was made."""
        if isinstance(value, self.engine.module.nn.Parameter) and value not in self.parameters:
            self.parameters[value] = maker_of(frame), self.made, bool(self.running)

    def entered(self, module: Module, path: str) -> None:
        """Note which module runs."""
        if not path:
            self.running.clear()
        self.running.append(module)

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note that it ended."""
        if self.running:
            self.running.pop()

    def line_of_layer(self) -> Instruction | None:
        """Return where the module was made that runs now, if it is a layer without parameters: nn.Softmax, a loss."""
        module = self.running[-1] if self.running else None
        if module is None or next(module.parameters(), None) is not None or next(module.children(), None) is not None:
            return None
        return self.modules.get(module)


def maker_of(frame: FrameType | None) -> Instruction | None:
    """Return the user's line that makes an object whose __init__ runs, outside of the __init__ methods themselves."""
    last = None
    for user in users_frames(frame):
        last = user
        if user.f_code.co_name != "__init__" or not _makes_itself(user):
            break
    return None if last is None else Instruction(last.f_code, last.f_lasti)


def _makes_itself(frame: FrameType) -> bool:
    """Return whether an __init__ hands its object on to that of its base, and does not make another one."""
    return "super(" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)
