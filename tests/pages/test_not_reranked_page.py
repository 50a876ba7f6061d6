"""The page of a long list in a real browser: how candidates were chosen, and what was not reranked."""

import pytest
from tiny_bert import cross_encoder

from backlight.explain.reranker import Reranker
from backlight.web.page_data import PageData
from backlight.web.report import report

DOCUMENTS = [
    "a leaf of a cell",
    "plants make food",
    "unlike cells",
    "food from water and air",
    "a green leaf",
    "plants",
]
NAMES = [f"texts/{number}.txt" for number in range(len(DOCUMENTS))]


@pytest.fixture
def page(browser, tmp_path):
    ranking = Reranker(cross_encoder()).rank("plants make food", DOCUMENTS, explain=1, candidates=3, names=NAMES)
    file = tmp_path / "page.html"
    file.write_text(report(PageData([ranking]), "1.2.3"), encoding="utf-8")
    browser.size(1280)
    browser.prefer("light")
    browser.open(file)
    yield browser
    assert browser.problems() == []
    assert browser.requests() == [file.as_uri()]


def test_documents_that_were_not_reranked_are_listed_when_asked_for(page):
    facts = page.run("document.querySelector('.facts').innerText")
    assert "the 3 best of 6 documents by BM25; the others were not reranked" in facts
    assert page.run("document.querySelectorAll('nav > ol li').length") == 3
    names = "[...document.querySelectorAll('nav .not-reranked li')].filter((one) => one.checkVisibility())"
    assert page.run(f"{names}.length") == 0
    assert "3 documents, in the order of BM25" in page.run("document.querySelector('nav summary').innerText")
    page.click("nav summary")
    assert page.run(f"{names}.map((one) => one.innerText.split(/\\s+/).join(' '))") == ["4 0.txt", "5 2.txt", "6 4.txt"]
