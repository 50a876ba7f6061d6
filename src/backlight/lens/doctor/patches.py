"""What the silent detector changes in an engine's Python interface while it watches, and tells its parts of.

`Tensor.grad` and `Tensor.backward`, the making, steps and clearing of optimisers, and attributes of modules. Each
patched function does what it stands for, with the same arguments; the session puts all back.
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache, wraps

from backlight.lens.doctor.places import is_users, place_of_frame

users = lru_cache(maxsize=1024)(is_users)


class _WatchedProperty(property):
    """A property that says its name: PyTorch hands what stands in the class to a TorchFunctionMode."""

    __name__ = "grad"


class Patches:
    """Patches an engine for a `Silent` detector and passes the events of `Part` to it."""

    def __init__(self, silent):
        self.silent = silent
        self.starting = None  # what backward() is being called on
        self.handles: list = []  # of PyTorch's hooks
        self.read: Callable  # what `Tensor.grad` is without the patch
        self.unseen = getattr(getattr(silent.engine.module, "_C", None), "DisableTorchFunction", nullcontext)

    def begin(self) -> None:
        """Patch all."""
        torch, patch = self.silent.engine.module, self.silent.session.patch
        patch(torch.Tensor, "grad", self._grad)
        patch(torch.Tensor, "backward", self._backward)
        patch(torch.nn.Module, "__setattr__", self._assignment)
        optimizer = torch.optim.Optimizer
        patch(optimizer, "__init__", self._construction)
        patch(optimizer, "zero_grad", self._clearing)
        self._watch_steps(optimizer)

    def end(self) -> None:
        """Take hooks away; what was patched is back already."""
        for handle in self.handles:
            handle.remove()

    def _grad(self, engines_own):
        silent, read = self.silent, engines_own.__get__
        self.read = read

        def grad(tensor):
            found = read(tensor)
            if not silent.busy:
                frame = sys._getframe(1)
                if users(frame.f_code.co_filename) and silent.is_plain(tensor):
                    silent.notify("read_grad", tensor, found, frame)
            return found

        return _WatchedProperty(grad, engines_own.__set__, engines_own.__delete__, engines_own.__doc__)

    def _backward(self, engines_own):
        silent = self.silent

        @wraps(engines_own)
        def backward(tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
            given = (tensor, gradient, retain_graph, create_graph, inputs)
            if self.starting is tensor:  # PyTorch has handed the call to a TorchFunctionMode, which calls again
                return engines_own(*given)
            keep = bool(create_graph if retain_graph is None else retain_graph)
            if silent.is_plain(tensor):
                silent.notify("going_back", tensor, keep, place_of_frame(sys._getframe(1)))
            before, self.starting = self.starting, tensor
            try:
                return engines_own(*given)
            finally:
                self.starting = before

        return backward

    def _assignment(self, engines_own):
        silent = self.silent

        @wraps(engines_own)
        def set_attribute(module, name, value):
            if silent.busy:
                engines_own(module, name, value)
                return
            old = _registered(module, name)
            engines_own(module, name, value)
            silent.notify("assigned", module, name, value, old, sys._getframe(1))

        return set_attribute

    def _construction(self, engines_own):
        silent = self.silent

        @wraps(engines_own)
        def construct(optimizer, *args, **kwargs):
            engines_own(optimizer, *args, **kwargs)
            silent.know(optimizer)

        return construct

    def _clearing(self, engines_own):
        silent = self.silent

        @wraps(engines_own)
        def zero_grad(optimizer, *args, **kwargs):
            silent.stepping += 1
            try:
                out = engines_own(optimizer, *args, **kwargs)
            finally:
                silent.stepping -= 1
            self._report("cleared", optimizer, place_of_frame(sys._getframe(1)))
            return out

        return zero_grad

    def _watch_steps(self, optimizer: type) -> None:
        """Watch steps: by PyTorch's hooks for all optimisers, or by patching `step` of those that are ours."""
        module = sys.modules[optimizer.__module__]
        if hasattr(module, "register_optimizer_step_pre_hook"):
            before = module.register_optimizer_step_pre_hook(lambda one, *rest: self._begin_step(one))
            after = module.register_optimizer_step_post_hook(lambda one, *rest: self._end_step(one))
            self.handles += [before, after]
            return
        for kind in _all_kinds(optimizer):
            if "step" in vars(kind):
                self.silent.session.patch(kind, "step", self._step)

    def _step(self, engines_own):
        @wraps(engines_own)
        def step(optimizer, *args, **kwargs):
            self._begin_step(optimizer)
            out = engines_own(optimizer, *args, **kwargs)
            self._end_step(optimizer)
            return out

        return step

    def _begin_step(self, optimizer) -> None:
        self.silent.know(optimizer)
        self._report("stepping", optimizer, place_of_frame(sys._getframe(1)))
        self.silent.stepping += 1

    def _end_step(self, optimizer) -> None:
        self.silent.stepping -= 1
        self._report("stepped", optimizer, place_of_frame(sys._getframe(1)))

    def _report(self, event: str, optimizer, place) -> None:
        """Tell what happens to an optimiser's parameters, with the gradient of each: it is read once for all parts."""
        silent = self.silent
        if silent.busy:
            return
        silent.busy = True
        params = [param for group in optimizer.param_groups for param in group["params"]]
        try:
            with self.unseen():
                grads = [self.read(param) for param in params]
        finally:
            silent.busy = False
        silent.notify(event, optimizer, params, grads, place)


def _registered(module, name: str):
    """Return the parameter or module that has a name in a module."""
    state = vars(module)
    for table in (state.get("_parameters"), state.get("_modules")):
        if isinstance(table, dict) and name in table:
            return table[name]
    return None


def _all_kinds(kind: type) -> list[type]:
    return [kind, *(below for one in kind.__subclasses__() for below in _all_kinds(one))]
