"""The page stands alone, escapes what people wrote, and says what was done."""

import datetime
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from backlight.explain.ranking import rank_and_explain
from backlight.web.report import report
from tiny_bert import real_ranker

WHEN = datetime.datetime(2026, 3, 1, 9, 30, tzinfo=datetime.UTC)
EVIL = "<script>alert('plants')</script> & \"quotes\" </style> {{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """What a browser would see: text, tags, words with their data, and whether all that was opened was closed."""

    def __init__(self, source):
        super().__init__()
        self.text, self.tags, self.open = [], [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def all(self, css_class):
        return [attrs for _, attrs in self.tags if css_class in (attrs.get("class") or "").split()]


def page_of(documents, query="how do plants make food", names=None, **options):
    ranking = rank_and_explain(real_ranker(), query, documents, names, **options)
    return ranking, report(ranking, "1.2.3", WHEN)


def test_the_page_asks_no_network_for_anything():
    _, source = page_of(["Green plants build their food.", "The Moon."])
    assert not re.findall(r"https?:|//[a-z]|@import|url\(", source)
    for tag, attrs in Page(source).tags:
        assert tag not in ("link", "img", "iframe", "base")
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith("#")


def test_what_people_wrote_is_escaped():
    ranking, source = page_of([EVIL, "The Moon."], query=f"plants {EVIL}", names=[f"{EVIL}.txt", "moon"])
    page = Page(source)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert [tag for tag, _ in page.tags].count("style") == 1
    assert "{{ 7 * 7 }}" in "".join(page.text)
    assert "alert('plants')" not in source
    assert page.open == []
    assert ranking.query in "".join(page.text)


def test_the_text_stands_unchanged_between_its_shades():
    document = "Two  lines,\nand (brackets) – “quotes”."
    _, source = page_of([document])
    assert document in "".join(Page(source).text)


def test_query_model_method_score_and_date_are_named():
    ranking, source = page_of(["Green plants build their food."])
    text = "".join(Page(source).text)
    made = ("saliency", "no baseline", "1 March 2026, 09:30", "1.2.3")
    for said in (ranking.query, ranking.model, ranking.score_name, *made):
        assert said in text
    assert f"{ranking.documents[0].score:.3f}" in text


def test_each_word_carries_its_value_rank_and_shade():
    ranking, source = page_of(["Green plants build their food."])
    words = ranking.documents[0].attribution.document.words
    most = max(word.value for word in words)
    drawn = [attrs for attrs in Page(source).all("word") if attrs["data-words"] == str(len(words))][: len(words)]
    for word, attrs in zip(words, drawn, strict=True):
        assert attrs["data-start"] == str(word.start)
        assert float(attrs["data-value"]) == pytest.approx(word.value, rel=1e-3)
        share = float(re.search(r"--share:([\d.]+)", attrs["style"])[1])
        assert share == pytest.approx(word.value / most, abs=1e-3)
        assert ("bright" in attrs["class"].split()) == (share >= 0.55)
    assert sorted(int(attrs["data-rank"]) for attrs in drawn) == list(range(1, len(words) + 1))


def test_each_text_is_one_stop_of_the_keyboard():
    _, source = page_of(["Green plants build their food.", "The Moon."])
    stops = [attrs for attrs in Page(source).all("word") if attrs["tabindex"] == "0"]
    assert len(stops) == len(Page(source).all("lit")) == 1 + 2 * 2
    assert all(attrs["data-rank"] == "1" for attrs in stops)


def test_a_document_read_in_part_says_so():
    ranking, source = page_of(["Green plants build their food. " * 80])
    left = ranking.documents[0].truncation
    text = " ".join("".join(Page(source).text).split())
    assert f"{left.words_left_out:,} words ({left.tokens_left_out:,} tokens) after the end of this excerpt" in text
    assert f"read in part: {left.words_left_out:,} words left out" in text


def test_documents_not_explained_are_in_the_ranking_only():
    _, source = page_of(["Green plants build their food.", "The Moon."], names=["a/plants.txt", "a/moon.txt"], top=1)
    page = Page(source)
    text = "".join(page.text)
    assert "2, the best 1 explained" in text
    assert [attrs["id"] for tag, attrs in page.tags if tag == "article"] == ["document-1"]
    assert "moon.txt" in text


def test_negative_scores_have_an_empty_bar():
    smallpox = (Path(__file__).parent.parent / "examples" / "passages" / "smallpox.txt").read_text()
    ranking, source = page_of([smallpox], query="how do plants make food from sunlight")
    assert ranking.documents[0].score < 0
    assert f"\N{MINUS SIGN}{-ranking.documents[0].score:.3f}" in source
    assert 'style="width:0.0%"' in source


def test_both_themes_and_print_are_there():
    _, source = page_of(["The Moon."])
    for part in ("light-dark(", "@media print", "prefers-reduced-motion", 'id="theme"', "max-width: 56rem"):
        assert part in source
