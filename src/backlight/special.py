"""PyTorch's `torch.special`: special functions under their scientific names."""

# ruff: noqa: F401 - what is imported without an underscore is exported

from backlight.dispatch.arguments.checked import public_functions as _public_functions
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.ops.elementwise.activations import sigmoid as expit
from backlight.ops.elementwise.rounding import round
from backlight.ops.elementwise.transcendental import exp2, expm1, log1p, sinc
from backlight.ops.nn.softmax import log_softmax, softmax
from backlight.ops.out_variants import with_out as _with_out
from backlight.ops.reduction.reductions import logsumexp
from backlight.ops.special.rare_functions import (
    POLYNOMIALS,
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_i0,
    modified_bessel_i1,
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

globals().update(POLYNOMIALS)
__all__ = _public_functions(globals())

globals().update(_with_out(globals(), {*__all__} - {"softmax", "log_softmax"}, __name__))
globals().update(_with_checks(globals(), __all__, __name__))
