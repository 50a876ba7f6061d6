"""What recorders read of tensors in main memory without an op of their library: their memory as an array."""

import math
import sys

import numpy as np

from backlight.kernels.reduction.summaries import nonfinite_kinds
from backlight.kernels.state_blocks import silent_floats
from backlight.training.engine_types import AnyTensor

TINY = 1e-28  # squares below this lose digits in float32
EXACT = (np.dtype(np.float32), np.dtype(np.float64))


def own_array(tensor: AnyTensor) -> np.ndarray | None:
    """Return the values of a tensor of ours in float32 or float64, which must not be written to; None of all others."""
    data = getattr(tensor, "_data", None)
    return data if data.__class__ is np.ndarray and data.dtype in EXACT else None


def array_of(tensor: AnyTensor) -> np.ndarray | None:
    """Return the values of a plain tensor of either engine, not copied; None if they are not to be had like this."""
    if hasattr(tensor, "_data"):
        return own_array(tensor)
    torch = sys.modules.get("torch")
    if torch is None or tensor.__class__ not in (torch.Tensor, torch.nn.Parameter):
        return None
    if (
        tensor.device.type != "cpu"
        or tensor.layout is not torch.strided
        or tensor.dtype
        not in (
            torch.float32,
            torch.float64,
        )
    ):
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None  # FSDP resizes memory, which an array would forbid
    return values_of_torch(tensor)


def values_of_torch(tensor: AnyTensor) -> np.ndarray:
    """Return what `numpy(force=True)` of a tensor of PyTorch's does, faster for those that need no copy."""
    try:
        return tensor.detach().numpy()
    except (RuntimeError, TypeError):  # not in main memory, or conjugated or negated when it is read
        return tensor.numpy(force=True)


def is_finite(tensor: AnyTensor) -> bool:
    """Return whether a tensor surely holds neither NaN nor infinity, nor numbers whose squares are infinite."""
    array = array_of(tensor)
    return array is not None and array.dtype.itemsize == 4 and not nonfinite_kinds(array)


def square_of_array(array: np.ndarray) -> float:
    """Return Σx², in float32 unless that loses digits."""
    flat = array.reshape(-1)
    with silent_floats():
        value = float(flat @ flat)
        if TINY < value < math.inf:
            return value
        wide = flat.astype(np.float64)
        return float(wide @ wide)
