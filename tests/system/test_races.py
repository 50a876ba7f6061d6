"""Claims about tensors that one thread writes while another computes with them: any values, never a crash.

Each race runs in a child process, which a crash ends: cases of soak/race_cases.py, each for a bounded time.
"""

import warnings

import numpy as np
import pytest

import backlight as torch
from backlight.engine.views import shown_by_strides
from soak.race_cases import CASES
from soak.races import child

SECONDS = 0.7  # for each case; `make soak` plays all of them for longer
FAMILIES = {  # those that crashed before what is checked was what is used
    "slices": ("index_select", "index_select_rows", "index_add", "index_add_backward", "index_copy", "index_fill"),
    "places": ("gather_rows", "take_along_dim", "scatter", "scatter_backward", "scatter_reduce_backward"),
    "flat places": ("take_backward", "put", "max_pool_backward", "embedding_backward"),
    "subscripts": ("two_subscripts", "two_subscripts_written", "index_put"),
    "masks": ("masked_select", "masked_scatter_backward"),
    "classes": ("cross_entropy", "cross_entropy_weighted", "cross_entropy_backward", "nll_loss"),
    "counts": ("sort_of_integers", "bincount", "repeat_interleave"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_indices_may_be_written_while_an_op_reads_them(family):
    assert child(FAMILIES[family], "values", SECONDS, seed=1) is None


@pytest.mark.parametrize("how", ["replace", "resize"])
def test_memory_may_be_replaced_while_an_op_reads_it(how):
    names = ["index_add", "cross_entropy_backward", "products", "small_arithmetic", "steps"]
    assert child(names, how, SECONDS, seed=1) is None


@pytest.mark.filterwarnings("ignore:index_reduce")  # which is said once a process
def test_every_case_is_one_that_ends_without_an_exception():
    for make in CASES.values():
        make(np.random.default_rng(0)).call()


def test_targets_written_between_forward_and_backward_are_refused():
    x, target = torch.zeros(5, 3, requires_grad=True), torch.tensor([0, 1, 2, 0, 1])
    loss = torch.nn.functional.cross_entropy(x, target)
    target.numpy()[2] = 1 << 40
    with pytest.raises(IndexError):
        loss.backward()


def test_numpy_cannot_resize_the_memory_of_a_tensor():
    x = torch.arange(4)
    with pytest.raises(ValueError, match="does not own its data"):
        x.numpy().resize(1000, refcheck=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 still lets it happen
        x.numpy().shape = (2, 2)
    assert x.shape == (4,)
    x.numpy()[0] = 7
    assert x.tolist() == [7, 1, 2, 3]


def test_another_memory_of_a_base_makes_no_view_beyond_it():
    array = np.arange(4.0)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        shown_by_strides(array, (3,), (16,))
