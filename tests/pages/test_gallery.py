"""Pages of models of each kind, trained and with random weights, of good and of failing explanations."""

from dataclasses import replace

import pytest
from browser import CONTRASTS
from tiny_bert import cross_encoder, real_ranker, write_bert

from backlight.explain.attribution import Joint
from backlight.explain.presentation.scales import ranking_scales
from backlight.explain.ranking import rank_and_explain
from backlight.explain.typos import TypoEffect
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker
from backlight.web.page_data import PageData
from backlight.web.report import report

QUERY = "how do plants make food"
DOCUMENTS = ["Plants make food from sunlight, water and air.", "The leaf of a green cell!", "Air and water."]
MODELS = ["built-in", "bi-encoder", "random bi-encoder", "random cross-encoder"]
CASES = [(model, method) for model in MODELS for method in ("leave-one-out", "random")]


@pytest.fixture(scope="module")
def rankers(tmp_path_factory):
    return {
        "built-in": load_ranker(find_model("builtin"), "builtin"),
        "bi-encoder": real_ranker(),
        "random bi-encoder": load_ranker(write_bert(tmp_path_factory.mktemp("random")), "random"),
        "random cross-encoder": cross_encoder(),
    }


@pytest.fixture
def opened(browser, tmp_path):
    def show(ranking, typo=None, width=1200):
        file = tmp_path / "page.html"
        file.write_text(report(PageData([ranking], typo=typo), "1.2.3"), encoding="utf-8")
        browser.size(width)
        browser.prefer("light")
        browser.open(file)
        return browser

    yield show
    assert browser.problems() == []


def texts(page, selector):
    return page.run(f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)")


def with_verdicts(ranking, *verdicts):
    """Return a ranking whose checks came out so, best document first."""
    documents = []
    for ranked, verdict in zip(ranking.documents, verdicts, strict=True):
        made = ranked.attribution
        documents.append(replace(ranked, attribution=replace(made, check=replace(made.check, verdict=verdict))))
    return replace(ranking, documents=tuple(documents))


@pytest.mark.parametrize(("model", "method"), CASES)
def test_each_document_says_what_its_check_found_and_can_be_read(opened, rankers, model, method):
    options = {"words": 4} if method == "leave-one-out" else {}
    ranking = rank_and_explain(rankers[model], QUERY, DOCUMENTS, method=method, **options)
    page = opened(ranking, width=400)
    assert len(texts(page, "article .check")) == len(DOCUMENTS)
    assert page.run("document.documentElement.scrollWidth") <= 400
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert min(page.run(CONTRASTS)) >= 4.5
    bars = page.run(
        "[...document.querySelectorAll('nav .fill')].map((one) => parseFloat(one.style.getPropertyValue('--width')))"
    )
    for ranked, bar in zip(ranking.documents, bars):
        expected = ranked.score if ranking.score_name.startswith("cosine") else ranked.activated
        assert bar == pytest.approx(100 * abs(expected), abs=0.11), "from zero"


def test_shades_can_be_compared_between_documents(opened, rankers):
    ranking = with_verdicts(rank_and_explain(rankers["built-in"], QUERY, DOCUMENTS, words=200), *["holds"] * 3)
    page = opened(ranking)
    scale = ranking_scales(ranking)[1]
    for ranked in ranking.documents:
        shares = page.run(
            f"[...document.querySelectorAll('#document-{ranked.rank} .text .word')]"
            ".map((one) => parseFloat(one.style.getPropertyValue('--share')))"
        )
        words = ranked.attribution.document.words
        expected = [0 if word.is_mark else abs(word.value) / scale for word in words]
        assert shares == pytest.approx([share if share >= 0.04 else 0 for share in expected], abs=0.001)
    assert f"Full colour is {scale:.2f} in every document" in texts(page, ".legend p")[0]


def test_failing_colours_are_hatched_and_those_without_effect_are_none(opened, rankers):
    ranking = rank_and_explain(rankers["bi-encoder"], QUERY, DOCUMENTS, method="random")
    page = opened(with_verdicts(ranking, "fails", "no effect", "holds"))
    failed, none, good = (f"#document-{place} .text .word" for place in (1, 2, 3))
    ground = "[...document.querySelectorAll({!r})].map((one) => getComputedStyle(one).backgroundColor)"
    assert set(page.run(ground.format(failed))) == {"rgba(0, 0, 0, 0)"}, "no colour"
    assert "repeating-linear-gradient" in page.run(
        f"getComputedStyle(document.querySelector({failed!r})).backgroundImage"
    )
    assert set(
        page.run(f"[...document.querySelectorAll({none!r})].map((one) => one.style.getPropertyValue('--share'))")
    ) == {"0"}
    assert len(set(page.run(ground.format(good)))) > 2
    assert "not faithful" in texts(page, ".legend .swatch")
    (said,) = texts(page, ".check.failed")
    assert said.startswith("Not faithful, do not believe these colours: ")
    assert said.endswith("use --method leave-one-out.")
    assert texts(page, ".check.weak")[0].startswith("No word matters: deleting any of ")
    assert texts(page, ".check:not(.failed, .weak)")[0].startswith(("Faithful: ", "Measured: "))
    before = "document.querySelector('.check.failed').compareDocumentPosition(document.querySelector('.text')) & 4"
    assert page.run(before), "it stands before the text"


LINES = """(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (...colours) => {
        for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
            .map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll("article .word.fails")].map((word) => {
        const card = getComputedStyle(word.closest("article")).backgroundColor, own = getComputedStyle(word);
        const line = own.backgroundImage.match(/-45deg, ([a-z]+\\([^)]*\\))/)[1];
        const [a, b] = [light(card, line), light(own.color)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    });
})()"""  # the contrast of each hatched word's letters to the lines behind them


def test_letters_stand_out_from_the_lines_behind_them(opened, rankers):
    ranking = rank_and_explain(rankers["bi-encoder"], QUERY, DOCUMENTS, method="random")
    page = opened(with_verdicts(ranking, "fails", "fails", "holds"))
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        contrasts = page.run(LINES)
        assert len(set(contrasts)) > 2
        assert min(contrasts) >= 7
    assert page.run("getComputedStyle(document.querySelector('article .word.fails')).textShadow") != "none"


def test_measured_and_estimated_words_are_told_apart(opened, rankers):
    ranking = with_verdicts(rank_and_explain(rankers["built-in"], QUERY, DOCUMENTS, words=3), *["holds"] * 3)
    page = opened(ranking)
    assert texts(page, ".legend .swatch") == ["a line: measured", "no line: estimated, not measured"]
    lines = page.run(
        "[...document.querySelectorAll('article .text .word')]"
        ".map((one) => getComputedStyle(one).textDecorationLine === 'underline')"
    )
    shown = [word for one in ranking.documents for word in one.attribution.document.words]
    assert lines == [word.effect is not None and not word.is_mark for word in shown], "however pale a word is"
    words = ranking.documents[0].attribution.document.words
    kinds = page.run(
        "[...document.querySelectorAll('#document-1 .text .word')].map((one) => one.classList.contains('estimated'))"
    )
    assert kinds == [word.effect != word.value for word in words]
    for estimated, said in ((True, "estimated, not measured"), (False, "measured")):
        page.hover(f"#document-1 .text .word[data-start='{words[kinds.index(estimated)].start}']")
        assert texts(page, "#tip span")[0] == said
    assert all(said.startswith("~ ") for said in texts(page, "#document-1 .value.estimated"))
    saliency = rank_and_explain(rankers["built-in"], QUERY, DOCUMENTS, method="saliency")
    page = opened(saliency)
    best = saliency.documents[0].attribution.document.strongest(1)[0]
    page.hover(f"#document-1 .text .word[data-start='{best.start}']")
    assert texts(page, "#tip span")[0].startswith("measured: "), "what the check measured for it"


def test_sentences_joint_words_and_closeness_are_on_the_page(opened, rankers):
    ranking = rank_and_explain(rankers["built-in"], QUERY, DOCUMENTS, words=200)
    best = ranking.documents[0]
    words = best.attribution.document.words
    made = replace(best.attribution, together=(Joint(words[:2], 2.1, 0.5),))
    ranking = replace(ranking, documents=(replace(best, attribution=made), *ranking.documents[1:]))
    page = opened(ranking, typo=TypoEffect(1e6, 3, tried=3, overturned=1))
    (closeness,) = texts(page, ".closeness")
    assert closeness.startswith("The top 3 documents are close: their logits differ by ")
    assert closeness.endswith(
        ", and a typo in the query changes the best one's by 1000000.00; 1 of 3 typos tried puts another of them first."
    )
    assert f"“{words[0].text} {words[1].text}”: +2.10 together, +0.50 one by one" in texts(page, ".together li")
    assert any(said.startswith("Without “") for said in texts(page, ".said"))
    assert texts(opened(ranking), ".closeness") == []


def test_the_ring_of_the_focus_is_not_cut_off(opened, rankers):
    page = opened(rank_and_explain(rankers["built-in"], QUERY, DOCUMENTS, method="saliency"))
    page.run("document.querySelector('nav a').focus()")
    room = page.run("""(() => {
        const [link, nav] = ["nav a", "nav"].map((one) => document.querySelector(one).getBoundingClientRect());
        return [link.left - nav.left, nav.right - link.right];
    })()""")
    assert min(room) >= 4, "2 pixels of ring, 2 of offset"
