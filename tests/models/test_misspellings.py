"""Misspelt words of a query are read as others where that is clear, never silently, and by the pair alone."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_bert import write_bert, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch.running import run_batch
from backlight.explain.batch.settings import Settings
from backlight.explain.edits import Remove
from backlight.explain.reranker import Reranker
from backlight.models.checkpoint import find_model
from backlight.models.misspellings import Misspelling, Speller, as_read, places_as_written
from backlight.models.pairs import QUERY, SpellingReader
from backlight.models.tokens import Tokenizer

WRITTEN, READ = "sunlihgt of a leaf", "sunlight of a leaf"
SUNLIGHT = Misspelling("sunlihgt", 0, 8, "sunlight")
DOCUMENTS = ["plants make food", "the sunlihgt of a cell", "a green leaf"]
LINE = "“sunlihgt” read as “sunlight”"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def reranker(folder):
    return Reranker.from_pretrained(folder, read_typos=True)


@pytest.fixture(scope="module")
def plain(folder):
    return Reranker.from_pretrained(folder)


@pytest.fixture(scope="module")
def english():
    return Speller(Tokenizer(find_model("builtin"), 512))


@pytest.mark.parametrize(
    "query, read",
    [
        ("why did the goverment recieve it", "why did the government receive it"),
        ("definately seperate enviroment", "definitely separate environment"),
        ("WHAT MAY A GOVERMENT TAX?", "WHAT MAY A government TAX?"),
        ("the goverment's adress", "the government's address"),
    ],
)
def test_clear_misspellings_are_read_as_the_words_they_stand_for(english, query, read):
    assert as_read(query, english.misspellings(query)) == read


@pytest.mark.parametrize(
    "query",
    [
        "where does a plant get its energy from?",
        "hummingbirds, misclassified deletes compile familial atrophy",  # endings and first letters are no typos
        "Goverment of Peru, Mr Goverment, What Did The Goverment Do",  # capitals: names
        "NASA and the GOVERMENT",
        "git rebaes goverment/ --goverment=1 a_goverment goverment() goverment.py x@goverment.de",
        "abort herpes starch in cramped login retinas mashed",  # correct, and not in the vocabulary
        "whta is the cta",  # short
        "dosen't kubernetes nginx rsync ffmpeg",
        "wie bekommt die Pflanze vom goverment ihre Energie und warum ist das nicht",
        "",
        "東京 goverment東",
    ],
)
def test_other_words_are_read_as_they_are(english, query):
    assert english.misspellings(query) == ()


@given(st.text(max_size=40))
def test_any_text_is_read_and_the_rest_of_it_stays(english, text):
    query = f"{text} sunlihgt"
    found = english.misspellings(query)
    read, done = as_read(query, found), 0
    for one in found:
        assert query[one.start : one.end] == one.text
        assert query[done : one.start] in read
        done = one.end


def test_places_in_what_is_read_are_those_of_what_is_written():
    query = "a sunlihgt, watr!"
    some = [Misspelling("sunlihgt", 2, 10, "sunlight"), Misspelling("watr", 12, 16, "water")]
    assert as_read(query, some) == "a sunlight, water!"
    places = [(0, 1), (2, 5), (5, 10), (10, 11), (12, 17), (17, 18)]
    assert places_as_written(places, some) == [(0, 1), (2, 10), (2, 10), (10, 11), (12, 16), (16, 17)]


def test_a_score_is_that_of_the_word_it_is_read_as(reranker, plain):
    with pytest.warns(UserWarning, match=f"words of 2 queries are read as others: {LINE}"):
        scores = reranker.predict([(WRITTEN, text) for text in DOCUMENTS])
    as_read, as_written = plain.predict([(READ, DOCUMENTS[0]), (WRITTEN, DOCUMENTS[1])])
    np.testing.assert_allclose(scores[:2], [as_read, as_written], rtol=1e-6)
    assert scores[0] != plain.predict((WRITTEN, DOCUMENTS[0]))


def test_a_score_does_not_depend_on_the_other_documents(reranker):
    together = {one.index: one for one in reranker.rank(WRITTEN, DOCUMENTS).documents}
    for place, text in enumerate(DOCUMENTS):
        (alone,) = reranker.rank(WRITTEN, [text]).documents
        assert alone.score == pytest.approx(together[place].score, abs=1e-6)
        assert alone.read_as == together[place].read_as == (() if place == 1 else (SUNLIGHT,))


@pytest.mark.parametrize("method", ["leave-one-out", "saliency", "occlusion"])
def test_values_stand_at_the_words_as_they_are_written(reranker, plain, method):
    found, same = (
        one.explain(query, DOCUMENTS[0], method=method, check=False)
        for one, query in ((reranker, WRITTEN), (plain, READ))
    )
    assert found.query.text == WRITTEN
    assert [(word.text, word.start, word.end) for word in found.query.words[:2]] == [("sunlihgt", 0, 8), ("of", 9, 11)]
    assert found.read_as == (SUNLIGHT,)
    assert same.read_as == ()
    np.testing.assert_allclose([word.value for word in found.query.words], [word.value for word in same.query.words])
    assert found.score == same.score


def test_windows_of_a_long_document_read_the_query_alike(reranker, plain):
    long = " ".join(["plants make food from water and air ."] * 12)
    (found,), (same,) = (
        one.rank(query, [long], explain=1).documents for one, query in ((reranker, WRITTEN), (plain, READ))
    )
    assert found.window.of > 2
    assert (found.score, found.window) == (same.score, same.window)
    assert found.read_as == found.attribution.read_as == (SUNLIGHT,)
    with_it = f"{long} sunlihgt"  # in the last window alone
    assert all(pair.read_as == () for pair in reranker.scorer.windows(WRITTEN, with_it))


def test_what_the_document_brings_is_measured_with_the_same_query(reranker, plain):
    found, same = reranker.explain(WRITTEN, DOCUMENTS[0]), plain.explain(READ, DOCUMENTS[0])
    assert found.check == same.check
    found, same = reranker.explain(WRITTEN, DOCUMENTS[1]), plain.explain(WRITTEN, DOCUMENTS[1])
    assert found.check.total == same.check.total


def test_both_engines_read_the_same(folder, reranker):
    torch = Reranker.from_pretrained(folder, engine="torch", read_typos=True)
    found, same = (one.rank(WRITTEN, DOCUMENTS).documents for one in (torch, reranker))
    assert [one.read_as for one in found] == [one.read_as for one in same]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in same], atol=1e-4)


def test_comparisons_matrices_and_edits_say_it_as_well(reranker):
    found = reranker.compare(WRITTEN, *DOCUMENTS[:2], most=0)
    assert (found.a.read_as, found.b.read_as) == ((SUNLIGHT,), ())
    assert reranker.matrix(WRITTEN, DOCUMENTS[0]).read_as == (SUNLIGHT,)
    assert reranker.build_up(WRITTEN, DOCUMENTS[0]).read_as == (SUNLIGHT,)
    changed = reranker.what_if(WRITTEN, DOCUMENTS[1], [Remove("sunlihgt")])
    assert [version.read_as for version in changed.versions] == [(), (SUNLIGHT,)]
    assert LINE in reranker.rank(WRITTEN, DOCUMENTS, explain=1)._repr_html_()


@pytest.mark.parametrize("command", ["rank", "explain"])
def test_commands_say_it_on_the_screen_on_the_page_and_in_the_data(command, folder, tmp_path, capsys):
    page, model = tmp_path / "page.html", ["--model", str(folder)]
    arguments = [command, WRITTEN, *DOCUMENTS, "--json", "--html", str(page), *model]
    for more, reads in (["--read-typos"], True), ([], False), (["--no-read-typos"], False):
        assert main([*arguments, *more]) == 0
        said = capsys.readouterr()
        documents = json.loads(said.out)["results" if command == "rank" else "documents"]
        assert sum(bool(one["read_as"]) for one in documents) == (2 if reads else 0)
        assert (f"{LINE} with 2 of 3 documents" in said.err) == reads
        assert (LINE in page.read_text(encoding="utf-8")) == reads
    for other in (
        ["compare", WRITTEN, *DOCUMENTS[:2]],
        ["matrix", WRITTEN, "a leaf"],
        ["what-if", WRITTEN, "a", "--add", "b"],
    ):
        assert main([*other, *model, "--read-typos", "--json"]) == 0
        assert LINE in capsys.readouterr().err


def test_a_batch_names_them_in_each_row(reranker, plain, tmp_path):
    rows = [{"query": WRITTEN, "document": text} for text in DOCUMENTS]
    for name, one, said in ("reads", reranker, [LINE, None, LINE]), ("plain", plain, [None] * 3):
        run_batch(rows, tmp_path / name, one, Settings(method="none"))
        (part,) = (tmp_path / name / "parts").glob("*.jsonl")
        assert [json.loads(line).get("read_as") for line in part.read_text().splitlines()] == said
    with pytest.raises(InputError, match="model"):
        run_batch(rows, tmp_path / "plain", reranker, Settings(method="none"))


def test_only_the_built_in_model_does_so_by_default(folder, plain, reranker):
    assert (plain.reads_typos, reranker.reads_typos) == (False, True)
    assert Reranker.from_pretrained().reads_typos
    assert not Reranker.from_pretrained(read_typos=False).reads_typos


def test_models_that_cannot_do_so_refuse(tmp_path):
    with pytest.raises(InputError, match="embeds a query without its document"):
        Reranker.from_pretrained(write_bert(tmp_path / "bi"), read_typos=True)
    folder = write_cross_encoder(tmp_path / "cross")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"backlight_read_typos": "yes"}))
    with pytest.raises(InputError, match="must be true or false, got 'yes'"):
        Reranker.from_pretrained(folder)


def test_a_query_is_cut_where_its_own_words_are(folder):
    reader = SpellingReader(Tokenizer(folder, 12))
    (pair,) = reader([(f"{WRITTEN} of a green cell and water", "plants")])
    assert pair.left_out[QUERY] > 0
    assert pair.characters_read(QUERY)[0] == 0
    assert pair.query[: pair.characters_read(QUERY)[1]].startswith(WRITTEN)
