"""The page stands alone, carries all values, and nothing that people wrote can change it."""

import dataclasses
import datetime
import json
import re
from html.parser import HTMLParser

import pytest
from hostile_texts import EVIL
from tiny_bert import cross_encoder, real_ranker

from backlight.errors import InputError
from backlight.explain.methods.attention_links import attention_links
from backlight.explain.methods.logit_lens import build_up
from backlight.explain.presentation.scales import ranking_scales
from backlight.explain.presentation.verdict import measured_text, verdict_line
from backlight.explain.presentation.wording import effect_sentence
from backlight.explain.ranking import rank_and_explain
from backlight.web.page_data import PageData
from backlight.web.report import SCRIPTS, report

WHEN = datetime.datetime(2026, 3, 1, 9, 30, tzinfo=datetime.UTC)
VOID = {"meta", "link", "br", "img", "hr", "input"}
QUERY = "how do plants make food"


class Page(HTMLParser):
    """What a browser would see: tags, the data, and whether all that was opened was closed."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.open, self.island = [], [], ""
        self.feed(source)
        self.data = json.loads(self.island)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.tags and self.tags[-1] == ("script", {"id": "data", "type": "application/json"}):
            self.island += data


def page_of(documents, query=QUERY, names=None, methods=("saliency",), **options):
    rankings = [
        rank_and_explain(real_ranker(), query, documents, names, method=method, **options) for method in methods
    ]
    source = report(PageData(rankings), "1.2.3", WHEN)
    return rankings[0], source


def test_the_page_asks_no_network_for_anything():
    _, source = page_of(["Green plants build their food.", "The Moon."])
    addresses = re.findall(r"https?:[^\"' ]*|//[a-z][^\"' ]*|@import|url\(", source)
    assert addresses == ["http://www.w3.org/2000/svg"], "the name of SVG's elements, which nobody asks for"
    for tag, attrs in Page(source).tags:
        assert tag not in ("link", "img", "iframe", "base")
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith("#")


def test_what_people_wrote_is_escaped():
    ranking, source = page_of([EVIL, "The Moon."], query=f"plants {EVIL}", names=[f"{EVIL}.txt", "moon"])
    page = Page(source)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert [tag for tag, _ in page.tags].count("style") == 1
    assert "alert('plants')</script>" not in source
    assert page.open == []
    assert page.data["query"] == ranking.query
    assert {one["text"] for one in page.data["documents"]} == {EVIL, "The Moon."}
    assert {one["name"] for one in page.data["documents"]} == {f"{EVIL}.txt", "moon"}


def test_scripts_never_read_a_text_as_html():
    _, source = page_of(["The Moon."])
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in source


def test_query_model_method_scores_and_date_are_in_the_data():
    ranking, source = page_of(["Green plants build their food."])
    data = Page(source).data
    assert (data["query"], data["model"], data["scoreName"]) == (ranking.query, ranking.model, ranking.score_name)
    assert (data["date"], data["version"]) == ("1 March 2026, 09:30", "1.2.3")
    assert data["documents"][0]["score"] == pytest.approx(ranking.documents[0].score, rel=1e-4)
    made = data["documents"][0]["explanations"]["saliency"]
    assert (made["baseline"], made["sum"], made["passes"], made["fallback"]) == (None, "not additive", 2, False)


def test_each_word_carries_its_place_value_and_tokens():
    ranking, source = page_of(["Green plants build their food."])
    words = ranking.documents[0].attribution.document.words
    written = Page(source).data["documents"][0]["explanations"]["saliency"]["document"]
    for word, (start, end, value, tokens, error, effect, estimated) in zip(words, written, strict=True):
        assert (start, end, tokens, error, estimated) == (word.start, word.end, word.tokens, None, 0)
        assert effect == (None if word.effect is None else pytest.approx(word.effect, rel=1e-4))
        assert value == pytest.approx(word.value, rel=1e-4)


def test_estimated_words_the_check_and_one_scale_are_in_the_data():
    ranking, source = page_of(["Green plants build their food.", "The Moon."], methods=("leave-one-out",), words=2)
    data = Page(source).data
    for ranked, written in zip(ranking.documents, data["documents"]):
        made = written["explanations"]["leave-one-out"]
        words = ranked.attribution.document.words
        assert [word[6] for word in made["document"]] == [int(word.effect != word.value) for word in words]
        assert made["check"] == verdict_line(ranked.attribution)
        assert made["measured"] == measured_text(ranked.attribution)
        assert made["verdict"] == ranked.attribution.check.verdict
        assert made["sentence"] == effect_sentence(ranked, ranking)
        assert written["bar"] == pytest.approx(ranked.score, rel=1e-4), "a cosine, from zero"
    assert data["scales"]["leave-one-out"] == pytest.approx(ranking_scales(ranking), rel=1e-4)


def test_methods_stand_beside_each_other():
    _, source = page_of(["Green plants.", "The Moon."], methods=("saliency", "gradient-x-input"), top=1)
    data = Page(source).data
    assert [one["name"] for one in data["methods"]] == ["saliency", "gradient-x-input"]
    assert [list(one["explanations"]) for one in data["documents"]] == [["saliency", "gradient-x-input"], []]


def test_a_document_read_in_part_says_so():
    ranking, source = page_of(["Green plants build their food. " * 80], windows=None)
    (document,) = Page(source).data["documents"]
    left = ranking.documents[0].truncation
    assert document["truncation"] == dataclasses.asdict(left)
    assert document["read"] == [0, left.characters_read]


def test_without_scripts_the_ranking_can_be_read():
    _, source = page_of(["Green plants build their food.", "The Moon."], names=["plants.txt", "moon.txt"])
    kept = re.search(r"<noscript>(.*?)</noscript>", source, re.DOTALL)[1]
    assert kept.index("1. plants.txt") < kept.index("2. moon.txt")
    assert "Green plants build their food." in kept


def test_attention_and_layers_are_bounded_and_in_the_data():
    ranker = cross_encoder()
    ranking = rank_and_explain(ranker, "green plants", ["plants make food", "the air"])
    best = ranking.documents[0]
    pair = ranker.read([("green plants", best.text)])[0]
    links, layers = attention_links(ranker, pair), build_up(ranker, [pair])[0].after
    page = PageData([ranking], attention={best.index: links}, layers={best.index: layers})
    first, second = Page(report(page, "1.2.3", WHEN)).data["documents"]
    assert (second["attention"], second["layers"]) == (None, None)
    assert first["layers"]["after"][-1] == pytest.approx(best.score, rel=1e-4)
    assert (first["attention"]["layers"], first["attention"]["heads"]) == (2, 3)
    for direction in first["attention"]["directions"]:
        for head in (head for layer in direction["links"] for head in layer):
            most, *triples = head
            assert len(triples) % 3 == 0
            assert triples[2] == 255
            assert 0 < most <= 1


def test_a_page_of_nothing_is_refused():
    with pytest.raises(InputError, match="a page must show a ranking or a comparison, got neither"):
        report(PageData(), "1.2.3")


def test_both_themes_and_print_are_there():
    _, source = page_of(["The Moon."])
    for part in ("light-dark(", "@media print", "prefers-reduced-motion", 'id="theme"', "max-width: 56rem"):
        assert part in source
    assert len(set(SCRIPTS)) == len(SCRIPTS)
