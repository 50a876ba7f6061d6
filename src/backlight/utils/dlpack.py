"""DLPack under PyTorch's names."""

import enum

from backlight.dispatch.arguments.checked import with_checks
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError
from backlight.tensor.interop.dlpack import export, from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of kinds of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor):
    """Return a capsule over a tensor's memory, which `from_dlpack` can read once."""
    if not isinstance(tensor, TensorState):
        raise ArgumentError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type(tensor).__name__}")
    return export(tensor)


globals().update(with_checks(globals(), __all__, __name__))
