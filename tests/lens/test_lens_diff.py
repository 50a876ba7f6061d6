"""A diff of two records finds what a change added, took away and altered, and nothing else."""

import dataclasses
import json
import random
import time

import pytest
import torch

import backlight
from backlight import lens
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.lens.differences.diff import union_of
from backlight.lens.differences.matching import align
from backlight.lens.records.nodes import Edge, Node, Place, Summary
from backlight.lens.records.record import Record

ENGINES = {"backlight": backlight, "torch": torch}


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


def layers(engine, *, norm=False, more=0):
    """Return layers that have the same weights each time."""
    nn = engine.nn
    found = [nn.Linear(3, 4), nn.ReLU(), *([nn.LayerNorm(4)] if norm else [])]
    found += [layer for _ in range(more) for layer in (nn.Linear(4, 4), nn.ReLU())]
    found.append(nn.Linear(4, 1))
    with engine.no_grad():
        for layer in found:
            for parameter in layer.parameters():
                parameter.copy_(engine.linspace(-1, 1.5, parameter.numel()).reshape(parameter.shape))
    return found


def recorded(engine, model, *, cut=False, dtype="float32", keep=False, scale=1.0, write=False):
    """Return the record of a step."""
    inputs = engine.linspace(-1, 2, 15).reshape(5, 3).to(getattr(engine, dtype))
    model.to(getattr(engine, dtype))
    with lens.watch(engine="torch" if engine is torch else "backlight") as watch:
        hidden = model[1](model[0](inputs))
        hidden = hidden.detach() if cut else hidden
        if write:
            hidden = hidden * 1
            hidden.add_(1)
        for layer in list(model)[2:]:
            hidden = layer(hidden)
        loss = (hidden * scale).square().mean()
        loss.backward(retain_graph=keep)
    return watch.record


def plain(engine, **options):
    return recorded(engine, engine.nn.Sequential(*layers(engine)), **options)


def named(record, ids):
    return [record.nodes[one].name or record.nodes[one].type for one in ids]


def whats(found, name):
    """Return what changed about the node of a name, or of a type."""
    nodes = found.after.nodes
    (one,) = [one for one in found.changed if name in (nodes[one.after].name, nodes[one.after].type)]
    return {change.what: (change.before, change.after) for change in one.changes}


def test_two_runs_of_one_program_do_not_differ(engine):
    found = lens.diff(plain(engine), plain(engine))
    assert not found
    assert str(found) == "no difference"
    assert len(found.pairs) == len(found.before.nodes)


def test_a_layer_norm_is_added_and_the_layer_behind_it_keeps_its_nodes_though_it_is_renumbered(engine):
    after = recorded(engine, engine.nn.Sequential(*layers(engine, norm=True)))
    found = lens.diff(plain(engine), after)
    assert named(found.after, found.added) == ["2.weight", "2.bias", "NativeLayerNormBackward0"]
    assert found.gone == []
    pairs = {found.before.nodes[a].name: found.after.nodes[b].name for a, b in found.pairs}
    assert pairs["2.weight"] == "3.weight"
    assert pairs["0.weight"] == "0.weight"
    assert found.totals["parameter elements"] == (21, 29)
    text = str(found)
    assert "\n+ 3 nodes added\n~ " in text
    assert "@@ 2 LayerNorm @@\n+ leaf 2.weight  (4) float32\n+ leaf 2.bias" in text
    assert "@@ 3 Linear, before: 2 @@" in text
    assert "relu in 1 → native_layer_norm in 2" in text


def test_what_is_added_one_way_is_gone_the_other_way(engine):
    norm = recorded(engine, engine.nn.Sequential(*layers(engine, norm=True)))
    found, back = lens.diff(plain(engine), norm), lens.diff(norm, plain(engine))
    assert found.added == back.gone
    assert "- leaf 2.weight" in str(back)


def test_a_detach_cuts_an_input_and_takes_gradients_away(engine):
    found = lens.diff(plain(engine), plain(engine, cut=True))
    assert found.added == found.gone == []
    assert whats(found, "0.weight")["gradient"][1] == "none"
    assert whats(found, "0.bias")["gradient"][1] == "none"
    cut = [one for one in found.changed if any(change.what == "inputs" for change in one.changes)]
    assert len(cut) == 1
    (change,) = [change for change in cut[0].changes if change.what == "inputs"]
    assert (change.before, change.after) == ("relu in 1", "no gradient")
    touched = {found.after.nodes[one.after].name for one in found.changed}
    assert not touched & {"2.weight", "2.bias", "loss"}


def test_another_dtype_changes_every_node_and_the_bytes_but_matches_all(engine):
    found = lens.diff(plain(engine), plain(engine, dtype="float64"))
    assert found.added == found.gone == []
    assert len(found.changed) == len(found.pairs)
    assert whats(found, "0.weight")["dtype"] == ("float32", "float64")
    assert "gradient" not in whats(found, "0.weight")
    assert whats(found, "ReluBackward0")["saved"] == ("80 bytes: result", "160 bytes: result")
    assert found.totals["bytes saved"][1] > found.totals["bytes saved"][0]


def test_a_kept_graph_frees_nothing(engine):
    found = lens.diff(plain(engine), plain(engine, keep=True))
    assert found
    assert found.changed == []
    assert found.totals["backwards that kept the graph"] == (0, 1)
    assert found.totals["bytes freed"][1] == 0


def test_gradients_differ_beyond_the_tolerance_only(engine):
    before, after = plain(engine), plain(engine, scale=1.001)
    assert "gradient" in whats(lens.diff(before, after), "2.weight")
    found = lens.diff(before, after, tolerance=0.01)
    assert not any(change.what == "gradient" for one in found.changed for change in one.changes)


def test_nan_in_a_gradient_is_a_change(engine):
    found = lens.diff(plain(engine), plain(engine, scale=float("nan")))
    assert "NaN" in whats(found, "2.weight")["gradient"][1]


def test_an_in_place_write_is_seen(engine):
    found = lens.diff(plain(engine), plain(engine, write=True))
    assert found.totals["in-place writes"] == (0, 1)
    assert found.added


def test_layers_put_in_the_middle_unmatch_nothing(engine):
    after = recorded(engine, engine.nn.Sequential(*layers(engine, more=2)))
    found = lens.diff(plain(engine), after)
    assert found.gone == []
    assert len(found.pairs) == len(found.before.nodes)
    assert {name for name in named(found.after, found.added) if "." in name} == {
        "2.weight",
        "2.bias",
        "4.weight",
        "4.bias",
    }


def test_records_that_were_saved_are_compared_by_the_command(engine, tmp_path, capsys):
    plain(engine).save(tmp_path / "a.json")
    plain(engine, cut=True).save(tmp_path / "b.json")
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert main(["diff", a, a]) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert main(["diff", a, b]) == 1
    assert "inputs: relu in 1 → no gradient" in capsys.readouterr().out
    assert main(["diff", a, b, "--json", "--svg", str(tmp_path / "c.svg")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["differs"] is True
    assert told["gone"] == []
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    assert main(["diff", a, b, "--all"]) == 1
    assert capsys.readouterr().out == lens.diff(plain(engine), plain(engine, cut=True)).text(details=True) + "\n"
    assert main(["diff", a, str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_the_picture_shows_both_graphs_with_signs(engine):
    norm = recorded(engine, engine.nn.Sequential(*layers(engine, norm=True)))
    drawn = lens.diff(plain(engine), norm).svg()
    assert "+ native_layer_norm" in drawn
    assert "look-added" in drawn
    gone = lens.diff(norm, plain(engine)).svg()
    assert "− native_layer_norm" in gone
    assert "look-gone" in gone


def test_the_factor_that_changed_is_told_first_and_the_rest_is_what_follows(engine):
    found = lens.diff(plain(engine), plain(engine, scale=2.0))
    causes = [found.after.nodes[one.after].label for one in found.changed if one.cause]
    assert causes == ["×"]
    assert whats(found, "MulBackward0")["constant"] == ("other 1", "other 2")
    lines = str(found).splitlines()
    (first,) = [line for line in lines if line.startswith("@@ the values differ from here on: ×")]
    assert "test_lens_diff.py:" in first
    assert first.endswith("constant other 1 → 2 @@")
    assert lines.index(first) < lines.index("@@ what follows from it @@")
    assert not any("leaf 0.weight" in line for line in lines)
    assert "leaf 0.weight" in found.text(details=True)


def test_a_value_that_follows_is_a_change_and_amber(engine):
    found = lens.diff(plain(engine), plain(engine, scale=2.0))
    before, after = (float(value) for value in whats(found, "loss")["value"])
    assert after == pytest.approx(4 * before, rel=1e-4)
    record, looks = union_of(found)
    assert [look for node, look in zip(record.nodes, looks) if node.root] == ["changed"]
    assert f"~ loss = mean: value {before:.6g} → {after:.6g}" in str(found)


def test_an_option_that_changed_is_the_cause(engine):
    def powered(exponent):
        x = engine.linspace(1, 2, 4).requires_grad_()
        with lens.watch(engine="torch" if engine is torch else "backlight") as watch:
            (x**exponent).sum().backward()
        return watch.record

    found = lens.diff(powered(2), powered(3))
    assert [found.after.nodes[one.after].label for one in found.changed if one.cause] == ["xⁿ"]
    assert "options: exponent=2 → exponent=3" in str(found)


def test_where_only_gradients_differ_the_first_one_in_the_backward_is_the_cause(engine):
    def weighted(factor):
        x = engine.linspace(1, 2, 4).requires_grad_()
        with lens.watch(engine="torch" if engine is torch else "backlight") as watch:
            (x * 3).exp().sum().backward(engine.tensor(factor))
        return watch.record

    found = lens.diff(weighted(1.0), weighted(2.0))
    assert [found.after.nodes[one.after].label for one in found.changed if one.cause] == ["sum"]
    assert "@@ the gradients differ, in the backward, from here on: sum" in str(found)


@pytest.mark.parametrize("scale", [3.0, 1.0])
def test_a_deep_model_is_told_in_60_lines_whatever_its_gradients(engine, scale):
    def deep(scale, shift):
        model = engine.nn.Sequential(*(layers(engine, more=40)))
        if shift:
            with engine.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.25)
        return recorded(engine, model, scale=scale)

    found = lens.diff(deep(1.0, False), deep(scale, scale == 1.0))
    assert len(found.text(details=True).splitlines()) > 150
    assert len(str(found).splitlines()) <= 60
    assert "nodes" in str(found).splitlines()[-1]


def test_two_engines_that_compute_the_same_do_not_differ():
    found = lens.diff(plain(torch), plain(backlight))
    assert not found
    assert str(found).splitlines()[0].startswith("two engines, torch against backlight")
    assert str(found).splitlines()[1:] == ["no difference"]


def test_ops_that_one_engine_splits_are_no_difference_if_the_outcome_is_the_same():
    def classified(engine):
        model = engine.nn.Sequential(*layers(engine), engine.nn.Linear(1, 3))
        with engine.no_grad():
            for parameter in model[3].parameters():
                parameter.copy_(engine.linspace(-1, 1, 3).reshape(parameter.shape))
        with lens.watch(engine="torch" if engine is torch else "backlight") as watch:
            scores = model(engine.linspace(-1, 2, 15).reshape(5, 3))
            loss = engine.nn.functional.cross_entropy(scores, engine.tensor([0, 1, 2, 1, 0]))
            loss.backward()
        return watch.record

    torchs, ours = classified(torch), classified(backlight)
    assert "log_softmax" in {node.label for node in torchs.nodes} ^ {node.label for node in ours.nodes}
    assert not lens.diff(torchs, ours)
    assert not lens.diff(ours, torchs)


def test_two_engines_that_compute_something_else_differ_at_the_first_place():
    found = lens.diff(plain(torch), plain(backlight, scale=2.0))
    assert found
    assert [found.after.nodes[one.after].label for one in found.changed if one.cause] == ["×"]
    cut = lens.diff(plain(torch), plain(backlight, cut=True))
    assert whats(cut, "0.weight")["gradient"][1] == "none"


def test_each_module_has_one_heading(engine):
    norm = recorded(engine, engine.nn.Sequential(*layers(engine, norm=True)))
    for found in (lens.diff(norm, plain(engine)), lens.diff(plain(engine), norm)):
        for text in (str(found), found.text(details=True)):
            headings = [line for line in text.splitlines() if line.startswith("@@")]
            assert all(one != other for one, other in zip(headings, headings[1:]))


def test_without_modules_there_is_no_heading_for_what_is_outside_of_them():
    assert "outside of modules" not in str(lens.diff(chain(["a", "b"]), chain(["a", "b", "c"])))


def test_views_are_not_listed_alone():
    text = str(lens.diff(chain(["a", "b"]), chain(["a", "ViewBackward0", "b"])))
    assert "+ 1 node added" in text
    assert "+ ViewBackward0" not in text


def test_all_faces_are_written_to_a_path_and_name_both_records(engine, tmp_path):
    before, after = plain(engine), plain(engine, scale=2.0)
    before.title, after.title = "one.py", "two.py"
    found = lens.diff(before, after)
    for face in (found.svg, found.dot, found.html):
        assert face(tmp_path / "face") == (tmp_path / "face").read_text(encoding="utf-8")
    assert "<title>one.py → two.py · backlight</title>" in found.html()
    assert "~ ×" in found.tree(color=False)
    before.title = after.title = ""
    assert "<title>before → after · backlight</title>" in lens.diff(before, after).html()


# --- made by hand -----------------------------------------------------------------------------------------------------


def chain(types, modules=None):
    """Return a record of ops in a row."""
    nodes = []
    for number, kind in enumerate(types):
        edges = [Edge(number - 1)] if number else []
        module = modules[number] if modules else ""
        nodes.append(Node(number, "op", kind, kind, edges=edges, outputs=[Summary((2,), "float32")], module=module))
    return Record("torch", nodes)


@pytest.mark.parametrize("seed", range(20))
def test_every_alignment_is_in_order_of_equal_keys_and_as_long_as_can_be_where_short(seed):
    draw = random.Random(seed)
    before, after = ([draw.choice("abcdefgh") for _ in range(draw.randrange(40))] for _ in range(2))
    pairs = align(before, after)
    assert all(before[a] == after[b] for a, b in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in zip(pairs, pairs[1:]))
    if not (set(before) & set(after)):
        assert pairs == []


def test_one_node_put_into_a_long_chain_of_equal_ones_is_one_added():
    found = lens.diff(chain(["tanh"] * 3000), chain(["tanh"] * 1500 + ["exp"] + ["tanh"] * 1500))
    assert found.added == [1500]
    assert found.gone == []


def test_5000_nodes_in_blocks_are_compared_in_seconds_whatever_changed():
    draw = random.Random(0)
    kinds = ["addmm", "relu", "mul", "add", "view", "tanh", "bmm", "softmax"]
    before = [draw.choice(kinds) for _ in range(5000)]
    edited = list(before)
    for _ in range(200):
        place = draw.randrange(len(edited))
        edited[place : place + 1] = draw.choice(([], ["exp", edited[place]]))
    began = time.perf_counter()
    found = lens.diff(chain(before), chain(edited))
    shuffled = draw.sample(before, len(before))
    lens.diff(chain(before), chain(shuffled))
    assert time.perf_counter() - began < 20
    assert len(found.pairs) > 4700


def test_a_node_whose_order_changed_is_matched_by_its_name():
    one = chain(["mul", "add", "exp"], ["a", "b", "c"])
    other = chain(["exp", "mul", "add"], ["c", "a", "b"])
    found = lens.diff(one, other)
    assert sorted(found.pairs) == [(0, 1), (1, 2), (2, 0)]


def test_a_line_that_only_moved_is_the_same_and_another_text_is_told_once():
    def placed(text, line):
        record = chain(["mul", "exp"])
        nodes = [dataclasses.replace(node, place=Place("a.py", line, "f", text)) for node in record.nodes]
        return Record("torch", nodes)

    assert not lens.diff(placed("y = exp(x * 2)", 3), placed("y = exp(x * 2)", 9))
    text = str(lens.diff(placed("y = exp(x * 2)", 3), placed("y = exp(x * 3)", 3)))
    assert text.endswith("@@ lines of source @@\n~ y = exp(x * 2) (a.py:3) → y = exp(x * 3) (a.py:3): 2 nodes")


def test_both_graphs_as_one_keep_inputs_before_what_reads_them():
    found = lens.diff(chain(["a", "b", "c", "d"]), chain(["a", "x", "c", "y", "d"]))
    record, looks = union_of(found)
    assert all(edge.to < node.id for node in record.nodes for edge in node.edges)
    assert sorted(looks) == ["added", "added", "changed", "changed", "gone", "same"]
    assert [node.id for node in record.nodes] == list(range(6))


@pytest.mark.parametrize(
    ("given", "said"),
    [((1, chain(["a"])), "before must be a Record, got int"), ((chain(["a"]), None), "after must be a Record")],
)
def test_what_is_no_record_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        lens.diff(*given)


def test_a_tolerance_below_0_is_refused():
    with pytest.raises(InputError, match="tolerance must be 0 or more, got -1"):
        lens.diff(chain(["a"]), chain(["a"]), tolerance=-1)
