"""Floor 5, PyTorch's `torch.autograd`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.autograd import grad_mode, graph
from backlight.autograd.api import backward, grad
from backlight.autograd.function import Function, NestedIOFunction
from backlight.autograd.function import applied as _applied
from backlight.autograd.grad_mode import (
    _unsafe_preserve_version_counter,
    is_multithreading_enabled,
    set_multithreading_enabled,
)
from backlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from backlight.autograd.variable import Variable, variable
from backlight.codegen.packed_nodes import SavedTensor
from backlight.dispatch import anomaly_mode
from backlight.dispatch.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from backlight.engine.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from backlight.system.lazy_import import function_later as _function_later
from backlight.system.lazy_import import names_later as _names_later

if _TYPE_CHECKING:
    from backlight.autograd import forward_ad, functional, profiler

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "_unsafe_preserve_version_counter",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


_applied.batch_rule = _function_later("backlight.autograd.function_batches", "called")

__getattr__, __dir__ = _names_later(__name__, {}, rooms=("forward_ad", "functional", "profiler"))
