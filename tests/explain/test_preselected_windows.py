"""Of a document with very many windows only some are scored, and whatever holds its score says so."""

import json
import tracemalloc

import numpy as np
import pytest
from tiny_bert import cross_encoder, real_ranker, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.reranker import Reranker
from backlight.explain.windows import PreselectedWindows, WindowOptions, preselected, spread_evenly
from backlight.models.pairs import DOCUMENT
from backlight.models.retrieval.bm25 import BM25, bm25_in_one_pass
from backlight.web.page_data import PageData
from backlight.web.report import report

QUERY = "how do plants make food"
FILLER, ANSWER = "a cell ! the air . ", "green plants make food from sunlight . "
LONG = FILLER * 400 + ANSWER + FILLER * 200
OFF_TOPIC = FILLER * 600
PASSAGES = ["Green plants make food.", "The tide", "", "food food plants!", "He was making plans.", "the of and"]


@pytest.fixture(scope="module")
def reranker():
    return Reranker(cross_encoder())


def text_of(pair) -> str:
    places = pair.offsets[pair.of_side(DOCUMENT)]
    return pair.document[places[:, 0].min() : places[:, 1].max()]


@pytest.mark.parametrize("query", [QUERY, "plants plants food", "the", "zebra"])
def test_bm25_in_one_pass_gives_the_scores_of_an_index(query):
    found = bm25_in_one_pass(query, iter(PASSAGES))
    np.testing.assert_allclose(found, BM25(PASSAGES).scores(query), rtol=1e-5)
    assert bm25_in_one_pass(query, []).shape == (0,)


def test_the_first_window_and_those_of_the_highest_bm25_are_scored(reranker):
    windows = reranker.scorer.windows(QUERY, LONG)
    scores = BM25([text_of(pair) for pair in windows]).scores(QUERY)
    matching = np.flatnonzero(scores)
    assert 1 < len(matching) < 10 < len(windows)
    found = preselected(windows, WindowOptions(max_windows=10))
    assert isinstance(found, PreselectedWindows) and found.chosen_by == "BM25"
    assert {0, *matching.tolist()} < set(found.numbers)
    assert list(found.numbers) == sorted(set(found.numbers)) and len(found) == 10
    two = preselected(windows, WindowOptions(max_windows=2))
    assert two.numbers == (0, int(scores.argmax()))
    assert [pair.ids.tolist() for pair in two] == [windows[place].ids.tolist() for place in two.numbers]


def test_windows_are_spread_evenly_where_no_word_of_the_query_occurs_and_for_a_mean(reranker):
    for text, how in (OFF_TOPIC, "best"), (LONG, "mean"):
        windows = reranker.scorer.windows(QUERY, text)
        found = preselected(windows, WindowOptions(how, max_windows=5))
        assert found.chosen_by == "evenly spread"
        assert {0, len(windows) - 1} <= set(found.numbers)
        steps = np.diff(found.numbers)
        assert steps.min() > len(windows) / 8 and len(found) == 5


def test_all_windows_are_scored_where_they_are_few_or_where_it_is_asked_for(reranker):
    windows = reranker.scorer.windows(QUERY, LONG)
    assert preselected(windows, WindowOptions(max_windows=0)) is windows
    assert preselected(windows, WindowOptions(max_windows=len(windows))) is windows
    assert len(windows) > 64
    assert reranker.rank(QUERY, [LONG], max_windows=0).documents[0].window.chosen_by is None
    for number in (1, -1):
        with pytest.raises(InputError, match=f"max_windows must be 2 or more, or 0 for all windows, got {number}"):
            reranker.rank(QUERY, [LONG], max_windows=number)


def test_a_score_of_preselected_windows_is_the_best_of_them_and_says_so(reranker):
    windows = reranker.scorer.windows(QUERY, LONG)
    chosen = preselected(windows, WindowOptions(max_windows=6))
    scores = reranker.scorer.scores_of(chosen)
    (ranked,) = reranker.rank(QUERY, [LONG], explain=1, max_windows=6).documents
    assert ranked.score == pytest.approx(scores.max(), abs=1e-5)
    window = ranked.window
    assert (window.read, window.of, window.chosen_by) == (6, len(windows), "BM25")
    assert window.number == chosen.numbers[scores.argmax()] + 1
    place = windows[window.number - 1].characters_read(DOCUMENT)
    assert (window.first_character, window.last_character) == place
    assert ranked.attribution.window == window
    assert reranker.explain(QUERY, LONG, max_windows=6, check=False).window == window
    assert reranker.explain(QUERY, "plants make food").window is None


def test_a_mean_of_preselected_windows_knows_which_tokens_and_words_it_left_out(reranker):
    text = " ".join(f"{word} {place}" for place, word in enumerate(["cell", "air", "leaf", "water"] * 60))
    (ranked,) = reranker.rank(QUERY, [text], explain=1, windows="mean", max_windows=4, method="saliency").documents
    windows = reranker.scorer.windows(QUERY, text)
    numbers = spread_evenly(len(windows), 4)
    assert ranked.score == pytest.approx(reranker.scorer.scores_of([windows[n] for n in numbers]).mean(), abs=1e-5)
    assert (ranked.window.number, ranked.window.read, ranked.window.chosen_by) == (None, 4, "evenly spread")
    read = {tuple(place) for n in numbers for place in windows[n].offsets[windows[n].of_side(DOCUMENT)].tolist()}
    left = ranked.attribution.document.truncation
    assert left.tokens_read == len(read)
    assert left.tokens_read + left.tokens_left_out == len(reranker.scorer.tokenizer.row(text))
    words = ranked.attribution.document.words
    assert left.words_left_out == len(text.split()) - len(words) > 0


def test_predict_warns_that_windows_were_left_out(reranker):
    with pytest.warns(UserWarning, match="1 of 2 documents have more than 6 windows: of each only 6 were scored"):
        found = reranker.predict([(QUERY, LONG), (QUERY, "a leaf")], max_windows=6, activation="identity")
    assert found[0] == pytest.approx(reranker.rank(QUERY, [LONG], max_windows=6).documents[0].score, abs=1e-5)


def test_a_bi_encoder_is_given_preselected_windows_too():
    (ranked,) = Reranker(real_ranker()).rank("what do plants eat", ["The sea is wide. " * 500], max_windows=2).documents
    assert (ranked.window.read, ranked.window.chosen_by) == (2, "evenly spread")
    assert ranked.window.of > 2


@pytest.mark.parametrize("command", ["rank", "explain"])
def test_the_commands_say_how_many_windows_were_scored(command, tmp_path, capsys):
    model, file, page = write_cross_encoder(tmp_path / "model"), tmp_path / "long.txt", tmp_path / "page.html"
    file.write_text(LONG)
    given = [command, QUERY, str(file), "--model", str(model), "--max-windows", "6"]
    assert main([*given, "--json", "--html", str(page)]) == 0
    found = capsys.readouterr()
    data = json.loads(found.out)
    (window,) = [one["window"] for one in data["results" if command == "rank" else "documents"]]
    assert (window["read"], window["chosen_by"]) == (6, "BM25") and window["of"] > 64
    said = f"6 windows scored of {window['of']}, chosen by BM25"
    assert f"1 long document not scored whole ({file}: {said}); --max-windows 0 scores all" in found.err
    assert f'"windows":"{said}"' in page.read_text(encoding="utf-8").replace('": "', '":"')
    assert main(given) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert main([*given[:-1], "0", "--json"]) == 0
    assert "not scored whole" not in capsys.readouterr().err


def test_choosing_windows_keeps_none_of_them():
    model = cross_encoder()

    def most(count: int) -> tuple[int, int]:
        windows = model.windows(QUERY, "plants make food . a leaf ! " * count)
        tracemalloc.start()
        preselected(windows, WindowOptions(max_windows=4))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return len(windows), peak

    most(50)
    (few, before), (many, after) = most(200), most(2000)
    assert (after - before) / (many - few) < 2000  # bytes a window: some numbers, not its tokens


def test_the_page_of_a_mean_says_how_its_windows_were_chosen(reranker):
    ranking = reranker.rank(QUERY, [LONG], windows="mean", max_windows=6)
    assert "6 windows scored of" in report(PageData([ranking]), "1")


def test_effects_on_a_document_of_which_few_of_many_windows_were_scored_are_of_the_window_alone(reranker):
    (document,) = reranker.rank(QUERY, [LONG], explain=1, max_windows=2).documents
    assert document.window.read == 2 < document.window.of
    assert document.window.effects_of == "window"  # only windows that are all scored are all read again
