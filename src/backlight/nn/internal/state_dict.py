"""A module's state as a dict of tensors, and back; hooks on both, and state that is no tensor."""

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import NamedTuple

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.hooks import RemovableHandle
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, storage_of, wrap, writable
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.nn.parameter import Parameter, is_lazy
from backlight.sizes import Size
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

POSITIONAL = (
    "Positional args are being deprecated, use kwargs instead. Refer to "
    "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details."
)
EXTRA = "_extra_state"  # the key of what `get_extra_state` returns


class StateHooks:
    """The state hooks of one module, under PyTorch's names, by the ids of their handles."""

    def __init__(self):
        self._state_dict_pre_hooks = OrderedDict()
        self._state_dict_hooks = OrderedDict()
        self._load_state_dict_pre_hooks = OrderedDict()
        self._load_state_dict_post_hooks = OrderedDict()


class StateHookAttribute:
    """A dictionary of a module's hooks on its state, kept in its `StateHooks`, which are made when first used."""

    def __set_name__(self, owner: type, name: str):
        self.name = name

    def __get__(self, module: object, owner: type | None = None):
        return self if module is None else getattr(module._own_state_hooks(), self.name)

    def __set__(self, module: object, hooks: dict) -> None:
        setattr(module._own_state_hooks(), self.name, hooks)


class ModuleHook:
    """A hook that gets the module first, whichever module that is when a copy of it loads a state.

    The module is referred to weakly: it holds the hook.
    """

    def __init__(self, hook: Callable, module: object):
        update_wrapper(self, hook)
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args) -> None:
        self.hook(self.module(), *args)

    def __getstate__(self) -> tuple[Callable, object]:
        return self.hook, self.module()

    def __setstate__(self, state: tuple[Callable, object]) -> None:
        self.__init__(*state)


class StateHookRegistration:
    """Module's methods that register hooks on its state."""

    _state_hooks: StateHooks | None = None
    _state_dict_pre_hooks = StateHookAttribute()
    _state_dict_hooks = StateHookAttribute()
    _load_state_dict_pre_hooks = StateHookAttribute()
    _load_state_dict_post_hooks = StateHookAttribute()

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is collected."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` when it is collected; the hook may change the dict."""
        hook._from_public_api = True
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """Call a hook as `register_state_dict_post_hook` does; it may also return another dict.

        Raises:
            RuntimeError: the hook was registered by `register_state_dict_post_hook` before.
        """
        if getattr(hook, "_from_public_api", False):
            raise GraphError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading.

        The hook may change the dict and the lists.
        """
        return RemovableHandle(self._load_state_dict_pre_hooks, ModuleHook(hook, self))

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        """Call a hook as `register_load_state_dict_pre_hook` does, without the module unless `with_module`."""
        return RemovableHandle(self._load_state_dict_pre_hooks, ModuleHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; the hook may change the lists of keys."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def _own_state_hooks(self) -> StateHooks:
        if "_state_hooks" not in self.__dict__:
            object.__setattr__(self, "_state_hooks", StateHooks())
        return self._state_hooks

    def _hooks_on_state(self, kind: str) -> list[Callable]:
        return [] if self._state_hooks is None else list(getattr(self._state_hooks, kind).values())

    def _changed_by_hooks(self, destination: dict, prefix: str, metadata: dict) -> dict:
        """Run the hooks on a collected state, and return what they leave."""
        for hook in self._hooks_on_state("_state_dict_hooks"):
            answer = hook(self, destination, prefix, metadata)
            if answer is not None and getattr(hook, "_from_public_api", False):
                raise GraphError("state_dict post-hook must return None; change the dict that the hook is given")
            destination = destination if answer is None else answer
        return destination

    def _run_hooks_after_loading(self, keys: "_IncompatibleKeys") -> None:
        for hook in self._hooks_on_state("_load_state_dict_post_hooks"):
            if hook(self, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def get_extra_state(self):
        """Return extra state; a class with extra state overrides this and `set_extra_state`."""
        raise GraphError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug. "
            "A class that has extra state overrides it."
        )

    def set_extra_state(self, state: object) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise GraphError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug. "
            "A class that has extra state overrides it."
        )

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(StateHookRegistration, method)


class _IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


class Checkpoint(StateHookRegistration):
    """Module's methods for saving and loading."""

    _version = 1  # of the layout of a class's state, kept in the state's metadata as PyTorch does

    def state_dict(self, *args, destination: dict | None = None, prefix: str = "", keep_vars: bool = False) -> dict:
        """Return parameters and persistent buffers by dotted name, sharing their memory.

        Args:
            destination: a dict to fill instead of a new one.
            prefix: put before every name.
            keep_vars: return the parameters themselves, not detached aliases.
            args: the same three by position, which PyTorch deprecates.
        """
        if args:
            warnings.warn(POSITIONAL, FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._hooks_on_state("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return self._changed_by_hooks(destination, prefix, metadata)

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

    def load_state_dict(self, state_dict: Mapping, strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy tensors or NumPy arrays into the parameters and buffers of the same names.

        Args:
            strict: whether missing or unexpected names are an error.
            assign: use the tensors themselves instead of copying them.

        Returns:
            The missing and the unexpected names.

        Raises:
            RuntimeError: a shape differs, or, with `strict`, the names do not match.
            TypeError: `state_dict` is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        keys, errors = _IncompatibleKeys([], []), []
        self._load_below(state, "", {} if metadata is None else metadata, assign, keys, errors)
        if strict and keys.unexpected_keys:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
        if strict and keys.missing_keys:
            errors.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
        if errors:
            raise ShapeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return keys

    def _load_below(
        self, state: dict, prefix: str, metadata: Mapping, assign: bool, keys: _IncompatibleKeys, errors: list[str]
    ) -> None:
        own = dict(metadata.get(prefix[:-1], {}))
        if assign:
            own["assign_to_params_buffers"] = assign
        self._load_from_state_dict(state, prefix, own, True, keys.missing_keys, keys.unexpected_keys, errors)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                module._load_below(part, below, metadata, assign, keys, errors)
        self._run_hooks_after_loading(keys)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors; a class whose layout has changed overrides this.

        Args:
            state_dict: the state of this module and all below it, by full names; it may be changed.
            local_metadata: what the state says of this module: the "version" of its class's layout, and
                "assign_to_params_buffers" if the tensors themselves are taken.
            strict: whether names on one side only are added to `missing_keys` and `unexpected_keys`.
            error_msgs: what is wrong otherwise; all of it becomes one error.
        """
        for hook in self._hooks_on_state("_load_state_dict_pre_hooks"):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        missing, assign = [], local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                missing.append(key)
                continue
            problem = self._load_one(name, tensor, key, state_dict[key], assign)
            if problem:
                error_msgs.append(problem)
        unexpected = self._load_extra_state(state_dict, prefix + EXTRA, missing)
        for key in state_dict:
            if key == prefix + EXTRA or not key.startswith(prefix):
                continue
            name, dot, _ = key[len(prefix) :].partition(".")
            if name not in (self._modules if dot else own):
                unexpected.append(key)
        if strict:
            missing_keys += missing
            unexpected_keys += unexpected

    def _load_extra_state(self, state: dict, key: str, missing: list[str]) -> list[str]:
        """Load the state that is no tensor, and return its key if the class has no such state."""
        if self._overrides("set_extra_state"):
            if key in state:
                self.set_extra_state(state[key])
            else:
                missing.append(key)
        elif key in state:
            return [key]
        return []

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
