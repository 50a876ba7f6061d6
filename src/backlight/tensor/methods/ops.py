"""Tensor's methods that are ops: a table of functions that are methods under their own names; operators."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from backlight import dtypes
from backlight.codegen.declaration import operator_of
from backlight.codegen.runtime_support import is_operand
from backlight.engine.tensor_state import TensorState
from backlight.layouts import preserve_format
from backlight.ops.elementwise import (
    activations,
    arithmetic,
    comparisons,
    complex_numbers,
    copying,
    division,
    filling,
    powers,
    rounding,
    transcendental,
    where_clamp,
)
from backlight.ops.fourier import short_time
from backlight.ops.indexing import gather_scatter, getitem, index_selection, masking, slicing
from backlight.ops.inplace import inplace, inplace_view
from backlight.ops.linalg import (
    addmm_family,
    cholesky,
    contractions,
    determinants,
    householder,
    linear_systems,
    lu,
    matrix_functions,
    matrix_norms,
    matrix_products,
    pseudoinverse,
    qr,
    singular_values,
)
from backlight.ops.nn import softmax
from backlight.ops.reduction import extremes, histograms, norms, quantiles, reductions, scans, sorting, statistics
from backlight.ops.shape import (
    expanding,
    flipping,
    joining,
    reshaping,
    resizing,
    splitting,
    striding,
    transposing,
    triangular,
)
from backlight.ops.special import rare_functions, special_functions
from backlight.tensor import random_factories
from backlight.torch_api import removed_functions

# A module, its functions that are methods, and those with an in-place form too: `relu` is also `relu_`.
OPS: tuple[tuple[ModuleType, str, str], ...] = (
    (activations, "hardshrink prelu", "relu sigmoid"),
    (arithmetic, "", "add sub subtract mul multiply addcmul addcdiv lerp"),
    (division, "", "div divide true_divide floor_divide remainder fmod gcd lcm"),
    (powers, "logaddexp logaddexp2", "pow float_power square reciprocal sqrt rsqrt hypot ldexp"),
    (
        rounding,
        "positive angle frexp",
        "abs absolute neg negative sign sgn floor ceil trunc fix frac round copysign heaviside nan_to_num nextafter",
    ),
    (
        transcendental,
        "",
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin arcsin acos arccos atan arctan atan2 arctan2 sinh cosh "
        "tanh asinh arcsinh acosh arccosh atanh arctanh sinc deg2rad rad2deg",
    ),
    (special_functions, "", "erf erfc erfinv lgamma digamma mvlgamma i0 logit xlogy"),
    (rare_functions, "", "igamma igammac"),
    (
        comparisons,
        "isnan isinf isfinite isposinf isneginf isreal signbit isclose allclose equal",
        "eq ne not_equal lt less le less_equal gt greater ge greater_equal logical_and logical_or logical_xor "
        "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift",
    ),
    (where_clamp, "maximum minimum fmax fmin", "clamp clip clamp_min clamp_max"),
    (short_time, "stft istft", ""),
    (complex_numbers, "conj conj_physical conj_physical_ is_conj is_neg resolve_conj resolve_neg", ""),
    (copying, "clone contiguous to type_as", ""),
    (softmax, "softmax log_softmax", ""),
    (reductions, "sum nansum mean nanmean prod all any count_nonzero logsumexp", ""),
    (extremes, "max min amax amin aminmax argmax argmin", ""),
    (statistics, "var std cov corrcoef", ""),
    (quantiles, "median nanmedian mode quantile nanquantile", ""),
    (norms, "dist", "renorm"),
    (matrix_norms, "norm", ""),
    (scans, "cummax cummin logcumsumexp diff", "cumsum cumprod"),
    (sorting, "sort argsort msort topk kthvalue unique unique_consecutive histc bincount", ""),
    (histograms, "histogram", ""),
    (reshaping, "reshape flatten unflatten ravel", "squeeze unsqueeze"),
    (expanding, "sum_to_size broadcast_to tile repeat_interleave", ""),
    (transposing, "permute movedim moveaxis adjoint", "transpose t swapaxes swapdims"),
    (striding, "unfold as_strided_scatter fill_diagonal_", "as_strided"),
    (resizing, "resize_ resize_as_", ""),
    (
        splitting,
        "split split_with_sizes chunk unsafe_split unsafe_split_with_sizes unsafe_chunk tensor_split hsplit vsplit "
        "dsplit unbind",
        "",
    ),
    (flipping, "flip fliplr flipud roll rot90", ""),
    (triangular, "diag diag_embed diagflat trace", "tril triu"),
    (joining, "combinations", ""),
    (getitem, "index_put index_put_", ""),
    (slicing, "select narrow narrow_copy diagonal select_scatter slice_scatter diagonal_scatter", ""),
    (index_selection, "index_select take", "index_add index_copy index_fill put"),
    (gather_scatter, "gather take_along_dim", "scatter scatter_add scatter_reduce index_reduce"),
    (masking, "masked_select nonzero nonzero_static argwhere", "masked_fill masked_scatter"),
    (matrix_products, "matmul mm bmm mv dot vdot", ""),
    (contractions, "inner outer ger kron cross", ""),
    (addmm_family, "", "addmm addmv addr addbmm baddbmm"),
    (cholesky, "cholesky cholesky_inverse cholesky_solve", ""),
    (lu, "lu lu_solve", ""),
    (linear_systems, "inverse triangular_solve", ""),
    (determinants, "det logdet slogdet", ""),
    (qr, "qr geqrf", ""),
    (householder, "orgqr ormqr", ""),
    (singular_values, "svd", ""),
    (pseudoinverse, "pinverse", ""),
    (matrix_functions, "matrix_exp matrix_power", ""),
    (removed_functions, "eig lstsq solve symeig", ""),
    (random_factories, "bernoulli multinomial", ""),
)
# Their in-place forms give the tensor another shape, instead of writing into its memory.
RESHAPING = frozenset(["as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"])
UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "true_divide": np.divide}


def _cast_to(kind: dtypes.dtype) -> Callable:
    """Return the method that casts to one dtype."""

    def cast(self, memory_format=preserve_format):
        return copying.cast(self, kind.numpy, memory_format)

    cast.__doc__ = f"Return the tensor as {kind}: itself, if it is that already."
    return cast


def _polygamma_of(input: TensorState, n: int):
    return special_functions.polygamma(n, input)


class OpMethods:
    """Tensor's methods that are ops, those of the table and those of other names or with arguments in another order."""

    __slots__ = ()
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable: ...  # those of the table

    __getitem__ = getitem.get_item
    __setitem__ = getitem.set_item
    copy_ = copying.copy_into
    fill_ = filling.fill_into
    zero_ = filling.zero_into
    type = copying.as_type
    repeat = expanding.repeated
    real = property(complex_numbers.real, complex_numbers.set_real)
    imag = property(complex_numbers.imag, complex_numbers.set_imag)
    T = property(transposing.reversed_dims)
    mT = property(transposing.matrix_transpose)
    H = property(transposing.hermitian_transpose)
    mH = property(transposing.adjoint)

    cdouble = _cast_to(dtypes.complex128)
    cfloat = _cast_to(dtypes.complex64)
    chalf = _cast_to(dtypes.complex32)

    def polygamma(self, n: int):
        """Return the n-th derivative of digamma."""
        return special_functions.polygamma(n, self)

    def polygamma_(self, n: int):
        """Write the n-th derivative of digamma into the tensor."""
        return _polygamma_(self, n)

    def where(self, condition: TensorState, other: TensorState | float):
        """Return this tensor where the condition holds, `other` elsewhere."""
        return where_clamp.where(condition, self, other)


_polygamma_ = inplace(_polygamma_of, "polygamma_")


def methods_of_table() -> dict[str, Callable]:
    """Return the methods that the table names; aliases (`mul_`, `multiply_`) are the same object."""
    found, in_place = {}, {}
    for module, plain, written in OPS:
        for name in f"{written} {plain}".split():
            found[name] = getattr(module, name)
        for name in written.split():
            function = found[name]
            if function not in in_place:
                reshapes = name in RESHAPING
                in_place[function] = (
                    inplace_view(function, f"{name}_") if reshapes else inplace(function, ufunc=UFUNCS.get(name))
                )
            found[f"{name}_"] = in_place[function]
    return found


for _name, _method in methods_of_table().items():
    setattr(OpMethods, _name, _method)
for _kind in dtypes.OLD:
    setattr(OpMethods, _kind.old_name.lower(), _cast_to(_kind))


# --- Python's operators -----------------------------------------------------------------------------------------------


def operator(function: Callable) -> Callable:
    """Return a binary function as a Python operator: returns NotImplemented for foreign operands."""

    @functools.wraps(function)
    def apply(self, other):
        return function(self, other) if is_operand(other) else NotImplemented

    return apply


def reflected(function: Callable) -> Callable:
    """The same as `operator`, for the operand on the right."""

    @functools.wraps(function)
    def apply(self, other):
        return function(other, self) if is_operand(other) else NotImplemented

    apply.__name__ = f"r{function.__name__}"
    return apply


def _reciprocal_times(self, other):
    return self.reciprocal() * other


def in_place_operator(public: Callable) -> Callable:
    """Return an op's in-place form as a Python operator: a foreign operand gives NotImplemented."""
    return inplace(public, ufunc=UFUNCS.get(public.__name__), operator=True)


class OperatorMethods:
    """Python's operators."""

    __slots__ = ()

    __array_priority__ = 1000
    __hash__ = object.__hash__

    __add__ = __radd__ = operator_of(arithmetic.add)
    __sub__ = operator_of(arithmetic.sub)
    __rsub__ = operator(arithmetic.rsub)
    __mul__ = __rmul__ = operator_of(arithmetic.mul)
    __truediv__ = operator_of(division.true_divide)
    __rtruediv__ = __rdiv__ = operator(_reciprocal_times)
    __floordiv__ = operator_of(division.floor_divide)
    __rfloordiv__ = reflected(division.floor_divide)
    __mod__ = operator(division.remainder)
    __rmod__ = reflected(division.remainder)
    __pow__ = operator(powers.pow)
    __rpow__ = reflected(powers.pow)
    __matmul__ = operator_of(matrix_products.matrix_product)
    __neg__ = rounding.neg
    __pos__ = rounding.positive
    __abs__ = rounding.abs

    __eq__ = operator_of(comparisons.eq)
    __ne__ = operator_of(comparisons.ne)
    __lt__ = operator_of(comparisons.lt)
    __le__ = operator_of(comparisons.le)
    __gt__ = operator_of(comparisons.gt)
    __ge__ = operator_of(comparisons.ge)
    __and__ = __rand__ = operator_of(comparisons.bitwise_and)
    __or__ = __ror__ = operator_of(comparisons.bitwise_or)
    __xor__ = __rxor__ = operator_of(comparisons.bitwise_xor)
    __lshift__ = operator_of(comparisons.bitwise_left_shift)
    __rlshift__ = reflected(comparisons.bitwise_left_shift)
    __rshift__ = operator_of(comparisons.bitwise_right_shift)
    __rrshift__ = reflected(comparisons.bitwise_right_shift)
    __invert__ = comparisons.invert

    __iadd__ = in_place_operator(arithmetic.add)
    __isub__ = in_place_operator(arithmetic.sub)
    __imul__ = in_place_operator(arithmetic.mul)
    __itruediv__ = in_place_operator(division.true_divide)
    __ifloordiv__ = in_place_operator(division.floor_divide)
    __imod__ = in_place_operator(division.remainder)
    __ipow__ = in_place_operator(powers.pow)
    __iand__ = in_place_operator(comparisons.bitwise_and)
    __ior__ = in_place_operator(comparisons.bitwise_or)
    __ixor__ = in_place_operator(comparisons.bitwise_xor)
    __ilshift__ = in_place_operator(comparisons.bitwise_left_shift)
    __irshift__ = in_place_operator(comparisons.bitwise_right_shift)

    def __rmatmul__(self, other):
        return matrix_products.matmul(other, self) if isinstance(other, TensorState) else NotImplemented
