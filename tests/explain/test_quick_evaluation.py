"""`backlight evaluate --quick`: right signs and order are recognised, its time ends, its choice is kept."""

import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from linear_scorer import LinearScorer, linear_scorer, noise, truth
from rich.console import Console
from tiny_bert import write_bert, write_cross_encoder

from backlight.cli.evaluate import data_and_model
from backlight.cli.main import main
from backlight.cli.screens.quick_evaluation import live, show_quick
from backlight.errors import InputError
from backlight.explain.faithfulness import quick
from backlight.explain.faithfulness.measure import Variant
from backlight.explain.faithfulness.questions import Listed
from backlight.explain.faithfulness.quick import QuickCheck, QuickRow, cheap_variants, sample, verdict_of
from backlight.explain.faithfulness.saved_choice import FILE, SavedChoice, read_choice, write_choice
from backlight.explain.methods.registry import METHODS, Method
from backlight.models.ranker import load_ranker
from backlight.report.intervals import Mean

WORDS = ("plants", "make", "food", "from", "sunlight", "water", "and", "air", "the", "leaf", "of", "green", "cell")


def turned(ranker, pairs):
    """Explain by the worth of each word with its sign turned."""
    found = []
    for one in truth(ranker, pairs):
        texts = {
            side: replace(text, words=tuple(replace(word, value=-word.value) for word in text.words))
            for side, text in (("query", one.query), ("document", one.document))
        }
        found.append(replace(one, **texts))
    return found


def refused(ranker, pairs):
    raise InputError("refused must be tried elsewhere")


def variant(explain):
    return Variant(Method(explain.__name__, explain, explain.__name__, "", True))


TRUTH, NOISE, TURNED, REFUSED = map(variant, (truth, noise, turned, refused))


def lists(count, candidates=3, seed=0, labels=(1.0, 0.0, 0.0)):
    rng = np.random.default_rng(seed)

    def text(length):
        return " ".join(rng.choice(WORDS, length, replace=False))

    return [Listed(text(3), tuple(text(9) for _ in range(candidates)), labels) for _ in range(count)]


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    return linear_scorer(tmp_path_factory.mktemp("linear"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with two models and lists of candidates."""
    folder = tmp_path_factory.mktemp("quick")
    write_cross_encoder(folder / "cross")
    write_bert(folder / "bi")
    rows = [{"query": one.query, "candidates": one.candidates, "labels": one.labels} for one in lists(6)]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_true_values_have_all_signs_and_the_order_and_turned_ones_none(linear):
    check = QuickCheck(linear, lists(12), [TRUTH, NOISE, TURNED])
    check.run()
    best, middle, worst = check.rows()
    assert [row.label for row in (best, middle, worst)] == ["truth", "noise", "turned"]
    for name in ("signs", "query_signs", "top"):
        assert getattr(best, name).value == 1 and getattr(worst, name).value == 0
    assert best.order.value == pytest.approx(1) and worst.order.value == pytest.approx(-1)
    assert abs(middle.order.value) < 0.5 and 0.2 < middle.signs.value < 0.8
    assert {row.pairs for row in (best, middle, worst)} == {12}


def test_a_word_that_hardly_matters_has_no_say_in_the_signs(linear):
    """A word counts if its loss moves the score by more than 2 % of the candidates' range."""
    worth = np.zeros_like(linear.worth)
    ids = {word: linear.read([(word, word)])[0].ids for word in WORDS}
    common = set(ids["food"].tolist()) & set(ids["air"].tolist())  # special tokens
    (food,), (air,), (leaf,) = (set(ids[word].tolist()) - common for word in ("food", "air", "leaf"))
    worth[food], worth[air], worth[leaf] = 10.0, 0.19, 0.21
    scorer = replace(linear, worth=worth)
    question = Listed("make", ("food air leaf water", "water from the", "the cell"), (1.0, 0.0, 0.0))
    check = QuickCheck(scorer, [question], [TRUTH])
    check.run()
    (row,) = check.rows()
    assert row.signs.count == 2  # food and leaf: 10.4 · 2 % is 0.208


def test_of_every_fourth_question_a_rival_is_explained(linear):
    seen = []

    def watched(ranker, pairs):
        seen.extend(pair.document for pair in pairs)
        return truth(ranker, pairs)

    questions = lists(8)
    QuickCheck(linear, questions, [variant(watched)]).run()
    assert seen == [one.candidates[1 if number % 4 == 3 else 0] for number, one in enumerate(questions)]


def test_without_labels_the_document_of_the_highest_score_is_explained(linear):
    seen = []

    def watched(ranker, pairs):
        seen.extend(pairs)
        return truth(ranker, pairs)

    (question,) = lists(1, labels=None)
    QuickCheck(linear, [question], [variant(watched)]).run()
    pairs = linear.read([(question.query, text) for text in question.candidates])
    scores = [linear.worth[pair.ids].sum() for pair in pairs]
    assert seen[0].document == question.candidates[int(np.argmax(scores))]


def test_a_pair_without_rivals_gets_a_range_from_the_other_questions(linear):
    check = QuickCheck(linear, lists(4, candidates=1, labels=None), [TRUTH])
    check.run()
    (row,) = check.rows()
    assert row.signs is not None and row.signs.value == 1


@dataclass(frozen=True, eq=False)
class Counting(LinearScorer):
    """A linear scorer that counts the pairs that it scores."""

    counted: list = None

    def score(self, batch, inputs_embeds=None):
        self.counted.append(len(batch.pairs))
        return super().score(batch, inputs_embeds)


def test_progress_counts_passes_from_the_first_on(linear):
    scorer = Counting(linear.reader, linear.worth, counted=[])
    states = []
    check = QuickCheck(scorer, lists(5), [TRUTH])
    check.run(lambda state: states.append((state, sum(scorer.counted))))
    first, last = states[0][0], states[-1][0]
    assert (first.passes, first.pairs) == (3, 0) and first.expected > first.passes
    assert last.pairs == last.of == 5 and last.expected == last.passes
    assert last.passes == sum(scorer.counted) + 5  # `truth` says that it takes a pass of each pair
    assert [state.passes for state, _ in states] == sorted(state.passes for state, _ in states)


def test_a_check_ends_when_its_time_is_over_and_drops_the_pair_it_is_at(linear, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(quick.time, "monotonic", lambda: clock[0])

    def slow(ranker, pairs):
        clock[0] += 4.0
        return truth(ranker, pairs)

    states = []
    check = QuickCheck(linear, lists(9), [variant(slow)], seconds=10)
    check.run(states.append)
    assert len(check.found) == 2 and clock[0] == 12  # the third was begun at 8, and over at 12
    assert states[-1].expected == states[-1].passes and states[-1].of == 9
    halfway = next(state for state in states if state.pairs == 1)
    assert halfway.expected == pytest.approx(halfway.passes * 10 / 4)
    clock[0] = 0.0
    short = QuickCheck(linear, lists(9), [variant(slow)], seconds=1)
    short.run()
    assert len(short.found) == 1
    without = QuickCheck(linear, lists(9), [variant(slow)], seconds=None)
    without.run()
    assert len(without.found) == 9


def test_decompx_is_left_out_where_documents_are_long(place, monkeypatch):
    ranker = load_ranker(place / "cross", "cross")
    names = [one.method.name for one in cheap_variants(ranker, lists(3))]
    assert "decompx" in names
    monkeypatch.setattr(quick, "SHORT", 5)
    assert [one.method.name for one in cheap_variants(ranker, lists(3))] == [one for one in names if one != "decompx"]


def test_a_method_that_cannot_run_says_why_and_the_others_are_measured(linear):
    check = QuickCheck(linear, lists(3), [REFUSED, TRUTH])
    check.run()
    rows = {row.label: row for row in check.rows()}
    assert rows["refused"].failed == "refused must be tried elsewhere" and rows["refused"].pairs == 0
    assert rows["truth"].failed is None and rows["truth"].pairs == 3
    out = io.StringIO()
    show_quick(check, "about", Console(file=out, width=80))
    assert "refused: refused must be tried elsewhere" in out.getvalue()
    assert verdict_of(check.rows()).signs.label == "truth"


def row(label, signs, order, passes, *, low=None, order_low=None, signed=True, words=50, query=1.0):
    """Return a row with these figures."""
    method = replace(METHODS["saliency"], name=label, signed=signed)
    sure = Mean(signs, signs - 0.05 if low is None else low, 1.0, words)
    spread = Mean(order, order - 0.1 if order_low is None else order_low, order + 0.1, 20)
    return QuickRow(Variant(method), 20, sure, Mean(query, 0.0, 1.0, 40), sure, spread, passes, 0.1)


def test_the_verdict_names_the_cheapest_of_nearly_the_most_signs():
    dear, cheap = row("dear", 0.96, 0.60, 50), row("cheap", 0.94, 0.58, 3)
    assert verdict_of([dear, cheap]).text == "use cheap on this model: 94 % of signs, 3 passes"
    far = row("far", 0.91, 0.40, 2)
    verdict = verdict_of([dear, far])
    assert verdict.text == "use dear on this model: 96 % of signs, 50 passes" and verdict.estimate is dear
    order = row("order", 0.80, 0.70, 3)
    assert verdict_of([dear, order]).text.endswith("; order puts words in a better order")


def test_the_verdict_believes_no_signs_that_are_wrong_too_often_or_too_few():
    verdict = verdict_of([row("weak", 0.57, 0.3, 3)])
    assert not verdict.believable and verdict.text.startswith("measure words on this model, and order the rest by weak")
    assert not verdict_of([row("few", 1.0, 0.3, 3, low=0.5)]).believable
    few = verdict_of([row("few", 1.0, 0.3, 3, low=1.0, words=15)])
    assert not few.believable and "15 words are too few to believe signs unmeasured" in few.text
    assert verdict_of([row("all", 1.0, 0.3, 3, low=1.0, words=16)]).believable
    chance = verdict_of([row("chance", 0.57, 0.05, 3)])
    assert "none of these methods orders them better than chance" in chance.text


def test_the_verdict_gives_no_signs_to_methods_without_or_whose_words_hardly_matter():
    told = row("told", 0.92, 0.5, 3)
    assert verdict_of([told, row("positive", 1.0, 0.4, 2, signed=False)]).signs is told
    assert verdict_of([told, row("idle", 1.0, 0.4, 2, words=20)]).signs is told
    alone = row("alone", 0.95, 0.4, 2, signed=False)
    assert verdict_of([alone]).signs is alone


def test_the_verdict_warns_of_the_querys_signs():
    text = verdict_of([row("half", 0.98, 0.7, 2, query=0.66)]).text
    assert text == (
        "use half on this model: 98 % of signs, 2 passes; measure the query's words, it has 66 % of their signs"
    )


def test_the_verdict_orders_words_by_what_leave_one_out_can_use():
    usable, other = row("mask-gradient", 0.8, 0.4, 2), row("shapley", 0.95, 0.9, 90)
    verdict = verdict_of([other, usable])
    assert verdict.estimate is usable and verdict.signs is other


def test_the_verdict_never_names_the_control():
    control = row("random", 1.0, 0.9, 1)
    assert verdict_of([control]) is None
    assert verdict_of([control, row("weak", 0.6, 0.2, 3)]).estimate.label == "weak"


def test_the_sample_holds_questions_with_three_different_candidates():
    found = sample()
    assert len(found) == 24 == len({one.query for one in found})
    assert all(len(set(one.candidates)) == 3 and one.labels == (1.0, 0.0, 0.0) for one in found)
    assert len({text for one in found for text in one.candidates}) == 72


@pytest.mark.parametrize("model", ["cross", "bi"])
def test_methods_of_few_passes_run_on_each_kind_of_model(place, model):
    ranker = load_ranker(place / model, model)
    check = QuickCheck(ranker, lists(3), cheap_variants(ranker, lists(3)), seconds=None)
    check.run()
    rows = check.rows()
    assert rows[-1].label == "random" and not any(one.failed for one in rows)
    assert {one.label for one in rows} >= {"decompx", "saliency", "layer-gradient-x-activation:layer=1"}
    assert all(one.pairs == 3 for one in rows)


def command(place, *more, model="cross"):
    return ["evaluate", str(place / "lists.jsonl"), "--model", str(place / model), "--quick", *more]


def test_data_says_what_was_measured(place, capsys):
    assert main(command(place, "--json", "--pairs", "4", "--methods", "saliency,decompx")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["data"], found["pairs"]) == ("cross", "lists.jsonl", 4)
    assert {one["method"] for one in found["rows"]} == {"saliency", "decompx", "random", "embedding-magnitude"}
    assert found["verdict"]["text"] and found["rows"][0]["order"]["count"] == 4


def test_a_model_may_stand_where_data_does(place, capsys):
    assert main(["evaluate", str(place / "cross"), "--quick", "--pairs", "2", "--markdown"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("| method | document | query | top word | order | passes | s/pair |")
    assert "2 of 2 pairs" in shown.err
    assert data_and_model(str(place), "builtin") == (place, "builtin")
    assert data_and_model("builtin", "builtin") == (None, "builtin")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "evaluate needs data; only --quick has its own"),
        (("CROSS", "--quick", "--model", "BI"), "evaluate must be given one model"),
        (("no-such-model", "--quick"), "there is no model folder no-such-model"),
        (("missing.jsonl", "--quick"), "there is no data file missing.jsonl"),
        (("CROSS", "--quick", "--html", "page.html"), "--html cannot be combined with --quick or --save"),
        (("CROSS", "--quick", "--seconds", "0"), "must be a number, 1 or more"),
    ],
)
def test_arguments_that_do_not_go_together_are_one_line(place, capsys, more, message):
    said = [{"CROSS": str(place / "cross"), "BI": str(place / "bi")}.get(one, one) for one in more]
    assert main(["evaluate", *said]) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and not shown.out


def test_an_interrupted_check_shows_what_it_has(place, capsys, monkeypatch):
    read, pairs = quick.candidates_of, []

    def stop_at_the_third(questions, number):
        pairs.append(number)
        if len(pairs) == 3:
            raise KeyboardInterrupt
        return read(questions, number)

    monkeypatch.setattr(quick, "candidates_of", stop_at_the_third)
    assert main(command(place, "--json", "--methods", "saliency")) == 130
    shown = capsys.readouterr()
    assert json.loads(shown.out)["pairs"] == 2 and "Stopped after 2 of 6 pairs: the table is of these." in shown.err
    pairs[:] = [0, 0]
    assert main(command(place, "--json", "--methods", "saliency")) == 130
    assert not capsys.readouterr().out


def test_the_choice_is_kept_with_the_model_and_read_again(place, tmp_path, capsys):
    folder = write_cross_encoder(tmp_path / "model")
    assert main(["evaluate", str(place / "lists.jsonl"), "--model", str(folder), "--save", "--json"]) == 0
    shown = capsys.readouterr()
    kept, found = read_choice(folder), json.loads(shown.out)
    assert str(folder / FILE) in shown.err
    label = "".join([kept.estimate, *(f":{name}={value}" for name, value in kept.options.items())])
    assert label == found["verdict"]["estimate"]
    (best,) = [one for one in found["rows"] if (one["method"], one["options"]) == (kept.estimate, kept.options)]
    assert kept.measured["order"] == pytest.approx(best["order"]["value"], abs=1e-4)
    assert (kept.measured["pairs"], kept.measured["data"]) == (6, "lists.jsonl")
    assert {"date", "version", "signs", "top", "passes", "seconds", "believable"} <= set(kept.measured)


def test_a_folder_that_cannot_be_written_is_one_line(place, tmp_path, capsys):
    folder = write_cross_encoder(tmp_path / "model")
    (folder / FILE).mkdir()
    options = ["--save", "--json", "--methods", "saliency"]
    few = [*options, "--pairs", "2"]
    assert main(["evaluate", str(place / "lists.jsonl"), "--model", str(folder), *few]) == 2
    shown = capsys.readouterr()
    assert "--save needs a choice to save, and there are too few pairs to say: 2 measured, at least 6" in shown.err
    assert json.loads(shown.out)["verdict"]["enough"] is False
    assert main(["evaluate", str(place / "lists.jsonl"), "--model", str(folder), *options]) == 2
    assert "--save must write into the model's folder, and cannot write" in capsys.readouterr().err


def test_a_model_without_a_kept_choice_has_none(tmp_path):
    assert read_choice(tmp_path) is None


def test_a_choice_is_read_as_it_was_written(tmp_path):
    choice = SavedChoice("layer-gradient-x-activation", {"layer": 2}, {"signs": 0.9, "pairs": 24})
    assert write_choice(tmp_path, choice) == tmp_path / FILE
    assert read_choice(tmp_path) == choice
    (tmp_path / FILE).write_text('{"estimate": "saliency", "since": "a later version"}')
    assert read_choice(tmp_path) == SavedChoice("saliency")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold a JSON object, got list"),
        ("{}", "estimate must be the name of a method, got None"),
        ('{"estimate": 3}', "estimate must be the name of a method, got 3"),
        ('{"estimate": "salience"}', "salience"),
        ('{"estimate": "saliency", "options": []}', "options must be an object, got []"),
        ('{"estimate": "saliency", "measured": "well"}', "measured must be an object, got 'well'"),
        ('{"estimate": "saliency", "options": {"steps": 4}}', "saliency, which has none called steps"),
        ('{"estimate": "saliency", "options": {"ranker": 4}}', "saliency, which has none called ranker"),
        ('{"estimate": "smoothgrad", "options": {"samples": [4]}}', "options must be numbers, texts"),
        ('{"estimate": "saliency", "estimate": "random"}', "is not JSON"),
        ('{"estimate": "smoothgrad", "options": {"noise": NaN}}', "is not JSON"),
    ],
)
def test_a_damaged_choice_is_refused_with_its_file(tmp_path, content, message):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(InputError) as problem:
        read_choice(tmp_path)
    assert message in str(problem.value) and FILE in str(problem.value)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_a_terminal_shows_the_table_as_it_grows(linear, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    check = QuickCheck(linear, lists(3), [TRUTH, NOISE])
    with live(check, out) as tell:
        check.run(tell)
    assert "truth" in out.getvalue() and "3 of 3 pairs" in out.getvalue()


def test_lines_say_how_far_a_check_is_where_there_is_no_terminal(linear):
    out = io.StringIO()
    check = QuickCheck(linear, lists(10), [TRUTH], seconds=None)
    with live(check, out) as tell:
        check.run(tell)
    lines = out.getvalue().splitlines()
    assert len(lines) == 5 and lines[-1].endswith("use truth on this model: 100 % of signs, 1 pass")
    assert "10 of 10 pairs" in lines[-1]


def test_the_table_fits_a_terminal(place, capsys):
    assert main(command(place)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
