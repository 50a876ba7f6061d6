"""A module's state as a dict of tensors, and back; hooks on both, and state that is no tensor."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.hooks import HookDict, RemovableHandle
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.nn.parameter import Parameter, is_lazy
from backlight.sizes import Size
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

EXTRA = "_extra_state"  # the key of what `get_extra_state` returns


class StateHooks:
    """All hooks on the state of one module."""

    def __init__(self):
        self.before_saving = HookDict()
        self.after_saving = HookDict()
        self.before_loading = HookDict()
        self.after_loading = HookDict()


class StateHookRegistration:
    """Module's methods that register hooks on its state."""

    _state_hooks: StateHooks | None = None

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is collected."""
        return self._register_state_hook("before_saving", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` when it is collected; the hook may change the dict."""
        return self._register_state_hook("after_saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading.

        The hook may change the dict and the lists.
        """
        return self._register_state_hook("before_loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; the hook may change the lists of keys."""
        return self._register_state_hook("after_loading", hook)

    def _register_state_hook(self, moment: str, hook: Callable) -> RemovableHandle:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", StateHooks())
        return RemovableHandle(getattr(self._state_hooks, moment), hook)

    def _run_state_hooks(self, moment: str, *args) -> None:
        if self._state_hooks is None:
            return
        for hook in list(getattr(self._state_hooks, moment).values()):
            answer = hook(self, *args)
            if answer is not None and moment == "after_saving":
                raise GraphError("state_dict post-hook must return None; change the dict that the hook is given")
            if answer is not None and moment == "after_loading":
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def get_extra_state(self):
        """Return further state; a class that has some overrides this and `set_extra_state`."""
        raise GraphError(
            "Reached a code path in Module.get_extra_state() that should never be called. A class that has extra state "
            "overrides it."
        )

    def set_extra_state(self, state: object) -> None:
        """Take what `get_extra_state` returned."""
        raise GraphError(
            "Reached a code path in Module.set_extra_state() that should never be called. A class that has extra state "
            "overrides it."
        )

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateHookRegistration, method)


class IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class Findings:
    """Errors while a state is loaded, collected for one message."""

    def __init__(self, strict: bool = True):
        self.strict = strict
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def messages(self) -> list[str]:
        """Return the lines of the error: missing names first, then names too many, then what does not fit."""
        lines = list(self.errors)
        if self.strict and self.unexpected:
            lines.insert(0, f"Unexpected key(s) in state_dict: {_quoted(self.unexpected)}. ")
        if self.strict and self.missing:
            lines.insert(0, f"Missing key(s) in state_dict: {_quoted(self.missing)}. ")
        return lines


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


class Checkpoint(StateHookRegistration):
    """Module's methods for saving and loading."""

    _version = 1  # of the layout of a class's state, kept in the state's metadata as PyTorch does

    def state_dict(self, *, destination: dict | None = None, prefix: str = "", keep_vars: bool = False) -> dict:
        """Return parameters and persistent buffers by dotted name, sharing their memory.

        Args:
            destination: a dict to fill instead of a new one.
            prefix: put before every name.
            keep_vars: return the parameters themselves, not detached aliases.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        self._run_state_hooks("before_saving", prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        self._run_state_hooks("after_saving", destination, prefix, metadata)
        return destination

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors into `destination`; a class with its own layout overrides this."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> dict:
        """Return this module's parameters and persistent buffers."""
        both = {**self._parameters, **self._buffers}
        return {
            name: tensor
            for name, tensor in both.items()
            if tensor is not None and name not in self._non_persistent_buffers_set
        }

    def load_state_dict(self, state_dict: Mapping, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy tensors or NumPy arrays into the parameters and buffers of the same names.

        Args:
            strict: whether names on one side only are an error.
            assign: take the tensors themselves instead of copying them.

        Returns:
            The names that were missing and the names that were too many.

        Raises:
            RuntimeError: a shape differs, or, with `strict`, the names do not match.
            TypeError: `state_dict` is no mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        findings = Findings(strict)
        self._load_below(dict(state_dict), "", assign, findings)
        messages = findings.messages()
        if messages:
            raise ShapeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(messages))
        return IncompatibleKeys(findings.missing, findings.unexpected)

    def _load_below(self, state: dict, prefix: str, assign: bool, findings: Findings) -> None:
        metadata = {"version": self._version}
        lists = (findings.missing, findings.unexpected, findings.errors)
        self._run_state_hooks("before_loading", state, prefix, metadata, findings.strict, *lists)
        self._load_from_state_dict(state, prefix, assign, findings)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                module._load_below(part, below, assign, findings)
        self._run_state_hooks("after_loading", IncompatibleKeys(findings.missing, findings.unexpected))

    def _load_from_state_dict(self, state: dict, prefix: str, assign: bool, findings: Findings) -> None:
        """Load this module's own tensors; a class whose layout has changed overrides this."""
        own = self._own_state()
        for name, tensor in own.items():
            key = prefix + name
            if key not in state:
                findings.missing.append(key)
                continue
            problem = self._load_one(name, tensor, key, state[key], assign)
            if problem:
                findings.errors.append(problem)
        self._load_extra_state(state, prefix + EXTRA, findings)
        for key in state:
            if key == prefix + EXTRA:
                continue
            name, dot, _ = key[len(prefix) :].partition(".")
            if name not in (self._modules if dot else own):
                findings.unexpected.append(key)

    def _load_extra_state(self, state: dict, key: str, findings: Findings) -> None:
        if self._overrides("set_extra_state"):
            if key in state:
                self.set_extra_state(state[key])
            else:
                findings.missing.append(key)
        elif key in state:
            findings.unexpected.append(key)

    def _load_one(self, name: str, tensor: Tensor, key: str, value: object, assign: bool) -> str | None:
        """Load one tensor, or return what is wrong with it."""
        if not isinstance(value, TensorState) and not hasattr(value, "__array__"):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        if is_lazy(value):
            return None if is_lazy(tensor) else value.shape  # which raises: there is nothing to copy
        array = value._data if isinstance(value, TensorState) else np.asarray(value)
        shape = tuple(tensor.shape)  # of one without memory, too
        if not shape and array.shape == (1,):
            array = array[0]  # how PyTorch before 0.4 wrote 0-d tensors
        if array.shape != shape:
            return (
                f"size mismatch for {key}: copying a param with shape {Size(array.shape)} from checkpoint, the shape "
                f"in current model is {Size(shape)}."
            )
        if assign:
            setattr(self, name, _as_its_kind(tensor, value))
        else:
            begin_write(tensor, "load_state_dict", user_place())
            np.copyto(writable(tensor), array, casting="unsafe")
            end_write(tensor)
        return None


def _as_its_kind(old: Tensor, value: object):
    """Return a value as the type that it replaces: a parameter, or a plain tensor."""
    if not isinstance(value, TensorState):
        value = from_numpy(np.asarray(value))
    if not isinstance(old, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(old.requires_grad)
    return Parameter(wrap(writable(value), None, storage_of(value)), old.requires_grad)
