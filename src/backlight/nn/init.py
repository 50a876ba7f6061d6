"""Initialisation of parameters: each function fills a tensor in place, without recording, and returns it."""

import math
import warnings
from collections.abc import Callable

import numpy as np

from backlight.dispatch.arguments.checked import with_checks
from backlight.engine.grad_mode import no_grad
from backlight.errors import ValueProblem
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.number_operands import no_kernel
from backlight.tensor.creation import from_numpy
from backlight.tensor.factories import empty_like
from backlight.tensor.generators import Generator
from backlight.tensor.random_factories import randperm
from backlight.tensor.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Rng = Generator | None

LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
GAINS = {**dict.fromkeys(LINEAR, 1), "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain that keeps the variance of activations through a nonlinearity.

    Args:
        nonlinearity: its name in `nn.functional`.
        param: the negative slope of leaky_relu, 0.01 by default.

    Raises:
        ValueError: no gain is known for it.
    """
    if nonlinearity != "leaky_relu":
        if not isinstance(nonlinearity, str) or nonlinearity not in GAINS:
            raise ValueProblem(f"Unsupported nonlinearity {nonlinearity}: choose from {sorted((*GAINS, 'leaky_relu'))}")
        return GAINS[nonlinearity]
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueProblem(f"negative_slope {param} not a valid number")
    return math.sqrt(2 / (1 + slope**2))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Rng = None) -> Tensor:
    """Draw from the uniform distribution over [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Rng = None) -> Tensor:
    """Draw from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Raises:
        ValueError: the tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueProblem(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    return _filled(tensor, np.eye(*tensor.shape))


def _filled(tensor: Tensor, array: np.ndarray) -> Tensor:
    with no_grad():
        return tensor.copy_(from_numpy(array))


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return fan_in and fan_out of a weight: inputs per output, and outputs per input.

    Raises:
        ValueError: the tensor has fewer than two dims.
    """
    if tensor.ndim < 2:
        raise ValueProblem(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; this one has "
            f"{tensor.ndim}: use uniform_ or normal_ for biases"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def fan_of(tensor: Tensor, mode: str) -> int:
    """Return one of the two fans of a weight, by its name: "fan_in" or "fan_out".

    Raises:
        ValueError: `mode` is neither.
    """
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueProblem(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Rng = None) -> Tensor:
    """Draw from the uniform distribution over ±gain · √(6 / (fan_in + fan_out)).

    Source: Xavier Glorot, Yoshua Bengio: Understanding the difficulty of training deep feedforward neural networks,
    2010
    """
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Rng = None) -> Tensor:
    """Draw from the normal distribution with a deviation of gain · √(2 / (fan_in + fan_out)).

    Source: Xavier Glorot, Yoshua Bengio: Understanding the difficulty of training deep feedforward neural networks,
    2010
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return gain / √fan, or None, with a warning, for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueProblem(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Rng = None
) -> Tensor:
    """Draw from the uniform distribution over ±gain · √(3 / fan).

    Args:
        a: the negative slope of leaky_relu.
        mode: "fan_in" keeps the variance of activations, "fan_out" that of gradients.

    Source: Kaiming He et al.: Delving Deep into Rectifiers, 2015, arXiv:1502.01852
    """
    deviation = _kaiming_deviation(tensor, a, mode, nonlinearity)
    if deviation is None:
        return tensor
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Rng = None
) -> Tensor:
    """Draw from the normal distribution with a deviation of gain / √fan; see `kaiming_uniform_`."""
    deviation = _kaiming_deviation(tensor, a, mode, nonlinearity)
    return tensor if deviation is None else normal_(tensor, 0, deviation, generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Rng = None
) -> Tensor:
    """Draw from the normal distribution truncated to [a, b].

    If most of the distribution is inside the interval, samples outside are redrawn; else uniform samples are accepted
    with a probability proportional to the density (rejection sampling).
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    below_b, below_a = ((1 + math.erf((limit - mean) / std / math.sqrt(2))) / 2 for limit in (b, a))
    draw = _drawn_until_inside if below_b - below_a > 0.3 else _drawn_by_density
    with no_grad():
        return draw(tensor, mean, std, a, b, generator)


def _drawn_until_inside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Tensor:
    low, high = (tensor.new_tensor(limit).item() for limit in (a, b))
    found = tensor.normal_(mean, std, generator=generator)
    while (outside := (found < low) | (found > high)).any():
        found = where(outside, empty_like(found).normal_(mean, std, generator=generator), found)
    return tensor if found is tensor else tensor.copy_(found)


def _drawn_by_density(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Tensor:
    log_peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def refused(candidates: Tensor):
        log_density = candidates.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return empty_like(candidates).uniform_(generator=generator).log_().gt(log_density)

    found = tensor.uniform_(a, b, generator=generator)
    pending = refused(found)
    while pending.any():
        candidates = empty_like(tensor).uniform_(a, b, generator=generator)
        found = where(pending, candidates, found)
        again = refused(candidates)
        pending = where(pending, again, pending)
    return tensor if found is tensor else tensor.copy_(found)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Rng = None) -> Tensor:
    """Fill with a matrix whose rows, or columns if these are fewer, are orthonormal, times `gain`.

    Source: Andrew M. Saxe et al.: Exact solutions to the nonlinear dynamics of learning, 2013, arXiv:1312.6120

    Raises:
        ValueError: the tensor has fewer than two dims.
    """
    if tensor.ndim < 2:
        raise ValueProblem(f"Only tensors with 2 or more dimensions are supported, got {tensor.ndim}")
    if 0 in tensor.shape:
        return tensor
    if tensor.element_size() < 4:
        raise no_kernel("geqrf_cpu", tensor._data.dtype, "draw in float32 and convert with .to()")
    matrix = normal_(empty_like(tensor.detach()), 0, 1, generator).numpy().reshape(tensor.shape[0], -1)
    wide = matrix.shape[0] < matrix.shape[1]
    q, r = np.linalg.qr(matrix.T if wide else matrix)
    q = q * np.sign(np.diag(r))  # so that all orthogonal matrices are equally likely
    return _filled(tensor, np.ascontiguousarray(gain * (q.T if wide else q)).reshape(tensor.shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Rng = None) -> Tensor:
    """Draw a matrix from the normal distribution, and set a share of each column to 0.

    Source: James Martens: Deep learning via Hessian-free optimization, 2010

    Raises:
        ValueError: the tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueProblem(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    rows, columns = tensor.shape
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it is the identity on as many input channels as possible.

    Args:
        groups: the groups of the convolution; the identity is set in each group.

    Raises:
        ValueError: the tensor is not a convolution weight, or its channels are not divisible by `groups`.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueProblem(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}")
    if tensor.shape[0] % groups:
        raise ValueProblem(f"dim 0 must be divisible by groups, got {tensor.shape[0]} channels and {groups} groups")
    each = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(each, tensor.shape[1])):
                tensor[(group * each + channel, channel, *middle)] = 1
    return tensor


def _under_old_name(function: Callable):
    """Return a function under its deprecated name, without the final `_`."""
    new = function.__name__
    old = new[:-1]

    def deprecated(*args, **kwargs) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"Call `{new}`, which has the same arguments."
    return deprecated


uniform = _under_old_name(uniform_)
normal = _under_old_name(normal_)
constant = _under_old_name(constant_)
eye = _under_old_name(eye_)
dirac = _under_old_name(dirac_)
xavier_uniform = _under_old_name(xavier_uniform_)
xavier_normal = _under_old_name(xavier_normal_)
kaiming_uniform = _under_old_name(kaiming_uniform_)
kaiming_normal = _under_old_name(kaiming_normal_)
orthogonal = _under_old_name(orthogonal_)
sparse = _under_old_name(sparse_)

globals().update(with_checks(globals(), __all__, __name__))
