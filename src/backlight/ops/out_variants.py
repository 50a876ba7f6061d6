"""`out`: results written into tensors that the caller gives, for every function that PyTorch gives an `out` argument.

NOTE [The out argument]
No function here knows of it. What the namespaces show is an object that looks for the keyword and hands all other calls
straight on (csrc/core/wrappers.c; a few nanoseconds). With `out`, the function computes its result as always, and that
is copied into the caller's tensors, which are resized where they do not fit.
"""

import functools
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from backlight.codegen.declaration import Array
from backlight.codegen.forward_mode import has_tangents
from backlight.dispatch.arguments.parsing import kind_of
from backlight.dispatch.interpreters import interpreted
from backlight.dtypes import from_numpy_dtype, to_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, GraphError, ShapeError, UnsupportedError
from backlight.kernels.memory_order import model_of
from backlight.kernels.native import core
from backlight.ops.inplace import refuse_writing, store
from backlight.ops.linalg.matrix_products import small_name
from backlight.ops.memory_overlap import PLACED, refuse_overlaps
from backlight.ops.type_promotion import category, has_gradient, is_complex

_EXACT = """
addmm addmv alias_copy aminmax as_strided_copy avg_pool2d avg_pool3d baddbmm bmm linalg_cholesky cholesky_ex cross det
diag diagonal_copy eigh eigvalsh expand_copy gather index_add index_copy index_reduce inv inv_ex linear log_softmax lu
lu_factor lu_factor_ex lu_solve lu_unpack mm msort norm permute_copy qr renorm scatter scatter_add
scatter_reduce slice_scatter slogdet softmax solve solve_ex sort split_with_sizes_copy squeeze_copy svd svdvals t_copy
take_along_dim topk transpose_copy triangular_solve tril triu unbind_copy unfold_copy unsqueeze_copy vector_norm
view_copy
"""
_CLAMPS = ("clamp", "clamp_max", "clamp_min", "clip")  # by numbers: bounds that are tensors are promoted with the input
_FOUND = """
abs ceil clamp clamp_max clamp_min clip conj_physical floor frac gelu hardshrink neg round sgn sign softplus softshrink
trunc
"""
# Where float64 is wanted and float32 given, {Wanted} is Double, {Given} Float, {wanted} double and {given} float.
_WORDS = {
    **dict.fromkeys(_EXACT.split(), "Expected out tensor to have dtype {wanted}, but got {given} instead"),
    **dict.fromkeys(_FOUND.split(), "Found dtype {Given} but expected {Wanted}"),
    **dict.fromkeys(("dot", "vdot", "matmul"), "result dtype {Given} does not match input dtype {Wanted}"),
    **dict.fromkeys(("cummax", "cummin", "diff", "logcumsumexp"), "expected scalar_type {Wanted} but found {Given}"),
    **dict.fromkeys(("logsigmoid", "solve_triangular"), "expected scalar type {Wanted} but found {Given}"),
    **dict.fromkeys(("index_select", "masked_select"), "{name}(): self and result must have the same scalar type"),
    **dict.fromkeys(("quantile", "nanquantile"), "quantile() out tensor must be same dtype as the input tensor"),
    **dict.fromkeys(
        ("linalg_norm", "matrix_norm"), "linalg.{name} expected out tensor dtype {Wanted} but got: {Given}"
    ),
    **dict.fromkeys(
        ("amax", "amin"),
        "Expected the dtype for input and out to match, but got {Wanted} for input's dtype and {Given} for out's "
        "dtype.",
    ),
    **dict.fromkeys(
        ("complex", "polar"), "Expected object of scalar type {Wanted} but got scalar type {Given} for argument 'out'"
    ),
    **{name: f"{name} does not support non-boolean outputs." for name in ("isneginf", "isposinf")},
    "addbmm": "self and mat2 must have the same dtype, but got {Given} and {Wanted}",
    "float_power": "the output given to float_power has dtype {Given} but the operation's result requires dtype "
    "{Wanted}",
    "frexp": "torch.frexp() expects mantissa to have dtype {wanted} but got {given}",
    "kthvalue": "output values must be of same type as input",
    "mode": "expected scalar type '{Wanted}' but got '{Given}' for values output",
    "multi_dot": "multi_dot(): expected out tensor to have dtype {wanted} but got {given}",
    "multinomial": "multinomial expects {Wanted} tensor out, got: {Given}",
    "mv": "addmv input tensors must have the same dtype, but got {Given}, {Wanted}, and {Wanted}",
    "nan_to_num": "nan_to_num: dtype of out: {Given} should be same as input: {Wanted}",
    **dict.fromkeys(("argmax", "argmin"), "Expected out tensor to have dtype {wanted}, but got {given} instead"),
    "nonzero": "nonzero: Expected out tensor to have scalar type {Wanted} but got scalar type{Given}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false.",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{Wanted} and result "
    "has dtype {Given}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {Wanted} and out.dtype = "
    "{Given}",
    "tensordot": "tensordot: Expected the output tensor to have dtype {Wanted}, but got an output tensor with dtype "
    "{Given}",
    "vecdot": "linalg.vecdot: Expected out of dtype{Wanted} but found {Given}",
    "where": "Expected out type to be {Wanted} but got {Given}",
}
_OVERLOADED = ("max", "min", "sort")  # whose arguments PyTorch compares with several signatures
_CHECKED_FIRST = {"multinomial": np.dtype(np.int64)}  # before any value of an input: the result's dtype is always this
_OF_SEVERAL = {"max": _WORDS["mm"], "min": _WORDS["mm"]}  # along a dim; of two tensors these cast


def check_out_dtype(name: str, kind: np.dtype, given: np.dtype, several: bool) -> None:
    """Raise PyTorch's error unless a function writes results of a dtype into tensors of another.

    Args:
        kind: the NumPy dtype of the result.
        given: that of `out`.
        several: whether the function has several results.

    Raises:
        RuntimeError: it does not.
    """
    if kind == given:
        return
    words = _WORDS.get(name) or _WORDS.get(name.removeprefix("linalg_")) or (_OF_SEVERAL.get(name) if several else None)
    wanted, found = from_numpy_dtype(kind).old_name, from_numpy_dtype(given).old_name
    if words is not None:
        raise ShapeError(
            words.format(
                name=name.removeprefix("linalg_"),
                Wanted=wanted,
                Given=found,
                wanted=small_name(kind),
                given=small_name(given),
            )
            + f"\n  Give {name} an out of the dtype {from_numpy_dtype(kind)}"
        )
    if name in ("searchsorted", "bucketize"):
        raise ShapeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending "
            f"on whether out_int32 flag is True, but we got output tensor's dtype {found} and out_int32 flag is "
            f"{kind == np.int32}"
        )
    if name in ("cat", "concat", "concatenate") and category(kind) > category(given):
        raise ArgumentError(f"torch.cat(): input types can't be cast to the desired output type {found}")
    if category(kind) > category(given):
        raise ShapeError(f"result type {wanted} can't be cast to the desired output type {found}")


_NAMES = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr alias_copy all amax amin aminmax angle any arange
arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort as_strided_copy asin asinh atan atan2 atanh
baddbmm bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize
cat ceil chain_matmul cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip column_stack complex
concat concatenate conj_physical copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diag diagonal_copy diff
digamma div divide dot dstack empty eq erf erfc erfinv exp exp2 expand_copy expm1 eye fix float_power floor
floor_divide fmax fmin fmod frac frexp full gather gcd ge geqrf ger greater greater_equal gt hardshrink heaviside
histc hstack hypot i0 igamma igammac index_add index_copy index_reduce index_select inner inverse isin isneginf isposinf
kron kthvalue lcm ldexp le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax logaddexp logaddexp2
logcumsumexp logical_and logical_not logical_or logical_xor logit logspace logsumexp lstsq lt lu lu_solve lu_unpack
masked_select matmul matrix_power matrix_rank max maximum mean median min minimum mm mode msort mul multinomial
multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow_copy native_batch_norm ne neg negative
nextafter nonzero norm normal not_equal ones orgqr ormqr outer permute_copy polar polygamma pow prod qr quantile
rad2deg rand randint randn randperm range reciprocal remainder renorm round row_stack rsqrt scatter scatter_add
scatter_reduce searchsorted select_copy sgn sigmoid sign signbit sin sinc sinh slice_copy slice_scatter slogdet
softmax solve sort split_copy split_with_sizes_copy sqrt square squeeze_copy stack std sub subtract sum svd symeig
t_copy take take_along_dim tan tanh tensordot threshold topk transpose_copy triangular_solve tril triu true_divide
trunc unbind_copy unfold_copy unsqueeze_copy var vdot view_as_complex_copy view_as_real_copy view_copy vstack where
xlogy zeros
"""
NAMES = frozenset(_NAMES.split())

# These may not write over a part of what they read: NOTE [Overlaps] in ops/memory_overlap.py
_IN_PLACE_OF_READ = """
abs absolute acos acosh add addcdiv addcmul addmm addr angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin
asinh atan atan2 atanh bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
ceil clamp clamp_max clamp_min clip concat concatenate conj_physical copysign cos cosh cumprod cumsum deg2rad diff
digamma div divide eq erf erfc erfinv exp exp2 expm1 fix floor floor_divide fmax fmin fmod frac frexp gcd ge ger greater
greater_equal gt hardshrink heaviside hstack hypot i0 igamma igammac isneginf isposinf kron lcm ldexp le lerp less
less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or
logical_xor logit lt max maximum min minimum msort mul multiply nan_to_num ne neg negative nextafter
normal not_equal outer pow rad2deg reciprocal remainder renorm round rsqrt sgn sigmoid sign signbit sin sinc sinh sort
sqrt square sub subtract tan tanh topk true_divide trunc where xlogy
"""
MAY_NOT_OVERLAP = frozenset(_IN_PLACE_OF_READ.split()) | PLACED

# Without a dtype these compute in that of `out`.
_IN_DTYPE_OF_OUT = """
arange cumprod cumsum empty eye full linspace logspace mean nanmean ones prod rand randint randn randperm range
sum zeros
"""
IN_DTYPE_OF_OUT = frozenset(_IN_DTYPE_OF_OUT.split())


# These make a tensor from numbers: `out` silently takes its size, and has the dtype.
_MADE = """
arange empty eye full linspace logspace ones rand randint randn randperm range zeros
"""
MADE = frozenset(_MADE.split())


def with_out(namespace: dict, names=NAMES, module: str = "backlight") -> dict:
    """Return those functions of a namespace that are among `names`, as ones that take `out` too."""
    found = {name: namespace[name] for name in sorted(names) if not isinstance(namespace.get(name, type), type)}
    return {name: taking_out(function, module, name) for name, function in found.items()}


def taking_out(function: Callable, module: str, shown_as: str):
    """Return a function that takes `out` too, for a namespace that shows it under a name."""
    if core is not None and hasattr(core, "out_function"):
        return core.out_function(function, written, module, shown_as)

    @functools.wraps(function)
    def may_write(*args, **kwargs):
        return written(function, args, kwargs) if "out" in kwargs else function(*args, **kwargs)

    may_write.__module__, may_write.__qualname__ = module, shown_as
    return may_write


def written(function: Callable, args: tuple, kwargs: dict):
    """Call a function and write its result into `kwargs["out"]`, which is returned.

    Raises:
        NotImplementedError: one of the tensors has a tangent.
        RuntimeError: a gradient would be needed, or the result's dtype cannot be cast to that of `out`.
    """
    out = kwargs.pop("out")
    if out is None:
        return function(*args, **kwargs)
    name = function.__name__
    outs = _checked(name, out)
    if interpreted.blocks and has_tangents(*args, *kwargs.values(), *outs):
        raise UnsupportedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function; leave "
            "out= away, or detach what has a tangent"
        )
    _settle_dtype(name, args, kwargs, outs[0]._data.dtype)
    try:
        result = function(*args, **kwargs)
    except GraphError as problem:
        if str(problem).startswith("Inference tensors cannot be saved"):  # recorded, which PyTorch refuses first
            raise _recorded(name) from None
        raise
    if isinstance(result, TensorState) and not isinstance(out, TensorState):
        raise ArgumentError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    results = [result] if isinstance(result, TensorState) else list(result)
    if modes.grad_enabled and any(one._edge is not None for one in (*results, *outs)):
        raise _recorded(name)
    if len(results) != len(outs):
        raise _wrong_count(name, args, out, len(results))
    by_tensors = name in _CLAMPS and any(isinstance(one, TensorState) for one in (*args[1:], *kwargs.values()))
    rule = "clamp by tensors" if by_tensors else name
    if name in ("abs", "absolute") and is_complex(args[0]._data.dtype):
        rule = _rule_of_sizes(args[0]._data.dtype, outs[0]._data.dtype)
    for target, found in zip(outs, results):
        check_out_dtype(rule, found._data.dtype, target._data.dtype, len(outs) > 1)
    if name in MAY_NOT_OVERLAP:
        for target, found in zip(outs, results):
            refuse_overlaps(target, (*args, *kwargs.values()), name, found._data.size)
    for target, found in zip(outs, results):
        _write(target, found._data, name)
    if isinstance(result, TensorState):
        return outs[0]
    return type(result)(*outs) if hasattr(result, "_fields") else type(result)(outs)


def _settle_dtype(name: str, args: tuple, kwargs: dict, kind: np.dtype) -> None:
    """Compute in the dtype of `out`, where PyTorch does, and refuse one that PyTorch refuses before it computes.

    Args:
        kind: NumPy's dtype of the first output, or what stands for it.
    """
    if name in IN_DTYPE_OF_OUT and kwargs.get("dtype") is None:
        if name in ("mean", "nanmean") and not has_gradient(kind) and has_gradient(args[0]._data.dtype):
            check_out_dtype(name, args[0]._data.dtype, kind, several=False)
        kwargs["dtype"] = from_numpy_dtype(kind)
    if name in MADE:
        wanted = to_numpy_dtype(kwargs["dtype"])
        if wanted != kind:
            raise ShapeError(
                f"dtype {from_numpy_dtype(wanted).old_name} does not match dtype of out parameter "
                f"({from_numpy_dtype(kind).old_name})"
            )
    if name in _CHECKED_FIRST:
        check_out_dtype(name, _CHECKED_FIRST[name], kind, several=False)


def _wrong_count(name: str, args: tuple, out: object, count: int) -> ArgumentError:
    """Return PyTorch's error for `out` that is not the tuple of as many tensors as there are results."""
    if not isinstance(out, TensorState):
        return ArgumentError(f"expected tuple of {count} elements but got {len(out)}")
    if name in _OVERLOADED:
        given = ", ".join(map(kind_of, args))
        return ArgumentError(
            f"{name}() received an invalid combination of arguments - got ({given}, out=Tensor), but expected one of:\n"
            f" * out, a tuple of {count} tensors"
        )
    return ArgumentError(f"{name}(): argument 'out' must be tuple of Tensors, not Tensor; there are {count} results")


def _rule_of_sizes(kind: np.dtype, given: np.dtype) -> str:
    """Return the rule for the sizes of complex numbers: `out` is complex as they are, or takes floats."""
    if is_complex(given):
        check_out_dtype("abs", kind, given, several=False)
    return "sizes of complex numbers"


def _recorded(name: str) -> GraphError:
    return GraphError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.\n  Leave out= away, or write inside torch.no_grad()"
    )


def _checked(name: str, out: TensorState | Sequence[TensorState]) -> list:
    """Return the tensors to write to as a list."""
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    for one in outs:
        if not isinstance(one, TensorState):
            raise ArgumentError(f"{name}(): argument 'out' must be Tensor, not {type(one).__name__}")
    return outs


def _write(target: TensorState, values: Array, name: str) -> None:
    """Copy values into a tensor, resized if it has another shape."""
    if target._data.shape != values.shape:
        _resize(target, values, name)
    store(target, values, name)


def _resize(target: TensorState, values: Array, name: str) -> None:
    """Give a tensor the shape of values, and their order in memory."""
    refuse_writing(target)
    if target._data.size and name == "arange":
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(target._data.shape)} is {target._data.size} "
            f"which does not match the computed number of elements {values.size}. Note that this may occur as a result "
            f"of rounding error. The out tensor will be resized to a tensor of shape ({values.size},).",
            UserWarning,
            stacklevel=4,
        )
    elif target._data.size and name not in MADE:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(target._data.shape)}, which "
            f"does not match the required output shape {list(values.shape)}. This behavior is deprecated, and in a "
            "future PyTorch release outputs will not be resized unless they have zero elements. You can explicitly "
            "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=4,
        )
    target._data = model_of(values, target._data.dtype) if values.shape else target._data.dtype.type(0)
