"""Tensor's methods that write random numbers into it."""

import math
from collections.abc import Callable

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import complex_dtype, from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.engine.views import check_may_write, has_history
from backlight.errors import GraphError, ShapeError, UnsupportedError
from backlight.kernels.elementwise.complex_parts import joined, parts_of
from backlight.kernels.memory_order import in_memory_order, outer_first
from backlight.kernels.random import distributions
from backlight.ops.inplace import write
from backlight.ops.number_operands import require_kernel
from backlight.ops.type_promotion import is_float
from backlight.system.user_warnings import warn_once
from backlight.tensor.creation import converted
from backlight.tensor.generators import Generator, twister_of


def require_float(kernel: str, kind: np.dtype) -> None:
    """Raise unless a dtype is floating point."""
    if not is_float(kind):
        name = from_numpy_dtype(kind).old_name
        raise UnsupportedError(f"\"{kernel}\" not implemented for '{name}'; draw floats, with dtype=torch.float32")


def _joined(parts: np.ndarray) -> np.ndarray:
    """Return complex numbers of their parts, the last dim; in the order in which the parts lie."""
    if parts.dtype == np.float16:
        return joined(parts[..., 0], parts[..., 1])
    return parts[..., 0] + parts[..., 1] * complex_dtype(parts.dtype).type(1j)


def uniform_numbers(array: np.ndarray, low: float, high: float, generator: Generator | None) -> np.ndarray:
    """Return uniform numbers in the shape of an array, which is not written to."""
    if array.dtype.kind in "cW":
        return _joined(uniform_numbers(parts_of(array), low, high, generator))
    require_float("check_uniform_bounds", array.dtype)
    if low > high:
        raise ShapeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    twister = twister_of(generator)
    return in_memory_order(array, lambda count: distributions.uniform(twister, count, array.dtype, low, high))


def normal_numbers(array: np.ndarray, mean: float, std: float, generator: Generator | None) -> np.ndarray:
    """Return normal numbers in the shape of an array, which is not written to."""
    if std < 0:
        raise ShapeError(f"normal expects std >= 0.0, but found std {std:g}")
    if array.dtype.kind in "cW":
        return _joined(normal_numbers(parts_of(array), mean, std / math.sqrt(2), generator))
    require_float("normal_kernel_cpu", array.dtype)
    twister, blocks = twister_of(generator), array.flags.c_contiguous
    return in_memory_order(array, lambda count: distributions.normal(twister, count, array.dtype, mean, std, blocks))


def random_integers(array: np.ndarray, low: int, high: int, generator: Generator | None) -> np.ndarray:
    """Return integers from [low, high) in the shape of an array, which is not written to."""
    if low >= high:
        raise ShapeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    _check_reach(array.dtype, low, high)
    twister = twister_of(generator)
    return in_memory_order(array, lambda count: distributions.integers(twister, count, low, high)).astype(array.dtype)


def _check_reach(kind: np.dtype, low: int, high: int) -> None:
    """Raise if a dtype does not hold a range of integers; warn if it rounds some of them."""
    name, c_name = from_numpy_dtype(kind).name, from_numpy_dtype(kind).c_name
    if is_float(kind):
        bits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[name]
        if name == "float16" and max(abs(low), high - 1) > 65504:
            raise ShapeError(f"to - 1 is out of bounds for {name}: float16 ends at 65504")
        if low < -(2**bits) or high - 1 > 2**bits:
            warn_once(
                f"to - 1 is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {name} can support "
                "discrete uniform distribution only within this range.",
                stacklevel=5,
            )
        return
    smallest, largest = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    if not smallest <= low <= largest:
        raise ShapeError(f"from is out of bounds for {c_name}: it holds {smallest} to {largest}, got from={low}")
    if not smallest <= high - 1 <= largest:
        raise ShapeError(f"to - 1 is out of bounds for {c_name}: it holds {smallest} to {largest}, got to={high}")


def _overwrite(tensor: TensorState, numbers: np.ndarray, name: str):
    """Write numbers into a tensor; its history is cut: earlier tensors get no gradient."""
    if modes.grad_enabled and has_history(tensor):
        check_may_write(tensor)
    if modes.grad_enabled and tensor._edge is not None:
        return tensor.copy_(wrap(numbers))
    write(tensor, wrap(numbers), name)
    return tensor


def _fill(tensor: TensorState, name: str, distribution: Callable, generator: Generator | None, *parameters: float):
    """Overwrite a tensor with float64 draws from a distribution, converted to its dtype."""
    array, twister = writable(tensor), twister_of(generator)
    numbers = in_memory_order(array, lambda count: distribution(twister, count, *parameters))
    return _overwrite(tensor, converted(distributions.narrowed(numbers, array.dtype), array.dtype), name)


class RandomMethods:
    """Tensor's methods that fill it with random numbers. Each returns the tensor itself."""

    __slots__ = ()

    @composite_function
    def uniform_(self, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None):
        """Fill with numbers drawn uniformly from [from_, to)."""
        return _overwrite(self, uniform_numbers(writable(self), from_, to, generator), "uniform_")

    @composite_function
    def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None):
        """Fill with normal numbers."""
        return _overwrite(self, normal_numbers(writable(self), mean, std, generator), "normal_")

    @composite_function
    def random_(self, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None):
        """Fill with integers: `random_(to)`, `random_(from, to)`, or from all that the dtype holds exactly."""
        array, twister = writable(self), twister_of(generator)
        if from_ is None:
            require_kernel("random_kernel_cpu", array.dtype)
            numbers = in_memory_order(array, lambda count: distributions.all_integers(twister, count, array.dtype))
        else:
            low, high = (0, from_) if to is None else (from_, to)
            numbers = random_integers(array, low, high, generator)
        return _overwrite(self, numbers, "random_")

    @composite_function
    def bernoulli_(self, p: float | TensorState = 0.5, *, generator: Generator | None = None):
        """Fill with 1 with probability `p`, a number or a tensor of them, else with 0."""
        array, twister = writable(self), twister_of(generator)
        require_kernel(f"bernoulli_{'tensor_cpu_self' if isinstance(p, TensorState) else 'scalar_cpu'}_", array.dtype)
        if isinstance(p, TensorState):
            chances = p.expand(array.shape)._data.transpose(order := outer_first(array))
            numbers = bernoulli_numbers(np.ascontiguousarray(chances), generator).transpose(np.argsort(order))
        else:
            if not 0 <= p <= 1:
                raise ShapeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
            numbers = in_memory_order(array, lambda count: distributions.bernoulli(twister, count, p))
        return _overwrite(self, numbers.astype(array.dtype), "bernoulli_")

    @composite_function
    def exponential_(self, lambd: float = 1.0, *, generator: Generator | None = None):
        """Fill with numbers of the exponential distribution, of density lambd · exp(−lambd · x)."""
        if not is_float(self._data.dtype):
            raise ShapeError(
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
                f"you specified {from_numpy_dtype(self._data.dtype).old_name}"
            )
        if not lambd > 0:
            raise ShapeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
        return _fill(self, "exponential_", distributions.exponential, generator, lambd)

    @composite_function
    def geometric_(self, p: float, *, generator: Generator | None = None):
        """Fill with the number of trials it takes to succeed, if each does with probability `p`."""
        if not 0 < p < 1:
            raise ShapeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        require_kernel("geometric_cpu", self._data.dtype)
        if self._data.dtype.kind in "bc":
            name = from_numpy_dtype(self._data.dtype).old_name
            raise UnsupportedError(f"\"geometric_cpu\" not implemented for '{name}'; draw numbers, and compare them")
        return _fill(self, "geometric_", distributions.geometric, generator, p)

    @composite_function
    def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None):
        """Fill with numbers of the Cauchy distribution."""
        if not is_float(self._data.dtype):
            raise ShapeError(
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
                f"specified {from_numpy_dtype(self._data.dtype).old_name}; draw floats, with dtype=torch.float32"
            )
        if not sigma > 0:
            raise ShapeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        return _fill(self, "cauchy_", distributions.cauchy, generator, median, sigma)

    @composite_function
    def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None):
        """Fill with log-normal numbers: their logarithms have this mean and std."""
        require_float("log_normal_cpu", self._data.dtype)
        if not std > 0:
            raise ShapeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        return _fill(self, "log_normal_", distributions.log_normal, generator, mean, std)


def bernoulli_numbers(chances: np.ndarray, generator: Generator | None) -> np.ndarray:
    """Return a bool for each probability."""
    require_float("bernoulli_tensor_cpu_p_", chances.dtype)
    if not np.all((chances >= 0) & (chances <= 1)):
        wrong = chances[~((chances >= 0) & (chances <= 1))][0]
        raise GraphError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            f"so, please report an enhancement request to PyTorch.)\n  {wrong:g} is no probability"
        )
    return distributions.bernoulli_each(twister_of(generator), chances)
