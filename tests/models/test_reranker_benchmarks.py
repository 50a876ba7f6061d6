"""The measurements of a reranker by domains and by traps say what they claim, with scorers whose figures are known."""

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import ROOT
from source_data import letters, write_data, write_debian

from reranker_sources import shared_data
from reranker_sources.passages import coverage, words_of

sys.path.insert(0, str(ROOT / "benchmarks"))
domains, fusion, traps = map(importlib.import_module, ("reranker_domains", "reranker_fusion", "reranker_traps"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def squad(data):
    return shared_data.squad_test(data)


def knowing(source):
    """Return a scorer that gives the right passage of a query a logit of 20 and all else −20, whatever the case."""
    right = {plain(one.query): source.passages[one.right].text for one in source.asked}
    return lambda pairs: np.array([20.0 if right.get(plain(query)) == text else -20.0 for query, text in pairs])


def plain(query: str) -> str:
    return query.casefold().rstrip("?")


def lexical(pairs):
    """Return a score by the number of the query's words in the document, each time it stands there."""
    return np.array([sum(words_of(text).count(word) for word in set(words_of(query))) for query, text in pairs], float)


def test_candidates_are_the_right_passage_and_others_each_once(squad):
    ranked = domains.candidates_of(squad, 5, letters, 500)
    right = {one.query: squad.passages[one.right].text for one in squad.asked}
    assert len(ranked.queries) == 5
    for query, documents in zip(ranked.queries, ranked.documents):
        assert documents[0] == right[query]
        assert len(set(documents)) == len(documents) == len(squad.passages)


def test_passages_that_may_also_be_right_are_no_candidates(data):
    source = shared_data.tldr(data)
    ranked = domains.candidates_of(source, 100, letters, 500)
    asked = {one.query: one for one in source.asked}
    for query, documents in zip(ranked.queries, ranked.documents):
        also = {source.passages[number].text for number in asked[query].also_right}
        assert not also & set(documents[1:])


def test_a_scorer_that_knows_all_is_perfect_and_calibrated(squad):
    ranked = domains.candidates_of(squad, 10, letters, 500)
    row = domains.measured(ranked, knowing(squad), 5)
    assert row["model"] == 1
    assert row["right > 0"] == 1
    assert row["ECE"] == pytest.approx(0, abs=1e-6)
    assert row["found"] == row["refused"] == 1
    assert row["case"] == 0
    assert row["typos"] > 0 and row["slips"] > 0  # it knows no query with typos
    assert row["model − cosine"][0] == pytest.approx(1 - row["cosine"])


def test_the_cosine_gains_nothing_over_itself(squad):
    ranked = domains.candidates_of(squad, 10, letters, 500)

    def cosine(pairs):
        return np.array([float((letters([query]) @ letters([text]).T)[0, 0]) for query, text in pairs])

    row = domains.measured(ranked, cosine, 0, calibrated=False)
    assert row["model − cosine"] == pytest.approx([0, 0, 0])
    assert "ECE" not in row and "typos" not in row


def test_collections_are_tests_and_the_held_out_parts_of_the_others(data, tmp_path):
    debian = write_debian(tmp_path)
    held = {one.name: one for one in domains.collections(data, debian)}
    whole = {one.name: one for one in domains.collections(data, debian, everything=True)}
    assert {"squad", "fool_me_twice", "qed", "medquad", "tldr"} <= set(whole)
    assert len(held["qed"].asked) == len(whole["qed"].asked)
    assert 0 < len(held["medquad"].asked) < len(whole["medquad"].asked)
    assert [one.name for one in domains.collections(data, None, ("qed",))] == ["qed"]


def test_forms_of_a_query():
    assert domains.other_case("Where is Bergen?") == "where is bergen"
    assert domains.other_case("oil Price") == "oil price?"
    changed = domains.with_typos("where is bergen")
    assert sum(old != new for old, new in zip("where is bergen", changed, strict=True)) == 2


def test_words_alone_fall_for_echoes_and_stuffing_and_repetition(squad):
    found = traps.measured(squad, squad.asked, lexical)
    assert found["query ten times above right"] == 1
    assert found["rise by 10 times, mean"] > 5
    assert found["rise by 100 times, above 0.5"] > 0.5


def test_a_scorer_that_knows_all_falls_for_nothing(squad):
    found = traps.measured(squad, squad.asked, knowing(squad))
    assert found["right above 0"] == 1
    assert all(value == 0 for name, value in found.items() if name.endswith("above right") or "rise" in name)
    assert found["unanswerable: AUROC"] == found["fact changed: AUROC"] == 1
    assert found["answer cut: pairs"] > 0


def test_above_the_threshold_something_is_found_and_below_it_all_is_refused(squad):
    ranked = domains.candidates_of(squad, 10, letters, 500)
    for logit, share in ((20.0, 0.0), (-20.0, 1.0)):
        row = domains.measured(ranked, lambda pairs, logit=logit: np.full(len(pairs), logit), 0)
        assert (row["found"], row["refused"]) == (0.0, share)  # of equal scores none is the best


def test_the_figures_of_all_traps_stand_in_one_table():
    lines = traps.table_of({"squad": {"queries": 40, "query itself above right": 0.25}, "tldr": {"queries": 7}})
    assert lines[0] == "| | squad | tldr |"
    assert lines[2:] == ["| queries | 40 | 7 |", "| query itself above right | 0.250 | – |"]


def test_the_benchmark_prints_a_table_and_writes_json(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(domains, "load_ranker", lambda folder, name, **options: SimpleNamespace(embeddings_of=letters))
    monkeypatch.setattr(domains, "find_model", lambda name: name)
    monkeypatch.setattr(domains, "scores_of", lambda model, pairs: np.array([coverage(*pair) for pair in pairs]))
    file = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["x", str(data), "--only", "squad", "tldr", "--queries", "4", "--json", str(file)])
    domains.main()
    written = json.loads(file.read_text(encoding="utf-8"))
    printed = capsys.readouterr().out
    assert [row["collection"] for row in written["collections"]] == ["squad", "tldr"]
    assert "| squad | 4 | 10 |" in printed
    (section,) = written["sections"]
    assert all(line in printed for line in section["lines"][:4]) and section["about"] in printed
    assert written["summary"]["lowest end"] == min(row["model − cosine"][1] for row in written["collections"])


def parts_where(better, echo):
    """Return the parts of 20 queries with 4 candidates and an echo each.

    Args:
        better: which part knows the right passage, 0 for the logit and 1 for the cosine; the other knows nothing.
        echo: the logit and the cosine of a trap.
    """
    natural = np.zeros((20, 4, 2))
    natural[..., 0], natural[..., 1] = -4.0, 0.3
    natural[:, 0, better] += (1.0, 0.4)[better]
    natural[:, 1, 1 - better] += (1.0, 0.1)[1 - better]
    return fusion.Parts(natural, np.tile(echo, (20, 1)), np.arange(20))


def test_a_fusion_is_chosen_by_the_other_collections():
    words, claims = parts_where(0, (-9.0, 1.0)), parts_where(1, (-9.0, 1.0))
    gate_width = 0.35
    assert fusion.chosen({"words": words}, gate_width)[0] < fusion.chosen({"claims": claims}, gate_width)[0]
    weight, gate, _ = fusion.chosen({"words": words, "claims": claims}, gate_width)
    assert 2.5 < weight < 10 and gate > -9  # below it claims are wrong, above it words; an echo gains nothing
    assert words.gains((weight, gate, gate_width)) == pytest.approx(0.5)  # third of four alike
    assert claims.gains((weight, gate, gate_width)) == pytest.approx(0)
    assert claims.fooled((weight, gate, gate_width)) == 0 and claims.fooled((50.0, -20.0, gate_width)) == 1
    head, _, row, other, _, last = fusion.report({"words": words, "claims": claims}, (0.0, -6.0, gate_width))
    cells = row.strip("| ").split(" | ")
    alone = fusion.chosen({"claims": claims}, gate_width)
    assert cells[:2] == ["words", f"{alone[0]:g}, {alone[1]:g}"] and len(cells) == head.count("|") - 1
    assert cells[4].startswith("+0.500") and other.startswith("| claims |")
    assert last == f"all of them choose a weight of {weight:g} and a gate of {gate:g}"
