"""In-place methods as functions: `torch.relu_(x)` is `x.relu_()`."""

from collections.abc import Callable

from backlight.ops.elementwise.activations import celu, selu, threshold
from backlight.ops.inplace import inplace
from backlight.tensor.tensor import Tensor

_METHODS = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_
ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_
floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_
reciprocal_ relu_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""

__all__ = [*_METHODS.split(), "celu_", "selu_", "threshold_"]


def _function(name: str, method: Callable) -> Callable:
    """Return a method as a function."""

    def of_tensor(input, *args, **kwargs):
        return method(input, *args, **kwargs)

    of_tensor.__name__ = of_tensor.__qualname__ = name
    of_tensor.__doc__ = f"Do what `Tensor.{name}` does."
    return of_tensor


globals().update({name: _function(name, getattr(Tensor, name)) for name in _METHODS.split()})

celu_ = inplace(celu)
selu_ = inplace(selu)
threshold_ = inplace(threshold)
