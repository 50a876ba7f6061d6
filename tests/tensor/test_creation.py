"""Tensors are made of data, of sizes and of ranges exactly as PyTorch makes them, and bad data fails with its words."""

import numpy as np
import pytest
import torch
from for_each import together
from hypothesis import given
from hypothesis import strategies as st
from parity import assert_same, lines, without_cuda

import backlight

DATA = """
3
3.5
True
-0.0
[]
[[]]
[[], []]
()
[1, 2.5]
[True, 1]
[True, 1.0]
[[1, 2], [3, 4]]
range(3)
((1, 2), [3, 4])
bytearray(b"ab")
1e300
[1e300, -1e300]
2**62
[float("nan"), float("inf")]
[-1, 255]
np.float64(1)
np.float32(1)
np.bool_(True)
np.int16(4)
[np.float64(1), 2]
[np.float32(1), np.float16(2)]
np.array(3)
np.array([1.5, 2])
np.array([[1, 2]], dtype=np.uint8)
np.array([True])
np.zeros((2, 0, 3))
np.arange(6).reshape(2, 3).T
[np.array([1, 2]), np.array([3, 4])]
np.ones((2, 3), dtype=np.float16)[:, ::-1]
torch.tensor([1.5, 2])
[torch.tensor(1), torch.tensor(2.5)]
[torch.tensor([1]), torch.tensor([3])]
torch.Size([1, 2])
[[torch.tensor(1)], [torch.tensor(3)]]
torch.ones(2, requires_grad=True)
[torch.ones((), requires_grad=True), 2]
"""

BAD_DATA = """
[[1, 2], [3]]
[[1, 2], [3, 4, 5]]
[[[1, 2]], [[3]]]
[1, [2]]
[1.0, [2]]
[[1], 2]
[[1, 2], [[3], 4]]
None
[None]
"a"
["a"]
[1, "a"]
[[1, 2], "ab"]
b"ab"
object()
{1}
{1: 2}
(x for x in [1])
2**63
[2**63]
[2**62, 2**64]
__import__("fractions").Fraction(1, 2)
np.array(["a"])
np.array([1, 2], dtype=">i4")
np.array([1], dtype=np.longdouble)
[torch.tensor([1, 2]), torch.tensor([3, 4])]
[torch.tensor([1.0, 2]), 3]
"""


@pytest.mark.parametrize("data", lines(DATA))
def test_tensor_of_data_is_pytorchs(data):
    assert_same(f"torch.tensor({data})")
    assert_same(f"torch.as_tensor({data})")


@pytest.mark.parametrize("data", lines(DATA))
@together(dtype=["float64", "float32", "float16", "bfloat16", "int64", "int8", "bool"])
def test_tensor_takes_any_dtype(data, dtype):
    if "nan" in data or "e300" in data:  # as integers these are undefined
        dtype = "float64"
    assert_same(f"torch.tensor({data}, dtype=torch.{dtype})")


@pytest.mark.parametrize("data", lines(BAD_DATA))
def test_bad_data_fails_with_pytorchs_words(data):
    if data in ('np.array(["a"])', "np.array([1], dtype=np.longdouble)"):  # the list of supported types differs
        with pytest.raises(
            TypeError, match=r"can't convert np.ndarray of type numpy\.\w+. The only supported types are"
        ):
            eval(f"torch.tensor({data})", {"torch": backlight, "np": np})
        return
    assert_same(f"torch.tensor({data})")


@pytest.mark.parametrize(
    "call",
    [
        "torch.tensor([300], dtype=torch.uint8)",
        "torch.tensor(-300, dtype=torch.int8)",
        "torch.tensor([float('nan')], dtype=torch.int64)",
        "torch.tensor([float('inf')], dtype=torch.int32)",
        "torch.tensor([1.7, -1.7], dtype=torch.int64)",
        "torch.tensor([0.5, 0.0, -1], dtype=torch.bool)",
        "torch.tensor([None], dtype=torch.float32)",
        "torch.tensor(object(), dtype=torch.int64)",
        "torch.tensor('1', dtype=torch.float32)",
        "torch.tensor([10**400], dtype=torch.float32)",
        "torch.tensor([2**70], dtype=torch.float32)",
        "torch.tensor([1, 2], dtype=float)",
        "torch.tensor([1, 2], dtype=int)",
        "torch.tensor([1, 2], requires_grad=True)",
        "torch.tensor([1.0, 2], requires_grad=True)",
        "torch.tensor([True], dtype=torch.float64, requires_grad=True)",
        "torch.tensor([1], device='cpu')",
        "torch.tensor([1], device='cpu:x')",
        without_cuda("torch.tensor([1], pin_memory=True)"),
        "torch.zeros(2, dtype=torch.int64, requires_grad=True)",
        "torch.ones(2, dtype=torch.bool, requires_grad=True)",
    ],
)
def test_options_of_tensor(call):
    assert_same(call)


def test_cuda_is_refused_with_pytorchs_words():
    with pytest.raises(RuntimeError, match="Torch not compiled with CUDA enabled; backlight computes on the CPU only"):
        backlight.tensor([1.0], device="cuda")


def test_tensor_of_a_tensor_copies_and_warns():
    source = backlight.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match=r"To copy construct from a tensor, it is recommended to use sourceTensor"):
        made = backlight.tensor(source)
    assert made.data_ptr() != source.data_ptr()
    assert not made.requires_grad


def test_tensor_copies_an_array_and_from_numpy_shares_it():
    array = np.array([1.0, 2.0])
    copy, shared, aliased = backlight.tensor(array), backlight.from_numpy(array), backlight.as_tensor(array)
    array[0] = 7
    assert copy.tolist() == [1.0, 2.0]
    assert shared.tolist() == aliased.tolist() == [7.0, 2.0]
    shared.numpy()[1] = 8
    assert array.tolist() == [7.0, 8.0]


def test_from_numpy_of_no_dims_shares():
    array = np.array(3.0)
    shared = backlight.from_numpy(array)
    array[...] = 5
    assert shared.item() == 5


def test_from_numpy_warns_once_of_read_only_memory():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    backlight.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
            backlight.from_numpy(array)
    finally:
        backlight.set_warn_always(False)
    backlight.from_numpy(array)


@pytest.mark.parametrize(
    "call",
    [
        "torch.from_numpy([1])",
        "torch.from_numpy(np.array([1, 2])[::-1])",
        "torch.from_numpy(np.arange(6).reshape(2, 3).T)",
        "torch.from_numpy(np.array([1, 2], dtype='>i4'))",
        "torch.as_tensor(np.array([1, 2]), dtype=torch.float32)",
        "torch.as_tensor(torch.ones(2), dtype=torch.float64)",
        "torch.as_tensor([1, 2.0], dtype=torch.int32)",
        "torch.asarray([1, 2], dtype=torch.float32, requires_grad=True)",
        "torch.asarray(torch.ones(2, requires_grad=True))",
        "torch.asarray(np.ones(2), copy=True)",
        "torch.asarray(torch.ones(2), requires_grad=True)",
        "torch.frombuffer(bytearray(8), dtype=torch.float32)",
        "torch.frombuffer(bytearray(range(8)), dtype=torch.int16, count=2, offset=2)",
        "torch.frombuffer(bytearray(7), dtype=torch.float32)",
        "torch.frombuffer(bytearray(0), dtype=torch.float32)",
        "torch.frombuffer(bytearray(8), dtype=torch.float32, count=3)",
        "torch.frombuffer(bytearray(8), dtype=torch.float32, offset=9)",
        "torch.from_dlpack(np.ones(2))",
    ],
)
def test_sharing_constructors(call):
    assert_same(call)


def test_as_tensor_returns_the_tensor_itself():
    source = backlight.ones(2, requires_grad=True)
    assert backlight.as_tensor(source) is source
    assert backlight.asarray(source) is source
    assert backlight.as_tensor(source, dtype=backlight.float64).grad_fn is not None


def test_asarray_never_copies_when_told_not_to():
    array = np.ones(2)
    assert backlight.asarray(array, copy=False).data_ptr() == backlight.from_numpy(array).data_ptr()
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        backlight.asarray([1, 2], copy=False)


SIZED = """
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros([2, 3])
torch.zeros(size=(2, 3))
torch.zeros(())
torch.zeros(0)
torch.zeros(torch.Size([2]))
torch.zeros(torch.tensor(2), 3)
torch.zeros(np.int64(2))
torch.zeros(2, dtype=torch.bool)
torch.zeros()
torch.zeros(2.5)
torch.zeros((2.5,))
torch.zeros(2, 2.5)
torch.zeros("a")
torch.zeros((2, "a"))
torch.zeros(None)
torch.zeros(torch.tensor([2, 3]))
torch.zeros(True)
torch.zeros(2, requires_grad=True)
torch.ones(2, 3, dtype=torch.int32)
torch.ones(2, -1)
torch.full((2,), 3)
torch.full((2,), 3.0)
torch.full([], True)
torch.full((2, 2), torch.tensor(3.0))
torch.full(2, 3)
torch.full((2,), "a")
torch.full((2,), torch.tensor([3.0]))
torch.full((2,), 1.5, dtype=torch.int64)
torch.empty(2, 0)
torch.empty((0,), dtype=torch.int8)
torch.eye(2)
torch.eye(3, 2)
torch.eye(2, 3, dtype=torch.int64)
torch.eye(0)
torch.eye(-1)
torch.scalar_tensor(3)
torch.scalar_tensor(3.7, dtype=torch.int64)
torch.zeros(2, layout=torch.strided)
torch.zeros_like(torch.ones(3, 2).t())
torch.ones_like(torch.ones(2, 3).t())
torch.full_like(torch.tensor([1, 2]), 2.5)
torch.full_like(torch.tensor([True]), 2)
torch.empty_like(torch.ones(0, 3))
torch.zeros_like(torch.ones(3, 2).t(), memory_format=torch.contiguous_format)
torch.zeros_like([1])
torch.ones_like(torch.ones(2), dtype=torch.int8)
torch.zeros_like(torch.ones(2), requires_grad=True)
torch.ones(2).new_zeros(2, 3)
torch.ones(2).new_ones((2, 3), dtype=torch.int64)
torch.ones(2).new_full((2,), 3)
torch.tensor([1]).new_tensor([1.5])
torch.tensor([1]).new_full((2,), 1.5)
torch.ones(2).new_tensor([1, 2], requires_grad=True)
torch.ones(2).new_empty(0, 2)
torch.ones(2).new([1, 2])
torch.ones(2).new(2, 0)
"""


@pytest.mark.parametrize("call", lines(SIZED))
def test_sized_constructors(call):
    assert_same(call)


RANGES = """
torch.arange(5)
torch.arange(5.0)
torch.arange(1, 5, 2)
torch.arange(0, 1, 0.1)
torch.arange(5, 1)
torch.arange(1, 5, -1)
torch.arange(5, 1, -1)
torch.arange(1, 5, 0)
torch.arange(float("inf"))
torch.arange(float("nan"))
torch.arange(5, dtype=torch.float32)
torch.arange(0.5, 5, dtype=torch.int64)
torch.arange(-4.9, 17.7, 3.9, dtype=torch.int32)
torch.arange(torch.tensor(3))
torch.arange(torch.tensor(3.0))
torch.arange(start=1, end=4)
torch.arange(end=4)
torch.arange(1, step=2, end=4)
torch.arange(True)
torch.arange(3, dtype=torch.bool)
torch.arange(2, requires_grad=True)
torch.arange(2.0, requires_grad=True)
torch.arange(-3)
torch.arange(2**53, 2**53 + 3)
torch.linspace(0, 1, 5)
torch.linspace(0, 1, 1)
torch.linspace(0, 1, 0)
torch.linspace(0, 1, -1)
torch.linspace(0, 10, 4, dtype=torch.int64)
torch.linspace(1.17, 18.9, 5, dtype=torch.int32)
torch.linspace(torch.tensor(0.0), torch.tensor(1), 3)
torch.linspace(start=-1, end=1, steps=3)
torch.linspace(3, -2, 7, dtype=torch.float64)
torch.linspace(0, 1, 2, requires_grad=True)
torch.logspace(0, 2, 3)
torch.logspace(0, 2, 3, base=2)
torch.logspace(0, 2, 3, 2)
torch.logspace(0, 3, 4, dtype=torch.int64)
torch.range(1, 4)
torch.range(1, 4, 0.5)
torch.range(3, 1)
"""


@pytest.mark.parametrize("call", lines(RANGES))
def test_ranges(call):
    assert_same(call)


fractions = st.integers(-1_000_000, 1_000_000).map(lambda number: number / 9973)


@given(
    start=fractions,
    end=fractions,
    steps=st.integers(0, 60),
    dtype=st.sampled_from(["float64", "float32", "float16", "bfloat16", "int64", "uint8"]),
)
def test_linspace_rounds_as_pytorch(start, end, steps, dtype):
    if dtype == "uint8":
        start, end = abs(start), abs(end)
    ours = backlight.linspace(start, end, steps, dtype=getattr(backlight, dtype))
    theirs = torch.linspace(start, end, steps, dtype=getattr(torch, dtype))
    if dtype == "float16":  # subnormal numbers are rounded in another order
        np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), rtol=2e-3, atol=1e-6)
    else:
        assert ours.tolist() == theirs.tolist()


@given(start=st.integers(-1000, 1000), count=st.integers(0, 50), step=st.floats(0.01, 5))
def test_arange_is_pytorchs_to_the_last_but_one_bit(start, count, step):
    end = start + count * step
    ours, theirs = backlight.arange(start, end, step), torch.arange(start, end, step)
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2.4e-7, atol=1e-5)


def test_empty_strided_lays_out_as_told():
    made = backlight.empty_strided((2, 3), (1, 2))
    assert made.shape == (2, 3)
    assert made.stride() == (1, 2)
    assert made.new_empty_strided((2,), (3,), dtype=backlight.int8).stride() == (3,)


def test_inference_mode_makes_inference_tensors():
    with backlight.inference_mode():
        made = backlight.tensor([1.0]), backlight.zeros(2), backlight.Tensor([1, 2])
    assert all(tensor.is_inference() for tensor in made)
