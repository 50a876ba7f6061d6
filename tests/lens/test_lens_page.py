"""The page of a graph in a real browser: groups, search, ways, keys, colours, themes, widths, hostile names."""

import dataclasses
import itertools

import pytest
from browser import Browser
from lens_records import graph, stack

import backlight as bl
from backlight import lens
from backlight.lens.pictures.html import page_of
from backlight.lens.records.nodes import LEAF, OP, Backward, Edge, Node, Place, SavedTensor, Step, Summary, Write
from backlight.lens.records.record import Record

HOSTILE = "</script><img src=x onerror=\"document.title='broken in'\"><!--"


def number(value: float) -> Summary:
    """Return the summary of a single number."""
    return Summary((), "float32", value, value, value, abs(value), 0, 0, int(value == 0), value)


def expression(hostile: str = "") -> Record:
    """Return the record of e = (a + b) · (b · 2) at a = 2, b = 3, and of a leaf that nothing uses."""
    place = Place("seed.py", 5, "<module>", f"e = c * d{hostile}")
    nodes = [
        Node(0, LEAF, "AccumulateGrad", "a", f"a{hostile}", outputs=[number(2.0)]),
        Node(1, LEAF, "AccumulateGrad", "b", "b", outputs=[number(3.0)]),
        Node(2, OP, "AddBackward0", "+", "c", edges=[Edge(0, 0, "self", "grad"), Edge(1, 0, "other", "grad")]),
        Node(3, OP, "MulBackward0", "×", "d", edges=[Edge(1, 0, "self", "grad · other"), None]),
        Node(
            4,
            OP,
            "MulBackward0",
            "×",
            "e",
            edges=[Edge(2, 0, "self", "grad · other"), Edge(3, 0, "other", "grad · self")],
        ),
        Node(5, LEAF, "AccumulateGrad", "z", "z", outputs=[number(7.0)]),
        Node(6, OP, "NegBackward0", "neg", "y", edges=[Edge(5, 0, "self", "−grad")], outputs=[number(-7.0)]),
    ]
    for node, value in zip(nodes[2:5], (5.0, 6.0, 30.0)):
        node.outputs, node.place = [number(value)], place
    nodes[4].root, nodes[4].hooks = True, [f"hook{hostile}"] if hostile else []
    steps = [
        Step(4, [number(1.0)], [number(6.0), number(5.0)]),
        Step(3, [number(5.0)], [number(10.0), None]),
        Step(2, [number(6.0)], [number(6.0), number(6.0)]),
        Step(1, [number(16.0)], grad_after=number(16.0)),
        Step(0, [number(6.0)], grad_after=number(6.0)),
    ]
    return Record("torch", nodes, [Backward([4], steps)], versions={"torch": "2.13.0"}, title=f"seed.py{hostile}")


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens the page of a record; at the end nothing went wrong and nothing was asked for."""
    file = tmp_path / "page.html"

    def opened(record: Record, width: int = 1280) -> Browser:
        file.write_text(page_of(record), encoding="utf-8")
        browser.size(width)
        browser.prefer("light")
        browser.open(file)
        browser.until("document.documentElement.dataset.ready === 'yes'")
        return browser

    yield opened
    assert browser.problems() == []
    assert browser.requests() == [file.as_uri()]


def text(page, selector):
    return page.run(f"document.querySelector({selector!r})?.innerText")


def test_a_box_shows_name_value_and_gradient(show):
    page = show(expression())
    assert text(page, "[data-item=n1]").split() == ["b", "#1", "value", "3", "grad", "16"]
    assert text(page, "[data-item=n2]").split() == ["+", "c", "#2", "value", "5", "grad", "6"]


def test_no_gradient_is_a_dash_and_never_zero(show):
    page = show(expression())
    assert text(page, "[data-item=n5]").split() == ["z", "#5", "value", "7", "grad", "—"]
    assert "no gradient yet" in page.run("document.querySelector('[data-item=n5]').getAttribute('aria-label')")


def test_what_a_person_wrote_is_text_and_never_html(show):
    record = expression(HOSTILE)
    record.nodes[2].edges[0].name = record.nodes[2].edges[0].formula = HOSTILE
    for node in record.nodes[2:5]:
        node.module, node.module_type, node.label = f"layer{HOSTILE}.{node.id}", HOSTILE, HOSTILE
    record.backwards[0].problem = HOSTILE
    page = show(record)
    page.run("document.getElementById('open-all').click()")
    assert HOSTILE in text(page, "#panel")
    assert page.run("document.title") == f"seed.py{HOSTILE} · backlight"
    page.click("[data-item=n4]")
    assert HOSTILE in text(page, "#panel")
    page.click("[data-item=n0]")
    assert HOSTILE in text(page, "#panel h2")
    assert page.run("document.querySelectorAll('img').length") == 0


def seen(page) -> list[str]:
    return page.run("[...document.querySelectorAll('.item')].map((one) => one.dataset.item)")


def marked(page, mark: str) -> set[str]:
    return set(page.run(f"[...document.querySelectorAll('.item.{mark}')].map((one) => one.dataset.item)"))


def place_of(page, selector: str) -> list[float]:
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    return page.run(f"(({{ x, y, width, height }}) => [x, y, width, height])({box})")


def settled(page) -> None:
    """Wait until nothing glides any more."""
    page.run("new Promise((done) => setTimeout(done, 350))")


def look_for(page, words: str) -> None:
    page.run("document.getElementById('search').focus()")
    for letter in words:
        page.press(letter)


def chosen(page) -> str:
    return page.run("document.querySelector('.item.selected')?.dataset.item")


def test_leaves_intermediates_and_the_root_are_told_apart(show):
    page = show(expression())
    assert page.run("[...document.querySelectorAll('.item.leaf')].map((one) => one.dataset.item)") == ["n0", "n1", "n5"]
    assert page.run("[...document.querySelectorAll('.item.op')].length") == 4
    assert page.run("[...document.querySelectorAll('.item.rooted')].map((one) => one.dataset.item)") == ["n4"]
    colours = {
        page.run(f"getComputedStyle(document.querySelector('[data-item={item}]')).backgroundColor")
        for item in ("n0", "n2")
    }
    assert len(colours) == 2


def test_boxes_lie_apart_and_inputs_above_what_reads_them(show):
    page = show(expression())
    boxes = {item: place_of(page, f"[data-item={item}]") for item in seen(page)}
    for one, other in itertools.combinations(boxes.values(), 2):
        aside = one[0] + one[2] <= other[0] or other[0] + other[2] <= one[0]
        assert aside or one[1] + one[3] <= other[1] or other[1] + other[3] <= one[1]
    assert boxes["n0"][1] < boxes["n2"][1] < boxes["n4"][1]


def test_the_first_view_shows_few_items_and_nothing_else_is_in_the_page(show):
    page = show(stack(500))
    assert len(seen(page)) <= 60
    assert page.run("document.querySelectorAll('*').length") < 1500


def test_a_click_opens_a_group_under_the_pointer_and_a_second_one_closes_it(show):
    page = show(stack(3))
    before, group = seen(page), page.run("document.querySelector('.item.group:not(.open)').dataset.item")
    x, y, width, height = place_of(page, f"[data-item={group}]")
    page.click(f"[data-item={group}]")
    settled(page)
    assert len(seen(page)) > len(before)
    left, top, wide, _ = place_of(page, f"[data-item={group}] > .head")
    assert left <= x + width / 2 <= left + wide and top <= y + height / 2 <= top + 60
    assert page.run(f"document.querySelector('[data-item={group}]').getAttribute('aria-expanded')") == "true"
    page.click(f"[data-item={group}] > .head")
    settled(page)
    assert sorted(seen(page)) == sorted(before)


def test_enter_opens_and_closes_and_keeps_the_focus(show):
    page = show(stack(3))
    group = page.run("document.querySelector('.item.group:not(.open)').dataset.item")
    page.run(f"document.querySelector('[data-item={group}]').focus()")
    before = len(seen(page))
    page.press("Tab")
    page.run(f"document.querySelector('[data-item={group}]').click()")
    settled(page)
    after = len(seen(page))
    page.press("Enter", "\r")
    settled(page)
    assert len(seen(page)) == before != after
    assert page.run("document.activeElement.dataset.item") == group


def test_open_all_and_close_all(show):
    page = show(stack(3))
    page.run("document.getElementById('open-all').click()")
    assert marked(page, "group:not(.open)") == set()
    page.run("document.getElementById('close-all').click()")
    assert marked(page, "open") == set()


def test_open_all_stops_at_what_one_can_look_at(show):
    page = show(stack(500))
    page.run("document.getElementById('open-all').click()")
    assert 60 < len(seen(page)) <= 1600
    assert "stay closed" in text(page, "#said")


def test_a_leaf_lights_all_paths_from_the_root_and_lists_their_formulas(show):
    page = show(expression())
    page.click("[data-item=n1]")
    assert marked(page, "lit") == {"n1", "n2", "n3", "n4"}
    assert marked(page, "dimmed") == {"n0", "n5", "n6"}
    assert "2 paths from e" in text(page, "#panel").lower()
    assert text(page, ".way").split("\n") == ["e", "self: grad · other", "c", "other: grad", "b"]
    page.click(".turns button:last-child")
    assert text(page, ".way").split("\n") == ["e", "other: grad · self", "d", "self: grad · other", "b"]
    page.press("Escape")
    assert marked(page, "dimmed") == set()


def test_where_no_path_leads_the_page_says_why(show):
    page = show(expression())
    page.click("[data-item=n5]")
    said = text(page, "#panel")
    assert "No path leads from “e” to “z”" in said and "y" in said
    assert marked(page, "dimmed") == set()


def test_a_gradient_that_stopped_on_its_way_is_explained(show):
    record = expression()
    record.backwards[0].steps = record.backwards[0].steps[:2]  # c, a and b never ran
    record.backwards[0].steps[0].outgoing[0] = None
    page = show(record)
    page.click("[data-item=n0]")
    assert "these gave no gradient for the input on it: e" in " ".join(text(page, "#panel").split())


def test_search_counts_hits_goes_to_them_and_opens_what_hides_them(show):
    page = show(stack(3))
    page.press("/")
    look_for(page, "blocks.2.up.weight")
    assert text(page, "#hits") == "1 hit"
    page.press("Enter", "\r")
    settled(page)
    assert text(page, "#hits") == "1 of 1"
    assert text(page, "#panel h2") == "blocks.2.up.weight"
    assert page.run("document.querySelector('.item.current').checkVisibility()")
    page.press("Escape")
    assert text(page, "#hits") == ""


def test_search_finds_ops_lines_and_says_where_nothing_is_found(show):
    page = show(stack(2))
    look_for(page, "tanh")
    assert text(page, "#hits") == "2 hits"
    look_for(page, "zzz")
    assert text(page, "#hits") == "nothing found"
    assert page.run("document.getElementById('next').disabled")


def test_the_best_hits_are_listed_by_name_and_a_click_goes_to_one(show):
    page = show(stack(3))
    page.press("/")
    look_for(page, "weight")
    listed = page.run("[...document.querySelectorAll('#found button')].map((one) => one.innerText.split('\\n')[0])")
    assert listed == [f"blocks.{block}.{part}.weight" for block in range(3) for part in ("up", "down")]
    page.click("#found li:nth-child(4) button")
    settled(page)
    assert text(page, "#panel h2") == "blocks.1.down.weight"
    assert text(page, "#hits") == "4 of 6"


def test_arrows_walk_along_edges(show):
    page = show(expression())
    page.press("r")
    assert chosen(page) == "n4"
    page.press("ArrowUp")
    assert chosen(page) in ("n2", "n3")
    page.press("ArrowUp")
    assert chosen(page) in ("n0", "n1")
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert chosen(page) == "n4"
    page.press("ArrowUp")
    first = chosen(page)
    page.press("ArrowRight" if first == "n2" else "ArrowLeft")
    assert {first, chosen(page)} == {"n2", "n3"}
    assert page.run("document.activeElement.dataset.item") == chosen(page)
    assert page.run("document.querySelectorAll('.item[tabindex=\"0\"]').length") == 1


def test_keys_zoom_fit_turn_arrows_and_show_help(show):
    page = show(expression())
    first = text(page, "#zoom")
    page.press("+")
    settled(page)
    assert int(text(page, "#zoom").split()[0]) > int(first.split()[0])
    page.press("0")
    settled(page)
    assert text(page, "#zoom") == "100 %"
    page.press("f")
    settled(page)
    assert text(page, "#zoom") == first
    page.press("g")
    assert page.run("document.getElementById('flow').getAttribute('aria-pressed')") == "true"
    page.press("?")
    assert page.run("document.getElementById('keys').open")
    page.run("document.getElementById('keys').close()")


def test_gradient_direction_turns_the_arrows_and_shows_where_gradients_went(show):
    page = show(expression())
    ends = "[...document.querySelectorAll('.line')].filter((one) => one.getAttribute('marker-{}')).length"
    assert page.run(ends.format("end")) == 6 and page.run(ends.format("start")) == 0
    page.click("#flow")
    assert page.run(ends.format("end")) == 0 and page.run(ends.format("start")) == 6
    assert page.run("document.querySelectorAll('.link.went').length") == 5  # no gradient went to z


def test_the_wheel_zooms_at_the_pointer_and_a_drag_moves(show):
    page = show(expression())
    x, y = place_of(page, "[data-item=n2]")[:2]
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-200)
    page.until("parseInt(document.getElementById('zoom').textContent) > 126")
    assert place_of(page, "[data-item=n2]")[:2] == pytest.approx([x, y], abs=1)
    before = place_of(page, "[data-item=n2]")
    for kind, px in (("mousePressed", 40), ("mouseMoved", 70), ("mouseMoved", 140), ("mouseReleased", 140)):
        page.call("Input.dispatchMouseEvent", type=kind, x=px, y=300, button="left", buttons=1, clickCount=1)
    assert place_of(page, "[data-item=n2]")[0] == pytest.approx(before[0] + 100, abs=1)
    assert chosen(page) is None


def test_colours_follow_the_gradient_norm_and_the_legend_has_its_ends(show):
    page = show(expression())
    page.click("[data-mode=gradient]")
    share = "Number(document.querySelector('[data-item={}]').style.getPropertyValue('--share'))"
    assert page.run(share.format("n1")) == 1 > page.run(share.format("n2")) > page.run(share.format("n4"))
    assert page.run("document.querySelector('[data-item=n5]').dataset.hue") == "none"
    assert text(page, "#legend").split()[0] == "1" and "16" in text(page, "#legend").split()
    assert page.run("document.querySelectorAll('[data-mode=time]').length") == 0  # no time was measured


def test_nan_is_flagged_with_a_sign(show):
    record = expression()
    record.backwards[0].steps[2].incoming = [Summary((3,), "float32", 1.0, 1.0, 1.0, 1.0, 1, 1, 0, [1.0, "nan", "inf"])]
    page = show(record)
    assert marked(page, "broken") == {"n2"}
    assert "⚠" in text(page, "[data-item=n2]") and "NaN" in text(page, "[data-item=n2]")
    assert "NaN or inf" in text(page, "#legend")
    page.click("[data-item=n2]")
    assert "⚠ 1 NaN, 1 inf of 3" in text(page, "#panel")


def test_an_attention_mask_is_no_alarm(show):
    bl.manual_seed(0)
    queries = bl.randn(3, 4, requires_grad=True)
    later = bl.ones(3, 3, dtype=bl.bool).triu(1)
    with lens.watch() as watch:
        scores = (queries @ queries.T).masked_fill(later, -float("inf"))
        (scores.softmax(-1) @ queries).square().sum().backward()
    page = show(watch.record)
    (mask,) = (node.id for node in watch.record.nodes if node.type == "MaskedFillBackward0")
    assert marked(page, "broken") == set() and "NaN" not in text(page, "#panel")
    page.run(f"document.querySelector('[data-item=n{mask}]').click()")
    assert "3 of 9 are −∞: a mask" in text(page, "#panel") and "⚠" not in text(page, "#panel")


def test_the_strip_says_that_gradients_vanished_and_leads_to_their_nodes(show):
    bl.manual_seed(0)
    model = bl.nn.Sequential(*(layer for _ in range(16) for layer in (bl.nn.Linear(8, 8), bl.nn.Sigmoid())))
    with lens.watch() as watch:
        model(bl.randn(4, 8)).square().mean().backward()
    page = show(watch.record)
    assert "Vanished" in text(page, "#depths .verdict")
    assert page.run("document.querySelectorAll('.level.lost').length") > 5
    page.run("document.querySelector('.level:last-child').click()")
    settled(page)
    last = page.run("document.querySelector('.level:last-child').dataset.node")
    assert chosen(page) == f"n{last}" and page.run("document.querySelectorAll('.level.current').length") == 1
    assert f"#{last}" in text(page, f"[data-item=n{last}]") and f"#{last}" in text(page, "#panel")


def test_the_graph_can_be_drawn_from_left_to_right(show):
    page = show(expression())
    assert place_of(page, "[data-item=n0]")[1] < place_of(page, "[data-item=n4]")[1]
    page.press("d")
    settled(page)
    left, root = place_of(page, "[data-item=n2]"), place_of(page, "[data-item=n4]")
    assert left[0] + left[2] < root[0]
    page.press("r")
    page.press("ArrowLeft")
    assert chosen(page) in ("n2", "n3")
    page.press("ArrowRight")
    assert chosen(page) == "n4"
    page.click("#layout")
    settled(page)
    assert place_of(page, "[data-item=n0]")[1] < place_of(page, "[data-item=n4]")[1]


def test_a_wide_screen_shows_a_chain_from_left_to_right_and_a_narrow_one_downwards(show):
    chain = graph([[], *([number] for number in range(12))])
    page = show(chain, 1900)
    assert page.run("document.getElementById('frame').classList.contains('sideways')")
    page = show(chain, 400)
    assert not page.run("document.getElementById('frame').classList.contains('sideways')")


def test_the_panel_tells_formulas_saved_tensors_writes_hooks_and_the_line(show):
    record = expression()
    record.nodes[4].hooks = ["clip"]
    record.nodes[4].saved = [SavedTensor("self", number(5.0), 4, 7, of=2, version=0, written=1)]
    record.writes = [Write(4, "mul_", 1, Place("seed.py", 9, "<module>", "e.mul_(2)"))]
    record.nodes[4].module, record.nodes[4].module_type = "layers.0", "Product"
    page = show(record)
    page.click("[data-item=n4]")
    said = " ".join(text(page, "#panel").split())
    for part in (
        "self: grad · other",
        "to c · 6",
        "saved for backward · 4 B",
        "written to since it was saved: version 1, saved at 0",
        "mul_ made version 1",
        "clip",
        "layers.0 · Product",
        "seed.py:5",
        "e = c * d",
        "fired 1 of 5",
    ):
        assert part.lower() in said.lower(), part


def test_a_group_tells_its_totals(show):
    page = show(stack(3))
    page.run("document.querySelector('.item.group').click()")
    said = " ".join(text(page, "#panel").split())
    assert "parameters" in said and "saved" in said and "‖grad‖" in said


def test_several_backwards_can_be_looked_at(show):
    record = expression()
    second = Backward([4], [Step(4, [number(1.0)], [number(6.0), number(5.0)])])
    page = show(dataclasses.replace(record, backwards=[*record.backwards, second]))
    assert text(page, "[data-item=n2]").split()[-1] == "—"
    page.run(
        "(runs => { runs.value = '0'; runs.dispatchEvent(new Event('change')); })(document.getElementById('runs'))"
    )
    assert text(page, "[data-item=n2]").split()[-1] == "6"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out_and_text_is_readable(show, scheme, width):
    page = show(stack(3), width)
    page.prefer(scheme)
    assert page.run("document.documentElement.scrollWidth") <= width
    panel, graph = place_of(page, "#panel"), place_of(page, "#frame")
    assert panel[1] >= graph[1] + graph[3] if width == 400 else panel[0] >= graph[0] + graph[2]
    for selector in (".item.op .symbol", ".item.group .symbol", "#panel h2", "#legend .key", "#count"):
        contrast = page.run(CONTRAST.replace("SELECTOR", repr(selector)))
        assert contrast is None or contrast >= 4.5, (selector, contrast)


# The contrast of a text to the nearest ground behind it; null if it is not seen.
CONTRAST = """(() => {
    const one = document.querySelector(SELECTOR);
    if (!one || !one.checkVisibility()) return null;
    const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const light = (...colours) => {
        for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        const seen = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
        const [red, green, blue] = seen.map((part) => linear(part / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const grounds = [];
    for (let home = one; home; home = home.parentElement) grounds.unshift(getComputedStyle(home).backgroundColor);
    const ground = light(...grounds), ink = light(...grounds, getComputedStyle(one).color);
    return (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
})()"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_with_reduced_motion_nothing_glides(show, motion):
    page = show(stack(3))
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": motion}])
    group = page.run("document.querySelector('.item.group:not(.open)').dataset.item")
    box = f"JSON.stringify(document.querySelector('[data-item={group}]').getBoundingClientRect())"
    before = page.run(box)
    first = page.run(f"document.querySelector('[data-item={group}]').click(), {box}")
    page.until(f"{box} !== {before!r}")
    settled(page)
    last = page.run(box)
    page.call("Emulation.setEmulatedMedia", features=[])
    assert (first == last) is (motion == "reduce")


def test_items_have_roles_names_and_levels(show):
    page = show(stack(3))
    assert page.run("document.getElementById('stage').getAttribute('role')") == "tree"
    for name in ("aria-label", "aria-level", "aria-selected", "tabindex"):
        assert page.run(f"document.querySelectorAll('.item[role=treeitem][{name}]').length") == len(seen(page))
    unnamed = "[...document.querySelectorAll('button')].filter((one) => !one.textContent.trim() && !one.ariaLabel)"
    assert page.run(f"{unnamed}.length") == 0


def test_printed_the_graph_is_there_and_the_buttons_are_not(show):
    page = show(expression())
    page.prefer("print")
    assert page.run("document.querySelector('[data-item=n4]').checkVisibility()")
    assert not page.run("document.getElementById('tools').checkVisibility()")


def test_five_thousand_nodes_are_open_in_a_moment(show):
    page = show(stack(500))
    took = page.run("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took < 5_000  # half a second on a machine that does nothing else


def test_a_graph_without_a_backward_says_so(show):
    page = show(dataclasses.replace(expression(), backwards=[]))
    assert "none has run" in text(page, "#panel")
    page.click("[data-item=n0]")
    assert "no backward has run yet" in text(page, "#panel")
    assert text(page, "[data-item=n0]").split()[-1] == "—"


def test_an_empty_record_has_a_page(show):
    page = show(Record("backlight"))
    assert seen(page) == []
    page.press("r")
    page.press("ArrowUp")
    assert "none has run" in text(page, "#panel")


def test_two_fingers_zoom(show):
    page = show(expression())
    page.run("document.getElementById('zoom').click()")
    settled(page)
    for kind, apart in (("touchStart", 50), ("touchMove", 60), ("touchMove", 100)):
        points = [{"x": 400 - apart, "y": 300, "id": 1}, {"x": 400 + apart, "y": 300, "id": 2}]
        page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    assert text(page, "#zoom") == "200 %"


def test_so_many_paths_are_counted_and_the_last_is_shown(show):
    page = show(stack(60))
    page.run("document.getElementById('open-all').click()")
    page.run("[...document.querySelectorAll('.item.leaf')].find((one) => one.innerText.startsWith('x')).click()")
    assert "1.15e18 paths" in text(page, "#panel").lower()  # 2 to the power of 60
    page.click(".turns button:first-child")
    assert text(page, ".position") == "1.15e18 of 1.15e18"
    assert text(page, ".way li:last-child") == "x"


def zoom(page) -> int:
    return int(text(page, "#zoom").split()[0])


def test_what_is_too_tall_to_be_read_whole_begins_at_its_top_and_fits_the_width(show):
    page = show(stack(40))
    page.run("document.getElementById('open-all').click()")
    settled(page)
    assert 50 <= zoom(page) <= 100
    left, top, width, height = place_of(page, "#frame")
    first = min((place_of(page, f"[data-item={item}]") for item in seen(page)), key=lambda box: box[1])
    assert top <= first[1] <= top + 60 and left <= first[0] and first[0] + first[2] <= left + width
    page.press("f")
    settled(page)
    assert zoom(page) < 40
    assert all(box[1] + box[3] <= top + height for box in (place_of(page, f"[data-item={one}]") for one in seen(page)))


def test_a_view_that_lies_on_no_edge_is_a_pill(show):
    record = graph([[], [0], [1], [1]])
    record.nodes[1].type, record.nodes[1].label = "TBackward0", "T"
    page = show(record)
    assert text(page, "[data-item=n1].pill") == "T"
    assert place_of(page, "[data-item=n1]")[3] < place_of(page, "[data-item=n2]")[3] / 2
