"""Neural networks, under PyTorch's names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.nn import functional, init, modules, parameter, utils
from backlight.nn.modules import *
from backlight.nn.parallel import DataParallel, DistributedDataParallel, SyncBatchNorm
from backlight.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from backlight.system.lazy_import import names_later as _names_later

if _TYPE_CHECKING:
    from backlight.nn import grad

__getattr__, __dir__ = _names_later(__name__, {}, ("grad",))
