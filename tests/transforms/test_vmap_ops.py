"""vmap over PyTorch's own samples: what it computes is what a loop over the batch computes, gradients too."""

import opinfo_run
import pytest
import vmap_run

# Computed element by element: each for a reason that holds for every way to compute them.
LOOPED = set(
    """
    _fft_c2c _fft_c2r _fft_r2c as_strided_scatter block_diag conj_physical ctc_loss embedding_bag
    fractional_max_pool2d fractional_max_pool3d imag index_add linalg_eig view_as_complex view_as_real index_copy
    index_fill index_fill_tensor index_select linalg_eigh linalg_householder_product linalg_lstsq linalg_matrix_exp
    linalg_pinv linalg_qr linalg_svd masked_scatter masked_select median_all multi_margin_loss
    multilabel_margin_loss nanmedian_all native_group_norm native_layer_norm nll_loss ormqr put renorm
    repeat_interleave segment_reduce
    """.split()  # noqa: SIM905 - a list of so many would take a page
)
RUNNING = "PyTorch lets running statistics that are not batched move here; what they become depends on the order"
DIFFERS = {
    "_native_batch_norm_legit": RUNNING,
    "native_batch_norm": RUNNING,
    "istft": "it checks its window for zeros: a choice by values, which vmap refuses",
    "nn.functional.one_hot": "without num_classes the largest value decides its shape, which vmap refuses",
    "max_pool2d_with_indices_backward": "the test's wrapper calls autograd.grad, which vmap refuses",
}
ENTRIES = {opinfo_run.full_name(entry): entry for entry in opinfo_run.entries()}


@pytest.mark.parametrize("name", vmap_run.PASSING)
def test_vmap_of_an_op_is_a_loop_over_the_batch(name):
    outcome = vmap_run.run_entry(ENTRIES[name], 3, (0,))
    assert (outcome.status == "fail") == (name in DIFFERS), outcome
    assert set(outcome.looped) <= LOOPED
