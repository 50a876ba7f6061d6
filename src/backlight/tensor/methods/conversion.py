"""Tensor's conversions: NumPy and other libraries, copies, pickles, devices; its memory, as a storage or by element."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.devices import require_cpu
from backlight.dispatch.observation import begin_write, end_write
from backlight.dtypes import from_numpy_dtype
from backlight.engine.node import origin
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, memory_of, writable
from backlight.errors import GraphError, ValueProblem
from backlight.layouts import memory_format
from backlight.ops.shape.expanding import check_expands
from backlight.system.fork_safety import import_unforked
from backlight.system.lazy_import import function_later
from backlight.tensor.creation import from_numpy
from backlight.tensor.shared_memory import is_shared, share_memory
from backlight.types import Device

call_function = function_later("backlight.tensor.interop.numpy_functions", "call_function")
call_ufunc = function_later("backlight.tensor.interop.numpy_ufuncs", "call_ufunc")
deepcopy_attributes = function_later("backlight.tensor.pickling", "deepcopy_attributes")
deepcopied = function_later("backlight.tensor.pickling", "deepcopied")
reduce_arguments = function_later("backlight.tensor.pickling", "reduce_arguments")
export = function_later("backlight.tensor.interop.dlpack", "export")
_untyped, _typed, _show = [
    function_later(f"backlight.tensor.{module}", name)
    for module, name in (
        ("storages", "untyped_storage"),
        ("storages", "typed_storage"),
        ("set_storage", "show_memory"),
    )
]
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
DEEPCOPY_OF_NON_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001.  Copy .detach() of it instead"
)


class ConversionMethods:
    """Tensor's methods for conversion and memory."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False):
        """Wrap the result of a NumPy function as a tensor; bools become uint8, as in PyTorch."""
        return from_numpy(np.asarray(array, np.uint8 if array.dtype == bool else None))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs, **options):
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable, types: Sequence[type], args: tuple, kwargs: dict):
        return call_function(function, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None):
        """Return the namespace of the array API standard, `backlight.array_api`.

        Raises:
            ValueError: another version of the standard is requested.
        """
        if api_version not in (None, *API_VERSIONS):
            raise ValueProblem(f"api_version must be one of {', '.join(API_VERSIONS)}, got {api_version!r}")
        return import_unforked("backlight.array_api")  # on first use: few programs need it

    def to_device(self, device: Device, /, *, stream: int | None = None):
        """Return the tensor itself: it is on the CPU, the only device."""
        require_cpu(device)
        return self

    def __dlpack__(self, *, stream: int | None = -1, max_version=None, dl_device=None, copy: bool | None = None):
        """Return a capsule of the memory for another library's `from_dlpack`."""
        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple:
        return writable(self).__dlpack_device__()

    def __deepcopy__(self, memo: dict):
        if not self.is_leaf:
            raise GraphError(DEEPCOPY_OF_NON_LEAF + origin(self))
        if id(self) not in memo:
            copied = memo[id(self)] = deepcopied(self, memo)
            deepcopy_attributes(self, copied, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int):
        return reduce_arguments(self)

    def cpu(self, memory_format: memory_format | None = None):
        """Return the tensor itself: it is on the CPU."""
        return self

    def cuda(self, device: Device = None, non_blocking: bool = False, memory_format: memory_format | None = None):
        """Raise a RuntimeError: there is no such device."""
        require_cpu("cuda" if device is None else device)
        raise GraphError("Torch not compiled with CUDA enabled; backlight computes on the CPU only: leave .cuda() out")

    def pin_memory(self, device: Device = None):
        """Raise a RuntimeError: memory cannot be pinned without an accelerator."""
        raise GraphError("Cannot access accelerator device when none is available; leave .pin_memory() out")

    def share_memory_(self):
        """Move the elements into memory that processes share, and return the tensor; see `torch.multiprocessing`.

        Views that were made before keep the old memory.
        """
        share_memory(self)
        return self

    def get_device(self) -> int:
        """Return the index of the accelerator: −1 on the CPU."""
        return -1

    is_cpu = True
    is_cuda = is_mps = is_xpu = is_ipu = is_xla = is_vulkan = is_maia = is_mtia = is_meta = False
    is_sparse_csr = is_mkldnn = is_quantized = is_nested = False

    def is_pinned(self, device: Device = None) -> bool:
        """Tell whether the memory is pinned: never."""
        return False

    def is_set_to(self, tensor: TensorState) -> bool:
        """Tell whether both tensors show the same elements of the same memory, with the same strides."""
        ours, other = self._data, tensor._data
        return (
            np.shares_memory(memory_of(self), memory_of(tensor))
            and self.data_ptr() == tensor.data_ptr()
            and (ours.shape, ours.strides, ours.dtype) == (other.shape, other.strides, other.dtype)
        )

    def is_shared(self) -> bool:
        """Tell whether the memory is shared between processes."""
        return is_shared(self)

    def is_distributed(self) -> bool:
        """Tell whether the tensor is distributed over processes: never."""
        return False

    def is_complex(self) -> bool:
        """Tell whether the elements are complex."""
        return self._data.dtype.kind in "cW"

    def is_signed(self) -> bool:
        """Tell whether the dtype is signed."""
        return from_numpy_dtype(self._data.dtype).is_signed

    def is_nonzero(self) -> bool:
        """Tell whether the only element is not 0."""
        return bool(self)

    def is_same_size(self, other: TensorState) -> bool:
        """Tell whether another tensor has the same shape."""
        return self._data.shape == other._data.shape

    def untyped_storage(self):
        """Return the storage that the tensor shares with its views, as bytes; equal to another of the same memory."""
        return _untyped(self)

    def storage(self):
        """Return the storage that the tensor shares with its views, typed; deprecated in PyTorch."""
        return _typed(self)

    def set_(self, source=None, storage_offset: int = 0, size=None, stride=None):
        """Replace the tensor's memory by that of another tensor, of a storage, or none; return the tensor.

        Args:
            storage_offset, size, stride: which part of it, counted in elements; by default as in the source.

        Raises:
            RuntimeError: one of them requires grad, or has another dtype, or the part is not in the memory.
        """
        return _show(self, source, storage_offset, size, stride)

    def apply_(self, callable: Callable):
        """Replace each element x by callable(x)."""
        return _replaced(self, "apply_", (), callable)

    def map_(self, tensor: TensorState, callable: Callable):
        """Replace each element x by callable(x, y), where y is the element of `tensor` there."""
        return _replaced(self, "map_", (tensor,), callable)

    def map2_(self, x: TensorState, y: TensorState, callable: Callable):
        """Replace each element by callable of it and of the elements of `x` and `y` there."""
        return _replaced(self, "map2_", (x, y), callable)


def _replaced(target: TensorState, name: str, others: tuple, function: Callable):
    """Write the results of a function of each element, or raise PyTorch's error if a gradient would be lost."""
    if any(one._edge is not None for one in (target, *others)):
        raise GraphError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    data = writable(target)
    for one in others:
        check_expands(one._data, data.shape)
    columns = [data, *(np.broadcast_to(one._data, data.shape) for one in others)]
    found = [function(*elements) for elements in zip(*(column.ravel().tolist() for column in columns))]
    begin_write(target, name, user_place(2))
    data[...] = np.array(found, data.dtype).reshape(data.shape)
    end_write(target)
    return target
