"""PyTorch's `torch.special`: special functions under their scientific names."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.ops.elementwise.activations import sigmoid as expit
from backlight.ops.elementwise.rounding import round
from backlight.ops.elementwise.transcendental import exp2, expm1, log1p, sinc
from backlight.ops.nn.softmax import log_softmax, softmax
from backlight.ops.out_variants import with_out
from backlight.ops.reduction.reductions import logsumexp
from backlight.ops.special.rare_functions import (
    POLYNOMIALS,
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
    zeta,
)
from backlight.ops.special.rare_functions import igamma as gammainc
from backlight.ops.special.rare_functions import igammac as gammaincc
from backlight.ops.special.special_functions import (
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    polygamma,
    xlog1py,
    xlogy,
)
from backlight.ops.special.special_functions import digamma as psi
from backlight.ops.special.special_functions import lgamma as gammaln
from backlight.ops.special.special_functions import mvlgamma as multigammaln

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

globals().update(POLYNOMIALS)
__all__ += POLYNOMIALS

globals().update(with_out(globals(), {*__all__} - {"softmax", "log_softmax"}, __name__))
globals().update(with_checks(globals(), __all__, __name__))
