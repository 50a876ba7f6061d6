"""Layout: rows as late as possible, every link downwards, nothing on top of anything, always the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lens_records import graph

from backlight.lens.pictures.boxes import Picture
from backlight.lens.pictures.layout import crossings, layout
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.place import GAP, place

SLACK = 1e-6


@st.composite
def inputs_of_nodes(draw, most: int = 40) -> list[list[int]]:
    count = draw(st.integers(1, most))
    return [sorted(draw(st.sets(st.integers(0, number - 1), max_size=3))) if number else [] for number in range(count)]


@st.composite
def records(draw):
    inputs = draw(inputs_of_nodes())
    names = draw(st.lists(st.sampled_from(["", "a", "a.b", "a.c", "d", "d.0", "d.1"]), min_size=40, max_size=40))
    return graph(inputs, names)


def plain_links(inputs) -> list[tuple[str, str]]:
    return [(f"n{maker}", f"n{user}") for user, makers in enumerate(inputs) for maker in makers]


@given(inputs_of_nodes())
def test_every_item_stands_once_and_just_above_its_first_user(inputs):
    items = [f"n{number}" for number in range(len(inputs))]
    links = plain_links(inputs)
    rows = layout(items, links).rows
    assert sorted(item for row in rows for item in row if item[0] == "n") == sorted(items)
    row_of = {item: number for number, row in enumerate(rows) for item in row}
    for item in items:
        users = [row_of[end] for start, end in links if start == item]
        assert row_of[item] == min(users, default=len(rows) - 1) - 1


@given(inputs_of_nodes())
def test_a_link_goes_down_one_row_at_a_time(inputs):
    links = plain_links(inputs)
    found = layout([f"n{number}" for number in range(len(inputs))], links)
    row_of = {item: number for number, row in enumerate(found.rows) for item in row}
    for (start, end), bends in zip(links, found.bends):
        chain = [row_of[item] for item in (start, *bends, end)]
        assert chain == list(range(chain[0], chain[-1] + 1))


def test_ports_keep_their_rows_and_their_order():
    links = [("i0", "n0"), ("i1", "n0"), ("i0", "n1"), ("n0", "n1"), ("n1", "o0"), ("i1", "o1")]
    rows = layout(["n0", "n1"], links, entries=["i1", "i0"], exits=["o1", "o0"]).rows
    assert rows[0] == ["i1", "i0"]
    assert rows[-1] == ["o1", "o0"]
    assert [item for row in rows[1:-1] for item in row if item[0] == "n"] == ["n0", "n1"]


def test_sweeps_undo_a_crossing():
    links = [("n0", "n3"), ("n1", "n2"), ("n2", "n4"), ("n3", "n5")]
    rows = layout([f"n{number}" for number in range(6)], links).rows
    below = {item: [] for row in rows for item in row}
    for start, end in links:
        below[start].append(end)
    assert crossings(rows, below) == 0
    assert crossings([["a", "b"], ["c", "d"]], {"a": ["d"], "b": ["c"]}) == 1


@settings(deadline=None)
@given(records(), st.booleans())
def test_nothing_overlaps_and_all_stands_inside_its_group(record, all_open):
    picture = picture_of(record)
    plan = place(picture, [group.id for group in picture.groups] if all_open else None)
    for number in plan.opened:
        group, frame = picture.groups[number], plan.spots[f"g{number}"]
        spots = [plan.spots[item] for item in group.children]
        for spot in spots:
            assert frame.x - SLACK <= spot.x and spot.x + spot.width <= frame.x + frame.width + SLACK
            assert frame.y - SLACK <= spot.y and spot.y + spot.height <= frame.y + frame.height + SLACK
        for number, one in enumerate(spots):
            for other in spots[number + 1 :]:
                apart = one.x + one.width <= other.x + SLACK or other.x + other.width <= one.x + SLACK
                assert apart or one.y + one.height <= other.y + SLACK or other.y + other.height <= one.y + SLACK


@settings(deadline=None)
@given(records())
def test_every_route_runs_downwards_from_edge_to_edge(record):
    picture = picture_of(record)
    plan = place(picture, [group.id for group in picture.groups])
    for route in plan.routes:
        heights = [y for _, y in route.points]
        assert heights == sorted(heights)
        start, end = plan.spots[route.link.start], plan.spots[route.link.end]
        if route.link.start[0] == "n":
            assert start.x - SLACK <= route.points[0][0] <= start.x + start.width + SLACK
            assert abs(route.points[0][1] - start.y - start.height) < SLACK
        if route.link.end[0] == "n":
            assert end.x - SLACK <= route.points[-1][0] <= end.x + end.width + SLACK
            assert abs(route.points[-1][1] - end.y) < SLACK


@settings(deadline=None)
@given(records())
def test_routes_of_a_wire_meet_at_the_borders_of_open_groups(record):
    picture = picture_of(record)
    plan = place(picture, [group.id for group in picture.groups])
    for number, wire in enumerate(picture.wires):
        ends = {
            "start": [route for route in plan.routes if number in route.link.wires and route.link.start[0] == "n"],
            "all": [route for route in plan.routes if number in route.link.wires],
        }
        (first,) = ends["start"]
        assert first.link.start == f"n{wire.start}"
        joints = [route.points[0] for route in ends["all"]] + [route.points[-1] for route in ends["all"]]
        odd = [point for point in joints if sum(_near(point, other) for other in joints) == 1]
        assert len(odd) <= 2


def _near(one, other) -> bool:
    return abs(one[0] - other[0]) < 1e-3 and abs(one[1] - other[1]) < 1e-3


@settings(deadline=None)
@given(records())
def test_a_picture_is_the_same_every_time(record):
    assert _whole(picture_of(record)) == _whole(picture_of(record))


def _whole(picture: Picture) -> tuple:
    plan = place(picture)
    return picture.to_json(), repr(plan.spots), repr([route.points for route in plan.routes])


def test_a_straight_flow_is_drawn_straight():
    picture = picture_of(graph([[], [], [0, 1], [], [2, 3], [], [4, 5], [], [6, 7]]))
    plan = place(picture)
    flow = [plan.spots[item] for item in ("n2", "n4", "n6", "n8")]
    middles = [spot.x + spot.width / 2 for spot in flow]
    assert max(middles) - min(middles) < GAP


def test_a_long_link_is_straight_between_its_bends():
    inputs = [[], *([number] for number in range(8)), [0, 8]]
    plan = place(picture_of(graph(inputs)))
    bends = [spot.x for item, spot in plan.spots.items() if item[0] == "b"]
    assert len(bends) == 8 and max(bends) - min(bends) < SLACK
