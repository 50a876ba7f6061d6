"""An idx file is read as far as its first bytes state, however much it unpacks to."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from backlight.data.vision import read_idx


def idx(*shape: int, content: bytes = b"") -> bytes:
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + content


def refused(path, most: float = 3e6) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as problem:
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert "\n" not in str(problem.value)
    return str(problem.value)


def test_a_packed_file_costs_what_its_header_states_and_not_what_it_unpacks_to(tmp_path):
    with gzip.open(tmp_path / "images.gz", "wb", compresslevel=9) as file:
        file.write(idx(10, 1, 1))
        for _ in range(200):
            file.write(bytes(2**20))
    assert (tmp_path / "images.gz").stat().st_size < 2**18
    assert "must hold 10 bytes for the shape (10, 1, 1) that it states, and holds more" in refused(
        tmp_path / "images.gz"
    )


@pytest.mark.parametrize("shape", [(2**32 - 1,) * 4, (2**31, 2**31), (100_000, 1000)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_shape_that_the_file_cannot_hold_takes_no_memory(tmp_path, shape, packed):
    content = idx(*shape, content=bytes(100))
    (tmp_path / "images").write_bytes(gzip.compress(content) if packed else content)
    assert "and is too short for that" in refused(tmp_path / "images")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("length", [0, 3, 5, 12, 30, 48, 50, 60])
def test_a_file_of_another_length_is_refused_and_the_right_one_is_read(tmp_path, packed, length):
    whole = idx(3, 4, 3, content=bytes(range(36)))  # 16 + 36 bytes
    (tmp_path / "images").write_bytes(gzip.compress((whole + b"more" * 5)[:length]) if packed else (whole * 2)[:length])
    refused(tmp_path / "images")
    (tmp_path / "right").write_bytes(gzip.compress(whole) if packed else whole)
    assert np.array_equal(read_idx(tmp_path / "right"), np.arange(36, dtype=np.uint8).reshape(3, 4, 3))


def test_an_empty_shape_and_writable_memory(tmp_path):
    (tmp_path / "none").write_bytes(idx(0, 28, 28))
    assert read_idx(tmp_path / "none").shape == (0, 28, 28)
    (tmp_path / "one").write_bytes(idx(1, content=b"\7"))
    array = read_idx(tmp_path / "one")
    array[0] = 1
    assert array.tolist() == [1]


def test_a_directory_and_a_broken_gzip_are_one_line(tmp_path):
    refused(tmp_path)
    (tmp_path / "images").write_bytes(gzip.compress(idx(3, content=b"abc"))[:-4])
    assert "cannot read" in refused(tmp_path / "images")
