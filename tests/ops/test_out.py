"""The `out` argument: results in the caller's tensors, resized with PyTorch's warning, refused with its errors."""

import os
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from opinfo_out import run_entry_out
from opinfo_run import entries, full_name
from parity import assert_same, lines
from test_opinfo import PASSING

import backlight
from backlight.ops import out_variants

# What differs, and why: the values are equal everywhere.
DIFFERENT = {
    "addbmm": "PyTorch resizes without its warning",
    "bernoulli": "PyTorch resizes without its warning",
    "narrow_copy": "PyTorch resizes without its warning",
    "normal.number_mean": "PyTorch resizes without its warning",
    "lu": "PyTorch resizes without its warning",
    "nn.functional.logsigmoid": "PyTorch resizes without its warning",
    "nn.functional.linear": "PyTorch warns although it does not resize",
    "matmul": "PyTorch warns although it does not resize",
    "inner": "PyTorch casts for matrices, and not for vectors",
    "linalg.matrix_power": "PyTorch casts for the first power only",
    "norm.nuc": "PyTorch names a function of another namespace",
    "_batch_norm_with_update": "an inner operator, without out here",
    "native_batch_norm": "PyTorch trips over statistics of another shape instead of resizing them",
    "_native_batch_norm_legit": "an inner operator, without out here",
    "split_with_sizes_copy": "PyTorch forgets to refuse outs that require grad",
    "linalg.eigh": "the signs of eigenvectors are left open",
    "linalg.eig": "the phases of eigenvectors are left open",
}
TAKING_OUT = {full_name(entry): entry for entry in entries() if entry.supports_out and torch.float64 in entry.dtypes}


def test_out_of_every_entry_equals_pytorch():
    wrong = [run_entry_out(TAKING_OUT[name], 2) for name in PASSING if name in TAKING_OUT and name not in DIFFERENT]
    assert len(wrong) > 200
    assert not [outcome for outcome in wrong if outcome.status != "pass"]


EXPRESSIONS = lines(
    """
    torch.add(torch.ones(2, requires_grad=True), 1, out=torch.empty(2))
    torch.add(torch.ones(2), 1, out=torch.empty(2, dtype=torch.int64))
    torch.add(torch.ones(2), 1, out=torch.zeros(2).expand(3, 2))
    torch.add(torch.ones(2, requires_grad=True), 1, out=None)
    torch.eq(torch.ones(2, requires_grad=True), 1, out=torch.empty(2, dtype=torch.bool))
    torch.add(torch.ones(2), 1, out=torch.empty(2, dtype=torch.float64))
    torch.sum(torch.ones(2), 0, out=torch.empty((), dtype=torch.float64))
    torch.zeros(2, out=torch.ones(2, dtype=torch.int32))
    torch.arange(3, out=torch.empty(0))
    torch.max(torch.tensor([[1., 3.]]), 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))[1]
    torch.special.expit(torch.zeros(2), out=torch.empty(2))
    torch.linalg.inv(torch.eye(2), out=torch.empty(2, 2))
    torch.nn.functional.gelu(torch.zeros(2), out=torch.ones(2))
    torch.relu(torch.zeros(2), out=torch.ones(2))
    """
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_out_is_pytorchs(expression):
    assert_same(expression.strip())


def test_the_version_of_out_counts_the_write():
    x = backlight.ones(2, requires_grad=True)
    held = backlight.ones(2)
    product = x * held
    backlight.exp(backlight.zeros(2), out=held)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_the_warning_names_the_users_line():
    with pytest.warns(UserWarning, match=r"since it had shape \[3\]") as said:
        backlight.add(backlight.ones(2), 1, out=backlight.ones(3))
    assert said[0].filename == __file__


def test_a_function_taking_out_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(backlight.tanh)) is backlight.tanh
    assert pickle.loads(pickle.dumps(backlight.special.expit)) is backlight.special.expit


def test_classes_of_a_namespace_stay_classes():
    assert issubclass(backlight.linalg.LinAlgError, RuntimeError)


def test_without_the_compiled_part_out_is_the_same():
    code = (
        "import backlight as torch; held = torch.empty(2); assert torch.exp(torch.zeros(2), out=held) is held;"
        "assert held.tolist() == [1, 1]; assert torch.exp.__name__ == 'exp' and torch.exp.__module__ == 'backlight'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "BACKLIGHT_KERNELS": "numpy"})


def test_every_name_is_a_function_that_pytorch_gives_out():
    for name in out_variants.NAMES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert callable(getattr(torch, name)), name
        assert callable(getattr(backlight, name)), name
