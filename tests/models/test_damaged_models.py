"""A model folder that is damaged, absurd or at odds with itself is refused in one line, before it takes memory."""

import json
import random
import re
import struct
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from damage_models import DOCUMENTS, EMBEDDERS, FAMILIES, QUERY, play_models, use_model, write_model
from safetensors.torch import load_file

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.formats.array_files import read_arrays, read_header
from backlight.models.checkpoint import read_weights
from backlight.models.ranker import load_ranker
from backlight.serialization import load_file as load_ours


def refused(folder, most: float = 20e6) -> str:
    """Load a folder, which must raise the one error quickly and without much memory; return what it says."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as problem:
            load_ranker(folder)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_these_are_made_of_works_when_it_is_right(family, tmp_path):
    assert np.isfinite(use_model(write_model(tmp_path / "m", family))["scores"]).all()


ABSURD = {
    "a billion layers": ({"num_hidden_layers": 10**9}, "num_hidden_layers must be a whole number, 1 or more, at most"),
    "9,999 layers": ({"num_hidden_layers": 9999}, "num_hidden_layers must be at most 2, as many layers as the weights"),
    "no hidden size": ({"hidden_size": 0}, "hidden_size must be a whole number, 1 or more, got 0"),
    "a negative size": ({"hidden_size": -8}, "hidden_size must be a whole number, 1 or more, got -8"),
    "another hidden size": ({"hidden_size": 16}, r"must have the shape \(\d+, 16\) that config.json asks for"),
    "another vocabulary": ({"vocab_size": 10**6}, r"must have the shape \(1000000, 8\) that config.json asks for"),
    "an endless size": ({"intermediate_size": 10**40}, "intermediate_size must be a whole number, 1 or more, at most"),
    "a size of two": ({"intermediate_size": [12, 12]}, "intermediate_size must be a whole number, 1 or more, got "),
    "a size that is true": (
        {"num_hidden_layers": True},
        "num_hidden_layers must be a whole number, 1 or more, got True",
    ),
    "a size with a fraction": ({"hidden_size": 8.5}, "hidden_size must be a whole number, 1 or more, got 8.5"),
    "a kind that is a list": ({"model_type": ["bert"]}, "model_type must be a text, got"),
    "architectures in one text": ({"architectures": "BertModel"}, "architectures must be a list, each a text"),
    "architectures that are numbers": ({"architectures": [3]}, "architectures must be a list, each a text"),
    "labels in a list": ({"id2label": ["x"]}, "id2label must be an object"),
    "labels by names": ({"id2label": {"yes": "x"}}, "id2label must name each label by its number"),
    "a billion labels": (
        {"id2label": None, "num_labels": 10**9},
        "num_labels must be a whole number, 1 or more, at most",
    ),
    "an activation that is a list": ({"sentence_transformers": {"activation_fn": [1]}}, "activation_fn must be a text"),
    "settings that are a list": ({"sentence_transformers": [1]}, "sentence_transformers must be an object"),
}


@pytest.mark.parametrize("absurd", ABSURD)
def test_an_absurd_config_is_one_line_before_it_takes_memory(absurd, tmp_path):
    changes, said = ABSURD[absurd]
    assert re.search(said, refused(write_model(tmp_path / "m", **changes)))


OF_FAMILIES = {
    ("bert", "hidden_act"): (["gelu"], "hidden_act must be a text, got"),
    ("bert", "layer_norm_eps"): (-1.0, "layer_norm_eps must be a number from 0 to 1, got -1.0"),
    ("bert", "is_decoder"): (1, "is_decoder must be true or false, got 1"),
    ("bert", "type_vocab_size"): ("2", "type_vocab_size must be a whole number, 1 or more, got '2'"),
    ("roberta", "pad_token_id"): ([1], "pad_token_id must be a whole number"),
    ("deberta", "pos_att_type"): ([["c2p"]], "pos_att_type must be a list, each a text"),
    ("deberta", "position_buckets"): ("4", "position_buckets must be a whole number"),
    ("modernbert", "layer_types"): ([[], []], "layer_types must be a list, each a text"),
    ("modernbert", "rope_parameters"): ([1], "rope_parameters must be an object"),
    ("modernbert", "global_rope_theta"): (True, "global_rope_theta must be a number, got True"),
    ("qwen3", "rope_parameters"): ({"rope_theta": 1e305}, "rope_theta must be a number above 0"),
    ("qwen3", "sliding_window"): ("all", "sliding_window must be a whole number, got 'all'"),
    ("qwen3", "layer_types"): ({"a": 1}, "layer_types must be a list, each a text"),
}


@pytest.mark.parametrize("family, name", OF_FAMILIES, ids=lambda part: part)
def test_a_setting_of_the_wrong_kind_is_named(family, name, tmp_path):
    value, said = OF_FAMILIES[family, name]
    assert said in refused(write_model(tmp_path / "m", family, **{name: value}))


def put(folder, name: str, text: str):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder


FILES = {
    "a NaN": ("config.json", '{"model_type": "bert", "layer_norm_eps": NaN}', "NaN is no number of JSON"),
    "a nest": ("config.json", "[" * 10_000 + "]" * 10_000, "it is nested too deeply"),
    "a nest of objects": ("config.json", '{"a":' * 10_000 + "1" + "}" * 10_000, "it is nested too deeply"),
    "a list": ("config.json", "[1]", "must hold a JSON object, got list"),
    "a list of the tokenizer": ("tokenizer_config.json", "[1]", "must hold a JSON object, got list"),
    "a length in words": ("tokenizer_config.json", '{"model_max_length": "long"}', "model_max_length must be a number"),
    "names that are none": ("tokenizer_config.json", '{"model_input_names": 3}', "model_input_names must be a list"),
    "a length of none": (
        "sentence_bert_config.json",
        '{"max_seq_length": -3}',
        "max_seq_length must be a whole number",
    ),
    "modules without a type": ("modules.json", '[{"path": ""}]', "must list modules, each with a type and a path"),
    "modules elsewhere": (
        "modules.json",
        '[{"type": "a.Pooling", "path": "../../etc"}]',
        "must name a folder of the model's for each module",
    ),
    "pooling by numbers": ("1_Pooling/config.json", '{"pooling_mode": [[1]]}', "pools by [1]"),
    "a prompt that is a list": (
        "config_sentence_transformers.json",
        '{"default_prompt_name": ["a"]}',
        "default_prompt_name must be a text",
    ),
    "a tokenizer that is none": ("tokenizer.json", "{}", "is not a tokenizer that the tokenizers library can read"),
}


@pytest.mark.parametrize("damage", FILES)
def test_a_damaged_file_beside_the_weights_is_named(damage, tmp_path):
    name, text, said = FILES[damage]
    assert said in refused(put(write_model(tmp_path / "m", "roberta"), name, text))


def test_an_empty_vocabulary_is_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    plain = json.loads((folder / "tokenizer.json").read_text())
    plain["model"]["vocab"], plain["added_tokens"] = {}, []
    plain["post_processor"] = plain["normalizer"] = None
    assert "vocabulary" in refused(put(folder, "tokenizer.json", json.dumps(plain)))


def test_a_tokenizer_of_another_model_is_named(tmp_path):
    folder = write_model(tmp_path / "m")
    plain = json.loads((folder / "tokenizer.json").read_text())
    plain["model"]["vocab"]["cat"] = 5000
    put(folder, "tokenizer.json", json.dumps(plain))
    with pytest.raises(InputError, match=r"tokenizer's ids must be below the model's 24 words, got 5000"):
        Reranker.from_pretrained(folder).rank(QUERY, DOCUMENTS)


def test_an_index_reads_nothing_outside_its_folder(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").rename(tmp_path / "other.safetensors")
    for listed in (
        '{"weight_map": {"a": "../other.safetensors"}}',
        '{"weight_map": [1]}',
        '{"weight_map": {"a": [1]}}',
    ):
        said = refused(put(folder, "model.safetensors.index.json", listed))
        assert "weight_map" in said


def broken_weights(folder, value):
    arrays = read_weights(folder)
    name = max(arrays, key=lambda one: "layer.1.output.dense.weight" in one or "layers.1.mlp" in one)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] = value
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("family", ["bert", "modernbert"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_not_finite_is_an_error_and_never_shown(family, value, tmp_path, capsys):
    folder = broken_weights(write_model(tmp_path / "m", family), value)
    assert (family in EMBEDDERS) == (family == "modernbert")
    reranker = Reranker.from_pretrained(folder)
    for ask in (
        lambda: reranker.rank(QUERY, DOCUMENTS),
        lambda: reranker.predict([(QUERY, DOCUMENTS[0])]),
        lambda: reranker.explain(QUERY, DOCUMENTS[0], method="occlusion"),
        lambda: reranker.matrix(QUERY, DOCUMENTS[0]),
        lambda: reranker.compare(QUERY, *DOCUMENTS),
    ):
        with pytest.raises(InputError, match="must be a finite number"):
            ask()
    for command in ("rank", "explain"):
        assert main([command, QUERY, *DOCUMENTS, "--model", str(folder)]) == 2
        out, err = capsys.readouterr()
        assert "nan" not in out and err.count("\n") == 1 and "must be a finite number" in err


# --- safetensors -------------------------------------------------------------------------------------------------


def stored(file, kind: str, shape: list[int], size: int):
    head = json.dumps({"a": {"dtype": kind, "shape": shape, "data_offsets": [0, size]}}).encode()
    file.write_bytes(struct.pack("<Q", len(head)) + head + bytes(range(size)))
    return file


@pytest.mark.parametrize(
    "kind, shape, size",
    [
        ("F8_E4M3", [2], 2),
        ("F8_E5M2", [2], 2),
        ("F8_E8M0", [2], 2),
        ("F8_E4M3FNUZ", [2], 2),
        ("F4", [2], 1),
        ("F6_E2M3", [4], 3),
        ("C64", [1], 8),
        ("U16", [1], 2),
        ("U64", [1], 8),
        ("NEW", [2], 2),
    ],
)
def test_a_dtype_that_backlight_has_not_is_named(kind, shape, size, tmp_path):
    file = stored(tmp_path / "model.safetensors", kind, shape, size)
    for read in (load_ours, read_header, read_arrays):
        with pytest.raises(ValueError, match=f"cannot read .*model.safetensors as safetensors: .*{kind}"):
            read(file)
    with pytest.raises(InputError, match=f"cannot read the weights in .*{kind}"):
        read_weights(tmp_path)


@pytest.mark.parametrize("kind, size", [("F16", 4), ("BF16", 4), ("I16", 4), ("I8", 2), ("I64", 16), ("BOOL", 2)])
def test_other_dtypes_are_read_as_pytorch_reads_them(kind, size, tmp_path):
    file = stored(tmp_path / "a.safetensors", kind, [2], size)
    (ours,), (theirs,) = (list(read(file).values()) for read in (load_ours, load_file))
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.tolist() == theirs.tolist()


# --- at random ---------------------------------------------------------------------------------------------------


def test_a_damaged_model_folder_is_one_line_or_can_be_used(tmp_path):
    accepted = set()
    for case in range(60):
        trouble, usable = play_models(random.Random(case), tmp_path)
        assert not trouble
        accepted.add(usable)
    assert accepted == {True, False}
