"""The error function, the gamma function, Bessel functions and their families."""

from case import Case, Input, away_from, given, normal, uniform

SINGLE = ("float64", "float32")
POSITIVE = uniform(3, 4, low=0.3, high=2)
PROBABILITY = uniform(3, 4, low=0.02, high=0.98)
GAMMA = uniform(3, 4, low=0.5, high=5)
SERIES = {"float64": (1e-8, 1e-9)}  # PyTorch's trigamma stops its series early
ZERO = given([0.0, 0.0, 1.5], True)

LOOSE = {"float64": (1e-6, 2e-8), "float32": (1e-4, 1e-5)}  # PyTorch is off by 1e-8 there: test_rare_functions.py
CONSTANT = Input(lambda rng: rng.uniform(0.5, 5, (3, 4)), differentiable=False)
EXPONENTS = Input(lambda rng: rng.uniform(1.5, 6, (3, 4)), differentiable=False)
LARGE = uniform(3, 4, low=300, high=340)
WIDE = uniform(40, low=0.1, high=60)
WAVES = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1"]
WAVES += [
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
]
POLYNOMIALS = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
DEGREES = given([0, 1, 2, 5, 9, -1])


def special(name, draw, **options):
    function = name.removeprefix("special_").split("/")[0]
    return Case(name, lambda t, x: getattr(t.special, function)(x), [draw], dtypes=SINGLE, **options)


def polynomial(name):
    """Return the Case of an orthogonal polynomial, which has no derivative."""
    return Case(
        f"special_{name}",
        lambda t, x, n: getattr(t.special, name)(x, n),
        [uniform(4, 6, low=-1.5, high=1.5), DEGREES],
        dtypes=SINGLE,
        differentiable=False,
    )


CASES = [
    Case("erf", lambda t, x: t.erf(x), [normal(3, 4, scale=2)], integer=True),
    Case("erf/0-d", lambda t, x: x.erf(), [normal()]),
    Case("erfc", lambda t, x: t.erfc(x), [normal(3, 4, scale=2)], integer=True),
    Case("erfinv", lambda t, x: t.erfinv(x), [uniform(3, 4, low=-0.97, high=0.97)], dtypes=SINGLE),
    special("special_erfcx", normal(3, 4)),
    special("special_ndtr", normal(3, 4)),
    special("special_log_ndtr", normal(3, 4, scale=3)),
    special("special_ndtri", PROBABILITY),
    Case("lgamma", lambda t, x: t.lgamma(x), [GAMMA]),
    Case("lgamma/below 0", lambda t, x: t.lgamma(x), [uniform(3, 4, low=-2.9, high=-2.1)], dtypes=("float64",)),
    Case("mvlgamma", lambda t, x: t.mvlgamma(x, 3), [uniform(3, 4, low=2, high=5)], dtypes=SINGLE),
    Case("digamma", lambda t, x: t.digamma(x), [GAMMA]),
    Case("polygamma", lambda t, x: t.polygamma(1, x), [GAMMA], dtypes=("float64",), tolerance=SERIES),
    Case("polygamma/0", lambda t, x: x.polygamma(0), [GAMMA], dtypes=("float64",), tolerance=SERIES),
    Case("polygamma/2", lambda t, x: t.polygamma(2, x), [GAMMA], dtypes=("float64",), tolerance=SERIES),
    Case("i0", lambda t, x: t.i0(x), [away_from(3, 4, scale=3)], dtypes=SINGLE),
    special("special_i0e", away_from(3, 4, scale=3)),
    special("special_i1", away_from(3, 4, scale=3)),
    special("special_i1e", away_from(3, 4, scale=3)),
    special("special_entr", POSITIVE),
    Case("xlogy", lambda t, x, y: t.xlogy(x, y), [normal(3, 4), POSITIVE]),
    Case("xlogy/at 0", lambda t, x, y: t.xlogy(x, y), [ZERO, given([2.0, 0.5, 1.0], True)]),
    Case("xlogy_of_number", lambda t, x: t.xlogy(2.0, x), [POSITIVE]),
    Case("xlogy_to_number", lambda t, x: t.xlogy(x, 2.0), [normal(3, 4)]),
    Case("special_xlog1py", lambda t, x, y: t.special.xlog1py(x, y), [normal(3, 4), POSITIVE], dtypes=SINGLE),
    Case("xlog1py_of_number", lambda t, x: t.special.xlog1py(2.0, x), [POSITIVE], dtypes=SINGLE),
    Case("xlog1py_to_number", lambda t, x: t.special.xlog1py(x, 2.0), [normal(3, 4)], dtypes=SINGLE),
    Case("logit", lambda t, x: t.logit(x), [uniform(3, 4, low=0.1, high=0.9)]),
    Case("logit/eps", lambda t, x: t.logit(x, eps=0.2), [PROBABILITY]),
    *[special(f"special_{name}", POSITIVE, differentiable=False) for name in WAVES],
    *[special(f"special_{name}/wide", WIDE, differentiable=False, tolerance=LOOSE) for name in WAVES],
    *map(polynomial, POLYNOMIALS),
    Case("igamma", lambda t, a, x: t.igamma(a, x), [CONSTANT, GAMMA]),
    Case("igammac", lambda t, a, x: t.special.gammaincc(a, x), [CONSTANT, GAMMA]),
    Case(
        "igamma/large",
        lambda t, a, x: (t.igamma(a, x), t.igammac(a, x)),
        [LARGE, LARGE],
        differentiable=False,
        dtypes=("float64",),
        tolerance=LOOSE,
    ),
    Case(
        "_standard_gamma_grad",
        lambda t, a, x: t._standard_gamma_grad(a, x),
        [GAMMA, POSITIVE],
        dtypes=SINGLE,
        differentiable=False,
    ),
    Case(
        "_dirichlet_grad",
        lambda t, x, a, total: t._dirichlet_grad(x, a, total),
        [PROBABILITY, POSITIVE, uniform(3, 4, low=2.5, high=9)],
        dtypes=SINGLE,
        differentiable=False,
        tolerance={"float32": (1e-3, 1e-4)},  # PyTorch's series lose digits there
    ),
    Case("special_zeta", lambda t, s, q: t.special.zeta(s, q), [EXPONENTS, GAMMA], dtypes=SINGLE),
    Case("special_zeta/number", lambda t, q: t.special.zeta(2.5, q), [GAMMA], dtypes=SINGLE),
]
