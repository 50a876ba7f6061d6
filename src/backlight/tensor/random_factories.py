"""New tensors of random numbers."""

import operator
from collections.abc import Sequence

import numpy as np

from backlight.codegen.runtime_support import broadcast_problem
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import dtype, from_numpy_dtype, iinfo, to_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.memory_order import empty_like_in, in_memory_order, model_of
from backlight.kernels.random import distributions, gamma
from backlight.kernels.random.generator import MersenneTwister
from backlight.kernels.state_blocks import silent_floats
from backlight.layouts import contiguous_format, layout, memory_format
from backlight.ops.number_operands import no_kernel, require_kernel
from backlight.ops.random import draws, gammas
from backlight.ops.reduction.sorting import first_along
from backlight.ops.type_promotion import FLOAT32, INT64, is_float, promote_types
from backlight.sizes import allocated, check_storage, size_from, storage_errors
from backlight.tensor.creation import leaf, made
from backlight.tensor.factories import float_dtype
from backlight.tensor.generators import Generator, twister_of
from backlight.tensor.methods.random import (
    bernoulli_numbers,
    normal_numbers,
    random_integers,
    require_float,
    uniform_numbers,
)
from backlight.types import Device

__all__ = [
    "_sample_dirichlet",
    "_standard_gamma",
    "bernoulli",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]

MOST_CATEGORIES = 2**24
MOST_RATE = 2.0**62


@composite_function
def rand(
    *sizes, size=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Make a tensor of numbers drawn uniformly from [0, 1)."""
    places = allocated(np.empty, size_from("rand", sizes if size is None else (size,)), float_dtype(dtype))
    return made(uniform_numbers(places, 0.0, 1.0, generator), requires_grad, device, layout, pin_memory)


@composite_function
def randn(
    *sizes, size=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Make a tensor of standard normal numbers."""
    places = allocated(np.empty, size_from("randn", sizes if size is None else (size,)), float_dtype(dtype))
    return made(normal_numbers(places, 0.0, 1.0, generator), requires_grad, device, layout, pin_memory)


@composite_function
def randint(
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Make a tensor of integers from [low, high): `randint(high, size)` or `randint(low, high, size)`.

    Raises:
        RuntimeError: `high` is not above `low`, or the dtype does not reach so far.
    """
    if size is None:
        high, size = None, high
    if not isinstance(size, (tuple, list)):
        place = 2 if high is None else 3
        raise ArgumentError(
            f"randint(): argument 'size' (position {place}) must be tuple of ints, not {type(size).__name__}"
        )
    if dtype is not None and dtype.is_complex:
        raise ShapeError("check_random_bounds handles only integral, floating-point and boolean types")
    places = allocated(np.empty, size_from("randint", (size,)), to_numpy_dtype(dtype) or INT64)
    numbers = random_integers(places, *_limits("randint", 1, low, high), generator)
    return made(numbers, requires_grad, device, layout, pin_memory)


def _integer(function: str, name: str, place: int, value) -> int:
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise ArgumentError(f"{function}(): argument '{name}' (position {place}) must be int, not {kind}") from None


def _limits(function: str, place: int, low: int, high: int | None) -> tuple[int, int]:
    """Return the limits of random integers: `high` alone, at `place` among the arguments, or `low` and `high`."""
    if high is None:
        return 0, _integer(function, "high", place, low)
    return _integer(function, "low", place, low), _integer(function, "high", place + 1, high)


@composite_function
@storage_errors
def randperm(n: int, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a tensor of the numbers below `n` in random order.

    Raises:
        RuntimeError: `n` is negative.
    """
    count = operator.index(n)
    if count < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    kind = to_numpy_dtype(dtype) or INT64
    check_storage((count,), INT64.itemsize)
    require_kernel("randperm", kind)
    _check_holds(from_numpy_dtype(kind), count)
    order = distributions.permutation(twister_of(generator), count).astype(kind)
    return made(order, requires_grad, device, layout, pin_memory)


def _check_holds(kind: dtype, count: int) -> None:
    """Raise unless a dtype holds the numbers below `count`; PyTorch does not check bfloat16."""
    if kind.name == "bool":
        raise UnsupportedError("\"randperm\" not implemented for 'Bool'; draw numbers, and compare them")
    if kind.name in EXACT_INTEGER_BITS:
        power = EXACT_INTEGER_BITS[kind.name]
        if count > 2**power + 1:
            most = 2**power + 1 if power == 11 else f"2^{power}+1"
            raise ShapeError(f"n cannot be greater than {most} for {kind.old_name} type. Leave dtype out")
    elif not kind.is_floating_point and count - 1 > iinfo(kind).max:
        raise ShapeError(
            f"value cannot be converted to type {kind.name}_t without overflow: it ends at {iinfo(kind).max}"
        )


EXACT_INTEGER_BITS = {"float16": 11, "float32": 24, "float64": 53}  # exact for all integers up to this power of 2


def _places(input: TensorState, dtype: dtype | None, memory_format: memory_format | None) -> np.ndarray:
    """Return an uninitialised array with the shape and layout of a tensor's."""
    return empty_like_in(input._data, memory_format, to_numpy_dtype(dtype))


@composite_function
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None):
    """Make a tensor shaped as `input`, of numbers drawn uniformly from [0, 1)."""
    places = _places(input, dtype, memory_format)
    return made(uniform_numbers(places, 0.0, 1.0, generator), requires_grad, device, layout)


@composite_function
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None):
    """Make a tensor shaped as `input`, of standard normal numbers."""
    places = _places(input, dtype, memory_format)
    return made(normal_numbers(places, 0.0, 1.0, generator), requires_grad, device, layout)


@composite_function
def randint_like(
    input: TensorState,
    low: int,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: memory_format | None = None,
):
    """Make a tensor shaped as `input`, of integers from [low, high), or from [0, low) without `high`."""
    places = _places(input, dtype, memory_format)
    numbers = random_integers(places, *_limits("randint_like", 2, low, high), generator)
    return made(numbers, requires_grad, device, layout)


@composite_function
def normal(
    mean: float | TensorState,
    std: float | TensorState = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Make a tensor of normal numbers: `normal(mean, std, size)`, or with a tensor of means or of stds.

    Raises:
        TypeError: neither a tensor nor a size is given.
        RuntimeError: a std is negative.
    """
    if size is not None:
        if isinstance(mean, TensorState) or isinstance(std, TensorState) or not isinstance(size, (tuple, list)):
            got = ", ".join(type(one).__name__ for one in (mean, std, size))
            raise ArgumentError(
                f"normal() received an invalid combination of arguments - got ({got}), but expected one of: two "
                "tensors, a tensor and a number, or two numbers and a size, which is a tuple of ints"
            )
        places = allocated(np.empty, size_from("normal", (size,)), float_dtype(dtype))
        return made(normal_numbers(places, mean, std, generator), requires_grad, device, layout, pin_memory)
    given = [value._data for value in (mean, std) if isinstance(value, TensorState)]
    if isinstance(std, TensorState) and std._data.dtype.kind in "cW":
        raise ShapeError("normal expects standard deviation to be non-complex")
    if not given:
        got = ", ".join(type(one).__name__ for one in (mean, std))
        raise ArgumentError(
            f"normal() received an invalid combination of arguments - got ({got}), but expected one of: two tensors, a "
            "tensor and a number, or two numbers and a size, which is a tuple of ints"
        )
    if isinstance(std, TensorState) and (std._data < 0).any():
        raise ShapeError("normal expects all elements of std >= 0.0")
    try:
        shape = np.broadcast_shapes(*[array.shape for array in given])
    except ValueError as problem:
        raise broadcast_problem(problem, given) from None
    kind = given[0].dtype  # that of the means where both are tensors
    if len(given) == 1 and not isinstance(std, TensorState):
        numbers = normal_numbers(np.empty(shape, kind), 0.0, std, generator)
        return draws.drawn_normal_of_means(mean, np.asarray(numbers + given[0]))
    numbers = normal_numbers(np.empty(shape, kind), 0.0, 1.0, generator)
    if not isinstance(mean, TensorState):
        numbers = np.asarray(numbers * given[-1] + kind.type(mean)).astype(kind, copy=False)
        return draws.drawn_normal_of_stds(std, numbers)
    numbers = np.asarray(np.asarray(numbers * given[-1]).astype(kind, copy=False) + given[0]).astype(kind, copy=False)
    return draws.drawn_normal(mean, std, numbers)


@composite_function
def bernoulli(input: TensorState, p: float | None = None, *, generator: Generator | None = None):
    """Make a tensor of 1 with the probabilities in `input`, else of 0; with `p`, of 1 with that probability for all.

    The gradient of a probability is 0: the samples do not depend smoothly on it.

    Raises:
        RuntimeError: a probability is not from [0, 1].
    """
    if p is not None:
        return leaf(_places(input, None, contiguous_format)).bernoulli_(p, generator=generator)
    numbers = bernoulli_numbers(np.asarray(input._data), generator)
    return draws.drawn_bernoulli(input, numbers.astype(input._data.dtype))


@composite_function
def poisson(input: TensorState, generator: Generator | None = None):
    """Make a tensor of counts of the Poisson distribution, with the rates in `input`.

    Raises:
        RuntimeError: a rate is negative, or above 2⁶².
    """
    rates = np.asarray(input._data)
    require_float("poisson_cpu", rates.dtype)
    if not (rates >= 0).all():
        raise ShapeError("invalid Poisson rate, expected rate to be non-negative")
    if (rates > MOST_RATE).any():
        raise ShapeError("a Poisson rate must be at most 2**62, so that counts fit 64 bits")
    return draws.drawn_poisson(input, distributions.poisson(twister_of(generator), rates).astype(rates.dtype))


def _require_wide(kernel: str, kind: np.dtype) -> None:
    """Raise unless a dtype is float32 or float64."""
    require_float(kernel, kind)
    if kind.itemsize == 2:
        raise no_kernel(kernel, kind, "convert the input with .float()")


@composite_function
def _standard_gamma(input: TensorState, generator: Generator | None = None):
    """Make a tensor of gamma distributed numbers of rate 1, with the shapes in `input`; differentiable in these."""
    shapes = np.asarray(input._data)
    _require_wide("gamma_cpu", shapes.dtype)
    return gammas.drawn_gamma(input, gamma.gammas(twister_of(generator), shapes).astype(shapes.dtype))


@composite_function
def _sample_dirichlet(input: TensorState, generator: Generator | None = None):
    """Make a tensor of shares that sum to 1 along the last dim, of the Dirichlet distributions in `input`."""
    concentrations = np.asarray(input._data)
    _require_wide("dirichlet", concentrations.dtype)
    return gammas.drawn_dirichlet(input, gamma.dirichlets(twister_of(generator), concentrations))


@composite_function
@storage_errors
def multinomial(input: TensorState, num_samples: int, replacement: bool = False, *, generator: Generator | None = None):
    """Draw `num_samples` indices from each row of `input`, whose values are the weights.

    Shapes: (n) -> (num_samples), (rows, n) -> (rows, num_samples)

    Raises:
        RuntimeError: a weight is negative, all are 0, or there are too few to draw from without replacement.
    """
    weights = _weights(input, num_samples, replacement)
    twister = twister_of(generator)
    if not replacement or num_samples == 1:
        return leaf(_largest_races(twister, weights, num_samples))
    return leaf(_searched(twister, weights, num_samples))


def _weights(input: TensorState, num_samples: int, replacement: bool) -> np.ndarray:
    """Return the weights to draw by, or raise if they are invalid."""
    weights = np.asarray(input._data)
    if weights.ndim not in (1, 2):
        raise ShapeError(f"prob_dist must be 1 or 2 dim, got {weights.ndim} dims")
    if not is_float(weights.dtype):
        kind = from_numpy_dtype(weights.dtype).old_name
        raise ShapeError(f"multinomial only supports floating-point dtypes for input, got: {kind}")
    if num_samples <= 0:
        raise ShapeError(f"cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > weights.shape[-1]:
        raise ShapeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: there are "
            f"{weights.shape[-1]}, got {num_samples}"
        )
    if weights.shape[-1] > MOST_CATEGORIES:
        raise ShapeError("number of categories cannot exceed 2^24")
    valid = np.isfinite(weights) & (weights >= 0)
    if not np.all(valid):
        if not replacement or num_samples == 1:
            raise ShapeError("probability tensor contains either `inf`, `nan` or element < 0")
        wrong = weights.reshape(-1)[np.argmin(valid)]
        said = "= infinity or NaN" if wrong > 0 else "< 0"
        raise ShapeError(f"invalid multinomial distribution (encountering probability entry {said}); it is {wrong}")
    if not np.all(weights.sum(-1) > 0):
        raise ShapeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return weights


def _largest_races(twister: MersenneTwister, weights: np.ndarray, num_samples: int) -> np.ndarray:
    """Return the indices of the largest quotients weight / exponential draw, the largest first.

    Source: Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006.
    """
    draw = in_memory_order(model_of(weights), lambda count: distributions.exponential(twister, count)).astype(
        weights.dtype
    )
    with silent_floats():
        quotients = weights / draw
    if num_samples == 1:
        return quotients.argmax(-1, keepdims=True)
    return first_along(quotients, num_samples, -1, True)


def _searched(twister: MersenneTwister, weights: np.ndarray, num_samples: int) -> np.ndarray:
    """Return the positions of uniform draws in the cumulative weights of each row."""
    rows = weights.reshape(-1, weights.shape[-1])
    cumulated = np.cumsum(rows, 1, dtype=promote_types(weights.dtype, FLOAT32))
    cumulated = cumulated / cumulated[:, -1:]
    cumulated[:, -1] = 1
    drawn = distributions.unit64(twister, len(rows) * num_samples).reshape(len(rows), num_samples)
    found = [row.searchsorted(numbers) for row, numbers in zip(cumulated, drawn)]
    return np.array(found, np.int64).reshape(*weights.shape[:-1], num_samples)
