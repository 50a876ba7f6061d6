"""Floor 5, PyTorch's doors to differentiation."""

from backlight.autograd import forward_ad, functional, graph
from backlight.autograd.doors import Variable, backward, grad
from backlight.autograd.function import Function
from backlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from backlight.graph.anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from backlight.graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
