"""Arrays that are too large: PyTorch's errors, whatever makes the array."""

import numpy as np
import pytest

import backlight as bl
from backlight.sizes import allocated, as_storage_error, check_storage

FLOAT = np.dtype(np.float32)


def test_bytes_that_64_bits_cannot_count_are_refused():
    check_storage((2**61 - 1,), 4)
    with pytest.raises(RuntimeError, match=r"^Storage size calculation overflowed with sizes=\[2305843009213693952\]$"):
        check_storage((2**61,), 4)


def test_memory_that_is_not_there_is_pytorchs_error():
    with pytest.raises(RuntimeError, match=r"DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611"):
        allocated(np.empty, (2**60,), FLOAT)


def test_a_size_error_is_a_memory_error_too():
    with pytest.raises(MemoryError, match="Storage size calculation overflowed"):
        bl.zeros(2**62)


def test_another_problem_stays_what_it_is():
    problem = ValueError("something else")
    assert as_storage_error(problem) is problem
