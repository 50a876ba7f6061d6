"""`backlight what-if`: each edit in the order given, its score and place; and files that hold no text."""

import json
import re

import pytest
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.cli.main import main
from backlight.explain.edits import Add, Remove, Replace
from backlight.explain.reranker import Reranker

QUERY, DOCUMENT = "how do plants make food", "plants make food from sunlight"
RIVALS = ["the leaf of a green cell", "air and water"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("model")))


def run(capsys, *arguments):
    code = main(["what-if", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_edits_are_made_in_the_order_of_the_command_line(capsys, model):
    edits = ["--replace", "sunlight=the air", "--remove", "the", "--add", "a green leaf"]
    code, out, _ = run(
        capsys, QUERY, DOCUMENT, *edits, "--against", RIVALS[0], "--against", RIVALS[1], "--model", model, "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert [one["document"] for one in found["versions"]] == [
        DOCUMENT,
        "plants make food from the air",
        "plants make food from air",
        "plants make food from air a green leaf",
    ]
    made = [Replace("sunlight", "the air"), Remove("the"), Add("a green leaf")]
    expected = Reranker(cross_encoder()).what_if(QUERY, DOCUMENT, made, candidates=RIVALS)
    assert [one["score"] for one in found["versions"]] == pytest.approx(
        [one.score for one in expected.versions], abs=1e-5
    )
    assert [one["rank"] for one in found["versions"]] == [one.rank for one in expected.versions]
    assert found["candidates"] == 2


def test_the_screen_shows_each_score_its_change_and_what_all_do(capsys, model):
    code, out, _ = run(capsys, QUERY, DOCUMENT, "--remove", "plants", "--model", model)
    assert code == 0
    expected = Reranker(cross_encoder()).what_if(QUERY, DOCUMENT, [Remove("plants")])
    minus = "\N{MINUS SIGN}"
    assert f"{expected.after.score:.3f}".replace("-", minus) in out
    assert f"{expected.change:+.3f}".replace("-", minus) in out
    assert "without “plants”" in out
    way = "rises" if expected.change > 0 else "falls"
    assert re.search(rf"With this edit the (probability|logit) {way} from \S+ to ", out)
    _, out, _ = run(capsys, QUERY, "plants make plants", "--remove", "plants", "--model", model)
    assert "without “plants” (2 places)" in out
    _, out, _ = run(capsys, QUERY, "plants make", "--replace", "plants=Plants", "--model", model)
    assert "stays the same" in out or "hardly changes, by" in out
    _, out, _ = run(capsys, QUERY, DOCUMENT, "--remove", "plants", "--against", RIVALS[0], "--model", model)
    assert re.search(r"the document\s+(stays|falls\s+from|rises\s+from)\s+(1st|2nd)", out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "what-if must get an edit: --remove WORDS, --replace OLD=NEW or --add SENTENCE"),
        (["--replace", "food"], "--replace must be OLD=NEW, got food"),
        (["--remove", " "], "--remove must not be empty"),
        (["--remove", "nowhere"], "an edit must name words that the document holds"),
        (["--remove", "plants", "--against", "missing.txt"], "there is no file missing.txt"),
    ],
)
def test_edits_that_cannot_be_made_are_one_line(capsys, model, arguments, said):
    code, out, err = run(capsys, QUERY, DOCUMENT, *arguments, "--model", model)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_folder_is_not_one_document(capsys, model, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("plants", encoding="utf-8")
    code, _, err = run(capsys, QUERY, str(tmp_path), "--remove", "plants", "--model", model)
    assert code == 2
    assert "what-if must get one document, got 2" in err


PDF = "%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n%%EOF\n"


def test_a_pdf_is_not_text_whatever_it_is_called(capsys, model, tmp_path):
    for name in ("report.pdf", "report.txt", "report"):
        file = tmp_path / name
        file.write_text(PDF, encoding="utf-8")
        assert main(["rank", QUERY, str(file), "--model", model]) == 2
        err = capsys.readouterr().err
        assert f"{file} must be text, and is a PDF: convert it to a .txt file first (pdftotext does)" in err
    file = tmp_path / "letter.docx"
    file.write_text("text all the same", encoding="utf-8")
    assert main(["rank", QUERY, str(file), "--model", model]) == 2
    assert "is a Word document" in capsys.readouterr().err


def test_what_a_folder_holds_besides_texts_is_named(capsys, model, tmp_path):
    (tmp_path / "report.pdf").write_text(PDF, encoding="utf-8")
    assert main(["rank", QUERY, str(tmp_path), "--model", model]) == 2
    assert "it has report.pdf, which must be converted to text first" in capsys.readouterr().err
    (tmp_path / "plants.txt").write_text("plants make food", encoding="utf-8")
    (tmp_path / ".hidden").write_text("x", encoding="utf-8")
    assert main(["rank", QUERY, str(tmp_path), "--model", model]) == 0
    err = capsys.readouterr().err
    assert f"files in {tmp_path} that are not .txt or .md are not read: report.pdf\n" in err


def test_punctuation_does_not_take_the_place_of_words_in_a_batch(capsys, model, tmp_path):
    pairs = [
        {"query": "plants", "document": "plants , . ! , . ! , . !"},
        {"query": "food", "document": "air , . ! ( ) - '"},
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    out = tmp_path / "out"
    assert main(["batch", str(tmp_path / "pairs.jsonl"), "-o", str(out), "--model", model, "--method", "saliency"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 pairs\n")
    named = re.search(r"document words that mattered most \(z of log-odds\): (.*)", printed)[1].split(", ")
    assert sorted(named) == ["air", "plants"]
    table = (out / "report.html").read_text(encoding="utf-8").partition("Document words")[2]
    assert sorted(re.findall(r'<th scope="row"><bdi>([^<]*)</bdi>', table)[:2]) == ["air", "plants"]
