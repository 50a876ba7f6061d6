"""PyTorch's `torch.special`: special functions under their scientific names."""

from backlight.ops.activations import sigmoid as expit
from backlight.ops.pointwise import exp2, expm1, log1p, round, sinc
from backlight.ops.reductions import logsumexp
from backlight.ops.softmax import log_softmax, softmax
from backlight.ops.special import digamma, erf, erfc, erfcx, erfinv, logit, ndtr, polygamma, xlog1py, xlogy
from backlight.ops.special import digamma as psi
from backlight.ops.special import lgamma as gammaln
from backlight.ops.special import mvlgamma as multigammaln

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]
