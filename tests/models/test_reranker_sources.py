"""The pairs that the reranker is trained on: readers, what is kept out, negatives, forms, rows and the manifest."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from source_data import HELD_OUT, ILLNESSES, SECRET, THINGS, VALIDATION, letters, write_data, write_debian

from backlight.errors import InputError
from reranker_sources import pairs_file, shared_data
from reranker_sources.dictionaries import jargon, synonyms, wordnet
from reranker_sources.forms import claim, in_other_words, keywords, mistyped, unmarked
from reranker_sources.handbooks import HANDBOOKS, read_debian
from reranker_sources.mining import EmbeddingCache, mine
from reranker_sources.passages import passages_of, sentences_of
from reranker_sources.rows import budgets
from reranker_sources.source import Asked, Collector, Passage, Source, is_test


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def debian(tmp_path_factory) -> Path:
    return write_debian(tmp_path_factory.mktemp("debian"))


def pairs(file: Path, data: Path, debian: Path | None, *left_out: str, size: int = 120, seed: int = 1) -> list[dict]:
    sources = pairs_file.read_sources(data, debian, left_out)
    shares = budgets(sources, size)
    pairs_file.write_pairs(file, sources, letters, {"heavy": "weighty"}, shares, seed, lambda line: None)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def answers_to(source: Source) -> dict[str, str]:
    return {one.query: source.passages[one.right].text for one in source.asked}


def test_squad_gives_paragraphs_and_answers_of_the_articles_that_may_be_trained_on(data):
    source = shared_data.squad(data)
    assert len(source.asked) == 60
    assert all(one.answers[0] in source.passages[one.right].text for one in source.asked)
    assert not {HELD_OUT, VALIDATION} & {one.group for one in source.passages}


def test_the_held_out_articles_are_the_test(data):
    assert {one.group for one in shared_data.squad_test(data).passages} == {HELD_OUT}


def test_covid_qa_gives_the_passage_that_holds_the_answer(data):
    source = shared_data.covid_qa(data)
    assert len(source.asked) == 120
    assert all(one.answers[0] in source.passages[one.right].text for one in source.asked)


def test_medquad_takes_the_marks_of_templates_out_of_questions(data):
    found = answers_to(shared_data.medquad(data))
    assert found["What is the symptoms of anchor fever?"].startswith("The symptoms of anchor fever are")


def test_tldr_asks_for_a_task_that_its_page_does_not_name(data):
    source = shared_data.tldr(data)
    asked = [one for one in source.asked if one.form == "task" and not one.query.startswith("how to")]
    assert len(asked) == len(THINGS)
    for one in asked:
        page = source.passages[one.right].text
        assert one.query not in page and page.split(":")[0].endswith("ctl") and "[" not in one.query


def test_question_sentence_gives_sentences_as_people_write_them(data):
    found = answers_to(shared_data.question_sentence(data))
    assert found["where was the drill of Cadiz made?"] == "the drill of Cadiz was made by Cad smiths."


def test_claims_and_searched_questions_have_their_evidence(data):
    assert (
        answers_to(shared_data.fool_me_twice(data))["The drill comes from Dakar."] == "In Dakar the drill was invented."
    )
    assert answers_to(shared_data.qed(data))["where was the drill invented"] == "The drill was invented in Dakar."


def test_handbooks_make_queries_of_headings_terms_and_first_sentences(debian):
    (python,) = (one for one in read_debian(debian) if one.name == "python")
    found = answers_to(python)
    forms = {one.form for one in python.asked}
    assert "It is safe once the lamp is out." in found["Is the drill safe to touch?"]
    assert any("drill.start" in query and "motion" in text for query, text in found.items())
    assert {"faq", "definition", "title"} <= forms
    assert not any("no part of the page" in one.text for one in python.passages)


def test_gnome_headings_are_asked_as_tasks(debian):
    (gnome,) = (one.read(debian) for one in HANDBOOKS if one.name == "gnome")
    found = answers_to(gnome)
    assert any(query.casefold().endswith("connect to a wireless network") for query in found)
    assert "Get on the internet without any cable." in found
    assert not any("Ann Author" in one.text for one in gnome.passages)


def test_wordnet_asks_by_a_synonym_for_the_definition(debian):
    source = wordnet(debian)
    assert len(source.asked) >= len(THINGS)
    assert all("licence" not in one.text for one in source.passages)
    assert any("heavy tool" in source.passages[one.right].text for one in source.asked)


def test_only_words_of_one_sense_have_synonyms(debian):
    words = synonyms(debian)
    assert "drill machine" not in words
    assert all(word.isalpha() and words[word] != word for word in words)


def test_jargon_reads_the_dict_format(debian):
    found = answers_to(jargon(debian))
    assert len(found) == len(THINGS)
    assert all("A bug that comes back whenever" in text and "{" not in text for text in found.values())


def test_passages_lose_no_sentence():
    text = " ".join(f"Sentence number {number} is about the {thing}." for number, thing in enumerate(THINGS * 20))
    assert " ".join(passages_of(text)) == text
    assert len(passages_of(text)) > 1
    assert sentences_of("It costs 3.50 here. Go!") == ["It costs 3.50 here.", "Go!"]


def test_a_query_with_two_right_passages_is_left_out():
    found = Collector()
    for text in ("one text of the first page", "one text of the second page"):
        found.ask("Overview", found.passage(text, text), "title")
    assert found.source("s", "d", "l", ()).asked == ()


def test_training_and_test_share_no_group(data):
    source = shared_data.tldr(data)
    train, test = source.part(test=False), source.part(test=True)
    groups = {one.group for one in train.passages}, {one.group for one in test.passages}
    assert not groups[0] & groups[1]
    assert len(train.passages) + len(test.passages) == len(source.passages)
    assert answers_to(train) | answers_to(test) == answers_to(source)


def test_neighbours_are_of_the_same_group():
    passages = tuple(Passage(text, group) for text, group in (("a", "x"), ("b", "x"), ("c", "y")))
    source = Source("s", "d", "l", passages, ())
    assert source.neighbours(1) == [0]
    assert source.neighbours(2) == []


def test_negatives_hold_no_answer_and_are_not_the_right_passage(data):
    source = shared_data.squad(data)
    found = mine(source, source.asked[:20], letters, np.random.default_rng(0))
    for one in found:
        numbers = one.bm25 + one.cosine
        assert numbers
        assert one.asked.right not in numbers
        assert not any(answer in source.passages[number].text for answer in one.asked.answers for number in numbers)


def test_what_may_also_be_right_is_never_wrong():
    passages = tuple(Passage(f"the {thing} is a tool for {thing} work", thing) for thing in THINGS)
    asked = Asked("anchor work", 0, "title", also_right=frozenset({1, 2, 3}))
    (found,) = mine(Source("s", "d", "l", passages, (asked,)), [asked], letters, np.random.default_rng(0))
    assert not {0, 1, 2, 3} & {*found.bm25, *found.cosine}


def test_embeddings_are_computed_once_and_kept_on_disk(tmp_path):
    asked = []

    def embed(texts):
        asked.extend(texts)
        return letters(texts)

    first = EmbeddingCache(tmp_path, embed)(["a b", "c d", "a b"])
    second = EmbeddingCache(tmp_path, embed)(["c d", "a b"])
    assert sorted(asked) == ["a b", "c d"]
    assert np.array_equal(first[[1, 0]], second)
    assert np.allclose(first, letters(["a b", "c d", "a b"]), atol=1e-3)


def test_forms_of_a_query():
    rng = np.random.default_rng(0)
    assert keywords("Where is the old anchor of Bergen?") == "old anchor Bergen"
    assert keywords("What is it?") == "What is it?"
    assert unmarked("Is it Safe?") == "is it safe"
    assert claim("Who proclaimed the embargo?", "OAPEC") == "OAPEC proclaimed the embargo."
    assert claim("What was the price of oil?", "$12") == "$12 was the price of oil."
    assert claim("What was Tesla afraid of?", "spies") == "What was Tesla afraid of?"
    assert claim("Why is it dry?", "no rain") == "Why is it dry?"
    assert in_other_words("a heavy, heavy anchor", {"heavy": "weighty"}) == "a weighty, weighty anchor"
    for _ in range(50):
        changed = mistyped("where is the anchor?", rng)
        assert abs(len(changed) - len("where is the anchor?")) <= 2


def test_budgets_follow_the_square_root_and_pass_on_what_a_domain_cannot_fill():
    asked = tuple(Asked(f"q{number}", 0, "title") for number in range(10_000))
    sizes = {"a": 10_000, "b": 2_500, "c": 4}
    sources = [Source(name, name, "l", (Passage("t", "g"),), asked[:size]) for name, size in sizes.items()]
    found = budgets(sources, 1_504)
    assert found["c"] <= 4
    assert found["a"] == pytest.approx(2 * found["b"], rel=0.02)
    assert sum(found.values()) == 1_504


def test_rows_have_all_that_the_trainer_reads(tmp_path, data, debian):
    rows = pairs(tmp_path / "pairs.jsonl", data, debian)
    keys = {"query", "positive", "negatives", "kinds", "domain", "source", "form", "positive_kind"}
    assert len(rows) > 100
    for row in rows:
        assert set(row) == keys
        assert len(row["negatives"]) == len(row["kinds"]) == len(set(row["negatives"])) > 2
        assert row["positive"] not in row["negatives"]
    kinds = Counter(kind for row in rows for kind in row["kinds"])
    assert all(row["positive"] is None for row in rows if "other_fact" in row["kinds"])
    assert {"bm25", "cosine", "random", "repeated", "changed_fact", "answer_cut", "echo"} <= set(kinds)
    assert {row["positive_kind"] for row in rows} >= {"as it is", "none"}
    assert all((row["positive"] is None) == (row["positive_kind"] == "none") for row in rows)


def test_a_query_that_nothing_answers_has_no_answer_among_its_documents(tmp_path, data):
    source = {one.query: one for one in shared_data.squad(data).asked}
    rows = pairs(tmp_path / "pairs.jsonl", data, None, size=400)
    rows = [row for row in rows if row["source"] == "squad" and row["query"] in source]
    unanswered = [row for row in rows if row["positive"] is None]
    assert unanswered
    for row in unanswered:
        kinds = {"changed_fact", "other_fact"}  # keep the answer: they are about another thing than the query
        texts = [text for text, kind in zip(row["negatives"], row["kinds"]) if kind not in kinds]
        assert not any(source[row["query"]].answers[0] in text for text in texts)


def test_right_passages_stay_whole_inside_longer_texts(tmp_path, data):
    source = shared_data.squad(data)
    right = {one.query: source.passages[one.right].text for one in source.asked}
    rows = pairs(tmp_path / "pairs.jsonl", data, None, size=400)
    rows = [row for row in rows if row["source"] == "squad" and row["query"] in right]
    held = [row for row in rows if row["positive_kind"] in ("embedded", "repeated")]
    assert {row["positive_kind"] for row in held} == {"embedded", "repeated"}
    assert all(right[row["query"]] in row["positive"] != right[row["query"]] for row in held)


def test_the_same_seed_gives_the_same_file_and_another_seed_another(tmp_path, data, debian):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        pairs(tmp_path / f"{name}.jsonl", data, debian, seed=seed)
    first, second, third = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "abc")
    assert first == second != third


@pytest.mark.parametrize("name", ["health", "squad", "words"])
def test_what_is_left_out_leaves_no_row(tmp_path, data, debian, name):
    rows = pairs(tmp_path / "pairs.jsonl", data, debian, name)
    assert rows
    assert name not in {row["domain"] for row in rows} | {row["source"] for row in rows}


def test_no_text_of_a_held_out_article_or_group_is_written(tmp_path, data, debian):
    rows = pairs(tmp_path / "pairs.jsonl", data, debian, size=500)
    assert SECRET not in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8")
    held = [focus for thing in THINGS for focus in (f"{thing} {ill}" for ill in ILLNESSES) if is_test("medquad", focus)]
    assert held
    written = [row["query"] + str(row["positive"]) + " ".join(row["negatives"]) for row in rows]
    assert not any(name in text for name in held for text in written)


def test_a_name_that_no_source_has_cannot_be_left_out(data):
    with pytest.raises(InputError, match="--leave-out must name a source or domain"):
        pairs_file.read_sources(data, None, ["poems"])


def test_rows_of_a_source_may_be_asked_for_by_name(data):
    sources = pairs_file.read_sources(data, None, [])
    assert pairs_file.rows_asked(["squad=7", "tldr=0"], sources) == {"squad": 7, "tldr": 0}
    for wrong in ("poems=3", "squad", "squad=many"):
        with pytest.raises(InputError, match="--rows must be NAME=N"):
            pairs_file.rows_asked([wrong], sources)


def test_versions_of_packages_are_read_where_they_are_unpacked_or_installed(tmp_path):
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("Package: bash\nVersion: 5\n\nPackage: wordnet-base\nStatus: install\nVersion: 1:3.0-37\n")
    assert pairs_file.package_versions(tmp_path) == {"wordnet-base": "1:3.0-37"}
    (tmp_path / "packages.txt").write_text(
        "bash_5_all.deb\ndict-jargon_4.4.7-3.1_all.deb\nwordnet-base_1%3a3.0-38_all.deb\n"
    )
    unpacked = {"dict-jargon": "4.4.7-3.1", "wordnet-base": "1:3.0-38"}
    assert pairs_file.package_versions(tmp_path) == unpacked


def test_the_manifest_names_sources_licences_files_and_counts(tmp_path, data, debian):
    rows = pairs(tmp_path / "pairs.jsonl", data, debian)
    manifest = json.loads((tmp_path / "pairs.manifest.json").read_text(encoding="utf-8"))
    assert manifest["rows"] == len(rows)
    assert sum(one["rows"] for one in manifest["sources"]) == len(rows)
    assert all(len(one["sha256"]) == 64 and one["licence"] and one["files"] for one in manifest["sources"])
    assert {"python", "wordnet", "squad"} <= {one["name"] for one in manifest["sources"]}
    assert manifest["rows by kinds"] == dict(Counter(kind for row in rows for kind in row["kinds"]))
    assert "dict-gcide" in manifest["left_out"]
