"""PyTorch's `torch.masked`: reductions and normalisations that ignore elements where a mask is False."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.masked.normalisations import cumprod, cumsum, log_softmax, normalize, softmax, softmin
from backlight.masked.reductions import amax, amin, argmax, argmin, logaddexp, logsumexp, median, norm, prod, sum
from backlight.masked.statistics import mean, std, var

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

globals().update(with_checks(globals(), __all__, __name__))
