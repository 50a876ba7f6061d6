"""What no engine says: one detector that tells its parts, each of which knows one kind of silent mistake.

NOTE [One detector, many parts]
Parts build on one another (all on `Flow`, which knows what each tensor was computed from), so that they must be told in
order. `Silent` is what the session makes of each engine; it passes every event on to those parts that override it, adds
the events of optimisers, of reading `.grad` and of calling backward(), and is deaf while it reads values itself.
"""

import sys
import threading
import warnings
import weakref
from functools import wraps

from backlight.graph.observers import Watcher
from backlight.lens.doctor.accumulation import Accumulation
from backlight.lens.doctor.cut_off import CutOff
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.flow import Flow
from backlight.lens.doctor.grad_modes import GradModes
from backlight.lens.doctor.losses import Losses
from backlight.lens.doctor.memory_writes import MemoryWrites
from backlight.lens.doctor.module_slips import ModuleSlips
from backlight.lens.doctor.non_finite import NonFinite
from backlight.lens.doctor.optimisers import Optimisers
from backlight.lens.doctor.part import Part
from backlight.lens.doctor.places import is_users, place_of_frame
from backlight.lens.doctor.rebinding import Rebinding
from backlight.lens.doctor.rebuilt import Rebuilt
from backlight.lens.doctor.saved_hooks import SavedHooks
from backlight.lens.doctor.totals import Totals
from backlight.lens.doctor.trends import Trends

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
)
WRAPPED = "is_functorch_wrapped_tensor"
EVENTS = tuple(name for name in {**vars(Watcher), **vars(Part)} if not name.startswith("_"))


class _WatchedProperty(property):
    """A property that says its name: PyTorch hands what stands in the class to a TorchFunctionMode."""

    __name__ = "grad"


class Silent(Detector):
    """See NOTE [One detector, many parts]."""

    def __init__(self, session, engine):
        super().__init__(session, engine)
        self.thread = threading.get_ident()
        self.busy = False  # whether a part runs
        self.optimisers: dict[int, weakref.ref] = {}
        self.starting = None  # what backward() is being called on
        self.handles: list = []  # of PyTorch's hooks
        self.parts: dict[type, Part] = {}
        for kind in PARTS:
            self.parts[kind] = kind(self)
        self.listeners = {
            event: [getattr(part, event) for part in self.parts.values() if _overrides(part, event)] for event in EVENTS
        }
        self.failed: dict[type, Exception] = {}  # parts that could not go on
        self._is_wrapped = getattr(getattr(getattr(engine.module, "_C", None), "_functorch", None), WRAPPED, None)
        for event in vars(Watcher):
            if self.listeners.get(event):
                setattr(self, event, self._passing_on(event))

    @property
    def flow(self) -> Flow:
        """What each tensor was computed from."""
        return self.parts[Flow]

    def _passing_on(self, event: str):
        listeners = self.listeners[event]

        def pass_on(*told):
            if self.busy:
                return
            self.busy = True
            try:
                for listener in tuple(listeners):
                    try:
                        listener(*told)
                    except Exception as problem:
                        self._give_up(listener.__self__, problem)
            finally:
                self.busy = False

        return pass_on

    def _give_up(self, part: Part, problem: Exception) -> None:
        """Tell a part nothing more: what goes wrong in it must not stop the user's program."""
        self.failed[type(part)] = problem
        for listeners in self.listeners.values():
            listeners[:] = [one for one in listeners if one.__self__ is not part]

    def is_plain(self, tensor) -> bool:
        """Tell whether a tensor has a shape and values in memory: no sparse, nested, meta, lazy one, no vmap's."""
        if getattr(tensor, "is_nested", False) or getattr(tensor, "is_meta", False):
            return False
        if getattr(tensor, "is_quantized", False) or getattr(tensor, "is_sparse", False):
            return False
        if self._is_wrapped is not None and self._is_wrapped(tensor):
            return False
        return not type(tensor).__name__.startswith("Uninitialized")

    def tell(self, event: str, *told) -> None:
        """Pass one of a part's own events on, unless it comes from another thread or from a part."""
        if self.busy or threading.get_ident() != self.thread:
            return
        self._passing_on(event)(*told)

    def begin(self) -> None:
        """Patch optimisers, `.grad` and backward(), and let the parts begin."""
        torch = self.engine.module
        self.session.patch(torch.Tensor, "grad", self._watched_grad)
        self.session.patch(torch.Tensor, "backward", self._watched_backward)
        optimizer = torch.optim.Optimizer
        self.session.patch(optimizer, "__init__", self._watched_construction)
        self.session.patch(optimizer, "zero_grad", self._watched_clearing)
        self.session.patch(torch.nn.Module, "__setattr__", self._watched_assignment)
        self._watch_steps(optimizer)
        for part in self.parts.values():
            part.begin()

    def end(self, problem: BaseException | None) -> None:
        """Let the parts look at what is left."""
        self.busy = True
        for handle in self.handles:
            handle.remove()
        for kind, part in self.parts.items():
            if kind not in self.failed and Flow not in self.failed:
                part.end(problem)
        for kind, failure in self.failed.items():
            warnings.warn(f"the doctor's {kind.__name__} could not go on, and found no more: {failure!r}", stacklevel=2)

    def _watched_grad(self, engines_own):
        silent = self

        def grad(tensor):
            found = engines_own.__get__(tensor)
            if not silent.busy:
                frame = sys._getframe(1)
                if is_users(frame.f_code.co_filename):
                    silent.tell("read_grad", tensor, found, frame)
            return found

        return _WatchedProperty(grad, engines_own.__set__, engines_own.__delete__, engines_own.__doc__)

    def _watched_backward(self, engines_own):
        silent = self

        @wraps(engines_own)
        def backward(tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
            given = (tensor, gradient, retain_graph, create_graph, inputs)
            if silent.starting is tensor:  # PyTorch has handed the call to a TorchFunctionMode, which calls again
                return engines_own(*given)
            keep = bool(create_graph if retain_graph is None else retain_graph)
            silent.tell("going_back", tensor, keep, place_of_frame(sys._getframe(1)))
            before, silent.starting = silent.starting, tensor
            try:
                return engines_own(*given)
            finally:
                silent.starting = before

        return backward

    def _watched_assignment(self, engines_own):
        silent = self

        @wraps(engines_own)
        def set_attribute(module, name, value):
            if silent.busy:
                engines_own(module, name, value)
                return
            old = _registered(module, name)
            engines_own(module, name, value)
            silent.tell("assigned", module, name, value, old, sys._getframe(1))

        return set_attribute

    def _watched_construction(self, engines_own):
        silent = self

        @wraps(engines_own)
        def construct(optimizer, *args, **kwargs):
            engines_own(optimizer, *args, **kwargs)
            silent.know(optimizer)

        return construct

    def know(self, optimizer) -> None:
        """Remember an optimiser, without keeping it alive."""
        if id(optimizer) not in self.optimisers or self.optimisers[id(optimizer)]() is not optimizer:
            self.optimisers[id(optimizer)] = weakref.ref(optimizer)

    def living_optimisers(self) -> list:
        """Return the optimisers that the program made or used and still has."""
        return [one for reference in self.optimisers.values() if (one := reference()) is not None]

    def _watched_clearing(self, engines_own):
        silent = self

        @wraps(engines_own)
        def zero_grad(optimizer, *args, **kwargs):
            out = engines_own(optimizer, *args, **kwargs)
            silent.tell("cleared", optimizer, params_of(optimizer), place_of_frame(sys._getframe(1)))
            return out

        return zero_grad

    def _watch_steps(self, optimizer: type) -> None:
        """Hear of steps: by PyTorch's hooks for all optimisers, or by patching `step` of those that are ours."""
        module = sys.modules[optimizer.__module__]
        if hasattr(module, "register_optimizer_step_pre_hook"):
            before = module.register_optimizer_step_pre_hook(lambda one, *rest: self._step(one, "stepping"))
            after = module.register_optimizer_step_post_hook(lambda one, *rest: self._step(one, "stepped"))
            self.handles += [before, after]
            return
        for kind in _all_kinds(optimizer):
            if "step" in vars(kind):
                self.session.patch(kind, "step", self._watched_step)

    def _watched_step(self, engines_own):
        silent = self

        @wraps(engines_own)
        def step(optimizer, *args, **kwargs):
            silent._step(optimizer, "stepping")
            out = engines_own(optimizer, *args, **kwargs)
            silent._step(optimizer, "stepped")
            return out

        return step

    def _step(self, optimizer, event: str) -> None:
        self.know(optimizer)
        self.tell(event, optimizer, params_of(optimizer), place_of_frame(sys._getframe(1)))


def params_of(optimizer) -> list:
    """Return the parameters of all groups."""
    return [param for group in optimizer.param_groups for param in group["params"]]


def _registered(module, name: str):
    """Return the parameter or module that has a name in a module."""
    state = vars(module)
    for table in (state.get("_parameters"), state.get("_modules")):
        if isinstance(table, dict) and name in table:
            return table[name]
    return None


def _overrides(part: Part, event: str) -> bool:
    inherited = getattr(Part, event, None)
    return getattr(type(part), event, None) not in (None, inherited)


def _all_kinds(kind: type) -> list[type]:
    return [kind, *(below for one in kind.__subclasses__() for below in _all_kinds(one))]
