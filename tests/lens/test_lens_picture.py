"""Pictures of records: plumbing folded, groups by module, line and repeated block, what each group says of itself."""

import gc
import json
import math

import pytest
from hypothesis import given, settings
from lens_records import expression, graph, leaf, op, stack, tensor, value
from test_lens_layout import records

from backlight.errors import InputError
from backlight.lens.pictures.boxes import LINE, MODULE, PART, REPEAT, Picture
from backlight.lens.pictures.groups import Repeat, repeats
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.place import place
from backlight.lens.records.nodes import GIVEN, Backward, SavedTensor, Step
from backlight.lens.records.record import Record


def titles(picture: Picture, kind: str) -> list[str]:
    return [group.title for group in picture.groups if group.kind == kind]


def visible(picture: Picture) -> list[str]:
    plan = place(picture)
    return [item for item in plan.spots if item[0] in "ng" and not (item[0] == "g" and int(item[1:]) in plan.opened)]


@settings(deadline=None)
@given(records())
def test_every_node_is_an_item_of_one_group_or_a_bead_on_a_wire(record):
    picture = picture_of(record)
    items = [item for group in picture.groups for item in group.children]
    assert len(items) == len(set(items))
    assert {item for item in items if item[0] == "g"} == {f"g{group.id}" for group in picture.groups[1:]}
    for box in picture.boxes:
        assert (f"n{box.id}" in items) == (box.wire is None)
        assert box.wire is not None or f"n{box.id}" in picture.groups[box.group].children


@settings(deadline=None)
@given(records())
def test_a_wire_runs_through_a_chain_of_links_from_its_start_to_its_end(record):
    picture = picture_of(record)
    for number, wire in enumerate(picture.wires):
        ends = [one for group in picture.groups for one in group.links if number in one.wires]
        after = {one.start: one for one in ends}
        is_used_later = {one.inside_start: one for one in ends if one.inside_start}
        step, way = after[f"n{wire.start}"], []
        while step is not None:
            way.append(step)
            step = is_used_later[step.end] if step.end[0] == "o" else after.get(step.inside_end)
        assert way[-1].end == f"n{wire.end}"
        assert len(way) == len(ends)


def test_a_transpose_between_two_nodes_is_a_bead_on_their_wire():
    nodes = [leaf(0, "w"), op(1, [0], "TBackward0", "T"), leaf(2, "x"), op(3, [2, 1], "MmBackward0", "@", root=True)]
    picture = picture_of(Record("torch", nodes))
    assert [(wire.start, wire.end, wire.beads) for wire in picture.wires] == [(2, 3, []), (0, 3, [1])]
    assert picture.boxes[1].bead and picture.boxes[1].wire == 1
    assert "n1" not in picture.groups[0].children
    assert [link.beads for link in picture.groups[0].links] == [[], [1]]


def test_plumbing_that_several_nodes_read_or_a_hook_watches_stays_in_sight():
    nodes = [leaf(0, "w"), op(1, [0], "TBackward0", "T"), op(2, [1]), op(3, [1]), op(4, [2, 3], root=True)]
    assert picture_of(Record("torch", nodes)).boxes[1].wire is None
    hooked = [leaf(0, "w"), op(1, [0], "TBackward0", "T", hooks=["clip"]), op(2, [1], root=True)]
    assert picture_of(Record("torch", hooked)).boxes[1].wire is None


def test_modules_become_groups_that_hold_their_parameters():
    picture = picture_of(stack(2))
    assert titles(picture, MODULE) == ["blocks", "blocks.0", "blocks.1", "up", "down", "up", "down"]
    up = picture.groups[4]
    assert (up.detail, up.parameters, up.leaves) == ("Linear", 64 * 64 + 64, 2)
    assert {picture.boxes[int(item[1:])].label for item in up.children} == {"weight", "bias", "addmm"}
    assert picture.groups[0].children[0] == "n0"  # what the model is given stands outside of it


def test_a_leaf_stands_beside_its_first_use_where_no_parameters_are_known():
    nodes = [leaf(0, "x"), op(1, [0], module="a"), op(2, [1], module="a"), op(3, [0, 2], module="b", root=True)]
    picture = picture_of(Record("torch", nodes))
    assert picture.groups[picture.boxes[0].group].title == "a"


def test_blocks_of_a_deep_model_become_one_group_times_their_number():
    picture = picture_of(stack(12))
    (block,) = [group for group in picture.groups if group.kind == REPEAT]
    assert (block.title, block.times, len(block.children)) == ("Block × 12", 12, 12)
    assert block.detail == "blocks.0 … blocks.11"
    assert not block.shown
    assert block.parameters == 12 * 2 * (64 * 64 + 64)


@pytest.mark.parametrize("by", ["module", "line"])
def test_blocks_are_found_without_module_paths_too(by):
    picture = picture_of(stack(40, modules=False), by=by)
    found = [group for group in picture.groups if group.kind == REPEAT]
    assert found and found[0].times >= 39
    assert len(visible(picture)) <= 60
    assert titles(picture, LINE)


@pytest.mark.parametrize("layers", [1, 5, 12, 200])
@pytest.mark.parametrize("modules", [True, False])
def test_at_most_sixty_things_are_seen_at_first_and_in_each_group(layers, modules):
    picture = picture_of(stack(layers, modules=modules))
    assert len(visible(picture)) <= 60
    assert all(len(group.children) <= 60 for group in picture.groups)


def test_a_row_without_any_structure_is_cut_into_stretches():
    kinds = [["Sin", "Cos", "Exp"][(number * number // 7) % 3] for number in range(500)]
    nodes = [leaf(0, "x"), *(op(at + 1, [at], f"{kind}Backward0", kind.lower()) for at, kind in enumerate(kinds))]
    picture = picture_of(Record("torch", nodes))
    assert any(group.kind == PART for group in picture.groups)
    assert 2 <= len(visible(picture)) <= 60
    assert sum(box.wire is None for box in picture.boxes) == 501


def test_none_leaves_every_node_in_sight():
    picture = picture_of(stack(20), by="none")
    assert len(picture.groups) == 1
    assert len(visible(picture)) == len(picture.boxes) - 40  # the transposes are beads


def test_repeats_prefer_what_covers_most_and_then_the_shorter_block():
    assert repeats("ababab", [1] * 6) == [Repeat(0, 2, 3)]
    assert repeats("aabaabaab", [1] * 9) == [Repeat(0, 3, 3)]
    assert repeats("aaaa", [1] * 4) == [Repeat(0, 1, 4)]
    assert repeats("abcd", [1] * 4) == []
    assert repeats("aa", [1, 1]) == []  # small things must come three times
    assert repeats("aa", [20, 20]) == [Repeat(0, 1, 2)]


def test_steps_of_a_recurrence_that_share_their_weights_are_one_repeated_block():
    nodes = [leaf(0, "w", parameter=True), leaf(1, "x", outputs=[tensor(4)])]
    for _ in range(30):
        last = len(nodes) - 1
        nodes.append(op(last + 1, [last, 0], "MmBackward0", "@", module="cell"))
        nodes.append(op(last + 2, [last + 1], "TanhBackward0", "tanh", module="cell"))
    picture = picture_of(Record("torch", nodes, modules={"": "Net", "cell": "Cell"}))
    (steps,) = [group for group in picture.groups if group.kind == REPEAT]
    assert (steps.times, steps.title, steps.path) == (30, "Cell × 30", "cell")
    assert [picture.boxes[int(item[1:])].label for item in picture.groups[-1].children] == ["@", "tanh"]


def test_very_many_blocks_keep_the_name_of_their_class():
    (block,) = [group for group in picture_of(stack(100)).groups if group.kind == REPEAT]
    assert block.title == "Block × 100"
    assert len(block.children) <= 60


def test_a_module_that_is_a_number_is_told_with_its_class():
    record = graph([[], [0], [1], [2]], ["", "0", "0", "0"])
    record.modules = {"": "Sequential", "0": "Block"}
    assert titles(picture_of(record), MODULE) == ["Block 0"]


def test_a_module_called_at_two_moments_is_two_groups():
    modules = ["", "", "", "cell", "cell", "", "cell", "cell"]
    picture = picture_of(graph([[], [], [], [0, 1], [3], [4], [5, 2], [6]], modules))
    assert titles(picture, MODULE) == ["cell", "cell"]


def test_groups_never_stand_in_a_circle_where_the_numbers_are_not_the_order():
    nodes = [op(0, [2], module="a"), leaf(1, "w"), op(2, [1], module="b"), op(3, [0], module="b", root=True)]
    picture = picture_of(Record("torch", nodes))
    assert len(picture.boxes) == 4
    place(picture)


def test_a_gradient_that_never_arrived_is_not_a_zero():
    nodes = [
        leaf(0, "used", outputs=[tensor(3, 3)]),
        leaf(1, "zero", outputs=[tensor(3, 3)]),
        leaf(2, "late", outputs=[tensor(3, 3)]),
        op(3, [0, 1, 2], root=True, outputs=[tensor(3, 3)]),
    ]
    before = picture_of(Record("torch", nodes))
    assert [box.arrived for box in before.boxes] == [None] * 4
    assert before.boxes[0].lines == ["3 × 3", "no gradient yet"]
    assert before.groups[0].reached is None and before.groups[0].gradient is None
    arrived = [Step(0, [tensor(3, 3, norm=2.0)]), Step(1, [tensor(3, 3, norm=0.0)]), Step(3, [tensor(3, 3, norm=1.0)])]
    after = picture_of(Record("torch", nodes, [Backward([3], arrived)]))
    assert [box.gradient for box in after.boxes] == [2.0, 0.0, None, 1.0]
    assert [box.lines[-1] for box in after.boxes] == ["‖grad‖ 2", "‖grad‖ 0", "no gradient yet", "‖grad‖ 1"]
    assert (after.groups[0].leaves, after.groups[0].reached) == (3, 2)
    assert after.groups[0].lines[-1] == "‖grad‖ 2 in 2 of 3 leaves"


def test_a_group_without_leaves_tells_the_largest_gradient_in_it_and_says_so():
    nodes = [
        leaf(0, "w", outputs=[tensor(3, 3)]),
        op(1, [0], outputs=[tensor(3, 3)]),
        op(2, [1], outputs=[tensor(3, 3)], module="act", module_type="Act"),
        op(3, [2], outputs=[tensor(3, 3)], module="act", module_type="Act"),
        op(4, [3], root=True, outputs=[tensor(3, 3)]),
    ]
    steps = [Step(one, [tensor(3, 3, norm=norm)]) for one, norm in ((4, 1.0), (3, 4.0), (2, 3.0), (1, 9.0), (0, 2.0))]
    (group,) = [one for one in picture_of(Record("torch", nodes, [Backward([4], steps)])).groups if one.path == "act"]
    assert (group.gradient, group.largest) == (None, 4.0)
    assert group.lines[-1] == "max ‖grad‖ 4"
    (unreached,) = [one for one in picture_of(Record("torch", nodes)).groups if one.path == "act"]
    assert not any("grad" in line for line in unreached.lines)


def test_a_leaf_shows_what_has_accumulated_and_not_only_what_came_last():
    step = Step(0, [value(2.0)], grad_before=value(1.0), grad_after=value(3.0))
    record = Record("torch", [leaf(0, "a", outputs=[value(5.0)], root=True)], [Backward([0], [step])])
    assert picture_of(record).boxes[0].lines == ["data 5 | grad 3"]


def test_another_backward_can_be_shown():
    first, second = (Backward([0], [Step(0, [value(grad)])]) for grad in (2.0, 7.0))
    record = Record("torch", [leaf(0, "a", outputs=[value(5.0)])], [first, second])
    assert picture_of(record).boxes[0].gradient == 7.0
    assert picture_of(record, backward=0).boxes[0].gradient == 2.0
    with pytest.raises(InputError, match="backward must be a number from -2 to 1, got 2"):
        picture_of(record, backward=2)


def test_a_groups_gradient_is_the_norm_of_all_its_leaves_and_nan_is_told():
    arrived = [Step(0, [tensor(2, norm=3.0)]), Step(1, [tensor(2, norm=4.0)])]
    record = Record("torch", [leaf(0, "a"), leaf(1, "b"), op(2, [0, 1], root=True)], [Backward([2], arrived)])
    assert picture_of(record).groups[0].gradient == math.hypot(3.0, 4.0)
    arrived[1].incoming[0].nans = 2
    broken = picture_of(record)
    assert broken.boxes[1].nonfinite == broken.groups[0].nonfinite == 2
    assert broken.boxes[1].lines[-1] == "grad with 2 NaN"


def test_memory_that_two_nodes_saved_counts_once():
    one, same, other = SavedTensor("self", tensor(4), 16, 7), SavedTensor("result", tensor(4), 16, 7), None
    other = SavedTensor("other", tensor(4), 16, 8)
    nodes = [leaf(0, "x"), op(1, [0], saved=[one]), op(2, [1], saved=[same, other], root=True)]
    picture = picture_of(Record("torch", nodes))
    assert [box.bytes for box in picture.boxes] == [0, 16, 16]
    assert picture.groups[0].bytes == 32


def test_time_that_was_not_measured_is_not_zero():
    nodes = [leaf(0, "x"), op(1, [0]), op(2, [1], root=True)]
    assert picture_of(Record("torch", nodes)).groups[0].seconds is None
    nodes[1].seconds = 0.25
    assert picture_of(Record("torch", nodes)).groups[0].seconds == 0.25


def test_a_recorded_backward_is_a_group_of_its_own():
    nodes = [leaf(0, "x"), op(1, [0]), op(2, [1]), op(3, [0, 2], order=2), op(4, [3], order=2, root=True)]
    picture = picture_of(Record("torch", nodes))
    assert titles(picture, PART) == ["recorded backward, order 2"]


def test_given_nodes_and_graphs_without_edges_can_be_drawn():
    cut = op(0, [], "UndefinedGrad", "cut")
    cut.kind = GIVEN
    assert picture_of(Record("torch", [cut])).boxes[0].kind == GIVEN
    assert place(picture_of(Record("torch", []))).opened == [0]


def test_json_holds_all_of_it():
    picture = picture_of(expression())
    found = json.loads(picture.to_json())
    assert found["format"] == 1
    assert [box["label"] for box in found["boxes"]] == ["a", "b", "+", "×", "×"]
    assert found["boxes"][1]["lines"] == ["data 1 | grad 8"]
    assert found["groups"][0]["ranks"] == [[], ["n0", "n1"], ["n2", "n3"], ["n4"], []]
    assert {(link["start"], link["end"]) for link in found["groups"][0]["links"]} == {
        ("n0", "n2"), ("n1", "n2"), ("n1", "n3"), ("n2", "n4"), ("n3", "n4"),
    }  # fmt: skip


def test_a_deep_graph_needs_no_recursion_and_stays_small():
    chain = graph([[], *([number] for number in range(20_000))])
    picture = picture_of(chain)
    assert len(visible(picture)) <= 60
    flat = picture_of(chain, by="none")
    assert len(flat.groups[0].ranks) == 20_001 + 2


def test_many_long_links_are_bounded():
    count = 1_500
    inputs = [[], *([number] for number in range(count)), *([count + at, count - at] for at in range(count - 1))]
    picture = picture_of(graph(inputs), by="none")
    bends = sum(item[0] == "b" for row in picture.groups[0].ranks for item in row)
    assert bends <= 60_000
    assert len(place(picture).routes) == len(picture.groups[0].links)


def test_the_garbage_collector_is_as_it_was():
    assert gc.isenabled()
    picture_of(expression())
    with pytest.raises(InputError):
        picture_of(expression(), most=0)
    assert gc.isenabled()
    gc.disable()
    try:
        picture_of(expression())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_wrong_options_are_told():
    with pytest.raises(InputError, match="by must be one of module, line, none, got 'colour'"):
        picture_of(expression(), by="colour")
    with pytest.raises(InputError, match="most must be at least 2, got 1"):
        picture_of(expression(), most=1)
