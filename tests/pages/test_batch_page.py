"""The page of a batch: its shades compare words of all pairs, and say what was measured, and what not to believe."""

import json

import pytest
from tiny_bert import cross_encoder

from backlight.explain.batch import Settings, run_batch
from backlight.explain.batch.job import SAMPLE
from backlight.web.batch import batch_page, check_line, pieces

WORDS = "[...document.querySelectorAll('.open')[{}].querySelectorAll('.lit-word')]"


def test_shades_compare_pairs_and_failing_checks_have_no_colour(tmp_path, browser):
    rows = [{"id": str(number), "query": "plants", "document": "make food"} for number in range(4)]
    run_batch(rows, tmp_path / "out", cross_encoder(), Settings(method="leave-one-out"))
    sample = tmp_path / "out" / SAMPLE
    records = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    verdicts = ["holds", "holds", "fails", "no effect"]
    for record, verdict, values in zip(
        records, verdicts, [(2.0, -1.0), (0.5, 0.5), (2.0, 1.0), (0.1, 0.1)], strict=True
    ):
        record |= {"check_verdict": verdict, "check_drop": 1.0, "check_random": None, "check_counted": 2}
        for word, value in zip(record["document_words"], values, strict=True):
            word |= {"value": value, "effect": value}
    del records[1]["document_words"][1]["effect"]
    sample.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text(batch_page(tmp_path / "out", "1"), encoding="utf-8")
    browser.open(page)
    browser.run("[...document.querySelectorAll('button.row')].forEach((row) => row.click())")

    def of_document(number: int, what: str):
        return browser.run(f"{WORDS.format(number)}.slice(-2).map((word) => {what})")

    share = "Number(word.style.getPropertyValue('--share'))"
    assert [of_document(number, share) for number in range(2)] == [[1, 0.5], [0.25, 0.1]]  # 0.1: of an estimate
    assert of_document(3, share) == [0, 0]
    assert of_document(0, "word.classList.contains('harms')") == [False, True]
    assert of_document(1, "word.classList.contains('measured')") == [True, False]
    assert of_document(2, "word.classList.contains('fails')") == [True, True]
    assert of_document(1, "word.dataset.tip.includes('estimated')") == [False, True]
    assert "2 in a document" in browser.run("document.getElementById('scale').textContent")
    said = browser.run("[...document.querySelectorAll('.open .check')].map((check) => check.textContent)")
    assert [line.split(":")[0] for line in said] == [
        "Measured", "Measured", "Not faithful, do not believe these colours", "No word matters",
    ]  # fmt: skip
    assert browser.problems() == []


@pytest.mark.parametrize(
    ("random", "said"),
    [
        (None, "Measured: without its strongest words the logit rises by 0.50"),
        (
            0.25,
            "Faithful: without its strongest words the logit rises by 0.50, without as many others it falls by 0.25",
        ),
    ],
)
def test_a_check_is_told_as_it_was_measured(random, said):
    assert check_line({"check_verdict": "holds", "check_drop": -0.5, "check_random": random}, "logit") == said


def test_a_value_is_an_estimate_only_beside_measured_ones():
    words = [{"start": 0, "end": 1, "value": 0.5, "effect": 0.4}, {"start": 2, "end": 3, "value": 0.25}]
    assert pieces({"query": "a b", "query_words": words}, "query") == [["a", 0.5], " ", ["b", 0.25]]
    words[0]["effect"] = 0.5
    assert pieces({"query": "a b", "query_words": words}, "query") == [["a", 0.5], " ", ["b", 0.25, 1]]
