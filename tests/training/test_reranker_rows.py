"""Rows of pairs: what they say, how they become queries, how queries are split, and that each mistake is named."""

import json

import numpy as np
import pytest
from pair_files import rows, write_rows

from backlight.errors import InputError
from backlight.training.reranker.rows import read_training_data
from backlight.training.reranker.split import key_of, split_queries


def read(tmp_path, *content):
    return read_training_data([write_rows(tmp_path / "pairs.jsonl", content)])


def test_a_positive_and_negatives_become_a_query_with_labels(tmp_path):
    data = read(
        tmp_path,
        {
            "query": " a ",
            "positive": "x",
            "negatives": ["y", "z"],
            "teacher": [3, None, -1],
            "domain": "d",
            "weight": 2,
        },
    )
    (query,) = data.queries
    assert (query.text, query.domain, query.weight) == ("a", "d", 2.0)
    assert [data.documents[number] for number in query.documents] == ["x", "y", "z"]
    assert query.labels == (1.0, 0.0, 0.0)
    np.testing.assert_array_equal(query.teacher, [3, np.nan, -1])


def test_rows_of_one_query_are_one_and_grades_are_shares_of_the_highest(tmp_path):
    data = read(
        tmp_path,
        {"query": "a", "document": "x", "label": 4},
        {"query": "b", "document": "x", "label": 0},
        {"query": "a", "document": "y", "label": 1},
        {"query": "a", "document": "z", "label": 0, "teacher": 0.5},
    )
    first, second = data.queries
    assert data.rows == 4 and data.documents == ("x", "y", "z")
    assert first.labels == (1.0, 0.25, 0.0) and first.teacher[2] == 0.5
    assert second.documents == (0,) and not second.answered


def test_the_same_query_of_two_domains_is_two(tmp_path):
    row = {"query": "a", "positive": "x"}
    assert len(read(tmp_path, row, {**row, "domain": "other"}).queries) == 2


def test_a_query_that_nothing_answers_has_wrong_documents_only(tmp_path):
    row = {"query": "a", "positive": None, "negatives": ["x", "y"], "teacher": [None, 1.0, 2.0]}
    (query,) = read(tmp_path, row).queries
    assert query.labels == (0.0, 0.0) and query.teacher == (1.0, 2.0) and not query.answered


def test_a_document_that_is_right_in_one_row_and_wrong_in_another_is_right(tmp_path):
    data = read(
        tmp_path,
        {"query": "a", "positive": "x", "negatives": ["y"]},
        {"query": "a", "positive": "y", "negatives": ["x", "z"]},
    )
    assert data.queries[0].labels == (1.0, 1.0, 0.0) and data.contradictions == 2


def test_a_table_is_read_as_the_lines_are(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text('query,document,label,domain\na,"x, ""y""\nz",1,d\na,w,0,d\n', encoding="utf-8-sig")
    (query,) = read_training_data([file]).queries
    assert query.labels == (1.0, 0.0) and query.domain == "d"
    assert read_training_data([file]).documents == ('x, "y"\nz', "w")


RIGHT = {"query": "a", "positive": "x"}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 must hold a JSON object"),
        ({"positive": "x"}, "line 2: query must be a text that is not empty, got 'None'"),
        ({"query": "  ", "positive": "x"}, "line 2: query must be a text that is not empty"),
        ({"query": "a"}, "line 2 must hold a positive, negatives, or a document"),
        ({"query": "a", "positive": 3}, "line 2: positive must be a text"),
        ({"query": "a", "positive": "x", "negatives": "y"}, "line 2: negatives must be a list of texts, got 'y'"),
        ({"query": "a", "positive": "x", "negative": "y"}, "line 2: negatives must be a list of texts, got 'y'"),
        ({"query": "a", "positive": "x", "negatives": [""]}, "line 2: a negative must be a text that is not empty"),
        ({"query": "a", "positive": "x", "negatives": ["x"]}, "line 2: a negative must be another text"),
        ({"query": "a", "document": "x"}, "line 2: label must be a number, got 'None'"),
        ({"query": "a", "document": "x", "label": True}, "line 2: label must be a number, got 'True'"),
        ({"query": "a", "document": "x", "label": -1}, "line 2: label must be 0 or more, got -1"),
        ({"query": "a", "document": "x", "label": 1, "positive": "x"}, "line 2 must hold either document and label"),
        ({"query": "a", "positive": "x", "teacher": [1, 2]}, "line 2: teacher must hold a score for each of 1"),
        ({"query": "a", "positive": "x", "teacher": ["good"]}, "line 2: teacher must be a number, got 'good'"),
        ({"query": "a", "positive": "x", "weight": 0}, "line 2: weight must be above 0, got 0"),
        ({"query": "a", "positive": "x", "domain": 5}, "line 2: domain must be a text"),
        ({"query": "a", "positive": "x", "domain": "all"}, "line 2: domain must be another name than all"),
        ({"query": "a", "document": "x", "label": 0}, r"line 2: label must be 1 as in .*line 1"),
    ],
)
def test_a_bad_row_is_one_error_that_names_the_line(tmp_path, row, says):
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join([json.dumps(RIGHT), row if isinstance(row, str) else json.dumps(row)]))
    with pytest.raises(InputError, match=says):
        read_training_data([file])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("pairs.jsonl", b"", "must hold a row at least"),
        ("pairs.txt", b"{}", "must end in .jsonl"),
        ("pairs.jsonl", b'{"query": "\xff"}', "line 1 is not JSON: it must be UTF-8"),
        ("pairs.csv", b"query,document\na,x\n", "line 1 must name the columns query, document and label: label"),
        ("pairs.csv", b"query,document,label\na,x,1\na,\xff,0\n", "line 3 must be UTF-8"),
        ("pairs.csv", b"query,document,label\na,x,one\n", "line 2: label must be a number, got 'one'"),
        ("pairs.csv", b'query,document,label\na,"x"y,1\n', "line 2 is not CSV"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_training_data([tmp_path / name])
    with pytest.raises(InputError, match="cannot read"):
        read_training_data([tmp_path / "nothing.jsonl"])


def test_queries_are_split_by_the_seed_in_each_domain(tmp_path):
    named = [{**row, "domain": domain} for domain in "xy" for row in rows("ab" if domain == "x" else "cdef")]
    queries = read(tmp_path, *named).queries
    parts = [split_queries(queries, 0.25, seed) for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]
    training, held_out = parts[0]
    assert len(training) + len(held_out) == len(queries) == 48
    assert [sum(query.domain == name for query in held_out) for name in "xy"] == [4, 8]


def test_queries_with_the_same_words_stay_together(tmp_path):
    twins = [{**row, "query": f"{row['query'].upper()}?"} for row in rows()]
    training, held_out = split_queries(read(tmp_path, *rows(), *twins).queries, 0.3, 0)
    assert len(held_out) == 38 and not {key_of(query) for query in training} & {key_of(query) for query in held_out}


def test_a_second_file_is_held_out_and_its_queries_are_not_trained_on(tmp_path):
    first = write_rows(tmp_path / "first.jsonl", rows())
    second = write_rows(tmp_path / "second.jsonl", [*rows("a")[:2], {"query": "new", "positive": "z"}])
    data = read_training_data([first, second])
    training, held_out = split_queries(data.queries, 0.1, 0, own_file=True)
    assert [query.text for query in held_out] == ["make a leaf", "make a water", "new"]
    assert len(training) == 62 and len(data.sha256) == 2


def test_both_parts_need_a_query_that_is_answered(tmp_path):
    with pytest.raises(InputError, match="right document for validation, and none of the 0"):
        split_queries(read(tmp_path, RIGHT).queries, 0.5, 0)
