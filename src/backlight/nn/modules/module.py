"""`Module`: the base class of all layers and models."""

import warnings

from backlight.devices import device as device_kind
from backlight.devices import require_cpu
from backlight.dispatch.arguments.checked import UNFORESEEN, explained_module
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import bfloat16, dtype, float16, float32, float64
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, MissingMethodError, UnsupportedError
from backlight.layouts import memory_format
from backlight.nn.internal.hooks import HookRegistration, Hooks
from backlight.nn.internal.hooks import register_module_backward_hook as register_module_backward_hook
from backlight.nn.internal.hooks import register_module_forward_hook as register_module_forward_hook
from backlight.nn.internal.hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from backlight.nn.internal.hooks import register_module_full_backward_hook as register_module_full_backward_hook
from backlight.nn.internal.hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from backlight.nn.internal.registration import Registry
from backlight.nn.internal.registration import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from backlight.nn.internal.registration import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from backlight.nn.internal.registration import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from backlight.nn.internal.state_dict import (
    Checkpoint,
    StateHooks,
    _IncompatibleKeys,  # noqa: F401 - PyTorch has it here
)
from backlight.nn.internal.traversal import Tree
from backlight.nn.meta_tensors import is_meta, materialised, meta_like
from backlight.ops.type_promotion import has_gradient
from backlight.settings import compile as compiled
from backlight.types import Device

__all__ = ["Module"]

HOOKS = frozenset(vars(Hooks())) | frozenset(vars(StateHooks()))  # the names of PyTorch's dictionaries
COMPLEX_MODULES = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not "
    "work as expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as "
    "expected."
)


def _converted(tensor: TensorState, kind: dtype | None, wanted: memory_format | None):
    """Return a tensor in another dtype, if it is a floating point or complex one, and format, if it has 4 or 5 dims."""
    kind = kind if has_gradient(tensor._data.dtype) else None
    wanted = wanted if tensor._data.ndim in (4, 5) else None
    return tensor if kind is None and wanted is None else tensor.to(dtype=kind, memory_format=wanted)


class Module(Registry, Tree, Checkpoint, HookRegistration):
    """A part of a model: it owns parameters and other modules, and `forward` defines its computation.

    Assign parameters and modules as attributes in `__init__`, after `super().__init__()`, and write `forward`; call the
    module, not its `forward`, so that hooks run.

    >>> import backlight as torch
    >>> class Twice(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(2, 2)
    ...     def forward(self, x):
    ...         return self.layer(self.layer(x))
    >>> Twice()
    Twice(
      (layer): Linear(in_features=2, out_features=2, bias=True)
    )
    """

    training: bool

    @public_function
    def __call__(self, *args, **kwargs):
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return self._hooks.call(self, args, kwargs)
        except UNFORESEEN as problem:
            better = explained_module(self, args, kwargs, problem)
            if better is problem:
                raise
        raise better

    def forward(self, *args, **kwargs):
        """Compute the output; subclasses override this.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise MissingMethodError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __setstate__(self, state: dict) -> None:
        """Take the attributes of a pickled module: ours, or PyTorch's, which keeps its hooks in ten dictionaries."""
        hooks = {name: value for name, value in state.items() if name in HOOKS}
        self.__dict__.update({name: value for name, value in state.items() if name not in hooks})
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        for name, value in hooks.items():
            if value:
                setattr(self, name, value)

    def compile(self, *args, **kwargs) -> None:
        """Accept the options of `compile`; has no effect."""
        compiled(self, *args, **kwargs)

    def to(
        self,
        *args,
        device: Device = None,
        dtype: dtype | None = None,
        non_blocking: bool = False,
        memory_format: memory_format | None = None,
    ):
        """Convert floating point parameters and buffers, in place: `to(dtype)`, `to(device)`, `to(tensor)`.

        Args:
            memory_format: the order in memory of parameters and buffers of 4 or 5 dims, like `torch.channels_last`.

        Raises:
            TypeError: the dtype is not a floating point dtype.
            RuntimeError: the device is neither the CPU nor meta, where only shapes and dtypes are left.
        """
        for value in args:
            device, dtype = _device_and_dtype(value, device, dtype)
        to_meta = device is not None and device_kind(device).type == "meta"
        if not to_meta:
            require_cpu(device)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise ArgumentError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype="
                f"{dtype}; pass torch.float32, torch.float64, torch.float16 or torch.bfloat16"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(COMPLEX_MODULES, UserWarning, stacklevel=2)
        if to_meta:
            self._replace_tensors(lambda tensor: meta_like(tensor, dtype))
            return self
        if device is not None:
            if any(is_meta(tensor) for tensor in (*self.parameters(), *self.buffers())):
                raise UnsupportedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
        if dtype is None and memory_format is None:
            return self
        return self._apply(lambda tensor: _converted(tensor, dtype, memory_format))

    def to_empty(self, *, device: Device, recurse: bool = True):
        """Allocate uninitialised parameters and buffers: for a module that was moved to "meta"."""
        if device_kind(device).type == "meta":
            return self.to(device)
        require_cpu(device)
        self._replace_tensors(materialised)
        return self

    def _cast(self, kind: dtype):
        return self._apply(lambda tensor: tensor.to(kind) if tensor.is_floating_point() else tensor)

    def type(self, dst_type: dtype | str):
        """Convert all parameters and buffers, also those of integers, to a dtype or to an old name of a type."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self):
        """Convert floating point parameters and buffers to float32."""
        return self._cast(float32)

    def double(self):
        """Convert floating point parameters and buffers to float64."""
        return self._cast(float64)

    def half(self):
        """Convert floating point parameters and buffers to float16."""
        return self._cast(float16)

    def bfloat16(self):
        """Convert floating point parameters and buffers to bfloat16."""
        return self._cast(bfloat16)

    def cpu(self):
        """Return the module, which is on the CPU already."""
        return self

    def share_memory(self):
        """Move all parameters and buffers into memory that processes share, and return the module."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def cuda(self, device: Device = None):
        """Raise: there is no CUDA.

        Raises:
            RuntimeError: always.
        """
        require_cpu("cuda")

    def extra_repr(self) -> str:
        """Return what is printed between the parentheses; layers name their sizes here."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): " + indented(repr(module)) for name, module in self._modules.items()]
        lines = (extra.split("\n") if extra else []) + children
        if not children and len(lines) == 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


class Layer(Module):
    """A module whose printed form names the options in `_shown`."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


def changed_options(module: Module, **defaults: object) -> list[str]:
    """Return `name=value` for each option that was set: True, False and None count only as themselves."""
    values = [(name, getattr(module, name), default) for name, default in defaults.items()]
    return [
        f"{name}={value}"
        for name, value, default in values
        if (value is not default if default is None or isinstance(default, bool) else value != default)
    ]


def indented(text: str, spaces: int = 2) -> str:
    """Return a text with all lines but the first moved right by some spaces."""
    return text.replace("\n", "\n" + " " * spaces)


def _device_and_dtype(value: object, device: Device, kind: dtype | None) -> tuple[Device, dtype | None]:
    """Return (device, dtype) as one positional argument of `to` changes them."""
    if isinstance(value, dtype):
        return device, value
    if isinstance(value, TensorState):
        return value.device, value.dtype
    if isinstance(value, (str, device_kind)):
        return value, kind
    if value is None or isinstance(value, (bool, int)):
        return device, kind  # non_blocking, or a device left out
    raise ArgumentError(
        f"to() received an invalid combination of arguments - got ({type(value).__name__}); pass a dtype, a device "
        "or a tensor"
    )
