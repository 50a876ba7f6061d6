"""Reports to watchers what a thread does with PyTorch (NOTE [Watching] in dispatch/observers.py).

NOTE [How PyTorch is watched]
* Calls, and the user's lines: a TorchFunctionMode. It sees the outermost function of PyTorch that the user called. New
  nodes in the graph of what it returned get the line of the call, in their `metadata`: those whose sequence number is
  not below what the counter stood at before the call.
* In-place writes: `_version` of each tensor among the arguments, before and after.
* A user's `autograd.Function` is no function that a mode sees: `Function.apply` is replaced while a watcher is active.
* Modules: global forward hooks. Full backward hooks would make in-place ops on a module's output fail.
* Compiled code is left alone: see NOTE [Compiled regions] in adapters/torch_compiled.py.
* Backward: see NOTE [How a backward of PyTorch is watched] in adapters/torch_backward.py.
saved_tensors_hooks are never installed: they switch PyTorch's own check of in-place writes off.
"""

import sys
import weakref
from types import FrameType

from backlight.adapters.torch_backward import WatchedRun
from backlight.adapters.torch_calls import mode_class, report, user_frame
from backlight.adapters.torch_compiled import install, install_entry, put_on, take_off, undo_all
from backlight.adapters.torch_warnings import show_at_users_lines
from backlight.dispatch.observation import EVENTS, wants
from backlight.dispatch.observers import Watcher
from backlight.system.fork_safety import fork_safe_lock

_blocks_open = 0
_patching = fork_safe_lock()


class Hub:
    """The watchers of one thread, by the events that they want, and where the program is.

    `mode.silent` is set while a watcher runs: what it does itself is not reported.
    """

    def __init__(self, engine):
        self.engine = engine
        self.torch = engine.module
        self.watchers: list[Watcher] = []
        self.listeners: dict[str, tuple] = dict.fromkeys(EVENTS, ())
        self.hearing_calls: list[Watcher] = []
        self.pauses = 0  # compiled regions that run, one inside the other
        self.above: int | None = None  # modes above this one, when it was taken off the stack
        self.runs = 0
        self.modules: list[tuple] = []  # (module, path) of those that run, the outermost first
        self.paths: dict[int, tuple] = {}  # id of a module inside the outermost one -> (path, weak reference)
        self.retained: list[weakref.ref] = []  # tensors on which retain_grad() was called
        self.mode = mode_class(self.torch)(self)

    def change(self, watchers: list[Watcher]) -> None:
        """Have these watchers, and no others."""
        self.watchers = watchers
        for event in EVENTS:
            self.listeners[event] = tuple([getattr(one, event) for one in watchers if wants(one, event)])
        self.hearing_calls = [one for one in watchers if wants(one, "called")]
        self.mode.hears_writes = bool(self.listeners["wrote"])
        self.update_wanted()

    def update_wanted(self) -> None:
        """Set whether a listener wants all calls, and whether also those that are made while recording is off."""
        hears_all = hears_unrecorded = False
        for one in self.hearing_calls:
            if not one.only_nodes:
                hears_all = True
                hears_unrecorded = hears_unrecorded or not one.only_recorded
        self.mode.hears_all, self.mode.hears_unrecorded = hears_all, hears_unrecorded

    def notify(self, event: str, *args) -> None:
        """Call those who want an event."""
        listeners, mode = self.listeners[event], self.mode
        if not listeners or mode.silent:
            return
        mode.silent = True
        try:
            for listener in listeners:
                listener(*args)
        finally:
            mode.silent = False

    def pause(self) -> None:
        """Take away all that the lens has put into PyTorch, until `resume` (NOTE [Compiled regions])."""
        self.pauses += 1
        if self.pauses == 1:
            self.above = take_off(self.mode)
            with _patching:
                undo_all(_undo)
            self.notify("paused")

    def resume(self) -> None:
        """Put it back."""
        self.pauses -= 1
        if self.pauses == 0:
            self.notify("resumed")
            with _patching:
                if _blocks_open and not _undo:
                    _install(self.engine)
            put_on(self.mode, self.above)

    def report(self, name: str, args: tuple, kwargs: dict, out, before: int, frame: FrameType) -> None:
        """Report a call, as `report` does."""
        report(self, name, args, kwargs, out, before, frame)

    def enter(self, module) -> None:
        """A module's forward begins."""
        if self.mode.silent:
            return
        path = self._path_of(module) if self.modules else ""
        self.modules.append((module, path))
        self.notify("entered", module, path)

    def leave(self, module, out) -> None:
        """A module's forward ends, and with it those inside it whose end was not reported."""
        if self.mode.silent:
            return
        while self.modules:
            last, path = self.modules.pop()
            if last is module and self.listeners["compiled"] and isinstance(module, self.torch.jit.ScriptModule):
                self.notify("compiled", module.original_name, out)
            if last is module:
                self.notify("left", module, path, out)
                return

    def _path_of(self, module) -> str:
        """Return a module's dotted name inside the outermost one; what that does not know is named by its class."""
        known = self.paths.get(id(module))
        if known is None or known[1]() is not module:
            outermost = self.modules[0][0]
            self.paths = {id(one): (path, weakref.ref(one)) for path, one in outermost.named_modules()}
            known = self.paths.get(id(module))
        if known is not None:
            return known[0]
        return f"{self.modules[-1][1]}.({type(module).__name__})".lstrip(".")


class Block:
    """A `with` block in which a watcher gets this thread's events; blocks may be nested."""

    def __init__(self, hub: Hub, watcher: Watcher):
        self.hub = hub
        self.watcher = watcher

    def __enter__(self):
        hub = self.hub
        if not hub.watchers:
            _open(hub)
        hub.change([*hub.watchers, self.watcher])
        return self.watcher

    def __exit__(self, *problem):
        hub = self.hub
        hub.change([one for one in hub.watchers if one is not self.watcher])
        if not hub.watchers:
            _close(hub)


def _open(hub: Hub) -> None:
    """Begin to watch a thread: what is not of one thread is set up by the first block of all."""
    global _blocks_open
    with _patching:
        if _blocks_open == 0:
            _install(hub.engine)
        _blocks_open += 1
    hub.runs = 0
    hub.modules.clear()
    hub.mode.__enter__()


def _close(hub: Hub) -> None:
    global _blocks_open
    hub.mode.__exit__(None, None, None)
    hub.paths, hub.retained = {}, []
    hub.modules.clear()
    with _patching:
        _blocks_open -= 1
        if _blocks_open == 0:
            undo_all(_undo)
            undo_all(_undo_entry)


_undo: list = []  # what takes back what was set up
_undo_entry: list = []  # the same of what stays while the lens is paused


def _install(engine) -> None:
    """Put what a mode does not see under watch, in all threads; those without watchers notice nothing."""

    torch, hubs = engine.module, engine.hubs

    def current_hub() -> Hub | None:
        hub = getattr(hubs, "hub", None)
        return hub if hub is not None and hub.watchers and not hub.mode.silent and not hub.pauses else None

    def entered(module, arguments):
        hub = current_hub()
        if hub is not None:
            hub.enter(module)

    def left(module, arguments, out):
        hub = current_hub()
        if hub is not None:
            hub.leave(module, out)

    _undo.append(show_at_users_lines(torch, user_frame))
    modules = torch.nn.modules.module
    _undo.append(modules.register_module_forward_pre_hook(entered).remove)
    _undo.append(modules.register_module_forward_hook(left, always_call=True).remove)
    _patch_backward(engine, current_hub)
    _patch_apply(torch.autograd.Function, current_hub)
    install(torch, current_hub, _undo)
    install_entry(current_hub, _undo_entry)


def _patch_backward(engine, current_hub) -> None:
    torch = engine.module
    engines_own = torch.autograd.graph._engine_run_backward

    def run_backward(outputs, gradients, keep_graph, create_graph, inputs, *rest, accumulate_grad, **options):
        hub = current_hub()
        given = (outputs, gradients, keep_graph, create_graph, inputs, *rest)
        options["accumulate_grad"] = accumulate_grad
        if hub is None and not getattr(getattr(engine.hubs, "hub", None), "watchers", None):
            with _patching:
                engine.backwards_elsewhere += 1
        if hub is None or not _have_graphs(hub.engine, outputs):
            return engines_own(*given, **options)
        frame = user_frame(sys._getframe(1), hub.torch)
        run = WatchedRun(hub, given, accumulate_grad, frame)
        with run:
            return engines_own(*given, **options)

    for module in (torch.autograd, torch.autograd.graph):
        _undo.append(lambda module=module: setattr(module, "_engine_run_backward", engines_own))
        module._engine_run_backward = run_backward


def _have_graphs(engine, outputs) -> bool:
    """Return whether a backward can start from all outputs: of the others PyTorch says what is wrong."""
    return not any(engine.is_tensor(one) and engine.node_of(one) is None for one in outputs)


def _patch_apply(function_class: type, current_hub) -> None:
    engines_own = vars(function_class)["apply"]

    def apply(cls, *args, **kwargs):
        hub = current_hub()
        if hub is None:
            return engines_own.__func__(cls, *args, **kwargs)
        before = hub.torch._C._autograd._get_sequence_nr()
        out = engines_own.__func__(cls, *args, **kwargs)
        report(hub, cls.__name__, args, kwargs, out, before, sys._getframe(1))
        return out

    _undo.append(lambda: setattr(function_class, "apply", engines_own))
    function_class.apply = classmethod(apply)
