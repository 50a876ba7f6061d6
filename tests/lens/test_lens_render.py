"""The faces of a record: a tree of text, SVG, Graphviz, a notebook's bundle; small ones are held to golden files."""

import os
import re
import unicodedata
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from lens_records import expression, leaf, op, stack
from paths import TESTS
from test_lens_layout import records

from backlight.errors import InputError
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.place import place
from backlight.lens.pictures.svg import svg
from backlight.lens.pictures.text import dot, seen, tree
from backlight.lens.records.record import Record

GOLDEN = TESTS / "golden"
SVG = "{http://www.w3.org/2000/svg}"
STRANGE = "</style><script>alert(1)</script>&\"'\\\n\x1b[31m"


def hold(name: str, text: str) -> None:
    """Compare with a golden file; EXPECTTEST_ACCEPT=1 writes it anew: look at it before it is kept."""
    file = GOLDEN / name
    if os.environ.get("EXPECTTEST_ACCEPT"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name, record", [("expression", expression()), ("blocks", stack(12))])
def test_pictures_are_as_they_were_when_they_were_looked_at(name, record):
    hold(f"{name}.svg", record.svg())
    hold(f"{name}.dot", record.dot())
    hold(f"{name}.txt", record.tree(width=100, color=False) + "\n")


@settings(deadline=None)
@given(records())
def test_svg_is_well_formed_and_shows_what_is_seen(record):
    picture = picture_of(record)
    drawn = ElementTree.fromstring(svg(picture))
    plan = place(picture)
    arrows = [path for path in drawn.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(arrows) == sum(route.head for route in plan.routes)
    boxes = [item for item in plan.spots if item[0] == "n"]
    assert len([one for one in drawn.iter(f"{SVG}rect") if one.get("class", "").split()[0] in ("leaf", "op")]) == len(
        boxes
    )


def test_svg_stands_alone_and_follows_the_readers_light():
    text = expression().svg()
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?(?!#)[a-z]+:", text)
    assert "<script" not in text


def test_the_root_is_marked_leaves_and_intermediates_differ():
    text = expression().svg()
    assert text.count('class="leaf"') == 2
    assert text.count('class="op"') == 2
    assert text.count('class="op root"') == 1
    assert ">root</text>" in text


def test_what_the_user_wrote_is_text_everywhere():
    record = Record("torch", [leaf(0, STRANGE), op(1, [0], root=True, name=STRANGE)], title=STRANGE)
    drawn = ElementTree.fromstring(record.svg())
    assert not list(drawn.iter(f"{SVG}script"))
    assert "\x1b[31m" not in record.tree(color=False)
    assert "\x1b" not in record.dot() and '\\"' in record.dot()


def test_files_are_written_where_a_path_is_given(tmp_path):
    record = expression()
    assert record.svg(tmp_path / "a.svg") == (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert record.dot(tmp_path / "a.dot") == (tmp_path / "a.dot").read_text(encoding="utf-8")
    assert record.html(tmp_path / "a.html") == (tmp_path / "a.html").read_text(encoding="utf-8")


def test_modules_can_be_opened_by_their_paths():
    record = stack(12)
    assert "Block × 12" in record.svg() and "addmm" not in record.svg()
    text = record.svg(open=["blocks.3"])
    assert text.count(">addmm</text>") == 2
    assert text.count(">Block · 6 ops") == 11  # the other blocks are there, closed
    assert record.dot(open=["blocks.3.up"]).count("addmm") == 1
    with pytest.raises(InputError, match="open must name modules that are groups"):
        record.svg(open=["blocks.99"])


def test_a_notebook_gets_a_picture_and_text():
    bundle = expression()._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    ElementTree.fromstring(bundle["image/svg+xml"])
    assert bundle["text/plain"].startswith("e = ×")


def test_a_tree_names_a_shared_node_once():
    text = expression().tree(width=80, color=False)
    assert text.count("● b #1") == 2
    assert text.count("(above)") == 1
    assert text.count("data 1 | grad 8") == 1


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


@settings(deadline=None)
@given(records())
def test_a_tree_keeps_to_its_width_and_names_everything_once(record):
    picture = picture_of(record)
    for width in (24, 40, 200):
        assert all(columns(line) <= width for line in tree(picture, width=width, color=False).splitlines())
    lines = tree(picture, width=200, color=False).splitlines()
    defined = [line for line in lines if not line.endswith(("(above)", "(below)"))]
    assert len(defined) == len(seen(picture).items)


def test_a_long_chain_does_not_run_out_of_the_width():
    record = stack(30)
    lines = tree(picture_of(record, by="none"), width=60, color=False).splitlines()
    assert all(columns(line) <= 60 for line in lines)
    assert sum("addmm" in line and "(above)" not in line for line in lines) >= 60


def test_wide_letters_count_twice():
    record = Record("torch", [leaf(0, "損失" * 30), op(1, [0], root=True)])
    assert all(columns(line) <= 40 for line in record.tree(width=40, color=False).splitlines())


def test_a_tree_has_colours_only_where_they_are_wanted(monkeypatch):
    record = expression()
    assert "\033[32m● a" in record.tree(color=True)
    assert "\033" not in record.tree()  # the output of a test is no terminal
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\033" in record.tree()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in record.tree()


def test_a_tree_says_that_a_leaf_has_no_gradient_yet():
    assert "● x #0  4 × 64  no gradient yet" in stack(1).tree(width=120, color=False)


def test_open_groups_are_clusters_and_closed_ones_boxes_in_dot():
    record = stack(12)
    text = record.dot()
    assert 'label="Block × 12' in text and "peripheries=2" in text
    opened = picture_of(record)
    whole = dot(opened, [group.id for group in opened.groups])
    assert whole.count("subgraph cluster_") == len(opened.groups) - 1
    assert whole.count("{") == whole.count("}")
    assert "n2 -> n3" not in whole  # what passes a bead is an arrow with its name
    assert 'label="T"' in whole
