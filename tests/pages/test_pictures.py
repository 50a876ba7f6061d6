"""Pictures: whole SVG with every word in its place, nothing that a text could slip in, PNG by a browser."""

import shutil
import struct
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hostile_texts import EVIL
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.report.text import width_of
from backlight.web.pictures import Run, comparison_svg, flow, interactions_svg, ranking_svg
from backlight.web.svg_to_png import png_of

QUERY = "how do plants make food"
DOCUMENTS = ["plants make food from sunlight", "the leaf of a green cell. " * 9, f"air {EVIL} \x1b[2J", "water"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def reranker():
    return Reranker(cross_encoder())


def parsed(source):
    root = ElementTree.fromstring(source)
    width, height = float(root.get("width")), float(root.get("height"))
    for part in root.iter():
        assert part.tag.removeprefix(SVG) in ("svg", "title", "rect", "path", "text"), part.tag
        if part.get("y") is not None and part.get("transform") is None:
            assert 0 <= float(part.get("y")) <= height
            assert 0 <= float(part.get("x", 0)) <= width
    return root


def words_in(root):
    return " ".join(part.text for part in root.iter(f"{SVG}text"))


def test_a_ranking_is_drawn_with_its_texts_scores_and_account(reranker):
    ranking = reranker.rank(QUERY, DOCUMENTS, explain=3, method="gradient-x-input")
    root = parsed(ranking_svg(ranking))
    drawn = words_in(root)
    for ranked in ranking.documents:
        assert ranked.name in drawn
        assert f"{ranked.score:.3f}".replace("-", "\N{MINUS SIGN}") in drawn
        if ranked.attribution is not None:
            for word in ranked.attribution.document.words:
                assert word.text in drawn
    assert "gradient-x-input" in drawn
    assert "\x1b" not in drawn


def test_the_sign_is_seen_without_colour(reranker):
    explained = {"explain": 2, "check": False}
    source = ranking_svg(reranker.rank(QUERY, DOCUMENTS, method="gradient-x-input", **explained))
    assert 'stroke-dasharray="2 2" stroke="#1b4f9c" stroke-width="2"' in source
    assert 'stroke="#a55a00" stroke-width="2"/>' in source
    assert "stroke-dasharray" not in ranking_svg(reranker.rank(QUERY, DOCUMENTS, method="saliency", **explained))


def test_estimated_words_are_paler_and_failed_ones_only_framed(reranker):
    source = ranking_svg(reranker.rank(QUERY, DOCUMENTS, explain=2, words=2, check=False))
    assert "estimated, not measured" in source
    assert "not faithful" not in source
    ranking = reranker.rank(QUERY, DOCUMENTS, explain=1, method="random")
    best = ranking.documents[0]
    made = replace(best.attribution, check=replace(best.attribution.check, verdict="fails"))
    source = ranking_svg(replace(ranking, documents=(replace(best, attribution=made), *ranking.documents[1:])))
    assert "do not believe these colours" in words_in(parsed(source))
    assert "not faithful" in source
    assert 'fill="none" stroke="#6b6355" stroke-dasharray="3 2"' in source
    assert source.count('fill="#f5a524"') == 4, "the legend's only"


def test_a_comparison_and_a_matrix_are_drawn(reranker):
    found = reranker.compare(QUERY, *DOCUMENTS[:2], names=("a/one.txt", "two.txt"))
    drawn = words_in(parsed(comparison_svg(found)))
    assert "A  one.txt" in drawn
    assert "B  two.txt" in drawn
    assert "for A" in drawn
    found = reranker.matrix(QUERY, DOCUMENTS[0])
    root = parsed(interactions_svg(found))
    cells = [part for part in root.iter(f"{SVG}rect") if part.get("fill") == "none"]
    assert len(cells) == len(found.query) * len(found.document)


def test_lines_are_no_wider_than_their_column():
    runs = [Run("word", 0.5), Run(" and more, "), Run("W" * 90, -0.5), Run("  \n tail"), Run("東京", 1.0)]
    placed = flow(runs, 200, 16)
    assert all(one.x + one.width <= 200 for one in placed)
    assert "".join(one.run.text for one in placed) == "wordandmore," + "W" * 90 + "tail" + "東京"
    assert placed[-2].x == 0
    assert placed[0].line < placed[-1].line


def test_widths_are_helveticas():
    assert width_of("Aa i", 1000) == pytest.approx(667 + 556 + 278 + 222)
    assert width_of("“a”", 1000) == pytest.approx(333 + 556 + 333)
    assert width_of("東e\u0301", 10) == pytest.approx(10 + 5.56)


def test_a_browser_turns_a_picture_into_png(reranker, installed_browser):
    source = interactions_svg(reranker.matrix(QUERY, DOCUMENTS[0]))
    found = png_of(source)
    root = ElementTree.fromstring(source)
    assert found.startswith(b"\x89PNG")
    assert struct.unpack(">II", found[16:24]) == (2 * int(root.get("width")), 2 * int(root.get("height")))


def test_without_a_browser_the_error_says_what_to_do(reranker, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="none is installed: apt-get install chromium, or give --svg FILE"):
        png_of(interactions_svg(reranker.matrix(QUERY, DOCUMENTS[0])))


def test_commands_write_pictures(reranker, tmp_path, capsys):
    model = str(write_cross_encoder(tmp_path / "model"))
    for command in (["explain", QUERY, *DOCUMENTS[:2]], ["rank", QUERY, *DOCUMENTS[:2]], ["matrix", QUERY, "water"]):
        file = tmp_path / f"{command[0]}.svg"
        assert main([*command, "--model", model, "--svg", str(file)]) == 0
        assert f"The picture is in {file}" in capsys.readouterr().out
        parsed(file.read_text())
    assert main(["compare", QUERY, *DOCUMENTS[:2], "--model", model, "--svg", str(tmp_path)]) == 2
    assert "--svg must be a file, got the folder" in capsys.readouterr().err
