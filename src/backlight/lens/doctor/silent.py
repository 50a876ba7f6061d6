"""Mistakes that no engine reports: one detector that passes events to its parts, one for each kind of mistake.

NOTE [One detector, many parts]
Parts build on one another (all on `Flow`, which knows what each tensor was computed from), so they must be called in
order. The session makes one `Silent` for each engine. It passes each event to the parts that override it, and ignores
events while it reads values itself. A part gets only the calls that it names (`Part.calls`); the tensors of a call are
collected once for all parts. A part that fails gets no more events: it must not stop the user's program.
"""

import threading
import warnings
import weakref

from backlight.dispatch.observers import Call, Watcher
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.accumulation import Accumulation
from backlight.lens.doctor.detectors.cut_off import CutOff
from backlight.lens.doctor.detectors.dead_training import DeadTraining
from backlight.lens.doctor.detectors.empty_steps import EmptySteps
from backlight.lens.doctor.detectors.grad_modes import GradModes
from backlight.lens.doctor.detectors.losses import Losses
from backlight.lens.doctor.detectors.memory_writes import MemoryWrites
from backlight.lens.doctor.detectors.module_slips import ModuleSlips
from backlight.lens.doctor.detectors.non_finite import NonFinite
from backlight.lens.doctor.detectors.optimizers import Optimisers
from backlight.lens.doctor.detectors.rebinding import Rebinding
from backlight.lens.doctor.detectors.rebuilt import Rebuilt
from backlight.lens.doctor.detectors.saved_hooks import SavedHooks
from backlight.lens.doctor.detectors.totals import Totals
from backlight.lens.doctor.detectors.trends import Trends
from backlight.lens.doctor.flow import Flow
from backlight.lens.doctor.part import Part, plain
from backlight.lens.doctor.patches import Patches

PARTS = (
    Flow,
    Accumulation,
    CutOff,
    GradModes,
    Losses,
    MemoryWrites,
    ModuleSlips,
    NonFinite,
    Optimisers,
    Rebinding,
    Rebuilt,
    SavedHooks,
    Totals,
    Trends,
    EmptySteps,
    DeadTraining,
)
EVENTS = tuple(name for name in {**vars(Watcher), **vars(Part)} if not name.startswith("_") and name != "calls")
DEPTH = 3  # how deep tensors may lie in lists and dicts
WRAPPED = "is_functorch_wrapped_tensor"
READS_ONLY = {"grad", "__repr__", "__format__", "__len__", "__hash__"}  # calls that no part wants


class Silent(Detector):
    """See NOTE [One detector, many parts].

    Attributes:
        name, inputs, outs: of the current call: its plain name, its tensors.
        stepping: how many optimisers' steps run, one inside the other.
    """

    def __init__(self, session, engine):
        super().__init__(session, engine)
        self.thread = threading.get_ident()
        self.busy = False  # whether a part runs
        self.stepping = 0
        self.name, self.inputs, self.outs = "", [], []
        self.optimisers: dict[int, weakref.ref] = {}
        self.patches = Patches(self)
        self.failed: dict[type, Exception] = {}  # parts that could not go on
        self.parts: dict[type, Part] = {kind: kind(self) for kind in PARTS}
        self.listeners = {
            event: [getattr(part, event) for part in self.parts.values() if _overrides(part, event)] for event in EVENTS
        }
        self._of_name: dict[str, tuple] = {}  # a call's name -> who wants it
        self._tensor = engine.module.Tensor
        self._recording = engine.module.is_grad_enabled
        self._is_wrapped = getattr(getattr(getattr(engine.module, "_C", None), "_functorch", None), WRAPPED, None)
        for event in vars(Watcher):
            if self.listeners.get(event) and event != "called":
                setattr(self, event, self._passing_on(event))

    @property
    def flow(self) -> Flow:
        """What each tensor was computed from."""
        return self.parts[Flow]

    def _passing_on(self, event: str):
        listeners = self.listeners[event]

        def pass_on(*args):
            if not self.busy:
                self._call_listeners(listeners, args)

        return pass_on

    def _call_listeners(self, listeners, args: tuple) -> None:
        self.busy = True
        try:
            for listener in tuple(listeners):
                try:
                    listener(*args)
                except Exception as problem:
                    self._give_up(listener.__self__, problem)
        finally:
            self.busy = False

    def _give_up(self, part: Part, problem: Exception) -> None:
        self.failed[type(part)] = problem
        self._of_name.clear()
        for listeners in self.listeners.values():
            listeners[:] = [one for one in listeners if one.__self__ is not part]

    def called(self, call: Call) -> None:
        """Pass a call to the listeners that want it; nothing of what an optimiser computes in its step."""
        if self.busy or call.name in READS_ONLY or (self.stepping and not self._recording()):
            return
        self.inputs, self.outs = self.tensors_in(call.args), self.tensors_in(call.out)
        if call.kwargs:
            self.inputs += self.tensors_in(call.kwargs)
        known = self._of_name.get(call.name)
        if known is None:
            known = self._of_name[call.name] = plain(call.name), self._who_wants(call.name)
        self.name = known[0]
        self._call_listeners(known[1], (call,))
        self.inputs, self.outs = [], []

    def _who_wants(self, name: str) -> tuple:
        either = {name, plain(name)}
        return tuple(
            one for one in self.listeners["called"] if one.__self__.calls is None or either & one.__self__.calls
        )

    def tensors_in(self, value, depth: int = DEPTH) -> list:
        """Return the plain tensors in a value: itself, or in lists, tuples and dicts."""
        if isinstance(value, self._tensor):
            return [value] if self.is_plain(value) else []
        if depth == 0 or not isinstance(value, (list, tuple, dict)):
            return []
        found = []
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, self._tensor):
                if self.is_plain(one):
                    found.append(one)
            elif isinstance(one, (list, tuple, dict)):
                found += self.tensors_in(one, depth - 1)
        return found

    def is_plain(self, tensor) -> bool:
        """Return whether a tensor has a shape and values in memory: no sparse, nested, meta, lazy one, no vmap's."""
        if self.flow.known(tensor) is not None:
            return True
        if getattr(tensor, "is_nested", False) or getattr(tensor, "is_meta", False):
            return False
        if getattr(tensor, "is_quantized", False) or getattr(tensor, "is_sparse", False):
            return False
        if self._is_wrapped is not None and self._is_wrapped(tensor):
            return False
        return not type(tensor).__name__.startswith("Uninitialized")

    def notify(self, event: str, *args) -> None:
        """Pass one of a part's own events on, unless it comes from another thread or from a part."""
        if not self.busy and threading.get_ident() == self.thread:
            self._call_listeners(self.listeners[event], args)

    def know(self, optimizer) -> None:
        """Remember an optimiser, without keeping it alive."""
        if id(optimizer) not in self.optimisers or self.optimisers[id(optimizer)]() is not optimizer:
            self.optimisers[id(optimizer)] = weakref.ref(optimizer)

    def optimised(self) -> dict[int, object]:
        """Return the parameters of the optimisers that the program made or used and still has, by their ids."""
        living = [one for reference in self.optimisers.values() if (one := reference()) is not None]
        return {id(param): param for one in living for group in one.param_groups for param in group["params"]}

    def begin(self) -> None:
        """Patch optimisers, `.grad` and backward(), and let the parts begin."""
        self.patches.begin()
        for part in self.parts.values():
            part.begin()

    def end(self, problem: BaseException | None) -> None:
        """Let the parts look at what is left."""
        self.busy = True
        self.patches.end()
        for kind, part in self.parts.items():
            if kind not in self.failed and Flow not in self.failed:
                self._end(kind, part, problem)
        for kind, failure in self.failed.items():
            warnings.warn(f"the doctor's {kind.__name__} could not go on, and found no more: {failure!r}", stacklevel=2)

    def _end(self, kind: type, part: Part, problem: BaseException | None) -> None:
        try:
            part.end(problem)
        except Exception as failure:
            self.failed[kind] = failure


def _overrides(part: Part, event: str) -> bool:
    inherited = getattr(Part, event, None)
    return getattr(type(part), event, None) not in (None, inherited)
