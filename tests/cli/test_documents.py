"""Files that hold no text are left out, named and counted beside others, and an error alone; a NUL is never text."""

import json

import numpy as np
import pytest

from backlight.cli.documents import LeftOut, read_documents
from backlight.cli.main import main
from backlight.errors import InputError, InputTypeError
from backlight.explain.batch.rows import BadRow, Columns, Row, rows_of

QUERY = "how do plants make food"
NO_TEXTS = {
    "latin.txt": (b"caf\xe9 au lait", "must be UTF-8 text, and byte 3 (0xe9) is not: convert it first (iconv does)"),
    "binary.md": (b"\x00\x01", "must be text, and is a binary file: convert it to UTF-8 text first"),
    "utf16.txt": ("plants".encode("utf-16"), "must be text, and is a binary file: convert it to UTF-8 text first"),
    "paper.txt": (b"%PDF-1.7 x", "must be text, and is a PDF: convert it to a .txt file first (pdftotext does)"),
    "blank.txt": (b" \n", "is empty"),
}


@pytest.fixture
def folder(tmp_path):
    for name, (content, _) in NO_TEXTS.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "plants.txt").write_text("plants make food", encoding="utf-8")
    return tmp_path


def test_files_of_a_folder_that_hold_no_text_are_left_out_named_and_counted(folder, capsys):
    left_out: list[LeftOut] = []
    assert read_documents([str(folder)], left_out) == [(str(folder / "plants.txt"), "plants make food")]
    said = capsys.readouterr().err
    assert {(one.name, one.reason) for one in left_out} == {
        (str(folder / name), reason) for name, (_, reason) in NO_TEXTS.items()
    }
    for name, (_, reason) in NO_TEXTS.items():
        assert f"{folder / name} {reason}" in said
    assert said.endswith("5 files were left out, 1 document read\n")


@pytest.mark.parametrize("name", [name for name in NO_TEXTS if name != "blank.txt"])
def test_a_file_that_holds_no_text_is_an_error_alone_and_left_out_beside_others(name, folder, capsys):
    place, reason = str(folder / name), NO_TEXTS[name][1]
    with pytest.raises(InputError) as problem:
        read_documents([place], [])
    assert str(problem.value) == f"{place} {reason}"
    assert len(read_documents([place, "a text"], [])) == 1
    assert capsys.readouterr().err == f"backlight: {place} {reason}; it was left out\n"
    with pytest.raises(InputError):  # where each document has its part, as in compare
        read_documents([place, "a text"])


def test_a_missing_file_is_an_error_beside_others(folder):
    with pytest.raises(InputError, match="there is no file"):
        read_documents([str(folder), str(folder / "plant.txt")], [])


@pytest.mark.parametrize("command", ["rank", "explain"])
def test_a_ranking_says_which_files_it_left_out_in_its_data_and_on_its_page(command, folder, model, capsys, tmp_path):
    page = tmp_path / "page.html"
    assert main([command, QUERY, str(folder), "--model", model, "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    left_out = (found["meta"] if command == "rank" else found)["left_out"]
    assert {"name": str(folder / "latin.txt"), "reason": NO_TEXTS["latin.txt"][1]} in left_out
    assert len(left_out) == len(NO_TEXTS)
    island = page.read_text(encoding="utf-8").split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(island)["leftOut"] == left_out


WRONG = {
    "a lone text": ("a text", "documents must be a list of texts, got one text: put it into a list, [text]"),
    "nothing": (None, "documents must be a list of texts, got None"),
    "a dict": ({"a": "text"}, "documents must be a list of texts, got a dict"),
    "a set": ({"text"}, "documents must be a list of texts, got set {'text'}: a set has no order"),
    "bytes": (b"text", 'documents must be a list of texts, got bytes: decode it first, .decode("utf-8")'),
    "a number": (5, "documents must be a list of texts, got int 5"),
    "None in it": (["text", None], "documents[1] must be a text (str), got None: give its text"),
    "a dict in it": ([{"text": "a"}], "documents[0] must be a text (str), got a dict: give its text"),
    "a list in it": (["text", ["text"]], "documents[1] must be a text (str), got a list: give one flat list of texts"),
    "bytes in it": ([b"text"], "documents[0] must be a text (str), got bytes: decode it first"),
    "a gap of a table": (["text", float("nan")], "documents[1] must be a text (str), got float nan"),
}


@pytest.mark.parametrize("given, said", WRONG.values(), ids=WRONG)
def test_documents_of_another_kind_are_refused_by_their_place(given, said, reranker):
    with pytest.raises(InputTypeError) as problem:
        reranker.rank(QUERY, given)
    assert str(problem.value).startswith(said)
    assert isinstance(problem.value, TypeError)
    assert isinstance(problem.value, InputError)


def test_every_method_of_a_reranker_refuses_what_is_no_text(reranker):
    for call in (
        lambda: reranker.rank(None, ["text"]),
        lambda: reranker.explain(QUERY, ["text"]),
        lambda: reranker.compare(QUERY, "a cell", None),
        lambda: reranker.matrix(QUERY, b"text"),
        lambda: reranker.what_if(QUERY, "a cell", [], candidates="a leaf"),
        lambda: reranker.build_up(QUERY, None),
        lambda: reranker.inside(5, "text"),
    ):
        with pytest.raises(InputTypeError, match="must be a"):
            call()


PAIRS = {
    "a lone text of two letters": "ab",
    "nothing": None,
    "a dict": {QUERY: "text"},
    "three texts": [(QUERY, "text", "text")],
    "texts instead of pairs": ["ab", "cd", "ef"],
    "None in a pair": [(QUERY, "text"), (QUERY, None)],
    "a list in a pair": [(QUERY, ["text"])],
}


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_predict_refuses_what_are_no_pairs(pairs, reranker):
    with pytest.raises(InputTypeError, match=r"pairs? (\d )?must be"):
        reranker.predict(pairs)


def test_arrays_generators_and_lists_of_lists_are_sequences_of_texts(reranker):
    texts = ["a leaf", "plants make food"]
    expected = [one.score for one in reranker.rank(QUERY, texts).documents]
    for given in (tuple(texts), np.array(texts), (text for text in texts)):
        assert [one.score for one in reranker.rank(QUERY, given).documents] == expected
    lists = reranker.predict([[QUERY, text] for text in texts])
    np.testing.assert_array_equal(lists, reranker.predict([(QUERY, text) for text in texts]))


def test_names_are_one_for_each_document(reranker):
    with pytest.raises(InputError, match="names must hold a name for each of the 2 documents, got 1"):
        reranker.rank(QUERY, ["a leaf", "a cell"], names=["leaf"])


def test_a_nul_is_no_text_in_the_api_in_a_file_and_in_a_batch(reranker, tmp_path):
    text = "plants\0make food"
    for call in (
        lambda: reranker.rank(QUERY, ["a leaf", text]),
        lambda: reranker.rank(text, ["a leaf"]),
        lambda: reranker.predict([(QUERY, text)]),
        lambda: reranker.explain(QUERY, text),
    ):
        with pytest.raises(InputError, match="has a NUL at character 6: it is binary, or UTF-16"):
            call()
    file = tmp_path / "nul.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is a binary file"):
        read_documents([str(file)], [])
    line = json.loads('{"query": "food", "document": "plants\\u0000make food"}')
    (bad,) = rows_of(line, 1, Columns())
    assert isinstance(bad, BadRow)
    assert (bad.kind, "has a NUL at character 6" in bad.reason) == ("binary", True)
    (good,) = rows_of({"query": "food", "document": "plants make food"}, 2, Columns())
    assert isinstance(good, Row)


COMMANDS = "\u202e\u2066\u2069\u200e\u200f\u061c\u202a\x1b[2J\x07\x9b"


def test_characters_that_command_a_terminal_reach_no_screen_and_stay_in_data_and_pages(tmp_path, model, capsys):
    name, text = tmp_path / f"a{COMMANDS}.txt", f"plants make {COMMANDS} food"
    query = f"how do plants {COMMANDS} make food"
    name.write_text(text, encoding="utf-8")
    (tmp_path / f"b{COMMANDS}.txt").write_bytes(b"\xff")
    page = tmp_path / "page.html"
    command = [query, str(tmp_path), "--model", model]
    assert main(["explain", *command, "--html", str(page)]) == 0
    shown = capsys.readouterr()
    for said in (shown.out, shown.err):
        assert not set(COMMANDS) & set(said) - set("[2J")
        assert "\N{REPLACEMENT CHARACTER}" in said
    assert main(["missing\u202e"]) == 2
    assert "\u202e" not in capsys.readouterr().err
    for kind in ("rank", "explain"):
        assert main([kind, *command, "--json"]) == 0
        printed = capsys.readouterr().out
        assert not set(COMMANDS) & set(printed) - set("[2J")
        found = json.loads(printed)
        (ranked,) = found["results"] if kind == "rank" else found["documents"]
        assert (ranked["document"]["text"] if kind == "rank" else ranked["text"]) == text
    island = page.read_text(encoding="utf-8").split('type="application/json">')[1].split("</script>")[0]
    assert (json.loads(island)["query"], json.loads(island)["documents"][0]["text"]) == (query, text)
