"""The old names under `torch.cpu.amp` and `torch.cuda.amp`, which warn; nothing is cast for CUDA."""

from collections.abc import Callable

from backlight import dtypes
from backlight.amp import autocasting, scaling
from backlight.dtypes import bfloat16, float16
from backlight.system.user_warnings import warn_outside

INSTEAD = "`torch.{0}.amp.{1}(args...)` is deprecated. Please use `torch.amp.{1}({2})` instead."


def _warn(device: str, name: str, arguments: str) -> None:
    warn_outside(INSTEAD.format(device, name, arguments.format(device)), FutureWarning)


class CPUAutocast(autocasting.autocast):
    """`torch.cpu.amp.autocast`."""

    def __init__(self, enabled: bool = True, dtype: dtypes.dtype = bfloat16, cache_enabled: bool = True):
        _warn("cpu", "autocast", "'{}', args...")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class CUDAAutocast(autocasting.autocast):
    """`torch.cuda.amp.autocast`, which casts nothing here."""

    def __init__(self, enabled: bool = True, dtype: dtypes.dtype = float16, cache_enabled: bool = True):
        _warn("cuda", "autocast", "'{}', args...")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class CPUGradScaler(scaling.GradScaler):
    """`torch.cpu.amp.GradScaler`."""

    def __init__(self, *args, **options):
        _warn("cpu", "GradScaler", "'{}', args...")
        super().__init__("cpu", *args, **options)


class CUDAGradScaler(scaling.GradScaler):
    """`torch.cuda.amp.GradScaler`, which is off here."""

    def __init__(self, *args, **options):
        _warn("cuda", "GradScaler", "'{}', args...")
        super().__init__("cuda", *args, **options)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: dtypes.dtype | None = None) -> Callable:
    """The same as `torch.amp.custom_fwd`, for CUDA."""
    _warn("cuda", "custom_fwd", "args..., device_type='{}'")
    return autocasting.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Callable:
    """The same as `torch.amp.custom_bwd`, for CUDA."""
    _warn("cuda", "custom_bwd", "args..., device_type='{}'")
    return autocasting.custom_bwd(bwd, device_type="cuda")
