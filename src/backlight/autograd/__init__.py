"""Floor 5, PyTorch's doors to differentiation."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.autograd import forward_ad, grad_mode, graph, profiler
from backlight.autograd.doors import backward, grad
from backlight.autograd.function import Function, NestedIOFunction
from backlight.autograd.grad_mode import (
    _unsafe_preserve_version_counter,
    is_multithreading_enabled,
    set_multithreading_enabled,
)
from backlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from backlight.autograd.variable import Variable, variable
from backlight.graph import anomaly as anomaly_mode
from backlight.graph.anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from backlight.graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from backlight.ops.packing import SavedTensor

if _TYPE_CHECKING:
    from backlight.autograd import functional

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


def __getattr__(name: str):
    if name != "functional":
        raise AttributeError(f"module 'backlight.autograd' has no attribute {name!r}")
    return _import_module("backlight.autograd.functional")
