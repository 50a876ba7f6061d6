"""Arrays that are too large: PyTorch's errors, whatever makes the array."""

import numpy as np
import pytest

import backlight as bl
from backlight.sizes import allocated, as_storage_error, check_storage, storage_errors

torch = pytest.importorskip("torch")

FLOAT = np.dtype(np.float32)
OVERFLOW, NO_MEMORY = 2**62, 2**58
COUNTED = "Storage size calculation overflowed with sizes="
REFUSED = "DefaultCPUAllocator: can't allocate memory: you tried to allocate"

# What PyTorch says in the same words, with the same sizes.
SAME = """
torch.zeros(n)
torch.zeros(n, n)
torch.zeros(2, n, dtype=torch.bool)
torch.ones(n)
torch.empty(n)
torch.full((n,), 1.0)
torch.full((n, 4), 1)
torch.rand(n)
torch.randn(4, n)
torch.randint(0, 5, (n,))
torch.randperm(n)
torch.arange(n)
torch.arange(0, n, 1, dtype=torch.float32)
torch.linspace(0, 1, n)
torch.hann_window(n)
torch.zeros(2).new_zeros(n)
torch.zeros(2).new_zeros((n, n))
torch.zeros(2).new_empty(n)
torch.zeros(2).new_ones(n)
torch.zeros(2).new_full((n,), 1.0)
torch.zeros(2).resize_(n)
torch.normal(0.0, 1.0, (n,))
torch.vander(torch.zeros(4), n)
torch.nn.functional.one_hot(torch.zeros(3, dtype=torch.int64), n)
torch.nn.functional.adaptive_max_pool2d(torch.zeros(1, 1, 4, 4), n)
torch.nn.functional.adaptive_max_pool3d(torch.zeros(1, 1, 4, 4, 4), n)
torch.nn.Linear(n, 1)
torch.nn.Embedding(n, 4)
torch.nn.LayerNorm(n)
""".strip().splitlines()

# What both refuse, each in words of its own.
REFUSALS = """
torch.empty_strided((n,), (1,))
torch.empty_strided((4,), (n,))
torch.zeros(2).repeat(n)
torch.zeros(2).tile((n,))
torch.zeros(2).repeat_interleave(n)
torch.repeat_interleave(torch.tensor([n, n]))
torch.zeros(1).expand(n, n)
torch.zeros(2).resize_(n, n)
torch.zeros(4).as_strided((n,), (1,))
torch.zeros(4).as_strided((n, n), (0, 0))
torch.eye(n)
torch.tril_indices(n, n)
torch.nn.functional.pad(torch.zeros(2), (n, 1))
torch.nn.functional.pad(torch.zeros(2, 3, 4), (n, 1), mode="replicate")
torch.nn.functional.interpolate(torch.zeros(1, 1, 4), size=n)
torch.nn.functional.interpolate(torch.zeros(1, 1, 4, 4), size=(n, n), mode="bilinear")
torch.nn.functional.interpolate(torch.zeros(1, 1, 4, 4), size=(n, 1), mode="bicubic")
torch.nn.functional.interpolate(torch.zeros(1, 1, 4), size=n, mode="area")
torch.nn.AdaptiveMaxPool1d(n)(torch.zeros(1, 1, 4))
torch.nn.AdaptiveAvgPool1d(n)(torch.zeros(1, 1, 4))
torch.nn.AdaptiveAvgPool2d((n, 1))(torch.zeros(1, 1, 4, 4))
torch.nn.AdaptiveAvgPool3d(n)(torch.zeros(1, 1, 4, 4, 4))
torch.nn.functional.avg_pool2d(torch.zeros(1, 1, 4, 4), n, padding=n // 2)
torch.nn.functional.max_pool2d(torch.zeros(1, 1, 4, 4), n, padding=n // 2)
torch.nn.functional.conv_transpose1d(torch.zeros(1, 1, 4), torch.zeros(1, 1, 2), stride=n)
torch.combinations(torch.zeros(5), n)
torch.cartesian_prod(*[torch.zeros(1).expand(2**32)] * 2)
torch.outer(*[torch.zeros(1).expand(2**32)] * 2)
torch.kron(*[torch.zeros(1).expand(2**32)] * 2)
torch.zeros(1).expand(2**32, 1) + torch.zeros(1).expand(1, 2**32)
torch.einsum("i,j->ij", *[torch.zeros(1).expand(2**32)] * 2)
torch.zeros(1).expand(2**32, 1) @ torch.zeros(1).expand(1, 2**32)
torch.diag_embed(torch.zeros(4), n)
torch.bincount(torch.tensor([n]))
torch.histc(torch.zeros(3), n)
torch.histogram(torch.zeros(3), n)
torch.multinomial(torch.ones(4), n, replacement=True)
torch.tensor_split(torch.zeros(4), n)
""".strip().splitlines()


def test_bytes_that_64_bits_cannot_count_are_refused():
    check_storage((2**61 - 1,), 4)
    with pytest.raises(RuntimeError, match=r"^Storage size calculation overflowed with sizes=\[2305843009213693952\]$"):
        check_storage((2**61,), 4)


def test_memory_that_is_not_there_is_pytorchs_error():
    with pytest.raises(RuntimeError, match=f"{REFUSED} {4 * 2**60} bytes"):
        allocated(np.empty, (2**60,), FLOAT)


def test_a_size_error_is_a_memory_error_too():
    with pytest.raises(MemoryError, match="Storage size calculation overflowed"):
        bl.zeros(2**62)


def test_another_problem_stays_what_it_is():
    problem = ValueError("something else")
    assert as_storage_error(problem) is problem

    @storage_errors
    def failing():
        raise problem

    with pytest.raises(ValueError, match="something else") as raised:
        failing()
    assert raised.value is problem


def refusal(library, call: str, n: int) -> str:
    with pytest.raises(RuntimeError) as raised:
        eval(call, {"torch": library, "n": n})
    return str(raised.value).splitlines()[0]


@pytest.mark.parametrize("call", SAME)
@pytest.mark.parametrize("n", [OVERFLOW, NO_MEMORY])
def test_too_large_an_array_is_refused_in_pytorchs_words(call, n):
    ours, theirs = refusal(bl, call, n), refusal(torch, call, n)
    assert ours == theirs or (REFUSED in ours and REFUSED in theirs)
    assert ours.startswith(COUNTED) or REFUSED in ours


@pytest.mark.parametrize("call", REFUSALS)
def test_too_large_an_array_is_refused(call):
    refusal(torch, call, OVERFLOW)
    refusal(bl, call, OVERFLOW)


@pytest.mark.parametrize(
    "call",
    [
        "torch.nn.AdaptiveMaxPool1d(0x3fffffffffffffff)(torch.zeros(1, 1, 4))",
        "torch.nn.AdaptiveMaxPool2d(0x3fffffffffffffff)(torch.zeros(1, 1, 4, 4))",
        "torch.nn.AdaptiveAvgPool2d(2**40)(torch.zeros(1, 1, 4, 4))",
    ],
)
def test_a_pooling_of_more_bins_than_memory_is_refused(call):
    refusal(bl, call, 0)


def test_a_step_beyond_what_can_be_counted_has_one_window():
    n = 2**62
    assert bl.zeros(8).unfold(0, 2, n).shape == (1, 2)
    assert bl.nn.functional.unfold(bl.zeros(1, 1, 4, 4), 2, stride=n).shape == (1, 4, 1)
    assert bl.nn.functional.conv1d(bl.zeros(1, 1, 4), bl.zeros(1, 1, 2), stride=n).shape == (1, 1, 1)
