"""Which functions write into an `out` of another dtype than their result's, and PyTorch's words where they do not.

Functions of single elements cast their results, as long as no float becomes an integer. Most others want the very
dtype, and say so in words of their own.
"""

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.errors import ShapeError
from backlight.ops.linalg.matrix_products import small_name
from backlight.ops.type_promotion import category

_EXACT = """
addmm addmv alias_copy aminmax as_strided_copy avg_pool2d avg_pool3d baddbmm bmm linalg_cholesky cholesky_ex cross det
diag diagonal_copy eigh eigvalsh expand_copy gather index_add index_copy index_reduce inv inv_ex linear log_softmax lu
lu_factor lu_factor_ex lu_solve lu_unpack mm msort norm permute_copy qr renorm scatter scatter_add
scatter_reduce slice_scatter slogdet softmax solve solve_ex sort split_with_sizes_copy squeeze_copy svd svdvals t_copy
take_along_dim topk transpose_copy triangular_solve tril triu unbind_copy unfold_copy unsqueeze_copy vector_norm
view_copy
"""
_FOUND = """
abs ceil conj floor frac gelu hardshrink neg round sgn sign softplus softshrink trunc
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
    if category(kind) > category(given):
        raise ShapeError(f"result type {wanted} can't be cast to the desired output type {found}")
