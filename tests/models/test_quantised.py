"""Weights as int8 with a scale a row, and folders written anew: how far it is from what was, and back."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_bert import edited, write_bert

from backlight.errors import InputError
from backlight.models.checkpoint import read_weights
from backlight.models.conversion import export_float32, export_int8
from backlight.models.quantised import KEY, PER_ROW, quantised, restored
from backlight.models.ranker import load_ranker


def arrays(rows: int = 7, columns: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(rows, columns)).astype(np.float32) * 10.0 ** np.arange(-3, rows - 3)[:, None]
    matrix[2] = 0
    return {"a.weight": matrix.astype(np.float32), "a.bias": rng.normal(size=rows).astype(np.float32)}


def test_an_error_is_at_most_half_a_step_of_its_row():
    weights = arrays()
    back = restored(quantised(weights), {KEY: PER_ROW})
    step = np.abs(weights["a.weight"]).max(1, keepdims=True) / 127
    assert back["a.weight"].dtype == np.float32
    assert (np.abs(back["a.weight"] - weights["a.weight"]) <= 0.5001 * step).all()
    np.testing.assert_array_equal(back["a.bias"], weights["a.bias"])
    assert set(back) == set(weights)


def test_what_was_stored_is_stored_again_the_same():
    once = quantised(arrays())
    again = quantised(restored(once, {KEY: PER_ROW}))
    np.testing.assert_array_equal(again["a.weight"], once["a.weight"])
    np.testing.assert_allclose(again["a.weight.scale"], once["a.weight.scale"], rtol=1e-6)


def test_weights_of_other_folders_are_left_alone():
    weights = {**arrays(), "a.weight.scale": np.ones(3, np.float32)}
    assert restored(weights, {}) == weights


def test_unknown_storage_and_missing_scales_are_named():
    with pytest.raises(InputError, match=f"{KEY} must be 'int8 per row' or .*, got 'int4'"):
        restored({}, {KEY: "int4"})
    stored = quantised(arrays())
    del stored["a.weight.scale"]
    with pytest.raises(InputError, match=r"must hold a\.weight\.scale"):
        restored(stored, {KEY: PER_ROW})
    with pytest.raises(InputError, match="must hold finite numbers"):
        quantised({"a": np.array([[np.inf]])})


def test_a_folder_goes_to_int8_and_back(tmp_path):
    folder = edited(write_bert(tmp_path / "bert"), id2label={"0": "LABEL_0"})
    export_int8(folder, tmp_path / "small")
    export_float32(tmp_path / "small", tmp_path / "plain")
    assert (tmp_path / "small/model.safetensors").stat().st_size < 0.6 * (folder / "model.safetensors").stat().st_size
    assert json.loads((tmp_path / "plain/config.json").read_text()) == json.loads((folder / "config.json").read_text())
    stored, plain = read_weights(tmp_path / "small"), load_file(tmp_path / "plain/model.safetensors")
    assert stored.keys() == plain.keys() == read_weights(folder).keys()
    for name, weight in stored.items():
        np.testing.assert_array_equal(plain[name], weight)
    ranked = [
        load_ranker(place).rank_scores("plants", ["food from sunlight", "a cell"])
        for place in (folder, tmp_path / "small")
    ]
    np.testing.assert_allclose(*ranked, atol=0.02)


def test_a_folder_is_not_written_over(tmp_path):
    folder = write_bert(tmp_path / "bert")
    with pytest.raises(InputError, match="must be another than"):
        export_int8(folder, folder)
