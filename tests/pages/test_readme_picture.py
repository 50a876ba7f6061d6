"""README.md's first picture shows what the command printed above it shows."""

import json
import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import explain_pictures

FIRST = "docs/images/report.png"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return json.loads(explain_pictures.run(tmp_path_factory.mktemp("page") / "why.html", "--json"))


def test_the_first_picture_of_the_readme_was_made_by_the_command_above_it(found):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.partition("![")[2].partition("(")[2].startswith(f"{FIRST})")
    kept = explain_pictures.shown_in((ROOT / FIRST).read_bytes())
    now = explain_pictures.shown(found)
    assert kept["command"] == now["command"], "draw it again: make pictures"
    assert [one["name"] for one in kept["documents"]] == [one["name"] for one in now["documents"]]
    for drawn, made in zip(kept["documents"], now["documents"]):
        assert drawn["score"] == pytest.approx(made["score"], abs=0.01)
        assert drawn["verdict"] == made["verdict"]
        assert [word for word, _ in drawn["words"]] == [word for word, _ in made["words"]]
        assert [value for _, value in drawn["words"]] == pytest.approx([value for _, value in made["words"]], abs=0.02)


def test_the_terminal_of_the_readme_shows_the_same_words(found):
    drawn = (ROOT / "docs" / "images" / "terminal.svg").read_text(encoding="utf-8")
    for one in found["documents"][:3]:
        assert f"{one['score']:.3f}".replace("-", "\N{MINUS SIGN}") in drawn
    assert "backlight&#160;explain" in drawn
