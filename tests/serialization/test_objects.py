"""Whole objects in files: models between the engines, and what a program allows to be built."""

import io
import pickle
from collections import namedtuple
from datetime import timedelta

import numpy as np
import pytest
import torch

import backlight
from backlight.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, load, safe_globals, save

LAYERS = {
    "linear": lambda nn: nn.Linear(3, 2),
    "nested": lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)).eval(),
    "norms": lambda nn: nn.Sequential(nn.LayerNorm(3), nn.BatchNorm1d(3), nn.Softmax(dim=1)).eval(),
    "lists": lambda nn: nn.ModuleList([nn.Tanh(), nn.GELU()])[1],
}


def stored(engine, value) -> io.BytesIO:
    file = io.BytesIO()
    engine.save(value, file)
    file.seek(0)
    return file


@pytest.fixture(autouse=True)
def nothing_allowed():
    yield
    clear_safe_globals()


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(("source", "target"), [(torch, backlight), (backlight, torch), (backlight, backlight)])
def test_a_model_written_by_either_engine_computes_the_same_in_the_other(source, target, make, legacy):
    model, file = make(source.nn), io.BytesIO()
    source.save(model, file, _use_new_zipfile_serialization=not legacy)
    file.seek(0)
    back = target.load(file, weights_only=False)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = model(source.tensor(x)).detach().numpy()
    assert np.allclose(back(target.tensor(x)).detach().numpy(), expected, atol=1e-6)
    assert isinstance(back, target.nn.Module)
    assert repr(back) == repr(model)
    assert back.training == model.training


@pytest.mark.parametrize("weights_only", [None, True])
@pytest.mark.parametrize("source", [torch, backlight])
def test_a_model_is_refused_unless_it_is_asked_for(source, weights_only):
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.linear\.Linear was not an allowed"):
        load(stored(source, source.nn.Linear(2, 1)), weights_only=weights_only)


def test_hooks_of_a_model_are_in_its_file():
    layer = backlight.nn.ReLU()
    layer.register_forward_hook(doubled)
    assert load(stored(backlight, layer), weights_only=False)(backlight.ones(1)).item() == 2
    assert len(torch.load(stored(backlight, layer), weights_only=False)._forward_hooks) == 1


def doubled(module, args, out):
    return out * 2


Point = namedtuple("Point", "x y")


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class WithState:
    def __setstate__(self, state):
        self.state = "set", state

    def __reduce__(self):
        return WithState, (), {"a": 1}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (Slotted(3), lambda back: back.x == 3),
        (WithState(), lambda back: back.state == ("set", {"a": 1})),
        ({"k": timedelta(1, 2)}, lambda back: back == {"k": timedelta(1, 2)}),
    ],
    ids=["slots", "setstate", "function"],
)
def test_what_is_allowed_is_built(value, read):
    kind = timedelta if isinstance(value, dict) else type(value)
    for engine in (torch, backlight):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            load(stored(engine, value))
        with safe_globals([kind]):
            assert read(load(stored(engine, value)))
        assert get_safe_globals() == []


class Renamed(Slotted):
    """What a newer program calls `Slotted`."""


def test_a_class_may_be_allowed_under_the_name_that_a_file_has():
    for _ in range(2):
        add_safe_globals([(Renamed, f"{__name__}.Slotted")])
    assert len(get_safe_globals()) == 1
    back = load(stored(backlight, Slotted(5)))
    assert type(back) is Renamed
    assert back.x == 5


@pytest.mark.parametrize("wrong", [3, ("a", "b"), (Slotted,)])
def test_only_classes_and_functions_can_be_allowed(wrong):
    with pytest.raises(TypeError):
        add_safe_globals([wrong])
    assert get_safe_globals() == []


def test_an_object_that_holds_itself_comes_back():
    value = {"list": []}
    value["list"].append(value)
    back = load(stored(backlight, value), weights_only=False)
    assert back["list"][0] is back


def test_tensors_of_an_object_that_share_memory_share_it_again():
    base = backlight.zeros(4)
    back = load(stored(backlight, {"p": Slotted((base, base[2:]))}), weights_only=False)["p"].x
    back[0][2] = 7
    assert back[1].tolist() == [7, 0]


def test_what_pickle_cannot_write_is_an_error_and_leaves_no_file(tmp_path):
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        save({"f": lambda: 1}, tmp_path / "x.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_pytorch_that_is_not_here_is_named():
    with pytest.raises(pickle.UnpicklingError, match=r"FloatFunctional is not in backlight"):
        load(stored(torch, torch.nn.quantized.FloatFunctional()), weights_only=False)
