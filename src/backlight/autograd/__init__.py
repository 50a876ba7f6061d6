"""Floor 5, PyTorch's doors to differentiation."""

from backlight.autograd.doors import Variable, backward, grad
from backlight.autograd.function import Function
from backlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from backlight.graph.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
