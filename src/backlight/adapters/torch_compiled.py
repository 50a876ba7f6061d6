"""Lets compiled and traced code of PyTorch run as it does without the lens.

NOTE [Compiled regions]
torch.compile and torch.jit.trace trace whatever runs, the lens' hooks and stand-ins included: they fail at them, or
compile them in. So the lens is paused (`pause` in adapters/torch_watching.py) while such code runs:

* from the moment before PyTorch begins to evaluate frames (`_maybe_set_eval_frame`, called by the function that
  torch.compile returns) until that function ends; a call of a compiled module, as a whole;
* while a node that AOTAutograd compiled runs in a backward;
* while torch.jit traces, and while `torch._dynamo` is imported, which notes what PyTorch's functions are.

What goes in and comes out is reported as one call, and a compiled module as one module. Nodes, hooks and gradients of
the parameters behind it are those of any graph. Another thread that is watched reports nothing meanwhile.
"""

import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from types import FrameType, ModuleType
from typing import Any

from backlight.dispatch.observers import COMPILED

COMPILER, FRAMES = "torch._dynamo", "torch._dynamo.eval_frame"
ENTRY = "compile_wrapper"  # the function in torch/_dynamo/eval_frame.py that torch.compile returns
TRACERS = ("trace", "trace_module", "script")
COMPILED_NODES = "CompiledFunction"


class Region:
    """A call of something compiled: the lens is paused inside, and what went in and came out is reported after it."""

    def __init__(self, hub, name: str, module: Any = None):
        self.hub, self.name, self.module = hub, name, module

    def __enter__(self):
        hub = self.hub
        if self.module is not None:
            hub.enter(self.module)
        self.before = hub.torch._C._autograd._get_sequence_nr()
        hub.pause()
        return self

    def __exit__(self, *problem) -> None:
        self.hub.resume()

    def report(self, args: tuple, kwargs: dict, out: Any, frame: FrameType) -> None:
        """Report the call, after the region; `out` is None if it failed."""
        hub = self.hub
        if not hub.pauses:
            hub.report(f"{COMPILED}{self.name}", args, kwargs, out, self.before, frame)
            hub.notify("compiled", self.name, out)
        if self.module is not None:
            hub.leave(self.module, out)


def install(torch: ModuleType, current_hub: Callable, undo: list) -> None:
    """Pause the lens where PyTorch compiles and traces, until what is added to `undo` is called."""
    _patch_tracers(torch.jit, current_hub, undo)
    if FRAMES in sys.modules:
        _patch_module(sys.modules[FRAMES].OptimizedModule, current_hub, undo)


def install_entry(current_hub: Callable, undo: list) -> None:
    """Do the same where compiled code begins and ends, which has to stay while the lens is paused."""
    frames = sys.modules.get(FRAMES)
    if frames is not None and frames._maybe_set_eval_frame.__module__ != __name__:
        _patch_frames(frames, current_hub, undo)
    elif COMPILER not in sys.modules and not any(isinstance(one, _Finder) for one in sys.meta_path):
        finder = _Finder(current_hub)
        sys.meta_path.insert(0, finder)
        undo.append(finder.remove)


class _Finder(MetaPathFinder):
    """Finds `torch._dynamo`, and has it imported while the lens is paused."""

    def __init__(self, current_hub: Callable):
        self.current_hub = current_hub

    def remove(self) -> None:
        """Find it no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path=None, target=None):
        """Return how Python imports it, with the lens paused."""
        if fullname != COMPILER:
            return None
        spec, hub = PathFinder.find_spec(fullname, path, target), self.current_hub()
        if spec is None or spec.loader is None or hub is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            hub.pause()
            try:
                execute(module)
            finally:
                hub.resume()

        spec.loader.exec_module = exec_module
        return spec


def _patch_tracers(jit: ModuleType, current_hub: Callable, undo: list) -> None:
    for name in TRACERS:
        original = getattr(jit, name)
        undo.append(lambda name=name, original=original: setattr(jit, name, original))
        setattr(jit, name, _untouched(original, name, current_hub))


def _untouched(original: Callable, name: str, current_hub: Callable) -> Callable:
    """Return a function that runs while the lens is paused."""

    @wraps(original)
    def call(*args, **kwargs):
        hub = current_hub()
        if hub is None:
            return original(*args, **kwargs)
        with Region(hub, name):
            return original(*args, **kwargs)

    return call


def _patch_frames(frames: ModuleType, current_hub: Callable, undo: list) -> None:
    set_frames = frames._maybe_set_eval_frame
    regions: dict[FrameType, Region] = {}  # of the calls that run

    def maybe_set_eval_frame(callback):
        caller = sys._getframe(1)
        if caller.f_code.co_name != ENTRY:
            return set_frames(callback)
        if caller in regions:
            try:
                return set_frames(callback)
            finally:
                _end(regions.pop(caller), caller)
        hub = current_hub() if callable(callback) else None
        if hub is not None:
            regions[caller] = _region_of(hub, caller)
        return set_frames(callback)

    undo.append(lambda: setattr(frames, "_maybe_set_eval_frame", set_frames))
    frames._maybe_set_eval_frame = maybe_set_eval_frame


def _patch_module(kind: type, current_hub: Callable, undo: list) -> None:
    """Have calls of compiled modules be regions, as a whole."""
    call_module = kind.__call__

    @wraps(call_module)
    def call(module, *args, **kwargs):
        hub = current_hub()
        if hub is None:
            return call_module(module, *args, **kwargs)
        region, out = Region(hub, type(module._orig_mod).__name__, module._orig_mod), None
        try:
            with region:
                out = call_module(module, *args, **kwargs)
            return out
        finally:
            region.report(args, kwargs, out, sys._getframe(1))

    undo.append(lambda: setattr(kind, "__call__", call_module))
    kind.__call__ = call


def _region_of(hub, caller: FrameType) -> Region:
    """Begin the region of a compiled function's call, in whose frame PyTorch is about to evaluate frames."""
    function = caller.f_locals.get("fn")
    owner = getattr(function, "__self__", None)
    module = owner if isinstance(owner, hub.torch.nn.Module) else None
    name = getattr(function, "__name__", "compiled") if module is None else type(module).__name__
    region = Region(hub, name, module)
    region.__enter__()
    return region


def _end(region: Region, caller: FrameType) -> None:
    """End it, and report what the frame was called with and returns."""
    region.__exit__()
    names = caller.f_locals
    region.report(names.get("args", ()), names.get("kwargs", {}), names.get("result"), caller)


def undo_all(undo: list) -> None:
    """Call what takes back what was set up, the last first."""
    while undo:
        undo.pop()()


def take_off(mode: Any) -> int | None:
    """Take a mode off PyTorch's stack; return how many were above it, None if it was not there."""
    above, overrides = [], sys.modules["torch.overrides"]
    while overrides._len_torch_function_stack():
        top = overrides._pop_mode()
        if top is mode:
            break
        above.append(top)
    else:
        top = None
    for other in reversed(above):
        overrides._push_mode(other)
    return len(above) if top is mode else None


def put_on(mode: Any, number: int | None) -> None:
    """Put a mode back on the stack, below as many as were above it."""
    if number is None:
        return
    overrides = sys.modules["torch.overrides"]
    above = [overrides._pop_mode() for _ in range(min(number, overrides._len_torch_function_stack()))]
    for one in (mode, *reversed(above)):
        overrides._push_mode(one)
