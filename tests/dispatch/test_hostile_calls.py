"""Hostile arguments end in PyTorch's errors, never in a crash, a hang or an error that nobody wrote for the caller."""

import copy
import importlib.util
import os
import pickle
import warnings

import numpy as np
import pytest
import torch
from parity import KINDS, evaluate
from paths import ROOT

import backlight
import backlight.array_api
import backlight.func
import backlight.nn
import backlight.optim
import backlight.signal
import backlight.utils
from backlight.nn.utils import prune
from hostile import objects
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
x.norm(1.0, dtype=x)
x.norm([2.0])
x.norm(2.0, 1.5)
x.norm(2.0, dtype=3)
torch.cdist(x, x, 'x')
torch.nonzero(x, as_tuple=1)
torch.set_grad_enabled(1)
torch.split(x, np.ones((2, 3)))
torch.split(x, np.int64(2))
torch.normal(x, 2.0, 5)
torch.func.rearrange(3, 'a -> a')
torch.nn.functional.interpolate(x[None, None], size=2**63)
torch.nn.functional.interpolate(x[None, None], size=(2**63, 1), mode='bicubic')
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
torch.lu_unpack(x[0], torch.tensor([1], dtype=torch.int32))
torch.lu_unpack(x, torch.tensor([0, 2], dtype=torch.int32))
torch.lu_unpack(x, torch.tensor([3, 2], dtype=torch.int32))
torch.lu_unpack(x, torch.tensor(1, dtype=torch.int32))
torch.tensordot(x, x, dims=float('inf'))
torch.tensordot(x, x, dims='cuda')
torch.native_group_norm(torch.ones(2, 6, 3), None, None, 2, 6, 3, 0, 0.5)
torch.native_batch_norm(x[:, :1], None, None, torch.ones(1), torch.tensor(2.5), True, 0.1, 1e-5)
torch.histogramdd(torch.ones(5, 5), (1,) * 5, [1.0])
torch.nn.functional.fractional_max_pool2d(torch.ones(1, 3, 9, 9), 4, output_size=(-1, -1))
torch.nn.functional.fractional_max_pool3d(torch.ones(1, 2, 6, 5, 4), 2, output_size=(-1,))
torch.nn.functional.conv1d(torch.ones(1, 5, 3), torch.ones(5, 5, 0))
torch.nn.functional.conv_transpose2d(torch.ones(1, 5, 3, 3), torch.ones(5, 5, 2, 0))
torch.nn.functional.interpolate(x[None, None], size=2**62)
torch.nn.LSTMCell(2, 2)(x[:, :2], ())
torch.nn.utils.rnn.pack_padded_sequence(x, 1)
torch.nn.init.calculate_gain([2])
torch.signal.windows.general_cosine(4, a='cpu')
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).split(1, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).split(5, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).unsafe_split(5, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).chunk(2**61, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).unsafe_chunk(2**61, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).unbind(1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).tensor_split(2**61, 1)
torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).hsplit(2**61)
torch.zeros(0).chunk(2**62)
torch.zeros(0).unsafe_chunk(2**62)
list(torch.zeros(0, 1, dtype=torch.uint8).expand(0, 2**62).t())
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


# an option that is a number, given as a tensor without dims: PyTorch takes it, in backward too
TENSORS_AS_NUMBERS = """
torch.add(x, y, alpha=t)
torch.sub(x, y, alpha=t)
torch.rsub(x, y, alpha=t)
torch.addcdiv(x, x, y, value=t)
torch.addcmul(x, x, y, value=t)
torch.addmm(x @ y.T, x, y.T, beta=t, alpha=t)
torch.index_add(x, 0, torch.tensor([0, 1]), y, alpha=t)
torch.renorm(x, t, 0, t)
torch.dist(x, y, t)
torch.norm(x, t)
torch.linalg.vector_norm(x, t)
torch.cdist(x, y, t)
torch.std(x, correction=t)
torch.logit(x / 10, t / 10)
torch.nn.functional.leaky_relu(-x, t)
torch.nn.functional.elu(-x, t)
torch.nn.functional.hardtanh(x, -t, t)
torch.nn.functional.softshrink(x, t)
torch.nn.functional.softplus(x, t, t)
""".strip().splitlines()


@pytest.mark.parametrize("call", TENSORS_AS_NUMBERS)
def test_a_tensor_without_dims_stands_for_a_number(call):
    def outcome(module):
        x = module.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 6.0]], requires_grad=True)
        y = module.tensor([[2.0, 1.0, 2.0], [3.0, 2.5, 4.0]], requires_grad=True)
        out = eval(call, {"torch": module, "x": x, "y": y, "t": module.tensor(2.5)})
        out.sum().backward()
        return out.tolist(), x.grad.tolist()

    for ours, theirs in zip(outcome(backlight), outcome(torch)):
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", ["torch.ones(1)", "torch.tensor(2.5, requires_grad=True)"])
def test_a_tensor_with_dims_or_history_stands_for_no_number(alpha):
    for module in (torch, backlight):
        with pytest.raises(TypeError):
            module.rsub(module.ones(2), module.ones(2), alpha=eval(alpha, {"torch": module}))


ONE_OR_SEVERAL = """
torch.fft.hfft2(x, np.int64(3), dim=0)
torch.fft.hfftn(x, dim=np.int64(1))
torch.fft.hfftn(x, s=torch.tensor(4), dim=torch.tensor(1))
torch.movedim(x, 0, np.int64(1))
torch.roll(x, np.int64(1), np.int64(1))
torch.flip(x, (np.int64(1),))
torch.tensordot(x, x, dims=((0,), [np.int64(0)]))
"""


@pytest.mark.parametrize("call", ONE_OR_SEVERAL.strip().splitlines())
def test_one_integer_may_be_numpys_or_a_tensor(call):
    theirs = evaluate(torch, call, x=torch.arange(6.0).reshape(2, 3))
    ours = evaluate(backlight, call, x=backlight.arange(6.0).reshape(2, 3))
    np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-5, atol=1e-5)


def test_squeeze_of_the_array_api_says_what_it_does_not_take():
    squeeze = backlight.array_api.squeeze
    assert squeeze(backlight.tensor(2.0), 0).shape == ()
    with pytest.raises(TypeError, match=r"squeeze\(\)"):
        squeeze(0.5, 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        squeeze(backlight.ones(1), 3)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        squeeze(backlight.ones(1), -(2**63) - 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        backlight.array_api.take(backlight.ones(2), backlight.tensor([0]), axis=-(2**63))


def test_a_foreign_object_that_has_no_truth_value_is_a_wrong_argument():
    for foreign in (torch.ones(2, 3), np.ones((2, 3))):
        with pytest.raises(TypeError, match=r"argument 'n' .* must be int"):
            backlight.ones(2).polygamma_(foreign)
        with pytest.raises(TypeError, match=r"argument 'from' .* must be float"):
            backlight.ones(2).uniform_(foreign)


@pytest.mark.parametrize("dims", [objects.NegativeLen(), objects.HugeLen()])
@pytest.mark.parametrize(
    "call", ["fft.ifftshift(x, dim=d)", "amax(x, d)", "flip(x, d)", "roll(x, 1, d)", "view_copy(x, d)"]
)
def test_what_is_indexed_without_end_is_no_list(call, dims):
    with pytest.raises(
        TypeError, match=r"must be tuple of ints|invalid combination of arguments - got \(Tensor, \w+Len\)"
    ):
        eval(f"torch.{call}", {"torch": backlight, "x": backlight.ones(2, 3), "d": dims})


def test_requires_grad_is_a_bool():
    for value in ("np.ones(2)", "np.bool_(True)"):
        for call in (f"torch.empty_like(x, requires_grad={value})", f"torch.ones(2, requires_grad={value})"):
            for module in (torch, backlight):
                assert isinstance(evaluate(module, call, x=module.ones(2)), TypeError), (call, module)


def test_what_is_pruned_is_a_module():
    with pytest.raises(TypeError, match="must be a Module"):
        prune.l1_unstructured(backlight.ones(2), [2, 3], 1)
    with pytest.raises(ValueError, match="too many values to unpack"):
        prune.global_unstructured(np.ones((2, 3)), 1)


def test_packed_rows_are_two_tensors():
    for data in (1, (1, 2, 3)):
        with pytest.raises(AssertionError, match="Expected data to be a list or tuple of length 2"):
            backlight.nn.utils.rnn.PackedSequence(data)


def test_a_chain_of_schedules_is_a_list():
    for schedulers in (1, 0.5, backlight.ones(2)):
        with pytest.raises(TypeError, match="has no len"):
            backlight.optim.lr_scheduler.ChainedScheduler(schedulers)


def test_the_class_of_tensors_is_no_tensor():
    with pytest.raises(TypeError, match="must be Tensor, not type"):
        backlight.meshgrid(backlight.ones(2), type, indexing="xy")
    with pytest.raises(TypeError, match="must be Tensor"):
        backlight.nn.functional.logsigmoid(backlight.Tensor)


REFUSED_SETTINGS = """
torch.set_autocast_dtype('cpu', 2)
torch.set_autocast_dtype('cpu', torch.tensor(2.0))
torch.set_autocast_cpu_dtype('x')
torch.set_autocast_enabled('cpu', np.ones(2))
torch.set_autocast_enabled(2)
torch.set_autocast_cpu_enabled(1)
torch.set_autocast_cache_enabled(np.zeros((0, 3)))
torch.autocast('cpu', dtype=torch.bfloat16, enabled=2).__enter__()
torch.autocast('cpu', dtype=np.float32(2.5)).__enter__()
torch.set_grad_enabled(np.ones(2))
"""


@pytest.mark.parametrize("call", REFUSED_SETTINGS.strip().splitlines())
def test_a_refused_setting_changes_nothing(call):
    def state():
        return (
            backlight.is_autocast_enabled("cpu"),
            backlight.get_autocast_dtype("cpu"),
            backlight.is_autocast_enabled("cuda"),
            backlight.is_autocast_cache_enabled(),
            backlight.is_grad_enabled(),
        )

    before = state()
    for module in (torch, backlight):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert isinstance(evaluate(module, call), TypeError), module
    assert state() == before
    assert (backlight.ones(2, 2) @ backlight.ones(2, 2)).dtype is backlight.float32


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

    monkeypatch.setattr("backlight.dispatch.arguments.parsing.signatures", looked)
    x = backlight.ones(2, 3)
    assert backlight.flip(x, (0,)).shape == x.flip(1).shape == (2, 3)


def test_the_table_of_signatures_is_what_its_tool_writes():
    path = ROOT / "tools" / "argument_signatures.py"
    spec = importlib.util.spec_from_file_location("argument_signatures", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = tool.table()
    assert tool.TABLE.read_text(encoding="utf-8") == written, "run python tools/argument_signatures.py"


def test_waiting_for_a_processor_is_no_hang():
    waiting = hostile_calls.Waiting(computed=3.0, now=0.0)
    for look in range(1, 1000):  # runnable for 1000 s, computing for 10 of them
        assert waiting.problem(20, 3.0 + look / 100, runs=True, now=float(look)) is None
    assert "processor's time" in waiting.problem(20, 23.5, runs=True, now=1000.0)


def test_waiting_without_computing_is_a_hang():
    waiting, look = hostile_calls.Waiting(computed=3.0, now=0.0), 0
    while (problem := waiting.problem(20, 3.0, runs=False, now=look / 2)) is None:
        look += 1
    assert "without computing" in problem
    assert 60 <= look / 2 <= 61


def test_what_other_threads_compute_is_computed():
    waiting = hostile_calls.Waiting(computed=0.0, now=0.0)
    looks = [waiting.problem(1000, 0.5 * look, runs=False, now=0.5 * look) for look in range(1, 500)]
    assert looks == [None] * len(looks)


def test_the_time_that_a_process_computes_is_read():
    before, runs = hostile_calls.usage(os.getpid())
    assert runs
    while hostile_calls.usage(os.getpid())[0] < before + 0.05:
        sum(range(10000))


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


class Bottomless:
    """A list that says it is long and has no element."""

    def __len__(self):
        return 2**62

    def __getitem__(self, place):
        raise IndexError(place)


@pytest.mark.parametrize(
    "call",
    [
        "torch.nn.ParameterDict([x])",
        "torch.nn.ParameterDict([(1, 2, 3)])",
        "torch.nn.TripletMarginLoss('a')",
        "torch.meshgrid([torch.ones(2)], indexing=3)",
        "torch.ShortTensor(x)",
        "torch.ones(5, 5).vsplit(np.int64(2))",
        "torch.histogramdd(torch.ones(5, 2), [torch.ones(3), torch.ones(1, 1, dtype=torch.float64)])",
        "torch.histogramdd(torch.ones(5, 2), [torch.ones(3), torch.ones(1, 1)])",
        "torch.nn.UninitializedParameter(3)",
        "torch.nn.UninitializedParameter(dtype=3)",
        "torch.optim.lr_scheduler.SequentialLR(torch.optim.SGD([torch.ones(2)], 0.1), np.ones((2, 3)), 1)",
        "torch.optim.Adafactor([torch.ones(2)], -1, eps=0.0)",
    ],
)
def test_constructors_and_lists_are_refused_in_pytorchs_words(call):
    ours, theirs = (evaluate(module, call, x=Bottomless()) for module in (backlight, torch))
    assert isinstance(ours, next(one for one in type(theirs).__mro__ if one.__module__ == "builtins"))
    assert str(ours).startswith(str(theirs).rstrip(". "))
