"""The replay in the page, in a real browser: buttons, keys, slider, what is drawn into the graph at each step."""

import math
import re

import pytest
from browser import Browser
from hand_made import hooked_record, scalar, seed_backward, seed_nodes, seed_record

from backlight.lens.pictures.html import page_of
from backlight.lens.records.nodes import Summary
from backlight.lens.records.record import Record


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens the page of a record; at the end nothing went wrong and nothing was asked for."""
    file = tmp_path / "page.html"

    def opened(record: Record, at: str = "", **options) -> Browser:
        file.write_text(page_of(record, **options), encoding="utf-8")
        browser.events.clear()
        browser.size(1400, 900)
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=f"{file.as_uri()}{at}")
        browser.until("document.documentElement?.dataset.ready === 'yes'")
        return browser

    yield opened
    assert browser.problems() == []
    assert [one for one in browser.requests() if not one.startswith("file:")] == []


def text(page: Browser, selector: str) -> str:
    return page.run(f"document.querySelector({selector!r}).innerText")


def state(page: Browser, node: int) -> str:
    return page.run(f"""document.querySelector('[data-item="n{node}"]').dataset.state ?? 'none'""")


def face(page: Browser, node: int) -> str:
    return re.sub(r"\s+", " ", text(page, f'[data-item="n{node}"]'))


def choose(page: Browser, id: str, value: float, event: str) -> None:
    page.run(f"document.getElementById({id!r}).value = {value}")
    page.run(f"document.getElementById({id!r}).dispatchEvent(new Event({event!r}))")


def shown(page: Browser) -> int:
    return int(text(page, "#replay-number").split()[0])


def test_a_page_stands_with_its_replay_closed(show):
    page = show(seed_record())
    assert page.run("getComputedStyle(document.getElementById('replay-body')).display") == "none"
    assert state(page, 4) == "none"


def test_a_page_may_open_on_the_replay_at_its_backward(show):
    page = show(seed_record(), replay=True)
    assert shown(page) == 6 and text(page, "#replay-title") == "backward begins"


def test_an_address_may_name_the_step(show):
    page = show(seed_record(), at="#step-7")
    assert text(page, "#replay-title") == "backward: MulBackward0 of e fires"


def test_a_step_shows_the_formula_with_the_numbers_and_marks_the_node(show):
    page = show(seed_record(), at="#step-7")
    said = text(page, "#replay-parts")
    assert "grad · other = grad · d = 1 · 6 = 6" in said and "grad · input = grad · c = 1 · 5 = 5" in said
    assert state(page, 4) == "firing" and state(page, 2) == state(page, 3) == "ready"
    assert text(page, "#replay-place") == "lesson.py:6  e = c * d" or "e = c * d" in text(page, "#replay-place")


def test_gradients_are_written_on_the_edges_along_which_they_go(show):
    page = show(seed_record(), at="#step-7")
    assert page.run("[...document.querySelectorAll('.note')].map((one) => one.textContent).sort()") == ["5", "6"]
    assert page.run("document.querySelectorAll('.link.current').length") >= 2


def test_a_gradient_that_is_not_complete_is_not_shown_as_if_it_were(show):
    page = show(seed_record(), at="#step-8")
    assert "10 …" in face(page, 1) and "—" in face(page, 0)
    page.press("ArrowRight")
    assert "16" in face(page, 1) and "…" not in face(page, 1)


def test_no_gradient_yet_is_a_dash_and_never_zero(show):
    page = show(seed_record(), at="#step-6")
    for node in range(5):
        assert "grad —" in face(page, node), node


def test_leaves_show_their_grad_once_it_is_written(show):
    page = show(seed_record(before=1.0), at="#step-10")
    assert ".grad 16" in face(page, 1) and ".grad" not in face(page, 0)
    page.press("ArrowRight")
    assert ".grad 7" in face(page, 0) and "1 → 1 + 6 = 7" in text(page, "#replay-parts")


def test_keys_step_while_the_replay_is_open(show):
    page = show(seed_record(), at="#step-7")
    for key, number in (
        ("ArrowRight", 8),
        ("ArrowLeft", 7),
        ("Home", 1),
        ("ArrowLeft", 1),
        ("End", 12),
        ("ArrowRight", 12),
    ):
        page.press(key)
        assert shown(page) == number, key


def test_buttons_step(show):
    page = show(seed_record())
    page.click("#replay-toggle")
    assert shown(page) == 1 and page.run("document.getElementById('replay-back').disabled")
    for button, number in (("next", 2), ("last", 12), ("back", 11), ("first", 1), ("backward", 6)):
        page.click(f"#replay-{button}")
        assert shown(page) == number, button


def test_the_slider_goes_to_a_step(show):
    page = show(seed_record(), replay=True)
    choose(page, "replay-slider", 8, "input")
    assert shown(page) == 9


def test_it_plays_to_the_end_and_stops(show):
    page = show(seed_record(), at="#step-10")
    choose(page, "replay-speed", 4, "change")
    page.press(" ")
    assert text(page, "#replay-play") == "Pause"
    page.until("document.getElementById('replay-number').textContent.startsWith('12 ')")
    assert text(page, "#replay-play") == "Play"


def test_memory_is_a_bar_that_shrinks_as_nodes_drop_what_they_kept(show):
    page = show(seed_record(), at="#step-6")
    width = "document.getElementById('replay-held').style.width"
    assert page.run(width) == "100%" and text(page, "#replay-bytes") == "12 B held"
    page.press("ArrowRight")
    assert page.run(width).startswith("33.3") and text(page, "#replay-bytes") == "4 B held"


def test_a_hook_is_named_where_it_changes_a_gradient(show):
    page = show(hooked_record(), at="#step-10")
    assert "double changes it: 16 → 32" in text(page, "#replay-parts")


def test_what_is_hidden_in_a_closed_group_is_opened_when_it_fires(show):
    nodes = seed_nodes()
    for node in nodes[2:4]:
        node.module, node.module_type = "block", "Block"
    page = show(Record("torch", nodes, [seed_backward()]), at="#step-7")
    page.run("document.getElementById('close-all').click()")
    assert page.run("""document.querySelector('[data-item="n3"]') === null""")
    page.press("ArrowRight")
    page.until("""document.querySelector('[data-item="n3"]')?.dataset.state === 'firing'""")


def test_closing_it_shows_the_graph_as_it_is_after_all(show):
    page = show(seed_record(), at="#step-7")
    page.press("s")
    assert state(page, 4) == "none" and "grad 16" in face(page, 1)
    page.press("ArrowRight")
    assert page.run("document.getElementById('replay').classList.contains('open')") is False


def test_a_screen_reader_is_told_the_step(show):
    page = show(seed_record(), at="#step-7")
    page.press("ArrowRight")
    assert "Step 8: backward: MulBackward0 of d fires" in page.run("document.getElementById('said').textContent")


def test_what_a_person_wrote_is_text(show):
    record = seed_record()
    record.nodes[2].name = "</script><img src=x onerror=\"document.title='broken in'\">"
    page = show(record, at="#step-9")
    assert page.run("document.title") != "broken in" and "<img" in text(page, "#replay-title")


@pytest.mark.parametrize("width", [400, 700, 1400])
def test_the_panel_fits_the_window(show, width):
    page = show(seed_record(), at="#step-10")
    page.size(width)
    assert page.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.run("document.getElementById('replay').getBoundingClientRect().right") <= width


@pytest.mark.parametrize("step", range(1, 13))
def test_the_parts_of_a_step_stand_below_each_other(show, step):
    page = show(seed_record(), at=f"#step-{step}")
    tops = page.run("[...document.querySelectorAll('#replay-parts dd')].map((one) => one.getBoundingClientRect().top)")
    bottoms = page.run(
        "[...document.querySelectorAll('#replay-parts dd')].map((one) => one.getBoundingClientRect().bottom)"
    )
    assert all(top >= bottom for top, bottom in zip(tops[1:], bottoms))


def with_norms(record: Record) -> Record:
    """Let the gradients of a record have norms, as recorded ones have."""
    for step in record.backwards[0].steps:
        for one in filter(None, [*step.incoming, *step.outgoing, step.grad_after]):
            one.norm = abs(one.values)
    return record


def grouped() -> Record:
    """The seed's record, with c and d in one module."""
    record = with_norms(seed_record())
    for node in record.nodes[2:4]:
        node.module, node.module_type = "block", "Block"
    return record


def test_a_closed_group_shows_no_gradient_that_has_not_arrived(show):
    page = show(grouped(), at="#step-1")
    seen = {}
    for step in range(1, 13):
        choose(page, "replay-slider", step - 1, "input")
        page.run("document.getElementById('close-all').click()")
        (seen[step],) = page.run(
            "[...document.querySelectorAll('.item.group:not(.open)')].map((one) => one.innerText.replace(/\\s+/g, ' '))"
        )
    assert all(seen[step].count("grad —") == 1 and "max" not in seen[step] for step in range(1, 9)), seen
    shown_norms = [seen[step].partition("‖grad‖ ")[2].split()[0] for step in range(9, 13)]
    assert shown_norms == [f"{math.hypot(6, 16):.3g}"] * 4  # of its leaves a and b, as the tree and the SVG have it


def rectangles(page: Browser, selector: str) -> list[list[float]]:
    return rectangles_at_once(page, selector)[0]


def rectangles_at_once(page: Browser, *selectors: str) -> list[list[list[float]]]:
    """Return where the elements of each selector are, at one moment: the page may scroll between two questions."""
    return page.run(
        f"{list(selectors)}.map((selector) => [...document.querySelectorAll(selector)]"
        ".map((one) => one.getBoundingClientRect()).map(({left, top, right, bottom}) => [left, top, right, bottom]))"
    )


def cover(one: list[float], other: list[float]) -> bool:
    across, down = (min(one[side + 2], other[side + 2]) - max(one[side], other[side]) for side in (0, 1))
    return across > 0.5 and down > 0.5


@pytest.mark.parametrize("record", [seed_record, grouped], ids=["flat", "in groups"])
def test_numbers_on_edges_hide_no_box_and_each_other_neither(show, record):
    page = show(record(), at="#step-6")
    for _ in range(3):
        page.press("ArrowRight")
        notes, boxes, heads = rectangles_at_once(page, ".note", ".item:not(.open)", ".item.open > .head")
        assert notes
        for place, note in enumerate(notes):
            assert not any(cover(note, other) for other in boxes + heads + notes[place + 1 :])


def test_a_large_gradient_is_on_its_edge_with_its_norm(show):
    record = with_norms(seed_record())
    record.backwards[0].steps[0].outgoing[0] = Summary((3, 4), "float32", norm=2.3456)
    record.backwards[0].steps[0].outgoing[1] = Summary((4,), "float32", norm=0.5, values=[0.1234, 0.2345, 0.3456, 0.4])
    page = show(record, at="#step-7")
    assert page.run("[...document.querySelectorAll('.note')].map((one) => one.textContent).sort()") == [
        "‖·‖ 0.5",
        "‖·‖ 2.346",
    ]


@pytest.mark.parametrize("step", [6, 7, 10, 12])
def test_the_panel_is_as_high_as_what_it_says_and_the_graph_stays_in_view(show, step):
    page = show(seed_record(), at=f"#step-{step}")
    body = "document.getElementById('replay-body')"
    assert page.run(f"{body}.scrollHeight <= {body}.clientHeight && {body}.offsetHeight <= 0.36 * innerHeight")
    last = rectangles(page, "#replay-parts dd:last-of-type")[0][3]
    assert rectangles(page, "#replay-body")[0][3] - last < 40
    page.until("document.getElementById('frame').clientHeight > 300")
    (frame,) = rectangles(page, "#frame")
    for box in rectangles(page, ".item"):
        assert frame[0] <= box[0] and frame[1] <= box[1] and box[2] <= frame[2] and box[3] <= frame[3]


def test_a_box_shows_a_shortened_number_as_the_text_does(show):
    record = seed_record()
    record.nodes[4].outputs = [scalar(287.9633687)]
    page = show(record)
    assert "value 288.0" in face(page, 4)
    page.press("s")
    page.press("End")
    assert "value 288.0" in face(page, 4)


def test_the_backward_that_a_step_is_of_is_named_above(show):
    record = seed_record()
    record.backwards.append(seed_backward(before=6.0))
    page = show(record, at="#step-7")
    assert page.run("document.getElementById('runs').value") == "0"
    page.press("End")
    assert page.run("document.getElementById('runs').value") == "1"


def test_a_result_that_was_worked_out_stands_in_its_box_once_it_is_made(show):
    record = seed_record()
    record.nodes[2].outputs, record.nodes[2].options = [Summary((), "float32")], {"alpha": 1}
    page = show(record, at="#step-2")
    assert "value" not in face(page, 2)
    page.press("ArrowRight")
    assert "value 5" in face(page, 2) and "(worked out: " in text(page, "#replay-parts")
