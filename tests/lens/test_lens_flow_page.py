"""The page of a recorder in a real browser: pointer and keys, views, marks, themes, widths, hostile names."""

import math

import pytest

from backlight.lens.differences.diff import diff
from backlight.lens.flow.flow_page import flow_page
from backlight.lens.flow.history import History
from backlight.lens.records.nodes import Edge, Node, Summary
from backlight.lens.records.record import Record

HOSTILE = "</script><img src=x onerror=\"document.title='broken in'\">"
STEPS, BROKEN_AT = 300, 200


def history() -> History:
    """Return what a recorder would have seen of four layers: one fades, one is dead, one breaks, one gets nothing."""
    about = {
        "engine": "torch",
        "title": HOSTILE,
        "model": f"Net({HOSTILE})",
        "parameters": 1234,
        "layers": {"first": "Linear", "dead": "Linear", "last": HOSTILE, "unused": "Linear"},
        "optimizers": ["AdamW (\n)"],
    }
    found = History(about)
    for step in range(1, STEPS + 1):
        broken = step >= BROKEN_AT
        norms = {"first": 10 ** (-step / 60), "dead": 0.0, "last": math.nan if broken else 1.0, "unused": None}
        record = {
            "step": step,
            "seconds": step / 10,
            "loss": math.nan if broken else 2.0 / step,
            "lr": [0.01, 0.001],
            "metrics": {"accuracy": step / STEPS},
            "gradient": math.nan if broken else 1.0,
            "gradient_norms": norms,
            "update_ratios": {name: norm and norm / 1000 for name, norm in norms.items()},
            "dead_units": {"dead": 1.0, "first": 0.25},
        }
        if step == BROKEN_AT:
            record["first_not_finite"] = {
                "step": step,
                "what": "output",
                "layer": "last",
                "kind": "NaN",
                "why": "its input was finite",
            }
        found.append(record)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "flow.html"
    file.write_text(flow_page(history()), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser, page):
    browser.size(1200)
    browser.prefer("light")
    browser.open(page)
    yield browser
    assert browser.problems() == []
    assert browser.requests() == [page.as_uri()]


MAP = ".view:not([hidden]) svg"


def readout(browser, svg=MAP):
    return browser.run(f"document.querySelector({svg!r}).nextElementSibling.textContent")


def focus(browser, svg):
    browser.run(f"document.querySelector({svg!r}).focus()")


def test_names_of_the_user_are_text(opened):
    assert opened.run("document.title").startswith("</script><img")
    assert opened.run("document.images.length") == 0
    assert HOSTILE in opened.run("document.querySelector('h1').textContent")


def test_the_first_nan_is_told_and_marked_in_curves_and_maps(opened):
    note = opened.run("document.querySelector('.note').textContent")
    assert note == "NaN first at step 200: in the output of last (its input was finite)."
    assert opened.run("[...document.querySelectorAll('.mark-word')].map(one => one.textContent).join()") == ",".join(
        ["NaN"] * (2 + 3)
    )


def test_arrow_keys_move_a_cell_and_its_value_is_said(opened):
    focus(opened, MAP)
    opened.press("Home")
    opened.press("Home")
    assert readout(opened).startswith("first Linear · steps 1–3 · 0.92")
    opened.press("ArrowDown")
    assert readout(opened) == "dead Linear · steps 1–3 · 0"
    opened.press("ArrowDown")
    opened.press("End")
    assert readout(opened) == f"last {HOSTILE} · steps 298–300 · not finite"
    opened.press("ArrowDown")
    opened.press("ArrowDown")
    assert readout(opened) == "unused Linear · steps 298–300 · none"
    opened.press("Escape")
    assert readout(opened) == ""


def test_the_pointer_tells_the_cell_and_the_point_under_it(opened):
    opened.hover(MAP)
    assert "· steps 1" in readout(opened)
    opened.hover("article > svg")
    assert readout(opened, "article > svg").startswith("step 1")
    assert "loss 0.01" in readout(opened, "article > svg")


def test_keys_move_along_a_curve(opened):
    focus(opened, "article > svg")
    opened.press("Home")
    opened.press("Home")
    assert readout(opened, "article > svg") == "step 1 · loss 2"
    opened.press("ArrowRight")
    assert readout(opened, "article > svg") == "step 2 · loss 1"


def test_views_are_chosen_by_pointer_and_by_keys(opened):
    names = opened.run("[...document.querySelectorAll('.tabs button')].map(one => one.textContent)")
    assert names == ["Gradient norm", "Update / weight", "Dead units"]
    shown = "document.querySelector('.view:not([hidden])').dataset.name"
    assert opened.run(shown) == "Gradient norm"
    opened.click(".tabs button:nth-child(3)")
    assert opened.run(shown) == "Dead units"
    assert opened.run("document.querySelectorAll('.view:not([hidden])').length") == 1
    opened.press("ArrowRight")
    assert opened.run(shown) == "Gradient norm"
    assert opened.run("document.querySelectorAll('.tabs [aria-pressed=true]').length") == 1
    opened.click(".tabs button:nth-child(3)")
    focus(opened, MAP)
    opened.press("Home")
    opened.press("Home")
    assert readout(opened) == "dead Linear · steps 1–3 · 100 %"


def test_none_zero_and_not_finite_look_different_and_are_in_the_key(opened):
    signs = opened.run("[...document.querySelectorAll('.view:not([hidden]) .sign')].map(one => one.textContent)")
    assert signs == ["exactly 0", "not finite", "none"]
    assert opened.run(f"document.querySelectorAll({MAP + ' .zero'!r}).length") == 1
    assert opened.run(f"document.querySelectorAll({MAP + ' .broken'!r}).length") == 1


@pytest.mark.parametrize("width", [360, 400, 1200, 2000])
def test_nothing_runs_out_of_a_window_of_any_width(opened, width):
    opened.size(width)
    assert opened.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_their_own_ground_and_the_button_changes_it(opened, scheme):
    opened.prefer(scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = opened.run(ground)
    assert (before == "rgb(18, 17, 14)") == (scheme == "dark")
    opened.click("#theme")
    assert opened.run(ground) != before


def test_printed_all_views_are_seen(opened):
    opened.prefer("print")
    seen = "[...document.querySelectorAll('.view')].filter(one => getComputedStyle(one).display !== 'none').length"
    assert opened.run(seen) == 3


def test_a_comparison_is_a_page_in_which_what_is_added_and_gone_looks_so(browser, tmp_path):
    def record(middle):
        nodes = [Node(0, "leaf", "AccumulateGrad", "w", "w", outputs=[Summary((2,), "float32")])]
        for number, kind in enumerate(("Exp", middle, "Sum"), 1):
            edges = [Edge(number - 1)]
            nodes.append(Node(number, "op", kind, kind, edges=edges, outputs=[Summary((2,), "float32")]))
        return Record("torch", nodes)

    page = tmp_path / "change.html"
    diff(record("Tanh"), record("Relu")).html(page)
    browser.size(1200)
    browser.prefer("light")
    browser.open(page)
    looks = "['added', 'gone', 'changed', 'same'].map(look => document.querySelectorAll(`.item.look-${look}`).length)"
    browser.until("document.querySelectorAll('.item').length > 0")
    assert browser.run(looks) == [1, 1, 1, 2]
    assert "+ Relu" in browser.run("document.querySelector('.item.look-added').textContent")
    assert browser.problems() == []
    assert browser.requests() == [page.as_uri()]
