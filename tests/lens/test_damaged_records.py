"""A record that is damaged is refused in one line that says where and which rule; what passes can be used."""

import copy
import json
import math
import random
import re

import pytest
from damage import MUST_REFUSE, damaged, real_records, trouble_with_record

import backlight
from backlight import lens
from backlight.errors import InputError
from backlight.lens.records.reading import read_record


@pytest.fixture(scope="module")
def plain() -> dict:
    with lens.watch(engine="backlight") as watch:
        a = backlight.tensor([1.0, 2.0], requires_grad=True)
        b = backlight.tensor([3.0, 4.0], requires_grad=True)
        ((a * b).exp() + a).sum().backward()
    return json.loads(watch.record.to_json())


def refused(text) -> str:
    with pytest.raises(ValueError) as problem:
        read_record(text)
    assert isinstance(problem.value, InputError)
    assert "\n" not in str(problem.value)
    return str(problem.value)


def put(plain: dict, path: str, value) -> str:
    """Return the record as JSON with a value at a path, a.0.b, changed; `...` drops it."""
    changed = copy.deepcopy(plain)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner = changed
    for part in way:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(changed)


RULES = {
    "an id that is another place": ("nodes.1.id", 0, r"\$.nodes\[1\].id must be its place 1, got 0"),
    "an id that is a text": ("nodes.1.id", "1", r"\$.nodes\[1\].id: expected int, got str"),
    "a kind that does not exist": ("nodes.2.kind", "leaves", r"\$.nodes\[2\].kind: invalid enum value"),
    "a truth value for a number": ("nodes.0.version", True, r"\$.nodes\[0\].version: expected int, got bool"),
    "an absent field": ("nodes.0.saved", ..., r"\$.nodes\[0\]: object missing required field saved"),
    "a field that does not exist": ("nodes.0.colour", 1, r"\$.nodes\[0\]: object contains unknown field colour"),
    "an edge to nowhere": ("nodes.2.edges.0.to", 99, r"edges\[0\].to must be a node before 2, got 99"),
    "an edge that makes a cycle": ("nodes.2.edges.0.to", 3, r"edges\[0\].to must be a node before 2, got 3"),
    "an edge to itself": ("nodes.2.edges.0.to", 2, r"edges\[0\].to must be a node before 2, got 2"),
    "an output that cannot be": ("nodes.2.edges.0.output", 2**40, r"edges\[0\].output must be below 65536"),
    "a tensor of a later node": ("nodes.2.saved.0.of", 4, r"saved\[0\].of must be a node up to 2, got 4"),
    "values of another shape": ("nodes.0.outputs.0.values", [1.0], r"values must have the shape \(2,\)"),
    "values that are texts": ("nodes.0.outputs.0.values", ["1", "2"], r"values must be of float32, got '1'"),
    "values that are null": ("nodes.0.outputs.0.values", [None, 2.0], r"values must be of float32, got None"),
    "other values": ("nodes.0.outputs.0.values", [5.0, 6.0], r"outputs\[0\].least must be 5.0, as its values say"),
    "more NaN than elements": (
        "nodes.0.outputs.0.nans",
        9,
        r"outputs\[0\].nans must be, with infs and zeros, at most 2",
    ),
    "another count of zeros": ("nodes.0.outputs.0.zeros", 1, r"outputs\[0\].zeros must be 0, as its values say"),
    "a mean beyond the extremes": ("nodes.0.outputs.0.mean", 7.5, r"outputs\[0\].mean must be from 1.0 to 2.0"),
    "a negative norm": ("nodes.0.outputs.0.norm", -1.0, r"outputs\[0\].norm: expected float >= 0.0"),
    "a shape of too many elements": ("nodes.0.outputs.0.shape", [2**62, 2**62], "shape must have at most 64 dims"),
    "a shape below 0": ("nodes.0.outputs.0.shape", [-2], r"shape\[0\]: expected int >= 0"),
    "a root that does not exist": ("backwards.0.roots", [77], r"backwards\[0\].roots\[0\] must be one of \d nodes"),
    "a node that fires and does not exist": ("backwards.0.steps.0.node", 77, r"steps\[0\].node must be one of"),
    "a node that fires twice": ("backwards.0.steps.1.node", 5, r"steps\[1\].node must fire once in a backward, got 5"),
    "a gradient too few": ("backwards.0.steps.1.outgoing", [], r"steps\[1\].outgoing must be one for each of 2 edges"),
    "a hook's change of no output": (
        "backwards.0.steps.0.changes",
        [{"hook": "h", "output": 4, "before": None, "after": None}],
        r"changes\[0\].output must be below 1",
    ),
    "a write to no node": (
        "writes",
        [{"node": 50, "op": "add_", "version": 1, "place": None}],
        r"\$.writes\[0\].node must be below",
    ),
    "a cut into no node": (
        "cuts",
        [{"node": 0, "op": "detach", "reason": "detached", "into": 50, "place": None}],
        r"\$.cuts\[0\].into must be below",
    ),
    "an engine that is none": ("engine", "jax", r"\$.engine: invalid enum value 'jax'"),
    "an option that is a list": ("nodes.2.options", {"alpha": []}, r"options\[...\]: expected"),
    "a version of the format": ("format", 2, "record must be of format 1"),
    "a format that is true": ("format", True, "record must be of format 1"),
    "no format": ("format", ..., "record must be of format 1"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_record_that_breaks_a_rule_is_refused_with_its_place(plain, rule):
    path, value, expected = RULES[rule]
    said = refused(put(plain, path, value))
    assert re.search(expected, said)
    assert said.startswith(("the record ", "record must be "))


def test_a_backward_whose_order_is_changed_is_refused(plain):
    changed = copy.deepcopy(plain)
    changed["backwards"][0]["steps"].reverse()
    assert "must fire before" in refused(json.dumps(changed))


JSON = {
    "nothing": "{",
    "a NaN": '{"format": 1, "engine": NaN}',
    "an infinity": '{"format": 1, "left_out": -Infinity}',
    "an infinity in digits": '{"format": 1, "left_out": 1e999}',
    "a number of 5000 digits": '{"format": 1, "left_out": ' + "9" * 5000 + "}",
    "a nest": '{"format": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a nest of objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a name twice": '{"format": 1, "format": 1, "engine": "torch"}',
    "half a surrogate pair": '{"format": 1, "title": "\\ud800"}',
}


@pytest.mark.parametrize("name", JSON)
def test_what_is_no_strict_json_is_refused(name):
    assert "record must be JSON" in refused(JSON[name])


def test_a_file_that_is_none_or_of_other_bytes_is_refused(tmp_path):
    for name, content in {"empty": b"", "latin": b'{"title": "\xe9"}', "utf-16": '{"a": 1}'.encode("utf-16")}.items():
        (tmp_path / name).write_bytes(content)
        assert "record must be JSON" in refused(tmp_path / name)
    for missing in (tmp_path, tmp_path / "missing", tmp_path / "a\0b"):
        assert "record must be a file that can be read" in refused(missing)


def test_options_that_are_not_finite_come_back_as_they_were(tmp_path):
    x = backlight.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with lens.watch(engine="backlight") as watch:
        x.clamp(min=2.0, max=math.inf).sum().backward()
    again = lens.read_record(watch.record.to_json())
    assert again == watch.record
    assert math.inf in [value for node in again.nodes for value in node.options.values()]


def test_numbers_whose_sum_is_beyond_float64_have_a_mean_and_a_norm():
    x = backlight.tensor([1e308, 1e308, -1e308], dtype=backlight.float64, requires_grad=True)
    with lens.watch(engine="backlight") as watch:
        (x * 1).sum().backward()
    summary = lens.read_record(watch.record.to_json()).leaves[0].outputs[0]
    assert math.isclose(summary.mean, 1e308 / 3) and math.isclose(summary.norm, math.sqrt(3) * 1e308)


def test_a_record_of_complex_numbers_is_replayed():
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    with lens.watch(engine="torch") as watch:
        (z * z.conj()).real.sum().backward()
    record = lens.read_record(watch.record.to_json())
    assert "computes" in record.replay().text() and "<html" in record.html()


def test_real_records_are_read_as_they_were_written():
    for text in real_records():
        assert read_record(text).to_json() == text


@pytest.mark.parametrize("seed", range(6))
def test_a_mutated_record_is_refused_or_can_be_used(seed):
    rng, texts = random.Random(seed), real_records()
    kinds = set()
    for _ in range(60):
        original = rng.choice(texts)
        kind, text = damaged(rng, original)
        trouble, accepted = trouble_with_record(text, original)
        assert trouble is None, f"{kind}: {trouble}"
        assert not (accepted and kind in MUST_REFUSE), f"{kind} was accepted"
        kinds.add((kind, accepted))
    assert {accepted for _, accepted in kinds} == {True, False}
