"""`VonMises`: a distribution on the circle."""

import math

from backlight.distributions import constraints
from backlight.distributions.distribution import Distribution, Shape
from backlight.distributions.parameters import Value, broadcast_all, lazy_property
from backlight.dtypes import bool as bool_
from backlight.dtypes import double
from backlight.engine.grad_mode import no_grad
from backlight.ops.elementwise.where_clamp import where
from backlight.sizes import Size
from backlight.tensor.factories import empty, zeros
from backlight.tensor.random_factories import rand
from backlight.tensor.tensor import Tensor

__all__ = ["VonMises"]

# polynomials of Abramowitz and Stegun, Handbook of mathematical functions, 9.8.1 to 9.8.4, lowest power first:
# of (x / 3.75)² for I₀(x) and I₁(x) / x below 3.75, of 3.75 / x for √x · exp(−x) · I(x) above
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
     0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1,
     -0.420059e-2),
)  # fmt: skip


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + x * value
    return value


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """Return the logarithm of the modified Bessel function of the first kind, of order 0 or 1, for positive x."""
    scaled = x / 3.75
    small = _polynomial(_SMALL[order], scaled * scaled)
    small = (x.abs() * small if order == 1 else small).log()
    large = x - 0.5 * x.log() + _polynomial(_LARGE[order], 3.75 / x).log()
    return where(x < 3.75, small, large)


class VonMises(Distribution):
    """Von Mises' distribution of angles x in [−π, π), of concentration κ about `loc`.

    p(x) = exp(κ · cos(x − loc)) / (2π · I₀(κ))

    Source: Best and Fisher, Efficient simulation of the von Mises distribution, 1979.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Value, concentration: Value, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * (value - self.loc).cos()
        return log_prob - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration, order=0)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that numbers are proposed by, in float64."""
        kappa = self.concentration.to(double)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Shape = Size()) -> Tensor:
        with no_grad():
            angles = self._accepted(self._extended_shape(sample_shape))
            turned = (angles + math.pi + self.loc.to(double)) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def _accepted(self, shape: Size) -> Tensor:
        """Draw angles about 0 for all elements, until each was accepted; later ones replace those accepted before."""
        concentration, r = self.concentration.to(double), self._proposal_r
        angles, done = empty(shape, dtype=double), zeros(shape, dtype=bool_)
        while not done.all():
            first, second, third = rand((3, *shape), dtype=double).unbind()
            z = (math.pi * first).cos()
            f = (1 + r * z) / (r + z)
            c = concentration * (r - f)
            accept = ((c * (2 - c) - second) > 0) | ((c / second).log() + 1 - c >= 0)
            if accept.any():
                angles = where(accept, (third - 0.5).sign() * f.acos(), angles)
                done = done | accept
        return angles

    def expand(self, batch_shape: Shape, _instance: Distribution | None = None) -> Distribution:
        validate_args = self.__dict__.get("_validate_args")
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        first, zeroth = (_log_modified_bessel_fn(self.concentration, order=order) for order in (1, 0))
        return 1 - (first - zeroth).exp()
