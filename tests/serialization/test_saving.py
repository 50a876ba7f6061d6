"""What is saved is loaded, here and by PyTorch, both ways; a file that would run code is refused."""

import io
import os
import pickle
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file as torch_load_file
from safetensors.torch import save_file as torch_save_file

import backlight
from backlight import load, save
from backlight.serialization import load_file, save_file

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]


def saved(module, value) -> io.BytesIO:
    file = io.BytesIO()
    module.save(value, file)
    file.seek(0)
    return file


def model(module):
    return module.nn.Sequential(
        module.nn.Linear(3, 4), module.nn.LayerNorm(4), module.nn.ReLU(), module.nn.Linear(4, 2, bias=False)
    )


# --- both ways --------------------------------------------------------------------------------------------------------


def test_pytorch_reads_our_state_dict(tmp_path):
    ours, theirs = model(backlight), model(torch)
    save(ours.state_dict(), tmp_path / "model.pth")
    state = torch.load(tmp_path / "model.pth", weights_only=True)
    assert type(state) is OrderedDict
    assert state._metadata == theirs.state_dict()._metadata
    theirs.load_state_dict(state)
    x = np.ones((1, 3), np.float32)
    out = ours(backlight.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out, theirs(torch.tensor(x)).detach().numpy(), atol=1e-6)


def test_we_read_pytorchs_state_dict(tmp_path):
    ours, theirs = model(backlight), model(torch)
    torch.save(theirs.state_dict(), tmp_path / "model.pth")
    assert str(ours.load_state_dict(load(str(tmp_path / "model.pth")))) == "<All keys matched successfully>"
    for name, value in ours.state_dict().items():
        assert value.tolist() == theirs.state_dict()[name].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_and_shape_goes_both_ways(dtype, shape):
    values = torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))
    ours = load(saved(torch, values))
    assert str(ours.dtype) == str(values.dtype)
    assert ours.shape == tuple(values.shape)
    assert ours.tolist() == values.tolist()
    theirs = torch.load(saved(backlight, ours), weights_only=True)
    assert theirs.dtype == values.dtype
    assert theirs.tolist() == values.tolist()


def test_strided_tensors_of_pytorchs_keep_their_values():
    whole = torch.arange(24.0).reshape(4, 6)
    for view in (whole.T, whole[1:, ::2], whole[2], whole[:1].expand(3, 6)):
        assert load(saved(torch, view)).tolist() == view.tolist()
        assert load(saved(backlight, load(saved(torch, view)))).tolist() == view.tolist()


PLAIN = [
    {"epoch": 3, "loss": 0.25, "name": "Größe ✓", "done": False, "best": None, "big": 2**80, "negative": -(2**40)},
    [1, (2, (3.5,)), [], {}, (), "", b"\x00\xff bytes"],
    {1: "one", (2, 3): "pair"},
    OrderedDict(a=1, b=[OrderedDict(c=2)]),
    Counter({30: 1, 80: 2}),
    [float("inf"), float("-inf"), -0.0],
]


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_values_go_both_ways(value):
    for other, loaded in (
        (torch, load(saved(torch, value))),
        (backlight, torch.load(saved(backlight, value), weights_only=True)),
        (backlight, load(saved(backlight, value))),
    ):
        assert loaded == value, other
        assert type(loaded) is type(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whatever_is_plain_comes_back(value):
    assert load(saved(backlight, value)) == value


def test_kinds_and_sizes_go_both_ways():
    ours = load(saved(torch, {"dtype": torch.float64, "size": torch.Size([2, 3]), "device": torch.device("cpu")}))
    assert (ours["dtype"], ours["size"], str(ours["device"])) == (backlight.float64, backlight.Size([2, 3]), "cpu")
    theirs = torch.load(saved(backlight, ours), weights_only=True)
    assert theirs == {"dtype": torch.float64, "size": torch.Size([2, 3]), "device": torch.device("cpu")}


def test_parameters_stay_parameters():
    theirs = {"w": torch.nn.Parameter(torch.ones(2)), "x": torch.ones(2, requires_grad=True)}
    ours = load(saved(torch, theirs))
    assert isinstance(ours["w"], backlight.nn.Parameter)
    assert ours["w"].requires_grad
    assert ours["x"].requires_grad
    back = torch.load(saved(backlight, ours), weights_only=True)
    assert isinstance(back["w"], torch.nn.Parameter)
    assert back["x"].requires_grad


def test_tied_weights_stay_tied():
    for module in (torch, backlight):
        weight = module.ones(3)
        file = saved(module, {"a": weight, "b": weight.detach()})
        assert [name for name in zipfile.ZipFile(file).namelist() if "/data/" in name] == ["archive/data/0"]
        loaded = load(file)
        loaded["a"].fill_(7)
        assert loaded["b"].tolist() == [7, 7, 7]


def test_an_optimizer_goes_on_from_a_file_to_the_last_bit(tmp_path):
    param = backlight.tensor([1.0, 2.0], requires_grad=True)
    twin = param.detach().clone().requires_grad_()
    one, two = backlight.optim.NAdam([param]), backlight.optim.NAdam([twin], lr=9.0)

    def step(value, optimizer):
        optimizer.zero_grad()
        (value**3).sum().backward()
        optimizer.step()

    step(param, one)
    save({"param": param.detach(), "optimizer": one.state_dict()}, tmp_path / "run.pth")
    found = load(tmp_path / "run.pth")
    twin.data.copy_(found["param"])
    two.load_state_dict(found["optimizer"])
    for _ in range(3):
        step(param, one)
        step(twin, two)
    assert twin.tolist() == param.tolist()
    assert torch.load(tmp_path / "run.pth", weights_only=True)["optimizer"]["param_groups"][0]["lr"] == 2e-3


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "model.pth"
    save({"w": backlight.ones(2)}, path)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        save({"w": backlight.zeros(2), "x": lambda: 1}, path)
    assert load(path)["w"].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["model.pth"]


# --- no code is run ---------------------------------------------------------------------------------------------------


class Hostile:
    def __reduce__(self):
        return os.system, ("touch ran",)


def archive_of(content: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/data/0", np.arange(4, dtype=np.float32).tobytes())
    file.seek(0)
    return file


@pytest.mark.parametrize("protocol", range(6))
def test_a_file_that_would_run_code_is_refused(protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(archive_of(pickle.dumps({"w": Hostile()}, protocol)))
    assert os.listdir(tmp_path) == []


def test_a_whole_model_is_refused_with_what_to_save():
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL torch\.nn\.modules\.linear\.Linear"):
        load(saved(torch, torch.nn.Linear(2, 2)))


HEAD = b"\x80\x02"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n("
STORED = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
END = b"\x89}tR."
TRICKS = {
    "an attribute of a builder": HEAD + b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00xK\x01sb.",
    "a method by a dotted name": HEAD + b"ccollections\nOrderedDict.fromkeys\n.",
    "a value that is called": HEAD + b"ctorch\nfloat32\n)R.",
    "a shape beyond the memory": HEAD + TENSOR + STORED + b"K\x00K\x05\x85K\x01\x85" + END,
    "an offset beyond the memory": HEAD + TENSOR + STORED + b"K\x04K\x01\x85K\x01\x85" + END,
    "a negative offset": HEAD + TENSOR + STORED + b"J\xff\xff\xff\xffK\x01\x85K\x01\x85" + END,
    "strides beyond the memory": HEAD + TENSOR + STORED + b"K\x00K\x02\x85K\x09\x85" + END,
    "a storage that is not there": HEAD + TENSOR + STORED.replace(b"0X\x03", b"9X\x03") + b"K\x00))" + END,
    "an extension": HEAD + b"\x82\x01.",
    "nothing": HEAD + b".",
    "half a file": HEAD + b"X\x09\x00\x00\x00abc",
    "no mark": HEAD + b"t.",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_and_damage_are_refused(trick):
    with pytest.raises(pickle.UnpicklingError):
        load(archive_of(TRICKS[trick]))


def test_what_the_tricks_are_made_of_is_read_when_it_is_right():
    assert load(archive_of(HEAD + TENSOR + STORED + b"K\x00K\x04\x85K\x01\x85" + END)).tolist() == [0.0, 1.0, 2.0, 3.0]


@given(st.data())
def test_a_damaged_pickle_is_an_error_or_a_value(data):
    content = bytearray(zipfile.ZipFile(saved(backlight, [{"w": backlight.ones(4)}])).read("archive/data.pkl"))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        load(archive_of(bytes(content)))
    except pickle.UnpicklingError as problem:
        assert str(problem)


def test_files_of_other_formats_are_named(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps([1]))
    with pytest.raises(
        pickle.UnpicklingError, match=r"must be a file that torch\.save wrote, and is damaged or of another"
    ):
        load(tmp_path / "x")
    with zipfile.ZipFile(tmp_path / "y", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(pickle.UnpicklingError, match="holds no weights"):
        load(tmp_path / "y")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "z")


def test_another_device_is_refused():
    file = saved(backlight, backlight.ones(1))
    assert load(file, map_location="cpu").tolist() == [1.0]
    assert load(file, map_location=backlight.device("cpu"), weights_only=False).tolist() == [1.0]
    with pytest.raises(RuntimeError):
        load(file, map_location="cuda")


# --- safetensors ------------------------------------------------------------------------------------------------------


def test_safetensors_go_both_ways(tmp_path):
    tensors = {kind: backlight.arange(6).reshape(2, 3).to(getattr(backlight, kind)) for kind in DTYPES}
    save_file({**tensors, "turned": tensors["int64"].T}, tmp_path / "x.safetensors", {"made": "here"})
    theirs = torch_load_file(tmp_path / "x.safetensors")
    ours = load_file(tmp_path / "x.safetensors")
    for name, value in theirs.items():
        assert ours[name].tolist() == value.tolist()
        assert str(ours[name].dtype) == str(value.dtype)


def test_what_is_no_safetensors_file_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="cannot read"):
        load_file(tmp_path / "x")
    with pytest.raises(TypeError, match="save_file must be given tensors by name, got int for 'n'"):
        save_file({"n": 1}, tmp_path / "y")


# --- the format before 1.6 ------------------------------------------------------------------------------------------


def saved_in_a_row(module, value) -> io.BytesIO:
    file = io.BytesIO()
    module.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return file


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_legacy_format_goes_both_ways(dtype):
    whole = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    value = {
        "whole": whole,
        "part": whole[1:, ::2],
        "none": whole[:0],
        "one": whole[0, 0].clone(),
        "n": [1, (2.5, "a")],
    }
    ours = load(saved_in_a_row(torch, value))
    theirs = torch.load(saved_in_a_row(backlight, ours), weights_only=True)
    for name in ("whole", "part", "none", "one"):
        assert str(ours[name].dtype) == str(theirs[name].dtype) == str(whole.dtype)
        assert ours[name].tolist() == theirs[name].tolist() == value[name].tolist()
    assert ours["n"] == theirs["n"] == value["n"]


def trained(module):
    first = module.nn.Linear(3, 4, bias=False)  # a bias before BatchNorm has noise for a gradient
    model = module.nn.Sequential(first, module.nn.BatchNorm1d(4), module.nn.Linear(4, 2)).double()
    optimizer = module.optim.AdamW(model.parameters(), lr=0.05, amsgrad=True)
    x = module.arange(15.0, dtype=module.float64).reshape(5, 3) / 7
    for _ in range(2):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()
    return model, optimizer, x


@pytest.mark.parametrize("save_as", [saved, saved_in_a_row])
@pytest.mark.parametrize(("source", "target"), [(torch, backlight), (backlight, torch)])
def test_a_run_goes_on_in_the_other_engine(save_as, source, target):
    model, optimizer, x = trained(source)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2}
    found = target.load(save_as(source, state), weights_only=True)
    twin, other, _ = trained(target)
    twin.load_state_dict(found["model"])
    other.load_state_dict(found["optimizer"])
    for _ in range(3):
        for module, run, steps in ((source, model, optimizer), (target, twin, other)):
            steps.zero_grad()
            (run(module.tensor(x.tolist(), dtype=module.float64)) ** 2).sum().backward()
            steps.step()
    for mine, its in zip(model.state_dict().values(), twin.state_dict().values()):
        np.testing.assert_allclose(np.asarray(mine.tolist()), np.asarray(its.tolist()), atol=1e-9)


@pytest.mark.parametrize("save_as", [saved, saved_in_a_row])
@pytest.mark.parametrize("module", [torch, backlight])
@pytest.mark.parametrize("reader", [torch, backlight])
def test_views_that_are_saved_together_stay_views_of_each_other(save_as, module, reader):
    whole = module.arange(6.0)
    found = reader.load(save_as(module, {"whole": whole, "part": whole[2:4], "turned": whole.reshape(2, 3).t()}))
    found["whole"][3] = 9
    assert found["part"].tolist() == [2, 9]
    assert found["turned"].tolist() == [[0, 9], [1, 4], [2, 5]]


def test_a_view_that_is_saved_alone_takes_no_more_room_than_it_needs():
    assert len(saved(backlight, backlight.zeros(100_000)[:2]).getvalue()) < 2000


def test_attributes_of_parameters_sets_and_bytearrays_are_read():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.role = "head"
    found = load(saved(torch, {"w": weight, "s": {1, 2}, "b": bytearray(b"ab")}))
    assert found["w"].role == "head"
    assert isinstance(found["w"], backlight.nn.Parameter)
    assert found["s"] == {1, 2}
    assert found["b"] == bytearray(b"ab")


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_goes_both_ways_as_safetensors(dtype, tmp_path):
    values = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    torch_save_file({"a": values, "b": values[:0].clone()}, tmp_path / "theirs")
    ours = load_file(tmp_path / "theirs")
    assert str(ours["a"].dtype) == str(values.dtype)
    assert ours["a"].tolist() == values.tolist()
    save_file({"a": ours["a"].t(), "b": ours["b"]}, tmp_path / "ours", metadata={"format": "pt"})
    theirs = torch_load_file(tmp_path / "ours")
    assert theirs["a"].dtype == values.dtype
    assert theirs["a"].tolist() == values.t().tolist()
    assert theirs["b"].shape == (0, 3)


def test_map_location_may_be_a_function():
    file, seen = io.BytesIO(), []
    backlight.save([backlight.ones(2), backlight.zeros(1)], file)
    file.seek(0)
    loaded = backlight.load(file, map_location=lambda storage, place: seen.append((storage.nbytes(), place)))
    assert seen == [(8, "cpu"), (4, "cpu")]
    assert loaded[0].tolist() == [1, 1]
    file.seek(0)
    other = backlight.UntypedStorage(8).fill_(0)
    assert backlight.load(file, map_location=lambda storage, place: other[: storage.nbytes()])[0].tolist() == [0, 0]


def test_names_that_a_file_needs_are_told_without_running_it():
    file = io.BytesIO()
    torch.save([print, torch.ones(1), 1j], file)
    file.seek(0)
    assert backlight.serialization.get_unsafe_globals_in_checkpoint(file) == ["builtins.print"]
    file.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == ["builtins.print"]
    plain = io.BytesIO()
    torch.save([1j, torch.strided], plain)
    plain.seek(0)
    assert backlight.load(plain) == [1j, backlight.strided]
