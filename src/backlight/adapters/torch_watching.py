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

import os
import sys
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import NamedTuple

from backlight.adapters.torch_backward import HOOKS, WatchedRun
from backlight.adapters.torch_compiled import install, install_entry, put_on, take_off, undo_all
from backlight.adapters.torch_warnings import show_at_users_lines
from backlight.dispatch.observation import EVENTS, TO_NUMBERS, wants
from backlight.dispatch.observers import Call, Watcher
from backlight.engine.provenance import GENERATED, PACKAGE
from backlight.system.fork_safety import fork_safe_lock

LINE = "backlight.line"
_blocks_open = 0
_patching = fork_safe_lock()


class Hub:
    """The watchers of one thread, by the events that they want, and where the program is.

    `silent` is set while a watcher runs: what it does itself is not reported.
    """

    def __init__(self, engine):
        self.engine = engine
        self.torch = engine.module
        self.watchers: list[Watcher] = []
        self.listeners: dict[str, tuple] = dict.fromkeys(EVENTS, ())
        self.hearing_calls: list[Watcher] = []
        self.silent = False
        self.pauses = 0  # compiled regions that run, one inside the other
        self.above: int | None = None  # modes above this one, when it was taken off the stack
        self.runs = 0
        self.modules: list[tuple] = []  # (module, path) of those that run, the outermost first
        self.paths: dict[int, tuple] = {}  # id of a module inside the outermost one -> (path, weak reference)
        self.retained: list[weakref.ref] = []  # tensors on which retain_grad() was called
        self.mode = _mode_class(self.torch)(self)

    def change(self, watchers: list[Watcher]) -> None:
        """Have these watchers, and no others."""
        self.watchers = watchers
        for event in EVENTS:
            self.listeners[event] = tuple(getattr(one, event) for one in watchers if wants(one, event))
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
        listeners = self.listeners[event]
        if not listeners or self.silent:
            return
        self.silent = True
        try:
            for listener in listeners:
                listener(*args)
        finally:
            self.silent = False

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
        if self.silent:
            return
        path = self._path_of(module) if self.modules else ""
        self.modules.append((module, path))
        self.notify("entered", module, path)

    def leave(self, module, out) -> None:
        """A module's forward ends, and with it those inside it whose end was not reported."""
        if self.silent:
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


def _note_hook(hub: Hub, tensor) -> None:
    """Note the dict that holds a tensor's hooks on its node, which alone is there in backward."""
    node = tensor.grad_fn
    if node is not None:
        node.metadata.setdefault(HOOKS, {})[tensor.output_nr] = tensor._backward_hooks


def _note_retained(hub: Hub, tensor) -> None:
    if tensor.grad_fn is not None:
        hub.retained.append(weakref.ref(tensor))


NOTED = {"register_hook": _note_hook, "retain_grad": _note_retained}


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
        return hub if hub is not None and hub.watchers and not hub.silent and not hub.pauses else None

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


@cache
def _mode_class(torch: ModuleType) -> type:
    """Return the mode that reports the calls of functions (PyTorch's class can only be named once it is loaded)."""
    tensor_class = torch.Tensor
    sequence_number, records = torch._C._autograd._get_sequence_nr, torch.is_grad_enabled

    class Calls(torch.overrides.TorchFunctionMode):
        """Reports calls to a hub."""

        def __init__(self, hub: Hub):
            super().__init__()
            self.hub = hub
            self.hears_writes = self.hears_all = self.hears_unrecorded = False

        def __torch_function__(self, function, types, args=(), kwargs=None):
            hub = self.hub
            if hub.silent:
                return function(*args, **kwargs) if kwargs else function(*args)
            kind = KINDS.get(function) or kind_of(function)
            if kind.plain or (kind.is_grad and not (self.hears_all and (self.hears_unrecorded or records()))):
                return function(*args)
            versions = _NO_VERSIONS
            if self.hears_writes and (kind.writes or (kwargs and ("out" in kwargs or kwargs.get("inplace")))):
                versions = _versions(args, kwargs, tensor_class)
            before = sequence_number()
            out = function(*args, **kwargs) if kwargs else function(*args)
            made = sequence_number() != before or kind.noted is not None
            made = made or (self.hears_all and (self.hears_unrecorded or records()))
            if not made and (kind.to_number or isinstance(out, tensor_class)):
                made = _leaves_graph(kind, args, kwargs, out, tensor_class)
            if made or versions:
                frame = user_frame(sys._getframe(1), torch)
                for tensor, version in versions:
                    if tensor._version != version:
                        hub.notify("wrote", tensor, kind.name, frame.f_code, frame.f_lasti)
                if not made:
                    return out
                if kind.noted is not None:
                    kind.noted(hub, args[0])
                if not kind.reads or isinstance(out, tensor_class):
                    report(hub, kind.name, args, kwargs or {}, out, before, frame)
            return out

    return Calls


class Kind(NamedTuple):
    """What is known of a function of PyTorch: its name, whether it reads an attribute, whether it may write."""

    name: str
    reads: bool
    writes: bool
    noted: Callable | None
    to_number: bool = False
    plain: bool = False  # it reads an attribute that is no tensor
    is_grad: bool = False  # it reads `.grad`, which optimizers do often and which is no way out of the graph


KINDS: dict[Callable, Kind] = {}
PLAIN = {
    *("device", "dtype", "grad_fn", "is_cpu", "is_cuda", "is_leaf", "is_mps", "is_nested", "is_quantized", "is_sparse"),
    *("itemsize", "layout", "nbytes", "ndim", "output_nr", "requires_grad", "retains_grad", "shape", "_version"),
}
_NO_VERSIONS: tuple = ()
# Without an underscore at its end, and yet it may write: an argument `inplace` can stand without its name, norms count
# batches, embeddings are scaled to `max_norm`.
MAY_WRITE = {
    *("relu", "relu6", "elu", "selu", "celu", "silu", "mish", "rrelu", "leaky_relu", "threshold", "hardtanh"),
    *("hardswish", "hardsigmoid", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
    *("feature_alpha_dropout", "feature_dropout", "batch_norm", "instance_norm", "embedding", "embedding_bag"),
}


def kind_of(function: Callable) -> Kind:
    """Return what is known of a function. One that is neither PyTorch's builtin nor plain Python may always write."""
    name = getattr(function, "__name__", "") or type(function).__name__
    if name in ("__get__", "__set__"):
        attribute, reads = function.__self__.__name__, name == "__get__"
        plain, is_grad = reads and attribute in PLAIN, reads and attribute == "grad"
        kind = Kind(attribute, reads, False, None, plain=plain, is_grad=is_grad)
    else:
        plain = isinstance(function, (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType))
        dunder = name.startswith(("__i", "__set", "__del"))
        writes = not plain or dunder or name in MAY_WRITE or (name.endswith("_") and not name.endswith("__"))
        kind = Kind(name, False, writes, NOTED.get(name), name in TO_NUMBERS)
    KINDS[function] = kind
    return kind


def _leaves_graph(kind: Kind, args: tuple, kwargs: dict | None, out, tensor_class: type) -> bool:
    """Return whether a call read a tensor that has a graph and returned what has none: `item()`, an op in no_grad()."""
    if not kind.to_number and not (isinstance(out, tensor_class) and not out.requires_grad):
        return False
    return any(one.requires_grad for one in tensors_in(args, tensor_class)) or (
        bool(kwargs) and any(one.requires_grad for one in tensors_in(kwargs, tensor_class))
    )


def report(hub: Hub, name: str, args: tuple, kwargs: dict, out, before: int, frame: FrameType) -> None:
    """Report a call, and write its line into the nodes that it made: those numbered from `before` on."""
    torch = hub.torch
    frame = user_frame(frame, torch)
    place = frame.f_code, frame.f_lasti
    try:
        stack = [one.grad_fn for one in tensors_in(out, torch.Tensor) if one.requires_grad and one.grad_fn is not None]
    except RuntimeError:  # a view made under no_grad() and written to since: PyTorch refuses to tell what it comes from
        return
    leaf_class = hub.engine.leaf_class
    while stack:
        node = stack.pop()
        if node.__class__ is leaf_class or node._sequence_nr() < before:
            continue
        metadata = node.metadata
        if LINE not in metadata:
            metadata[LINE] = place
            stack.extend(inner for inner, _ in node.next_functions if inner is not None)
    hub.notify("called", Call(name, args, kwargs, out, *place))
    hub.update_wanted()


def tensors_in(value, tensor_class: type) -> list:
    """Return the tensors in what a function took or returned: itself, or in tuples, lists and dicts."""
    if isinstance(value, tensor_class):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [one for inner in value for one in tensors_in(inner, tensor_class)]


def _versions(args: tuple, kwargs: dict | None, tensor_class: type) -> list[tuple]:
    """Return each tensor that a call might write to, with its version."""
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, (tensor_class, list, tuple)):
            found += [(one, one._version) for one in tensors_in(value, tensor_class) if _counts_writes(one)]
    return found


def _counts_writes(tensor) -> bool:
    """Return whether a tensor has a version: one made in inference mode has none, a lazy one cannot give it."""
    return not tensor.__class__.__name__.startswith("Uninitialized") and not tensor.is_inference()


@cache
def _folder_of(torch: ModuleType) -> str:
    return str(Path(torch.__file__).parent) + os.sep


_foreign: dict[str, bool] = {}  # whether a file is neither PyTorch's nor ours


def user_frame(frame: FrameType, torch: ModuleType) -> FrameType:
    """Return `frame`, or the nearest one further out that is neither PyTorch's nor backlight's code."""
    while True:
        filename = frame.f_code.co_filename
        foreign = _foreign.get(filename)
        if foreign is None:
            foreign = _foreign[filename] = not filename.startswith((_folder_of(torch), PACKAGE, GENERATED))
        if foreign or frame.f_back is None:
            return frame
        frame = frame.f_back
