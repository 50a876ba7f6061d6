"""The autocast policy of each function: PyTorch's lists for the CPU."""

import importlib
from functools import cache

from backlight import fft, linalg
from backlight.codegen.declaration import TABLE
from backlight.nn import functional
from backlight.tensor.tensor import Tensor

LOWER, FLOAT32, PROMOTE, AS_IT_IS = "lower", "float32", "promote", "as it is"

_LOWER = """
addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot
linear linear_with_bias linear_without_bias lstm_steps matmul mm prelu rnn_steps scaled_dot_product_attention
"""
_FLOAT32 = """
adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky
cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy ctc_loss fft_hfft fft_ihfft fft_irfft fft_irfft2
fft_irfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d grid_sampler_3d
gru_steps hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond
linalg_eigh linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank
linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve margin_ranking_loss
max_pool3d max_unpool2d max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr
pinverse poisson_nll_loss prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
replication_pad3d smooth_l1_loss soft_margin_loss svd trace triangular_solve triplet_margin_loss
"""
_PROMOTE = "cat concat concatenate index_copy stack"
_AS_IT_IS = "addbmm_ addmm_ baddbmm_ bilinear lstm_cell"  # composed of functions in a list, but not cast themselves

LISTS = {LOWER: _LOWER, FLOAT32: _FLOAT32, PROMOTE: _PROMOTE, AS_IT_IS: _AS_IT_IS}


@cache
def policies() -> dict[object, str]:
    """Return the policy of each listed function."""
    named = {name: policy for policy, names in LISTS.items() for name in names.split()}
    found = {one: policy for name, policy in named.items() for one in _functions_called(name)}
    return found | dict.fromkeys(_functions_called("einsum"), "einsum")


def _functions_called(name: str) -> list:
    """Return the functions with one of PyTorch's names."""
    front = importlib.import_module("backlight")  # stands on no floor
    space, _, rest = name.partition("_")
    if space in ("fft", "linalg"):
        return [getattr(module, rest) for module in (fft, linalg) if module.__name__.endswith(space)]
    found = [getattr(module, name) for module in (front, functional, Tensor) if hasattr(module, name)]
    return found + ([TABLE[name].public] if name in TABLE else [])


def contracts(equation: object) -> bool:
    """Tell whether an einsum sums over an index of two operands: then it is a matrix product."""
    if not isinstance(equation, str) or "," not in equation:
        return False
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    letters = [one for one in inputs if one.isalpha()]
    kept = output if arrow else [one for one in letters if letters.count(one) == 1]
    return any(one not in kept for one in letters)
