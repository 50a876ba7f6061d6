"""Flow files, run folders, studies and inputs that are damaged are refused in one line, or can be used."""

import gzip
import json
import random

import pytest
from damage_runs import flow_lines, play_data, play_flows, play_runs, play_settings

import backlight
from backlight.errors import InputError
from backlight.explain.batch import files
from backlight.explain.faithfulness.records import Records
from backlight.lens.flow.history import read_history
from backlight.training.config import read_config
from backlight.training.run_folder import RunFolder


@pytest.mark.parametrize("play", [play_flows, play_runs, play_data, play_settings], ids=lambda play: play.__name__)
def test_a_damaged_file_is_refused_in_one_line_or_can_be_used(play, tmp_path):
    found = [play(random.Random(case), tmp_path) for case in range(80)]
    assert [trouble for trouble, _ in found if trouble] == []
    assert {usable for _, usable in found} == {True, False}


def written(folder, number: int, **changes):
    """Write a flow file with fields of one line changed."""
    lines = flow_lines()[:]
    lines[number] = json.dumps(json.loads(lines[number]) | changes) + "\n"
    (folder / "flow.jsonl").write_text("".join(lines))
    return folder / "flow.jsonl"


@pytest.mark.parametrize(
    "number, changes, said",
    [
        (0, {"layers": ["first"]}, r"line 1: \$.layers: expected object, got array"),
        (0, {"format": 2}, "its first line has no format 1"),
        (1, {"loss": "low"}, r"line 2: \$.loss"),
        (2, {"gradient_norms": {"first": -1.0}}, r"line 3: \$.gradient_norms"),
        (3, {"step": 1}, r"line 4: \$.step must be above 2, got 1"),
        (3, {"metrics": [1]}, r"line 4: \$.metrics: expected object, got array"),
        (4, {"colour": 1}, r"line 5: \$: object contains unknown field colour"),
    ],
)
def test_a_flow_file_says_which_line_is_damaged(number, changes, said, tmp_path):
    with pytest.raises(InputError, match=said):
        read_history(written(tmp_path, number, **changes))


def test_a_run_folder_says_which_line_is_damaged(tmp_path):
    good = '{"step": 1, "seconds": 0.5, "loss": 0.5, "accuracy": 1}\n'
    for line, said in {
        '{"step": 1, "seconds": 0.5}\n': "must hold the loss of a step, or an evaluation",
        '{"step": 1, "seconds": 0.5, "evaluation": {}}\n': "must hold the epoch of its evaluation",
        '{"step": "1", "seconds": 0.5, "loss": 1}\n': "step: expected int, got str",
        '{"step": 1, "seconds": 0.5, "loss": 1, "accuracy": "all"}\n': "accuracy: expected a number or null, got str",
        "[1]\n": "must hold a JSON object, got list",
        '{"loss": NaN}\n': "is not JSON: NaN",
    }.items():
        (tmp_path / "metrics.jsonl").write_text(good + line)
        with pytest.raises(InputError, match=rf"metrics.jsonl, line 2.*{said}"):
            RunFolder(tmp_path).records()
    (tmp_path / "metrics.jsonl").write_text(good + good[:20])  # a line that was cut short does not count
    assert len(RunFolder(tmp_path).records()) == 1


def test_results_of_a_study_that_are_damaged_are_measured_again(tmp_path):
    file = tmp_path / "records.jsonl"
    first = json.dumps({"model": "m"}, ensure_ascii=False, sort_keys=True)
    for line in ('{"key": 1, "result": {}}', '{"key": "a"', "[]", '{"key": "a"}', "[" * 20_000):
        file.write_text(f'{first}\n{line}\n{{"key": "b", "result": {{}}}}\n')
        records = Records(file, {"model": "m"}, resume=True)
        assert "a" not in records and "b" in records and len(records) == 1
        records.close()


@pytest.mark.parametrize("name", ["run.toml", "run.json"])
def test_settings_that_are_nested_too_deeply_are_one_line(name, tmp_path):
    text = "[" * 20_000 + "]" * 20_000
    (tmp_path / name).write_text(text if name.endswith("json") else f"a = {text}")
    with pytest.raises(InputError, match=r"nested too deeply|nested less deeply"):
        read_config(tmp_path / name)


def test_a_packed_line_without_an_end_fills_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 16)
    (tmp_path / "pairs.jsonl.gz").write_bytes(gzip.compress(b'{"query": "a"}\n' + b" " * (1 << 17)))
    lines = files.lines_of(tmp_path / "pairs.jsonl.gz")
    assert next(lines) == (1, b'{"query": "a"}')
    with pytest.raises(InputError, match=r"a line of .*pairs.jsonl.gz is longer than"):
        next(lines)


@pytest.mark.parametrize("start", [8, 16])
def test_a_state_of_a_generator_that_is_none_is_refused_as_pytorch_does(start):
    state = backlight.Generator().get_state().numpy().copy()
    state[start : start + 4] = 255 if start == 8 else 127
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        backlight.Generator().set_state(backlight.from_numpy(state))
