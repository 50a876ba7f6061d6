"""The page in a real browser: methods, tips, search, themes, widths, keys, matrix, attention, A against B."""

import re

import pytest
from browser import CONTRASTS
from tiny_bert import cross_encoder

from backlight.explain.comparison import Comparison, Swap
from backlight.explain.methods.attention_links import attention_links
from backlight.explain.methods.interactions import Interactions
from backlight.explain.methods.logit_lens import build_up
from backlight.explain.ranking import rank_and_explain
from backlight.web.page_data import PageData
from backlight.web.report import report

QUERY = "how do plants make food"
DOCUMENTS = [
    "Plants make food from sunlight, water and air.",
    "the leaf of a green cell!",
    "unlike cells",
    "air and water (from a leaf), " * 4,
]
NAMES = ["texts/plants.txt", "texts/leaf.txt", "texts/cells.txt", "texts/" + "a-very-long-name-" * 9 + ".txt"]


def matrix_of(attribution):
    """Return a made-up matrix: what a page shows does not depend on how it was computed."""
    asked, told = attribution.query.words, attribution.document.words
    values = tuple(tuple((row + 1) * (column % 3 - 1) / 10 for column in range(len(told))) for row in range(len(asked)))
    texts = attribution.query.text, attribution.document.text
    return Interactions("joint-occlusion", "made up", "tiny", attribution.score, *texts, asked, told, values)


def comparison_of(ranking):
    one, other = ranking.documents[:2]
    swap = Swap("a", one.attribution.document.words[:2], other.score - 0.1, True, 4)
    return Comparison(
        query=QUERY,
        model="tiny",
        score_name="logit",
        method=ranking.method,
        name_a=one.name,
        name_b=other.name,
        a=one.attribution,
        b=other.attribution,
        query_words=one.attribution.query,
        score_a=one.score,
        score_b=other.score,
        difference=one.score - other.score,
        swap=swap,
        passes=9,
    )


def page_data():
    ranker = cross_encoder()
    methods = {"saliency": {}, "gradient-x-input": {}, "shapley": {"budget": 200}}
    rankings = [
        rank_and_explain(ranker, QUERY, DOCUMENTS, NAMES, method=name, top=3, windows=None, **options)
        for name, options in methods.items()
    ]
    best = rankings[0].documents[0]
    (pair,) = ranker.read([(QUERY, best.text)])
    return PageData(
        rankings,
        matrices={best.index: [matrix_of(rankings[1].documents[0].attribution)]},
        attention={best.index: attention_links(ranker, pair)},
        layers={best.index: build_up(ranker, [pair])[0].after},
        comparisons=[comparison_of(rankings[1])],
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(report(page_data(), "1.2.3"), encoding="utf-8")
    return file


@pytest.fixture
def page(browser, file):
    browser.size(1280)
    browser.prefer("light")
    browser.open(file)
    yield browser
    assert browser.problems() == []
    assert browser.requests() == [file.as_uri()]


def text(page, selector):
    return page.run(f"document.querySelector({selector!r})?.innerText")


def count(page, selector):
    return page.run(f"[...document.querySelectorAll({selector!r})].filter((one) => one.checkVisibility()).length")


def focused(page, what="dataset.start"):
    return page.run(f"document.activeElement.{what}")


def test_all_documents_are_listed_and_the_best_explained(page):
    assert count(page, "nav li") == len(DOCUMENTS) + 1
    assert count(page, "article") == 3 + 1
    assert text(page, "article .text") in DOCUMENTS
    assert re.fullmatch(r"[01]\.\d{3} logit −?\d+\.\d{3}", text(page, "article .score"))
    assert "words not measured" in text(page, "nav li:nth-child(4)"), "the one that was not explained"


def test_the_best_window_is_linked_in_its_document(browser, tmp_path):
    document = "a cell ! " * 60 + "plants make food . " + "a leaf ? " * 60
    ranking = rank_and_explain(cross_encoder(), QUERY, [document], ["long.txt"], method="saliency")
    window = ranking.documents[0].window
    file = tmp_path / "page.html"
    file.write_text(report(PageData([ranking]), "1.2.3"), encoding="utf-8")
    browser.size(1280)
    browser.open(file)
    assert f"best of {window.of} windows: number {window.number}" in text(browser, "article .window")
    assert f"best of {window.of} windows" in text(browser, "nav li")
    assert window.of > 4
    assert text(browser, "article .window .alone").startswith("Word effects are for this window only: ")
    assert count(browser, "mark") == 0
    browser.click("article .window a")
    assert count(browser, "mark") == 1
    assert text(browser, "mark").strip() == document[window.first_character : window.last_character].strip()
    assert browser.run("location.hash") == "#window-1"
    assert count(browser, "article .words .unread") == 0, "the other windows were read too"
    assert browser.problems() == []


def test_words_after_an_emoji_are_cut_where_they_stand(browser, tmp_path):
    document = "🏖😍 plants make food 🌊 every day."
    ranking = rank_and_explain(cross_encoder(), "🌱 " + QUERY, [document], ["emoji.txt"], method="saliency")
    made = ranking.documents[0].attribution
    file = tmp_path / "page.html"
    file.write_text(report(PageData([ranking], matrices={0: [matrix_of(made)]}), "1.2.3"), encoding="utf-8")
    browser.size(1280)
    browser.open(file)
    assert text(browser, "article .text") == document
    lit = browser.run("[...document.querySelectorAll('article .text .word')].map((one) => one.textContent)")
    assert lit == [word.text for word in made.document.words]
    assert browser.problems() == []


def test_a_click_switches_the_method(page):
    assert text(page, "[role=radio][aria-checked=true]") == "saliency (L1)"
    assert count(page, ".top .legend.signs") == 0
    before = page.run("document.querySelector('article .word').dataset.value")
    page.click("[data-method=gradient-x-input]")
    assert text(page, "[role=radio][aria-checked=true]") == "gradient × input"
    assert count(page, ".top .legend.signs") == 1
    assert page.run("document.querySelector('article .word').dataset.value") != before
    assert count(page, "article .word.minus.signed") > 0
    assert "gradient × input" in text(page, "article .account")


def test_hovering_a_word_shows_its_value_and_its_error(page):
    assert count(page, "#tip") == 0
    page.hover("article .word")
    value = page.run("document.querySelector('article .word').dataset.value")
    assert text(page, "#tip").startswith(value)
    assert " of " in text(page, "#tip")
    page.click("[data-method=shapley]")
    page.hover("article .word")
    assert "±" in text(page, "#tip")
    assert count(page, "article .fill i") > 0


def test_a_measured_word_says_what_would_be_without_it(page):
    scores = [float(text(page, f"#document-{rank} .score").split()[-1].replace("−", "-")) for rank in (1, 2, 3)]
    said = []
    for rank in (1, 2, 3):
        page.run(f"document.querySelector('#document-{rank} .text .word[tabindex=\"0\"]').focus()")
        found = re.search(
            r"without it: .*logit (\S+) → ([\d.-]+)\)?(?:, place (\d) → (\d))?", text(page, "#tip").replace("−", "-")
        )
        before, after = map(float, found.groups()[:2])
        assert before == pytest.approx(scores[rank - 1], abs=0.006)
        others = [score for number, score in enumerate(scores, 1) if number != rank]
        place = 1 + sum(score > after for score in others)
        if min(abs(score - after) for score in others) > 0.01:  # clear in the digits that are shown
            assert found.groups()[2:] == ((None, None) if place == rank else (str(rank), str(place)))
        said.append((before, after))
    assert any(before != after for before, after in said)


def test_the_query_is_lit_for_the_document_in_view(page):
    values = "[...document.querySelectorAll('#query .word')].map((one) => one.dataset.value)"
    own = "[...document.querySelectorAll('#document-{} .asked .word')].map((one) => one.dataset.value)"
    assert "document 1: plants.txt" in text(page, "#query .kicker").lower()
    assert page.run(values) == page.run(own.format(1))
    page.run("document.querySelector('#document-2').scrollIntoView({ behavior: 'instant' })")
    page.until("document.querySelector('#query .kicker').textContent.includes('document 2')")
    assert page.run(values) == page.run(own.format(2)) != page.run(own.format(1))
    page.run("document.querySelector('#document-3 .word').focus()")
    page.until("document.querySelector('#query .kicker').textContent.includes('document 3')")
    page.run("dispatchEvent(new Event('scroll'))")  # as the focus itself may cause, and before or after it
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert "document 3" in text(page, "#query .kicker").lower()


def test_search_keeps_the_documents_that_hold_all_words_and_marks_them(page):
    page.click("#search")
    for key in "green LEAF":
        page.press(key)
    assert text(page, ".found-count") == f"1 of {len(DOCUMENTS)}"
    assert count(page, "nav .entry, nav li > a[href^='#document']") == 1
    found = "[...document.querySelectorAll('.word.found')].filter((one) => one.checkVisibility())"
    assert page.run(f"{found}.map((one) => one.textContent)") == ["leaf", "green"]
    page.run("document.querySelector('#search').select()")
    page.press("x")
    for _ in range(3):
        page.press("q")
    assert text(page, ".found-count") == f"0 of {len(DOCUMENTS)}"


def ground(page):
    return page.run("getComputedStyle(document.body).backgroundColor")


def test_the_page_is_dark_where_the_system_is_and_a_button_turns_it(page):
    light = ground(page)
    page.prefer("dark")
    assert ground(page) != light
    page.until("document.querySelector('#theme').innerText === 'Light'")
    page.click("#theme")
    assert ground(page) == light
    page.press("t")
    assert ground(page) != light


def test_letters_can_be_read_on_every_shade_in_both_themes(page):
    """WCAG's contrast of at least 4.5, on a word's ground mixed over the card's."""
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        for method in ("saliency", "gradient-x-input"):
            page.click(f"[data-method={method}]")
            assert min(page.run(CONTRASTS)) >= 4.5, (scheme, method)


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_window_needs_no_scrolling_sideways(page, width):
    page.size(width)
    for view in ("words", "matrix", "attention", "layers"):
        page.click(f"[data-view={view}]")
        assert page.run("document.documentElement.scrollWidth") <= width, view


def test_the_page_can_be_walked_by_keyboard(page):
    page.press("m")
    assert text(page, "[role=radio][aria-checked=true]") == "gradient × input"
    page.press("M")
    assert text(page, "[role=radio][aria-checked=true]") == "saliency (L1)"
    page.press("j")
    assert focused(page, "id") == "document-1"
    page.press("j")
    assert focused(page, "id") == "document-2"
    page.press("k")
    assert focused(page, "id") == "document-1"
    page.run("document.querySelector('#document-1 .text .word').focus()")
    starts = []
    for _ in range(3):
        starts.append(int(focused(page)))
        page.press("ArrowRight")
    assert starts == sorted(starts)
    assert len(set(starts)) == 3
    assert count(page, "#tip") == 1
    page.press("Escape")
    assert count(page, "#tip") == 0
    page.press("/")
    assert focused(page, "id") == "search"


def test_arrows_up_and_down_go_by_strength(page):
    page.run("document.querySelector('#document-1 .text .word[tabindex=\"0\"]').focus()")
    page.press("ArrowDown")
    second = float(focused(page, "dataset.value"))
    page.press("ArrowUp")
    first = float(focused(page, "dataset.value"))
    assert first >= second


def test_the_focus_can_be_seen(page):
    page.run("document.querySelector('#theme').focus()")
    page.press("Tab")
    page.press("Tab")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_list_of_keys_opens_and_closes(page):
    page.press("?")
    assert page.run("document.querySelector('dialog').open")
    assert "next method" in text(page, "dialog")
    page.press("Escape")
    assert not page.run("document.querySelector('dialog').open")


def test_the_matrix_is_lit_by_one_word_of_the_query_at_a_time(page):
    page.click("[data-view=matrix]")
    words = page.run("document.querySelectorAll('.matrix .text .word').length")
    assert count(page, ".heat tbody tr") == len(QUERY.split())
    assert count(page, ".heat tbody tr:first-child td") == words - 2  # punctuation has no column
    page.hover(".heat tbody tr:nth-child(2) td:nth-child(4)")
    assert text(page, "#tip").splitlines() == ["+0.20", "do × food"]
    before = page.run("document.querySelector('.matrix .text .word').dataset.value")
    page.click("[data-row='4']")
    assert page.run("document.querySelector('.matrix .text .word').dataset.value") == "−0.50" != before
    page.run("document.querySelector('.heat td[tabindex=\"0\"]').focus()")
    page.press("ArrowDown")
    page.press("ArrowRight")
    assert focused(page, "ariaLabel").startswith("do × make: ")


def test_attention_lines_follow_layer_head_and_word(page):
    page.click("[data-view=attention]")
    page.until("document.querySelectorAll('.lines path').length > 5")
    before = page.run("document.querySelector('.lines').innerHTML")
    slide = """(() => {{
        const one = document.querySelectorAll(".slider input")[{}];
        one.value = {};
        one.dispatchEvent(new Event("input"));
    }})()"""
    page.run(slide.format(0, 1))
    assert text(page, ".slider output") == "1 of 2"
    assert page.run("document.querySelector('.lines').innerHTML") != before
    page.run(slide.format(1, 2))
    many = count(page, ".lines path")
    page.hover(".stage .asked .word:nth-child(2)")
    assert 0 < count(page, ".lines path") < many
    assert "“do” →" in text(page, ".attention [role=status]")


def test_layers_show_the_score_after_each(page):
    page.click("[data-view=layers]")
    assert count(page, ".chart .dot") == 3
    page.hover(".chart .dot:last-of-type")
    logit = text(page, "#document-1 .score").split()[-1]
    assert float(text(page, "#tip").splitlines()[0].replace("−", "-")) == pytest.approx(
        float(logit.replace("−", "-")), abs=0.01
    )
    assert text(page, ".layers h3").lower() == "the logit if each layer were the last"


def test_a_stands_against_b_with_what_would_swap_them(page):
    page.click("nav a.against")
    assert count(page, ".comparison .side") == 2
    assert "falls below" in text(page, ".swap")
    assert count(page, ".comparison .side:first-child .word.struck, .comparison .side .word.struck") == 2
    assert text(page, ".comparison .legend").startswith("for B")
    assert " − " in text(page, ".comparison > header .score")


def test_how_it_was_computed_is_folded_and_two_facts_are_not(page):
    account = "#document-1 .account"
    assert text(page, f"{account} > p").startswith("saliency (L1)")
    assert text(page, f"{account} > p").endswith(" words measured")
    assert count(page, f"{account} dl") == 0
    page.click(f"{account} summary")
    assert count(page, f"{account} dl") == 1
    assert "through the model" in text(page, f"{account} dl")
    assert "[CLS]" in text(page, f"{account} dl")


def test_punctuation_has_no_colour_and_keeps_its_value(page):
    page.click("[data-method=gradient-x-input]")
    words = "[...document.querySelectorAll('article .text .word, #query .word')]"
    marks = f"{words}.filter((one) => !/[a-z]/i.test(one.textContent))"
    assert set(page.run(f"{marks}.map((one) => one.style.getPropertyValue('--share'))")) == {"0"}
    assert page.run(f"{marks}.some((one) => one.classList.contains('signed'))") is False
    assert any(float(value.replace("−", "-")) for value in page.run(f"{marks}.map((one) => one.dataset.value)"))


def test_the_words_of_the_query_are_listed_with_their_values(page):
    listed = page.run("[...document.querySelectorAll('#document-1 .query-words li')].map((one) => one.innerText)")
    assert sorted(one.split()[0] for one in listed) == sorted(QUERY.split())
    values = [float(one.split()[-1].replace("−", "-")) for one in listed]
    assert values == sorted(values, reverse=True)


def test_print_shows_the_texts_and_no_buttons(page):
    page.prefer("print")
    assert count(page, "article .text") >= 3
    assert count(page, "button[role=tab], #theme, nav, #search") == 0
    assert ground(page) == "rgb(255, 255, 255)"
