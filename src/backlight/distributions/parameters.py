"""Parameters of distributions: numbers and tensors brought to one shape, values computed on first use, probabilities.

PyTorch's `torch.distributions.utils`.
"""

from collections.abc import Callable, Sequence
from functools import update_wrapper

from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.interpreters import Interpreter
from backlight.dtypes import dtype, finfo, get_default_dtype
from backlight.engine.grad_mode import enable_grad
from backlight.errors import ValueProblem
from backlight.nn.functional import softmax
from backlight.ops.elementwise.activations import sigmoid
from backlight.ops.elementwise.transcendental import log, log1p
from backlight.ops.shape.expanding import broadcast_tensors
from backlight.overrides import is_tensor_like
from backlight.sizes import Size
from backlight.tensor.creation import tensor
from backlight.tensor.factories import empty
from backlight.tensor.ranges import arange
from backlight.tensor.tensor import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.5772156649015329
Number = (int, float)
Value = Tensor | float


def require(holds: bool, problem: str) -> None:
    """Raise an AssertionError unless a condition holds: PyTorch's for misuse of its classes."""
    if not holds:
        raise AssertionError(problem)


@composite_function
def all_true(checks: Tensor) -> Tensor:
    """Return whether all elements are True; inside vmap those of the full batch, so that a program may branch on it."""
    return checks.all()


def _of_full_batch(level: Interpreter, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    return function(args[0].physical)


all_true.batch_rule = _of_full_batch


def broadcast_all(*values: Value) -> tuple[Tensor, ...]:
    """Return the values as tensors of one shape; numbers take the dtype of the first tensor, else the default dtype.

    Raises:
        ValueError: a value is neither a number nor a tensor.
    """
    if not all(is_tensor_like(value) or isinstance(value, Number) for value in values):
        raise ValueProblem(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    kind = next((value.dtype for value in values if isinstance(value, Tensor)), None) or get_default_dtype()
    return broadcast_tensors(*[value if is_tensor_like(value) else tensor(value, dtype=kind) for value in values])


def are_numbers(*values: Value) -> bool:
    """Tell whether all values are numbers, so that a distribution of them has no batch."""
    return all(isinstance(value, Number) for value in values)


def standard_normal(shape: Sequence[int], kind: dtype) -> Tensor:
    """Return standard normal numbers."""
    return empty(shape, dtype=kind).normal_()


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over the last dims, as many as given."""
    return value if dims == 0 else value.reshape((*value.shape[:-dims], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities: the sigmoid of binary logits, else the softmax along the last dim."""
    return sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1 by the dtype's eps."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithm of the odds of binary probabilities, else of the probabilities."""
    kept = clamp_probs(probs)
    return log(kept) - log1p(-kept) if is_binary else log(kept)


class lazy_property:  # noqa: N801 - PyTorch's name
    """A property that is computed when it is first read, with grad mode on, and is a plain attribute from then on."""

    def __init__(self, wrapped: Callable):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance: object | None, owner: type | None = None):
        if instance is None:
            return _LazyPropertyOfClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyPropertyOfClass(lazy_property, property):
    """What a lazy property is when it is read from the class: a property, for those who document it."""

    def __init__(self, wrapped: Callable):
        property.__init__(self, wrapped)


class BinaryProbabilities:
    """What distributions of two outcomes share: each of `probs` and `logits` gives the other.

    Exactly one of the two is given; that one is an attribute, and the other one becomes it on first use.
    """

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.size()

    def _new(self, *args, **kwargs) -> Tensor:
        return self._param.new(*args, **kwargs)


def either(probs: Value | None, logits: Value | None) -> str:
    """Return which one of two arguments is given.

    Raises:
        ValueError: both are, or none.
    """
    if (probs is None) == (logits is None):
        raise ValueProblem("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


def _mask_below(count: int, diag: int) -> Tensor:
    places = arange(count)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the entries on and below a diagonal, row after row. Shapes: (..., D, D) -> (..., D·(D + 1) / 2).

    Raises:
        ValueError: there is no such diagonal.
    """
    size = mat.shape[-1]
    if diag < -size or diag >= size:
        raise ValueProblem(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return mat[..., _mask_below(size, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the matrices whose entries on and below a diagonal are given, row after row, and 0 elsewhere.

    Raises:
        ValueError: no square matrix has so many entries there.
    """
    shift = 1 + 2 * diag
    count = vec.shape[-1]
    size = (-shift + (shift**2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(size) - size > finfo(vec.dtype).eps:
        raise ValueProblem(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    size = round(size)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    mat[..., _mask_below(size, diag)] = vec
    return mat
