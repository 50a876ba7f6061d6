"""Hostile arguments end in PyTorch's errors, never in a crash, a hang or an error that nobody wrote for the caller."""

import copy
import importlib.util
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import backlight
import backlight.array_api
import backlight.func
import backlight.nn
import backlight.signal
import backlight.utils
from parity import KINDS, evaluate
from soak import hostile_calls

# calls that ended in an AttributeError of Python's, an OverflowError or a ValueError of NumPy's, a row a group
KINDS_OF_ARGUMENTS = """
torch.transpose(x, 'a', 0)
torch.transpose(x, 0)
torch.flip(x, 'a')
torch.flip(x, [1, 'a'])
torch.nansum(x, keepdim=2**64)
torch.hstack(('', 1))
torch.column_stack([x, ()])
torch.unbind_copy([-1])
torch.nonzero_static([x], size=3)
torch.take_along_dim(x, 1, 1)
torch.cdist(2.0, x)
torch.nanmean('a')
torch.logit(x, [x])
torch.norm_except_dim(0.5, 2, 0)
torch.linalg.svdvals((1, 2))
torch.linalg.vector_norm(3)
torch.fft.ifftshift('mean')
torch.einsum(2, x)
torch.grid_sampler_2d((x, x), x, 0, 0, True)
torch.as_strided_scatter(object(), x, (2,), (1,))
torch.margin_ranking_loss(1, 1, x)
torch.cosine_embedding_loss(1, [1], x)
torch.nn.functional.prelu(x, 3)
torch.nn.functional.rms_norm(x, (3,), (x, x))
torch.nn.functional.multi_margin_loss(x, 1e30)
torch.nn.functional.pad(x, 3.5)
torch.nn.functional.instance_norm(x[0])
torch.nn.Tanh()([0, 0, 0])
torch.nn.MaxPool1d(4)(3)
torch.nn.FractionalMaxPool2d(2, 3, output_ratio=0.5)
torch.autograd.Variable(1, True)
torch.finfo(2)
torch.iinfo(-0.0)
torch.set_anomaly_enabled(np.zeros((0, 3)))
torch.broadcast_shapes((), 1.5)
torch.nn.utils.rnn.invert_permutation((x,))
torch.nanmedian(x[0], dim=0, keepdim=np.ones((2, 3)))
torch.dtype()
torch.unravel_index(x, (2, 3))
torch.unravel_index(torch.tensor(2), (2.5,))
x.resize_as_([x])
x.take_along_dim(3)
""".strip().splitlines()

VALUES = """
torch.transpose(x, 2**63 - 1, 0)
torch.transpose(x, 2**70, 0)
torch.nn.utils.rnn.pack_padded_sequence(2, 1, 1)
torch.permute(x, (2**62, 0))
torch.rnn_relu_cell(x[0], x, x, x, x)
torch.gru_cell(x, x, x, x)
torch.lstm_cell(x, (x, x), x, x)
torch.bilinear(x, x, torch.tensor(2.5, dtype=torch.float64))
torch.bilinear(x, x[0], x)
torch.unravel_index(torch.tensor(2), (0, 0))
torch.unravel_index(torch.tensor(2), (-1, 2))
torch.unflatten(torch.tensor(2), 0, (2, 2))
x.index_add(-1, torch.tensor([0, 1, 2]), x[0], alpha=0)
torch.ones(()).size(0)
x.swapaxes(0, -2**62)
torch.nonzero_static(x, size=-5)
torch.index_add(x.long()[0], 0, torch.tensor([0]), torch.tensor([6]), alpha=float('nan'))
""".strip().splitlines()

# modules say which module it was, PyTorch which function inside; the rest of these lines is alike
NAMED_OTHERWISE = {"torch.nn.Tanh()([0, 0, 0])", "torch.nn.MaxPool1d(4)(3)"}


@pytest.mark.parametrize("call", KINDS_OF_ARGUMENTS + VALUES)
def test_odd_arguments_get_pytorchs_error(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = evaluate(torch, call, x=torch.ones(2, 3))
        ours = evaluate(backlight, call, x=backlight.ones(2, 3))
    assert isinstance(theirs, Exception), f"PyTorch gives {theirs!r}"
    assert isinstance(ours, backlight.errors.BacklightError), repr(ours)
    kind = next(kind for kind in KINDS if isinstance(theirs, kind))
    assert isinstance(ours, kind), f"{ours!r}; PyTorch raises {theirs!r}"
    ours, theirs = (str(one).splitlines()[0] for one in (ours, theirs))
    if call in NAMED_OTHERWISE:
        ours, theirs = (one.partition("()")[2] for one in (ours, theirs))
    assert ours.startswith(theirs.rstrip(". ")), f"{ours}\n{theirs}"


def test_an_error_of_the_callers_own_comes_through():
    def user(x):
        return [].missing

    with pytest.raises(AttributeError, match="missing"):
        backlight.func.grad(user)(backlight.ones(2))


def test_a_refused_anomaly_mode_changes_nothing():
    with pytest.raises(TypeError, match="must be bool"):
        backlight.set_anomaly_enabled(np.zeros((0, 3)))
    assert backlight.is_anomaly_enabled() is False
    backlight.ones(2, requires_grad=True).sum().backward()


def test_a_call_that_succeeds_looks_at_no_signature(monkeypatch):
    def looked(*args):
        raise AssertionError("signatures were read")

    monkeypatch.setattr("backlight.ops.arguments.parsing.signatures", looked)
    x = backlight.ones(2, 3)
    assert backlight.flip(x, (0,)).shape == x.flip(1).shape == (2, 3)


def test_the_table_of_signatures_is_what_its_tool_writes():
    path = Path(__file__).parent.parent / "tools" / "argument_signatures.py"
    spec = importlib.util.spec_from_file_location("argument_signatures", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = tool.table()
    assert tool.TABLE.read_text(encoding="utf-8") == written, "run python tools/argument_signatures.py"


def test_a_slice_of_the_soak_program_finds_no_crash_and_no_hang():
    failures = hostile_calls.run(seconds=0, seed=1, calls=300)
    assert not [one for one in failures if not one.startswith("internal ")], "\n".join(failures)
    assert len(failures) <= 5, "\n".join(failures)


@pytest.mark.parametrize(
    "module", [backlight, backlight.nn.functional, backlight.nn.init, backlight.func, backlight.Tensor]
)
def test_what_namespaces_show_is_pickled_by_name(module):
    checked = [value for value in vars(module).values() if type(value) is type(backlight.flip)]
    assert checked
    for function in checked:
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
