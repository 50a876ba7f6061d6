"""`autocast`: a block in which matrix products run in lower precision, and sensitive functions in float32.

NOTE [Autocast]
While a thread is in such a block, public functions dispatch to autocast (NOTE [Overriding] in
dispatch/torch_function.py), after modes and classes: functions in one of PyTorch's lists for the CPU get their
arguments cast and run with casting off; all others run unchanged, and the functions that they call dispatch again.
Leaves that require grad are cast once per block.
"""

import functools
import importlib
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

from backlight import dtypes, fft, linalg
from backlight.codegen.declaration import TABLE
from backlight.devices import device
from backlight.dispatch import torch_function
from backlight.dispatch.torch_function import UNHANDLED
from backlight.dtypes import bfloat16, float16, float32, float64
from backlight.engine.tensor_state import LEAF, TensorState
from backlight.engine.threads import ThreadState
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.nn import functional
from backlight.overrides import disable_overrides, enable_overrides
from backlight.tensor.tensor import Tensor

LOWER, FLOAT32, PROMOTE, AS_IT_IS = "lower", "float32", "promote", "as it is"
EINSUM, POOLING, STEPS, PRODUCT = "einsum", "pooling", "steps", "product"  # these depend on the arguments: `policy_of`

_LOWER = """
addbmm addmm affine_grid_generator baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
conv_transpose3d linalg_vecdot linear linear_with_bias linear_without_bias lstm_steps matmul mm prelu rnn_steps
scaled_dot_product_attention
"""
_FLOAT32 = """
adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky
cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy ctc_loss fft_hfft fft_ihfft fft_irfft fft_irfft2
fft_irfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eigh
linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr
linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve margin_ranking_loss max_unpool2d
max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr pinverse
poisson_nll_loss prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
replication_pad3d smooth_l1_loss soft_margin_loss svd trace triangular_solve triplet_margin_loss
"""
_PROMOTE = "cat concat concatenate index_copy stack"
_AS_IT_IS = "addbmm_ addmm_ baddbmm_ bilinear"  # composed of functions in a list, but not cast themselves

LISTS = {LOWER: _LOWER, FLOAT32: _FLOAT32, PROMOTE: _PROMOTE, AS_IT_IS: _AS_IT_IS}
LISTS |= {EINSUM: "einsum", POOLING: "max_pool3d", STEPS: "gru_steps lstm_cell", PRODUCT: "linalg_pinv"}


@cache
def policies() -> dict[object, str]:
    """Return the policy of each listed function."""
    named = {name: policy for policy, names in LISTS.items() for name in names.split()}
    return {one: policy for name, policy in named.items() for one in _functions_called(name)}


def policy_of(public: Callable, args: tuple, kwargs: dict) -> str | None:
    """Return the policy of a call; None if its arguments are not cast."""
    if kwargs.get("out") is not None:
        return AS_IT_IS
    policy = policies().get(public)
    if policy == EINSUM:
        return LOWER if contracts(args) else None
    if policy == POOLING:  # with indices it is another function of PyTorch's, which is in no list
        return None if kwargs.get("return_indices", args[6:7] == (True,)) else FLOAT32
    return policy


def _result_is_lower(policy: str | None, args: tuple) -> bool:
    """Tell whether a result is in the lower precision though it is computed in float32.

    PyTorch writes the steps of a GRU and of an LSTM cell in the dtype of their state, and ends a pseudoinverse with a
    matrix product.
    """
    states = torch_function.flat(args[1:2])
    return policy == PRODUCT or (policy == STEPS and all(one.dtype is casting.lower["cpu"] for one in states))


def _functions_called(name: str) -> list:
    """Return the functions with one of PyTorch's names."""
    front = importlib.import_module("backlight")  # the top package is in no layer
    space, _, rest = name.partition("_")
    if space in ("fft", "linalg"):
        return [getattr(module, rest) for module in (fft, linalg) if module.__name__.endswith(space)]
    found = [getattr(module, name) for module in (front, functional, Tensor) if hasattr(module, name)]
    return found + ([TABLE[name].public] if name in TABLE else [])


def contracts(args: tuple) -> bool:
    """Tell whether an einsum sums over an index of two operands: then it is a matrix product."""
    if args and isinstance(args[0], str):
        inputs, arrow, output = args[0].replace(" ", "").partition("->")
        terms = inputs.split(",")
    else:  # operands, each followed by a list of its indices; the output's may come last
        terms, arrow, output = args[1::2], len(args) % 2, args[-1] if args else ()
        if not all(isinstance(one, (list, tuple)) for one in terms):
            return False  # einsum raises
    indices = [one for term in terms for one in term if one not in (".", Ellipsis)]
    kept = output if arrow else [one for one in indices if indices.count(one) == 1]
    return len(terms) > 1 and any(one not in kept for one in indices)


__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

AVAILABLE = ("cpu", "cuda", "mtia", "maia", "xpu", "hpu", "ipu", "xla", "mps")
SUPPORTED = (bfloat16, float16)


class _Casting(ThreadState):
    """The autocast state of this thread."""

    def __init__(self):
        self.enabled = dict.fromkeys(AVAILABLE, False)
        self.lower = dict.fromkeys(AVAILABLE, float16) | {"cpu": bfloat16, "xla": bfloat16}
        self.caches = True
        self.nesting = 0
        self.cached: dict[tuple, tuple] = {}  # (id of a leaf, dtype) -> the leaf and its cast


casting = _Casting()


def is_autocast_available(device_type: str) -> bool:
    """Tell whether PyTorch has autocast for a kind of device."""
    return device(device_type).type in AVAILABLE


def _cast_for(public: Callable, args: tuple, kwargs: dict):
    """Call a function with its arguments cast; UNHANDLED if it is in no list."""
    public = torch_function.overrides_state.shown.get(public, public)
    policy = policy_of(public, args, kwargs)
    if policy is None:
        return UNHANDLED
    torch_function.local.casts = None
    try:
        lowered = _result_is_lower(policy, args)
        if policy not in (AS_IT_IS, PRODUCT):
            to = _wanted(policy, (*args, *kwargs.values()))
            args, kwargs = cast(args, to), cast(kwargs, to)
        return cast(public(*args, **kwargs), casting.lower["cpu"]) if lowered else public(*args, **kwargs)
    finally:
        torch_function.local.casts = _cast_for


def _wanted(policy: str, values: tuple) -> dtypes.dtype:
    """Return the dtype that a policy casts to."""
    if policy != PROMOTE:
        return casting.lower["cpu"] if policy == LOWER else float32
    lower = casting.lower["cpu"]
    found = {
        one.dtype for one in torch_function.flat(values) if isinstance(one, TensorState) and one.is_floating_point()
    }
    if not found <= {lower, float32, float64}:
        raise GraphError(
            f"Unexpected floating ScalarType in at::autocast::prioritize: inside autocast tensors of {lower}, float32 "
            f"and float64 can be joined, got {', '.join(sorted(map(str, found)))}"
        )
    return float32 if float32 in found else lower


def cast(value: object, to: dtypes.dtype):
    """Return a value with its floating tensors cast to a dtype; float64 is not cast."""
    if isinstance(value, TensorState):
        eligible = value.is_floating_point() and value.dtype not in (to, float64)
        return _cast_tensor(value, to) if eligible else value
    if isinstance(value, dict):
        return {key: cast(one, to) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(cast(one, to) for one in value)
    return value


def _cast_tensor(tensor: Tensor, to: dtypes.dtype):
    """Cast one tensor; a float32 leaf that requires grad (a weight) once per block."""
    weight = tensor._edge is LEAF and tensor.dtype is float32 and to is casting.lower["cpu"] and tensor._view is None
    if not (weight and casting.caches):
        return tensor.to(to)
    key = id(tensor), to
    if key not in casting.cached:
        casting.cached[key] = tensor, tensor.to(to)
    return casting.cached[key][1]


# --- the state --------------------------------------------------------------------------------------------------------


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Tell whether autocast is enabled in this thread, for a kind of device."""
    return casting.enabled[_known(device_type)]


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Enable or disable autocast in this thread."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _require("set_autocast_enabled", "enabled", enabled, bool)
    casting.enabled[_known(device_type)] = enabled
    if device_type == "cpu":
        torch_function.local.casts = _cast_for if enabled else None
        (enable_overrides if enabled else disable_overrides)(casting.enabled)


def is_autocast_cpu_enabled() -> bool:
    """Tell whether autocast is enabled in this thread on the CPU."""
    return casting.enabled["cpu"]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Enable or disable autocast in this thread on the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """Return the lower precision on the CPU."""
    return casting.lower["cpu"]


def set_autocast_cpu_dtype(dtype: dtypes.dtype) -> None:
    """Set the lower precision on the CPU."""
    set_autocast_dtype("cpu", dtype)


def autocast_again() -> Callable:
    """Return a factory of blocks with this thread's current autocast state, to run a function again."""
    enabled, lower, caches = casting.enabled["cpu"], casting.lower["cpu"], casting.caches
    return lambda: autocast("cpu", lower, enabled, caches) if enabled or casting.enabled["cpu"] else nullcontext()


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """Return the lower precision, for a kind of device."""
    return casting.lower[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Set the lower precision, for a kind of device."""
    _require("set_autocast_dtype", "dtype", dtype, dtypes.dtype)
    casting.lower[_known(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Tell whether weights are cast once per block."""
    return casting.caches


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether weights are cast once per block, or each time."""
    _require("set_autocast_cache_enabled", "enabled", enabled, bool)
    casting.caches = enabled


def clear_autocast_cache() -> None:
    """Forget the cast weights."""
    casting.cached.clear()


def autocast_increment_nesting() -> int:
    """Increment the number of nested blocks, and return it."""
    casting.nesting += 1
    return casting.nesting


def autocast_decrement_nesting() -> int:
    """Decrement the number of nested blocks, and return it."""
    casting.nesting -= 1
    return casting.nesting


def _require(function: str, name: str, value: object, kind: type) -> None:
    """Raise PyTorch's error for a setting of another type, before anything is set."""
    if not isinstance(value, kind):
        wanted = "torch.dtype" if kind is dtypes.dtype else kind.__name__
        raise ArgumentError(f"{function}(): argument '{name}' must be {wanted}, not {type(value).__name__}")


def _known(device_type: str) -> str:
    _require("get_autocast_dtype", "device_type", device_type, str)
    if not is_autocast_available(device_type):
        raise GraphError(
            f"unknown device type for autocast in get_autocast_dispatch_key_from_device_type: {device_type}"
        )
    return device_type


# --- the block --------------------------------------------------------------------------------------------------------


class autocast(Block):  # noqa: N801 - PyTorch's name
    """Run suitable ops in lower precision inside a `with` block, or in the decorated function.

    Args:
        device_type: "cpu"; blocks for other kinds do nothing, as there are no tensors there.
        dtype: the lower precision, bfloat16 or float16; bfloat16 by default.
        enabled: False turns casting off inside.
        cache_enabled: whether weights are cast once per block.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueProblem(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise GraphError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = casting.caches if cache_enabled is None else cache_enabled
        self._enabled = enabled if not enabled or self._can_be() else False

    def _can_be(self) -> bool:
        """Tell whether this block can cast; warn if not."""
        if self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return False
        if all(self.fast_dtype is not one for one in SUPPORTED):
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
                f"supports dtypes of {', '.join(map(str, SUPPORTED))} currently.",
                stacklevel=3,
            )
            return False
        return True

    def _block_state(self):
        return casting.caches, casting.enabled[self.device], casting.lower[self.device], casting.nesting

    def _block_change(self, state: tuple):
        _require("set_autocast_dtype", "dtype", self.fast_dtype, dtypes.dtype)
        _require("set_autocast_cache_enabled", "enabled", self._cache_enabled, bool)
        set_autocast_enabled(self.device, self._enabled)
        casting.lower[self.device] = self.fast_dtype
        autocast_increment_nesting()
        casting.caches = self._cache_enabled
        return self

    def _block_restore(self, state: tuple):
        casting.caches, enabled, casting.lower[self.device], casting.nesting = state
        if casting.nesting == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, enabled)

    def __call__(self, func: Callable) -> Callable:
        """Return a function that runs in such a block."""
        if not callable(func):
            raise ArgumentError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with torch.autocast(device_type=...):\n        output = "
                "model(input)"
            )

        @functools.wraps(func)
        def decorate_autocast(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorate_autocast


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Callable:
    """Decorate the `forward` of a Function: records the autocast state for `custom_bwd`.

    Args:
        cast_inputs: cast the arguments to this inside autocast, and run without it.
    """
    if not isinstance(device_type, str):
        raise ValueProblem(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(ctx, *args, **kwargs):
        ctx._dtype = get_autocast_dtype(device_type)
        casts = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = casts and cast_inputs is None
        if cast_inputs is None or not casts:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *cast(args, cast_inputs), **cast(kwargs, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorate the `backward` of a Function: it runs with the autocast state of `forward`."""
    if not isinstance(device_type, str):
        raise ValueProblem(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorate_bwd
