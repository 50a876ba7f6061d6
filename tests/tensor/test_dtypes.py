"""Dtypes, devices, sizes and layouts: names, prints, limits and promotion are PyTorch's."""

import copy
import itertools
import pickle

import pytest
import torch
from for_each import together
from parity import assert_same, lines, without_cuda

import backlight
from backlight import dtypes

NAMES = [kind.name for kind in dtypes.ALL]
FLOATS = [name for name in NAMES if "float" in name]
INTEGERS = [name for name in NAMES if "int" in name]


@pytest.fixture(autouse=True)
def no_default_device():
    """Let PyTorch forget a default device, which slows it and names its own line in warnings."""
    yield
    torch.set_default_device(None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("question", ["", ".itemsize", ".is_floating_point", ".is_complex", ".is_signed", ".to_real()"])
def test_a_dtype_is_described_as_pytorchs(name, question):
    assert_same(f"torch.{name}{question}")


def test_other_names_of_dtypes():
    for name in ("float", "double", "half", "int", "long", "short", "cfloat", "cdouble", "complex64", "complex128"):
        assert repr(getattr(backlight, name)) == repr(getattr(torch, name))
    assert backlight.float is backlight.float32
    assert backlight.long is backlight.int64


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("limit", ["", ".eps", ".max", ".min", ".tiny", ".bits", ".resolution", ".dtype"])
def test_finfo(name, limit):
    assert_same(f"torch.finfo(torch.{name}){limit}")


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("limit", ["", ".max", ".min", ".bits", ".dtype"])
def test_iinfo(name, limit):
    assert_same(f"torch.iinfo(torch.{name}){limit}")


def test_limits_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="requires a floating point input type"):
        backlight.finfo(backlight.int64)
    with pytest.raises(TypeError, match="requires an integer input type"):
        backlight.iinfo(backlight.float32)
    assert_same("torch.finfo()")


@together(second=NAMES)
@pytest.mark.parametrize("first", NAMES)
def test_promotion_of_any_two_dtypes(first, second):
    assert_same(f"torch.promote_types(torch.{first}, torch.{second})")
    assert_same(f"torch.can_cast(torch.{first}, torch.{second})")


OPERANDS = ["torch.ones(2, dtype=torch.{})", "torch.ones((), dtype=torch.{})"]
NUMBERS = ["1", "1.5", "True", "1j"]


@pytest.mark.parametrize("first", NAMES)
def test_result_type_of_tensors_and_numbers(first):
    for one in OPERANDS:
        for number in NUMBERS:
            assert_same(f"torch.result_type({one.format(first)}, {number})")
            assert_same(f"torch.result_type({number}, {one.format(first)})")
        for other, second in itertools.product(OPERANDS, ("float32", "float16", "bfloat16", "int64", "uint8", "bool")):
            assert_same(f"torch.result_type({one.format(first)}, {other.format(second)})")


QUESTIONS = """
torch.result_type(1, 2.0)
torch.result_type(True, 1)
torch.result_type(True, False)
torch.is_tensor(3)
torch.is_tensor(torch.ones(2))
torch.is_floating_point(torch.tensor([1]))
torch.is_floating_point(torch.ones(2, dtype=torch.bfloat16))
torch.is_floating_point(3)
torch.ones(2).is_floating_point()
torch.is_complex(torch.ones(2))
torch.is_signed(torch.ones(2, dtype=torch.uint8))
torch.is_nonzero(torch.tensor([2.0]))
torch.is_nonzero(torch.ones(2))
torch.is_same_size(torch.ones(2), torch.ones(3))
torch.is_storage(torch.ones(2))
torch.is_inference(torch.ones(2))
torch.numel(torch.ones(2, 3))
torch.numel(3)
torch.promote_types(3, 4)
torch.typename(torch.ones(2, dtype=torch.float16))
torch.typename(3)
torch.get_device(torch.ones(2))
torch.get_default_dtype()
torch.get_default_device()
torch.set_default_dtype(torch.int64)
torch.set_default_device("cpu")
"""

DEVICES = """
torch.device("cpu")
repr(torch.device("cpu"))
repr(torch.device("cpu", 0))
str(torch.device("cpu:0"))
torch.device("cuda:1").index
torch.device("cuda:1").type
repr(torch.device("cuda", 1))
torch.device(torch.device("cpu"))
torch.device("cpu") == torch.device("cpu", 0)
torch.device("cpu") == "cpu"
torch.device("cpu:x")
torch.device("cpu:")
torch.device("cpu", -1)
torch.device(type="cpu", index=0)
torch.device("nowhere")
torch.ones(2).device
torch.ones(2).device.type
torch.ones(2).layout
torch.strided
torch.contiguous_format
torch.preserve_format
torch.channels_last
"""

SIZES = """
torch.Size([1, 2])
str(torch.ones(2, 3).shape)
f"{torch.ones(2, 3).size()}"
torch.Size((1, 2)) + (3,)
(1,) + torch.Size([1, 2])
torch.Size([1, 2]) * 2
torch.Size([1, 2, 3])[1:]
torch.Size([1, 2, 3])[-1]
torch.Size([2, 3]).numel()
torch.Size([]).numel()
torch.Size()
torch.Size([1, 2]) == (1, 2)
torch.Size([2, 2]).count(2)
torch.Size(3)
list(torch.Size([1, 2]))
"""


@pytest.mark.parametrize(
    "expression", [*lines(QUESTIONS), *lines(DEVICES), *lines(SIZES), without_cuda("torch.device(0)")]
)
def test_questions_devices_and_sizes_answer_as_pytorchs(expression):
    assert_same(expression)


def test_a_device_is_a_context_in_which_tensors_are_made():
    with backlight.device("cpu"):
        assert backlight.ones(2).device == backlight.device("cpu")
    with pytest.raises(RuntimeError, match="Torch not compiled with CUDA enabled"), backlight.device("cuda"):
        pass


def test_accelerators_are_refused():
    for device, words in (("cuda", "Torch not compiled with CUDA"), ("mps", "not linked with support for mps")):
        with pytest.raises(RuntimeError, match=words):
            backlight.ones(2, device=device)
    with pytest.raises(RuntimeError, match="backlight computes on the CPU only"):
        backlight.set_default_device("cuda")


def test_layouts_other_than_strided_are_refused():
    with pytest.raises(RuntimeError, match=r"layout must be torch\.strided"):
        backlight.ones(2, layout=backlight.layout("sparse_coo"))
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        backlight.ones_like(backlight.ones(2), memory_format=backlight.channels_last)


@pytest.mark.parametrize("value", ["float32", "bool", 'device("cpu")', "Size([1, 2])"])
def test_pickles_and_copies_are_equal(value):
    made = eval(f"t.{value}", {"t": backlight})
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made


def test_default_dtype_is_what_floats_become():
    backlight.set_default_dtype(backlight.float64)
    try:
        assert backlight.tensor(1.5).dtype is backlight.float64
        assert backlight.rand(2).dtype is backlight.float64
        assert backlight.result_type(1, 2.0) is backlight.float64
    finally:
        backlight.set_default_dtype(backlight.float32)
