"""Placing, in Python for the SVG and in JavaScript for the page: one pass written twice, and both find the same."""

import itertools
import json
import random
import re

import pytest
from browser import Browser
from lens_records import expression, graph, stack

import backlight as bl
from backlight import lens
from backlight.lens.pictures.boxes import Picture
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.place import Plan, place
from backlight.lens.records.record import Record

SAME = 1e-6
END = "})();\n</script>\n</body>"
MODULES = ("", "a", "a.b", "a.b.c", "a.d", "e", "e.0", "e.1", "f")


def transformer() -> Record:
    """Return the record of an encoder of two layers, after its backward."""
    bl.manual_seed(0)
    layer = bl.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = bl.nn.TransformerEncoder(layer, 2)
    with lens.watch() as watched:
        (model(bl.randn(2, 5, 16)) ** 2).mean().backward()
    return watched.record


def tangle(seed: int, count: int = 200, *, modules: bool) -> Record:
    """Return the record of a graph at random, its nodes in modules at random or in none."""
    draw = random.Random(seed)
    inputs = [draw.sample(range(max(0, n - 40), n), min(n, draw.choice((0, 1, 2, 2, 3)))) for n in range(count)]
    return graph(inputs, [draw.choice(MODULES) for _ in range(count)] if modules else [])


RECORDS = {
    "the seed's expression": expression,
    "a graph of 200 nodes": lambda: tangle(0, modules=False),
    "a graph of 200 nodes in modules": lambda: tangle(1, modules=True),
    "a deep model": lambda: stack(4),
    "a transformer": transformer,
}


@pytest.fixture(scope="module", params=list(RECORDS))
def shown(request, browser, tmp_path_factory) -> tuple[Browser, Picture]:
    """Open the page of a record; return the browser, which can call `place`, and the picture, in the page's figures."""
    record = RECORDS[request.param]()
    picture = picture_of(record)
    for one in (link for group in picture.groups for link in group.links):
        one.leaves_at, one.enters_at = (float(f"{share:.7g}") for share in (one.leaves_at, one.enters_at))
    page = page_of(record, picture=picture)
    assert page.count(END) == 1
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # it knows the script by its hash
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(page.replace(END, f"Object.assign(window, {{ place, opened, LOOK }});\n{END}"), encoding="utf-8")
    browser.open(file)
    browser.until("document.documentElement.dataset.ready === 'yes'")
    assert browser.problems() == []
    return browser, picture


def found_by_the_page(page: Browser, opened: list[int], look: str) -> dict:
    return page.run(
        f"""(() => {{
            opened.clear();
            for (const id of {json.dumps(opened)}) opened.add(id);
            const {{ items, links, width, height }} = place({look});
            const spots = [...items].map(([item, one]) => [item, [one.x, one.y, one.width, one.height]]);
            const routes = links.map(({{ key, points }}) => [key, points]);
            return {{ spots: Object.fromEntries(spots), routes: Object.fromEntries(routes), width, height }};
        }})()"""
    )


def look_of(picture: Picture, *, sideways: bool) -> str:
    """Return the look of Python's picture: its sizes, and no room for what only the page draws."""
    sizes = {f"n{box.id}": {"width": box.width, "height": box.height} for box in picture.boxes}
    sizes |= {f"g{group.id}": {"width": group.width, "height": group.height} for group in picture.groups}
    return f"""(() => {{
        const sizes = {json.dumps(sizes)};
        const size = (item) => sizes[item] ?? {{ width: 0, height: 0 }};
        const least = (group) => sizes[`g${{group.id}}`].width;
        return {{ size, least, rooms: () => [], sideways: {json.dumps(sideways)} }};
    }})()"""


def routes_of(plan: Plan) -> dict[str, list[float]]:
    """Return each route's coordinates, named as the page names its link."""
    numbers: dict[int, itertools.count] = {}
    return {
        f"{route.group}:{next(numbers.setdefault(route.group, itertools.count()))}": flat(route.points)
        for route in plan.routes
    }


def flat(points) -> list[float]:
    return [number for point in points for number in point]


@pytest.mark.parametrize("sideways", [False, True], ids=["downwards", "to the right"])
@pytest.mark.parametrize("state", ["at first", "all closed", "all open", "some open"])
def test_the_page_finds_the_coordinates_that_python_finds(shown, state, sideways):
    page, picture = shown
    ids = [group.id for group in picture.groups]
    wanted = {
        "at first": [group.id for group in picture.groups if group.shown],
        "all closed": [0],
        "all open": ids,
        "some open": [number for number in ids if number % 3 != 2],
    }[state]
    plan = place(picture, wanted, sideways=sideways)
    found = found_by_the_page(page, sorted({0, *wanted}), look_of(picture, sideways=sideways))
    spots = {item: [one.x, one.y, one.width, one.height] for item, one in plan.spots.items() if item != "g0"}
    assert found["spots"].keys() == spots.keys()
    for item, spot in spots.items():
        assert found["spots"][item] == pytest.approx(spot, abs=SAME), item
    routes = routes_of(plan)
    assert found["routes"].keys() == routes.keys()
    for key, route in routes.items():
        assert flat(found["routes"][key]) == pytest.approx(route, abs=SAME), key
    assert [found["width"], found["height"]] == pytest.approx([plan.width, plan.height], abs=SAME)


@pytest.mark.parametrize("sideways", [False, True], ids=["downwards", "to the right"])
def test_with_the_pages_sizes_nothing_overlaps_and_links_run_along_the_ranks(shown, sideways):
    page, picture = shown
    look = f"Object.assign(LOOK, {{ sideways: {json.dumps(sideways)} }})"
    found = found_by_the_page(page, [group.id for group in picture.groups], look)
    for group in picture.groups:
        spots = [found["spots"][item] for item in group.children]
        for (x, y, width, height), (other_x, other_y, wide, high) in itertools.combinations(spots, 2):
            aside = x + width <= other_x + SAME or other_x + wide <= x + SAME
            assert aside or y + height <= other_y + SAME or other_y + high <= y + SAME
        if group.id:
            left, top, wide, high = found["spots"][f"g{group.id}"]
            for x, y, width, height in spots:
                assert left <= x + SAME and x + width <= left + wide + SAME
                assert top + 30 <= y + SAME and y + height <= top + high + SAME  # beneath its header
    for key, points in found["routes"].items():
        heights = [y for _, y in points]
        assert all(high <= low + SAME for high, low in itertools.pairwise(heights)), key
