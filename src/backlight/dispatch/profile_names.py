"""What users call an op, and under which name a profile shows it: PyTorch's `aten::` name, else ours."""

import re

# Suffixes that distinguish ops of one name by their arguments, like PyTorch's overloads.
OVERLOAD = re.compile(
    r"_(all|dims?|(?:of_|to_)?numbers?|(?:to_)?tensors?|decimals|rounded|with_bias|without_bias|of_means|of_stds)$"
)

CALLED = {
    "_cdist_forward": "cdist",
    "as_strided_view": "as_strided",
    "reshape_alias": "reshape",
    "to_copy": "to",
    "to_discrete": "to",
    "to_format": "to",
    "unsafe_view": "view",
    "view_as_dtype": "view",
}

ELSEWHERE = {
    "__getitem__": "index",
    "adaptive_avg_pool2d_backward": "_adaptive_avg_pool2d_backward",
    "as_strided_view": "as_strided",
    "cross_entropy": "cross_entropy_loss",
    "cross_entropy_2d": "cross_entropy_loss",
    "drawn_bernoulli": "bernoulli",
    "drawn_dirichlet": "_sample_dirichlet",
    "drawn_gamma": "_standard_gamma",
    "drawn_normal": "normal",
    "drawn_poisson": "poisson",
    "gather_sparse_backward": "_gather_sparse_backward",
    "logsigmoid": "log_sigmoid",
    "relu_backward": "threshold_backward",
    "sparse_add": "add",
    "sparse_divided": "div",
    "sparse_mm": "_sparse_mm",
    "sparse_mul": "mul",
    "sparse_neg": "neg",
    "sparse_product": "_sparse_addmm",
    "sparse_scaled": "mul",
    "sparse_sparse_mm": "_sparse_sparse_matmul",
    "sparse_total": "sum",
    "reshape_alias": "_reshape_alias",
    "to_copy": "_to_copy",
    "to_format": "_to_copy",
    "unique": "_unique2",
    "unsafe_view": "_unsafe_view",
    "view_as_dtype": "view",
    "xlog1py": "special_xlog1py",
}

# PyTorch has no op of these names.
_OURS = """
add_at_places add_positions circular_pad1d circular_pad2d circular_pad3d cofactor_derivative cofactors
convolution_weight divide_or_zero erf_backward filled_up filling filling_zeros first_elements gathered_as gru_steps
index_backward kept larger_share linear_recurrence lstm_steps masked_unselect permutation_matrix
put_positions ragged_attention repeating_pad_backward reverse_cumsum rnn_steps scale shift sinc_slope
smoothed_cross_entropy spread spread_over_classes take_of_classes take_positions taken_at_places tie_weights
to_discrete upsample_backward view_of_parts view_of_rows with_zeros of_pairs to_pairs vm weighted_rows
sparse_entries values_at_entries entry_values in_layout_of sparse_to_dense dense_to_sparse coalesced_entries
sparse_clone sparse_cast sparse_permute sparse_transpose sparse_t without_sparse sparse_along
"""
OURS = frozenset(_OURS.split())


def public_name(name: str) -> str:
    """Return the name of the function that users call: `sum_all` is `sum`."""
    return CALLED.get(name) or OVERLOAD.sub("", name)


def event_name(name: str) -> str:
    """Return the name of the events of the op of a name."""
    name = OVERLOAD.sub("", name)
    name = ELSEWHERE.get(name, name)
    return f"backlight::{name}" if name in OURS else f"aten::{name}"
