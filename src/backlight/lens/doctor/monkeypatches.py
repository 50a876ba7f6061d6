"""What is changed in an engine's Python interface while it is watched: where the detectors' own events come from.

`Tensor.grad` and `Tensor.backward`, the making, steps and clearing of optimizers, and attributes of modules. Each
patched function does what it stands for, with the same arguments; the session puts all back.
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from types import FrameType
from typing import Any

from backlight.lens.doctor.graph import Module, Optimizer, Tensor
from backlight.lens.doctor.places import is_users, place_of_frame


class _WatchedProperty(property):
    """A property that says its name: PyTorch hands what stands in the class to a TorchFunctionMode."""

    __name__ = "grad"


class Patches:
    """Patches an engine for an `EngineWatch` and gives it the events of a `Detector`."""

    def __init__(self, watch):
        self.watch = watch
        self.starting = None  # what backward() is being called on
        self.handles: list = []  # of PyTorch's hooks
        self.read: Callable  # what `Tensor.grad` is without the patch
        # a block in which no TorchFunctionMode, ours included, is told of what the doctor reads of tensors
        self.unseen = getattr(getattr(watch.engine.module, "_C", None), "DisableTorchFunction", nullcontext)

    def begin(self) -> None:
        """Patch all."""
        torch, patch = self.watch.engine.module, self.watch.session.patch
        patch(torch.Tensor, "grad", self._grad)
        patch(torch.Tensor, "backward", self._backward)
        patch(torch.nn.Module, "__setattr__", self._assignment)
        optimizer = torch.optim.Optimizer
        patch(optimizer, "__init__", self._construction)
        patch(optimizer, "zero_grad", self._clearing)
        if self.hook_steps():
            return
        for kind in _all_kinds(optimizer):
            if "step" in vars(kind):
                patch(kind, "step", self._step)

    def hook_steps(self) -> bool:
        """Hook the steps of all optimizers, where the engine has such hooks: PyTorch's; return whether it has."""
        module = sys.modules[self.watch.engine.module.optim.Optimizer.__module__]
        if not hasattr(module, "register_optimizer_step_pre_hook"):
            return False
        before = module.register_optimizer_step_pre_hook(lambda one, *rest: self._begin_step(one))
        after = module.register_optimizer_step_post_hook(lambda one, *rest: self._end_step(one))
        self.handles += [before, after]
        return True

    def end(self) -> None:
        """Take hooks away; what was patched is put back by the session."""
        while self.handles:
            self.handles.pop().remove()

    def _is_plain(self, tensor: Tensor) -> bool:
        with self.unseen():
            return self.watch.is_plain(tensor)

    def _grad(self, original: property) -> property:
        watch, read = self.watch, original.__get__
        self.read = read

        def grad(tensor: Tensor):
            found = read(tensor)
            if not watch.busy:
                frame = sys._getframe(1)
                if is_users(frame.f_code.co_filename) and self._is_plain(tensor):
                    watch.notify("read_grad", tensor, found, frame)
            return found

        return _WatchedProperty(grad, original.__set__, original.__delete__, original.__doc__)

    def _backward(self, original: Callable) -> Callable:
        watch = self.watch

        @wraps(original)
        def backward(tensor: Tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
            given = (tensor, gradient, retain_graph, create_graph, inputs)
            if self.starting is tensor:  # PyTorch has handed the call to a TorchFunctionMode, which calls again
                return original(*given)
            keep = bool(create_graph if retain_graph is None else retain_graph)
            if self._is_plain(tensor):
                watch.notify("backward_called", tensor, keep, place_of_frame(sys._getframe(1)))
            before, self.starting = self.starting, tensor
            try:
                return original(*given)
            finally:
                self.starting = before

        return backward

    def _assignment(self, original: Callable) -> Callable:
        watch = self.watch

        @wraps(original)
        def set_attribute(module: Module, name: str, value: Any):
            old = None if watch.busy else _registered(module, name)
            original(module, name, value)
            watch.notify("assigned", module, name, value, old, sys._getframe(1))

        return set_attribute

    def _construction(self, original: Callable) -> Callable:
        @wraps(original)
        def construct(optimizer: Optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            self.watch.remember(optimizer)

        return construct

    def _clearing(self, original: Callable) -> Callable:
        @wraps(original)
        def zero_grad(optimizer: Optimizer, *args, **kwargs):
            self.watch.begin_step()
            try:
                out = original(optimizer, *args, **kwargs)
            finally:
                self.watch.end_step()
            self._report("cleared", optimizer, sys._getframe(1))
            return out

        return zero_grad

    def _step(self, original: Callable) -> Callable:
        @wraps(original)
        def step(optimizer: Optimizer, *args, **kwargs):
            self._begin_step(optimizer)
            out = original(optimizer, *args, **kwargs)
            self._end_step(optimizer)
            return out

        return step

    def _begin_step(self, optimizer: Any) -> None:
        self.watch.remember(optimizer)
        self._report("stepping", optimizer, sys._getframe(1))
        self.watch.begin_step()

    def _end_step(self, optimizer: Any) -> None:
        self.watch.end_step()
        self._report("stepped", optimizer, sys._getframe(1))

    def _report(self, event: str, optimizer: Any, frame: FrameType) -> None:
        """Report what happens to an optimizer's parameters, with the gradient of each, read once for all detectors."""
        watch = self.watch
        if watch.busy:
            return
        watch.busy = True
        params = [param for group in optimizer.param_groups for param in group["params"]]
        try:
            with self.unseen():
                grads = [self.read(param) for param in params]
        finally:
            watch.busy = False
        watch.notify(event, optimizer, params, grads, place_of_frame(frame))


def _registered(module: Any, name: str) -> Any:
    """Return the parameter or module that has a name in a module."""
    state = vars(module)
    for table in (state.get("_parameters"), state.get("_modules")):
        if isinstance(table, dict) and name in table:
            return table[name]
    return None


def _all_kinds(kind: type) -> list[type]:
    return [kind, *(below for one in kind.__subclasses__() for below in _all_kinds(one))]
