"""Files that want to run code, or to fill the memory, are refused with one clear error; both formats."""

import builtins
import functools
import io
import operator
import os
import pickle
import struct
import subprocess
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import backlight
from backlight import load, save
from backlight.serialization.legacy import LEGACY_HEAD, MACHINE, PROTOCOL

FLOATS = np.arange(4, dtype=np.float32).tobytes()


class Calls:
    """In a pickle: the call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Builds:
    """In a pickle: an object whose `__setstate__` gets a state."""

    def __reduce__(self):
        return operator.attrgetter, ("system",), {"touch": "ran"}


SCRIPT = "open('ran', 'w').write('')"
CALLS = {
    "os.system": Calls(os.system, "touch ran"),
    "eval": Calls(eval, SCRIPT),
    "exec": Calls(exec, SCRIPT),
    "getattr": Calls(getattr, Calls(builtins.__import__, "os"), "system"),
    "a chain of getattr": Calls(functools.reduce, getattr, ["path", "os", "system"], Calls(builtins.__import__, "os")),
    "import": Calls(builtins.__import__, "antigravity"),
    "a process": Calls(subprocess.Popen, ["touch", "ran"]),
    "partial": Calls(functools.partial, os.system, "touch ran"),
    "map": Calls(map, os.system, ["touch ran"]),
    "open": Calls(open, "ran", "w"),
    "a state": Builds(),
    "torch.load": Calls(torch.load, "other.pth"),
    "numpy.load": Calls(np.load, "other.npy", None, True),
    "an allowed name's method": Calls(operator.methodcaller("fromkeys"), backlight.Size),
}
WRAPPED = {
    "alone": lambda call: call,
    "in a dict": lambda call: {"weight": call},
    "as a key": lambda call: {(1, call): 2},
    "in a call": lambda call: Calls(bytearray, call),
}


def zipped(content: bytes, **entries: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        for name, data in ({"data/0": FLOATS} | entries).items():
            archive.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


def in_a_row(content: bytes, keys=("0",), memory: bytes = struct.pack("<q", 4) + FLOATS) -> io.BytesIO:
    head = LEGACY_HEAD + pickle.dumps(PROTOCOL, 2) + pickle.dumps(MACHINE, 2)
    return io.BytesIO(head + content + pickle.dumps(list(keys), 2) + memory)


FORMATS = {"zip": zipped, "legacy": in_a_row}


def refused(file: io.BytesIO) -> str:
    """Load a file, which must raise the one error quickly and without much memory; return what it says."""
    tracemalloc.start()
    try:
        with pytest.raises(pickle.UnpicklingError) as problem:
            load(file)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize("wrapping", WRAPPED)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_call_is_refused_and_not_made(form, call, wrapping, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in (0, 2, 4, 5):
        said = refused(FORMATS[form](pickle.dumps(WRAPPED[wrapping](CALLS[call]), protocol)))
        assert said.startswith("Weights only load failed")
    assert os.listdir(tmp_path) == []


HEAD = b"\x80\x02"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n("
END = b"\x89}tR."


def number(value: int) -> bytes:
    content = pickle.encode_long(value)
    return b"\x8a" + bytes([len(content)]) + content


def stored(kind: bytes = b"FloatStorage", name: bytes = b"0", count: int = 4, legacy: bool = False) -> bytes:
    named = b"X" + struct.pack("<I", len(name)) + name
    part = b"N" if legacy else b""
    return (
        b"(X\x07\x00\x00\x00storagectorch\n"
        + kind
        + b"\n"
        + named
        + b"X\x03\x00\x00\x00cpu"
        + number(count)
        + part
        + b"tQ"
    )


def tensor(offset: int, size: tuple, stride: tuple, legacy: bool, **memory) -> bytes:
    sizes = b"(" + b"".join(map(number, size)) + b"t" + b"(" + b"".join(map(number, stride)) + b"t"
    return HEAD + TENSOR + stored(legacy=legacy, **memory) + number(offset) + sizes + END


SHAPES = {
    "a shape beyond the memory": (0, (5,), (1,)),
    "an offset beyond the memory": (4, (1,), (1,)),
    "a negative offset": (-1, (1,), (1,)),
    "strides beyond the memory": (0, (2,), (9,)),
    "negative strides": (3, (2,), (-1,)),
    "a negative size": (0, (-2,), (1,)),
    "sizes that overflow": (0, (2**40, 2**40), (1, 1)),
    "a stride that overflows": (0, (2, 2), (2**62, 2**62)),
    "an enormous number": (0, (10**200,), (1,)),
    "an enormous empty tensor": (0, (0, 2**62, 2**62), (1, 1, 1)),
    "strides for another number of dims": (0, (2, 2), (1,)),
    "too many dims": (0, (1,) * 70, (1,) * 70),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tensor_stays_in_its_memory(form, shape):
    assert "damaged" in refused(FORMATS[form](tensor(*SHAPES[shape], legacy=form == "legacy")))


def test_what_these_are_made_of_loads_when_it_is_right():
    for form, make in FORMATS.items():
        assert load(make(tensor(1, (3,), (1,), legacy=form == "legacy"))).tolist() == [1, 2, 3]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("count", [3, 5, 2**40, 2**62, 10**100, -4])
def test_a_storage_has_the_size_that_is_said(form, count):
    refused(FORMATS[form](tensor(0, (1,), (1,), legacy=form == "legacy", count=count)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", [b"9", b"../../secret", b"/etc/passwd", b"..\\0", b"data.pkl", b"\x00"])
def test_a_storage_is_in_the_file(form, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(FLOATS)
    refused(FORMATS[form](tensor(0, (1,), (1,), legacy=form == "legacy", name=name)))


OPCODES = {
    "INST": b"(S'touch ran'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nX\x09\x00\x00\x00touch rano.",
    "NEWOBJ_EX": b"\x80\x04cos\nsystem\n)}\x92.",
    "an old persistent id": b"Pstorage\n.",
    "an extension": HEAD + b"\x82\x01.",
    "a buffer": b"\x80\x05\x97.",
    "a builder as the value": HEAD + b"ctorch._utils\n_rebuild_tensor_v2\n.",
    "a builder's attribute": HEAD + b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00xK\x01sb.",
    "a builder that makes a class": HEAD + b"ctorch\nSize\nc__builtin__\nset\n\x85R.",
    "a mark as the value": b"(.",
    "a mark that is kept": b"](q\x00h\x00a.",
    "two values": b"K\x01K\x02.",
    "no value": HEAD + b".",
    "no end": HEAD + b"K\x01",
    "a text longer than the file": HEAD + b"X\xff\xff\xff\x7fabc",
    "a text of 2 ** 62 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"abc.",
    "a dict of an odd number": HEAD + b"}(K\x01u.",
    "a list as a key": HEAD + b"}]K\x01s.",
    "a number that is none": b"Iabc\n.",
    "a value that was never kept": HEAD + b"h\x07.",
    "a parameter that hides the engine's state": (
        HEAD + b"ctorch._utils\n_rebuild_parameter_with_state\n(ctorch._utils\n_rebuild_tensor_v2\n(" + b"%s"
        b"K\x00)K\x01\x85\x89}tR\x89}}X\x06\x00\x00\x00_hooksK\x01stR."
    ),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("trick", OPCODES)
def test_other_instructions_are_refused(form, trick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(FORMATS[form](OPCODES[trick].replace(b"%s", stored(legacy=form == "legacy"))))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_key_that_takes_for_ever_to_hash_is_refused(form):
    doubled = HEAD + b"K\x01" + b"q\x00h\x00\x86" * 90  # ((…), (…)), 90 deep: 2 ** 90 numbers
    refused(FORMATS[form](b"\x80\x02}" + doubled[2:] + b"K\x01s."))


@pytest.mark.parametrize("form", FORMATS)
def test_deep_nests_are_read(form):
    depth = 100_000
    value = load(
        FORMATS[form](
            HEAD + b"]" * depth + b"a" * (depth - 1) + b".", **({} if form == "zip" else {"keys": (), "memory": b""})
        )
    )
    for _ in range(depth - 1):
        (value,) = value
    assert value == []


def test_a_zip_bomb_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", tensor(0, (1,), (1,), legacy=False, count=2**26))
        archive.writestr("archive/data/0", bytes(2**28))
    assert file.seek(0, os.SEEK_END) < 2**20
    file.seek(0)
    assert "must be stored as it is" in refused(file)


def test_entries_that_lie_over_each_other_are_no_way_to_fill_the_memory():
    names = range(10)
    each = (tensor(0, (1,), (1,), False, name=b"%d" % name, count=4096)[2:-1] for name in names)
    file = zipped(HEAD + b"](" + b"".join(each) + b"e.", **{"data/0": bytes(4 * 4096)}).getvalue()
    start, end = file.index(b"PK\x01\x02"), file.index(b"PK\x05\x06")
    second = file.index(b"PK\x01\x02", start + 4)
    entries = file[start:second] + b"".join(file[second:end].replace(b"data/0", b"data/%d" % name) for name in names)
    directory = struct.pack("<HHII", 11, 11, len(entries), start)
    bomb = file[:start] + entries + file[end : end + 8] + directory + file[end + 20 :]
    assert zipfile.ZipFile(io.BytesIO(bomb)).namelist()[-1] == "archive/data/9"
    refused(io.BytesIO(bomb))


@pytest.mark.parametrize(
    "names", [["a/data.pkl", "b/data.pkl"], ["a/other.pkl"], [], ["a/data.pkl", "a/constants.pkl"]]
)
def test_an_archive_of_something_else_is_refused(names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, pickle.dumps(1))
    file.seek(0)
    refused(file)


def good(form: str) -> bytes:
    file = io.BytesIO()
    value = {"w": backlight.arange(6.0).reshape(2, 3), "b": [backlight.ones(2).bfloat16(), 1, "text"]}
    save(value, file, _use_new_zipfile_serialization=form == "zip")
    return file.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_half_a_file_is_refused_wherever_it_ends(form):
    whole = good(form)
    for length in range(0, len(whole) - 1, 7):
        refused(io.BytesIO(whole[:length]))


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_an_error_or_a_value(form, data):
    content = bytearray(good(form))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        load(io.BytesIO(bytes(content)))
    except pickle.UnpicklingError as problem:
        assert str(problem)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(FORMATS)))
def test_random_bytes_are_an_error_or_a_value(content, form):
    for file in (FORMATS[form](HEAD + content), io.BytesIO(content)):
        try:
            load(file)
        except pickle.UnpicklingError as problem:
            assert str(problem)


def test_a_safetensors_file_says_what_is_wrong(tmp_path):
    for name, content in {
        "empty": b"",
        "no json": struct.pack("<Q", 4) + b"abcd",
        "a header longer than the file": struct.pack("<Q", 2**40) + b"{}",
        "offsets beyond": struct.pack("<Q", 58) + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}   ',
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="cannot read"):
            backlight.serialization.load_file(tmp_path / name)
