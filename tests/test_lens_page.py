"""The page of a graph in a real browser: groups, search, ways, keys, colours, themes, widths, hostile names."""

import pytest

from backlight.lens.html import page_of
from backlight.lens.record import LEAF, OP, Backward, Edge, Node, Place, Record, Step, Summary
from browser import Browser

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driven = Browser(tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()


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
    assert text(page, "[data-item=n1]").split() == ["b", "value", "3", "grad", "16"]
    assert text(page, "[data-item=n2]").split() == ["+", "c", "value", "5", "grad", "6"]


def test_no_gradient_is_a_dash_and_never_zero(show):
    page = show(expression())
    assert text(page, "[data-item=n5]").split() == ["z", "value", "7", "grad", "—"]
    assert "no gradient yet" in page.run("document.querySelector('[data-item=n5]').getAttribute('aria-label')")


def test_what_a_person_wrote_is_text_and_never_html(show):
    page = show(expression(HOSTILE))
    assert page.run("document.title") == f"seed.py{HOSTILE} · backlight"
    page.click("[data-item=n4]")
    assert HOSTILE in text(page, "#panel")
    page.click("[data-item=n0]")
    assert HOSTILE in text(page, "#panel h2")
    assert page.run("document.querySelectorAll('img').length") == 0
