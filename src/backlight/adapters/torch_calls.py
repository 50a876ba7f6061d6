"""The calls of PyTorch's functions that a thread makes, and what is known of each function.

NOTE [What a call costs under a mode]
A TorchFunctionMode sees every call and every attribute that is read: of a training step most are an optimizer's. Those
that cannot matter to a watcher never reach Python: `CallsMode` (csrc/core/calls.c) looks the function up, runs it, and
compares the number of the next node, and the versions of what may be written to, before and after. What matters goes to
`settle`. Without the compiled core, and where a watcher wants all calls of this moment, `followed` does the same.
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

from backlight.adapters.torch_backward import HOOKS
from backlight.dispatch.observation import TO_NUMBERS
from backlight.dispatch.observers import Call
from backlight.engine.provenance import GENERATED, PACKAGE
from backlight.kernels.native import core

LINE = "backlight.line"


class Kind(NamedTuple):
    """What is known of a function of PyTorch: its name, whether it reads an attribute, whether it may write."""

    name: str
    reads: bool
    writes: bool
    noted: Callable | None
    to_number: bool = False
    plain: bool = False  # it reads an attribute that is no tensor
    is_grad: bool = False  # it reads `.grad`, which optimizers do often and which is no way out of the graph


def _note_hook(hub, tensor) -> None:
    """Note the dict that holds a tensor's hooks on its node, which alone is there in backward."""
    node = tensor.grad_fn
    if node is not None:
        node.metadata.setdefault(HOOKS, {})[tensor.output_nr] = tensor._backward_hooks


def _note_retained(hub, tensor) -> None:
    if tensor.grad_fn is not None:
        hub.retained.append(weakref.ref(tensor))


NOTED = {"register_hook": _note_hook, "retain_grad": _note_retained}


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


class PythonCallsMode:
    """What `CallsMode` of the compiled core does, where there is none."""

    def __init__(
        self, kinds: dict, kind_of: Callable, sequence_number: Callable, tensor_class: type, records: Callable
    ):
        self.kinds, self.kind_of = kinds, kind_of
        self.silent = self.hears_writes = self.hears_all = self.hears_unrecorded = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if self.silent:
            return function(*args, **kwargs) if kwargs else function(*args)
        kind = self.kinds.get(function) or self.kind_of(function)
        return function(*args) if kind.plain else self.followed(kind, function, args, kwargs)


@cache
def mode_class(torch: ModuleType) -> type:
    """Return the mode that reports the calls of functions (PyTorch's class can only be named once it is loaded)."""
    tensor_class = torch.Tensor
    sequence_number, records = torch._C._autograd._get_sequence_nr, torch.is_grad_enabled

    class Calls(PythonCallsMode if core is None else core.CallsMode, torch.overrides.TorchFunctionMode):
        """Reports calls to a hub."""

        def __init__(self, hub):
            super().__init__(KINDS, kind_of, sequence_number, tensor_class, records)
            self.hub = hub

        def followed(self, kind: Kind, function: Callable, args: tuple, kwargs: dict | None):
            """Run a call that may write, or that watchers may want though it makes no node."""
            if kind.is_grad and not self._is_wanted():
                return function(*args)
            versions = _NO_VERSIONS
            if self.hears_writes and (kind.writes or (kwargs and ("out" in kwargs or kwargs.get("inplace")))):
                versions = _versions(args, kwargs, tensor_class)
            before = sequence_number()
            out = function(*args, **kwargs) if kwargs else function(*args)
            self.settle(kind, args, kwargs, out, before, sequence_number() != before, versions)
            return out

        def _is_wanted(self) -> bool:
            return self.hears_all and (self.hears_unrecorded or records())

        def settle(self, kind, args, kwargs, out, before, made, versions=_NO_VERSIONS) -> None:
            """Report what a call did, if that is wanted."""
            hub = self.hub
            made = made or kind.noted is not None or self._is_wanted()
            if not made and (kind.to_number or isinstance(out, tensor_class)):
                made = _leaves_graph(kind, args, kwargs, out, tensor_class)
            if not made and not versions:
                return
            frame = user_frame(sys._getframe(1), torch)
            for tensor, version in versions:
                if tensor._version != version:
                    hub.notify("wrote", tensor, kind.name, frame.f_code, frame.f_lasti)
            if not made:
                return
            if kind.noted is not None:
                kind.noted(hub, args[0])
            if not kind.reads or isinstance(out, tensor_class):
                report(hub, kind.name, args, kwargs or {}, out, before, frame)

    return Calls


def _leaves_graph(kind: Kind, args: tuple, kwargs: dict | None, out, tensor_class: type) -> bool:
    """Return whether a call read a tensor that has a graph and returned what has none: `item()`, an op in no_grad()."""
    if not kind.to_number and not (isinstance(out, tensor_class) and not out.requires_grad):
        return False
    return any(one.requires_grad for one in tensors_in(args, tensor_class)) or (
        bool(kwargs) and any(one.requires_grad for one in tensors_in(kwargs, tensor_class))
    )


def report(hub, name: str, args: tuple, kwargs: dict, out, before: int, frame: FrameType) -> None:
    """Report a call, and write its line into the nodes that it made: those numbered from `before` on."""
    torch = hub.torch
    frame = user_frame(frame, torch)
    place = frame.f_code, frame.f_lasti
    try:
        stack = [one.grad_fn for one in tensors_in(out, torch.Tensor) if one.requires_grad and one.grad_fn is not None]
    except RuntimeError:  # a view made under no_grad() and written to since: PyTorch refuses to tell what it comes from
        return
    leaf_class, alone = hub.engine.leaf_class, hub.engine.next_number() - before == 1
    while stack:
        node = stack.pop()
        if node.__class__ is leaf_class or node._sequence_nr() < before:
            continue
        metadata = node.metadata
        if LINE not in metadata:
            metadata[LINE] = place
            if not alone:
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
