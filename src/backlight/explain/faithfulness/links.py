"""Do interactions find the words that people linked? Matrices of query × document words against QED's links.

NOTE [What a link is]
QED marks spans of a question and of the sentence that answers it that speak of the same thing. Each word of such a span
counts as linked with each word of the other; all other couples of a query's and a sentence's word as not linked. Most
linked words are simply the same word, which no model is needed to find: so a second figure counts only couples of words
that differ. That people link two words does not prove that a model's score does: this is about plausibility.

Source: Lamm, Palomaki, Alberti, Andor, Choi, Soares, Collins, QED: A Framework and Dataset for Explanations in Question
Answering, 2020, arXiv:2009.06354.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.errors import BacklightError, InputError
from backlight.explain.faithfulness.randomisation import ranks
from backlight.explain.methods.interactions import ESTIMATES, MATRICES
from backlight.explain.parts import Part, word_parts
from backlight.formats.strict_json import parse_json
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Scorer


@dataclass(frozen=True)
class LinkedPair:
    """A question, the sentence that answers it, and the spans of both that speak of the same thing."""

    query: str
    document: str
    links: tuple[tuple[tuple[int, int], tuple[int, int]], ...]  # first and last + 1 character in each text


def read_links(file: Path) -> list[LinkedPair]:
    """Return the pairs of a file in QED's format whose links lie within one sentence.

    Raises:
        InputError: the file cannot be read as QED's.
    """
    try:
        rows = [parse_json(line) for line in Path(file).read_text(encoding="utf-8").split("\n") if line.strip()]
        found = [_linked(row) for row in rows if row["annotation"].get("selected_sentence")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"cannot read {file} as QED's links, lines of JSON: {problem}") from problem
    found = [pair for pair in found if pair.links]
    if not found:
        raise InputError(f"{file} must hold a question with links at least, and holds none")
    return found


def _linked(row: Mapping) -> LinkedPair:
    """Return one row of QED; links to another sentence or to nothing are left out."""
    sentence = row["annotation"]["selected_sentence"]
    start, end = sentence["start"], sentence["end"]
    links = []
    for one in row["annotation"]["referential_equalities"]:
        in_question, in_sentence = one["question_reference"], one["sentence_reference"]
        if start <= in_sentence["start"] < in_sentence["end"] <= end and in_question["start"] < in_question["end"]:
            links.append(
                ((in_question["start"], in_question["end"]), (in_sentence["start"] - start, in_sentence["end"] - start))
            )
    return LinkedPair(row["question_text"], row["paragraph_text"][start:end].rstrip(), tuple(links))


def attention(ranker: Scorer, pair: Pair) -> np.ndarray:
    """Return how much the words of query and document look at each other, averaged over layers, heads and both ways.

    Shapes: -> (query words, document words)

    Raises:
        InputError: the model reads the two apart.
    """
    if len(pair.lengths) != 1:
        raise InputError(f"{ranker.name} must read query and document together to look from one to the other")
    inside = ranker.inside(PairBatch.of([pair]))
    mean = np.mean([heads[: inside.joint_heads] for (heads,) in inside.attentions], axis=(0, 1))  # (tokens, tokens)
    both = mean + mean.T
    query, document = (word_parts(pair, side) for side in (QUERY, DOCUMENT))
    return np.array([[both[np.ix_(one.tokens, other.tokens)].sum() for other in document] for one in query])


def same_word(pair: Pair) -> np.ndarray:
    """Return 1 where a word of the query is the document's word: what needs no model; (query words, document words)."""
    query, document = (
        [pair.text(side)[word.start : word.end].casefold() for word in word_parts(pair, side)]
        for side in (QUERY, DOCUMENT)
    )
    return np.array([[float(one == other) for other in document] for one in query])


def measure_links(ranker: Scorer, linked: LinkedPair, number: int, methods: Sequence[str] = ESTIMATES) -> dict:
    """Return how well each matrix finds the links of a pair, as plain data by the matrix's name.

    Args:
        number: of the pair, from which random values are drawn.
        methods: names of `MATRICES`.
    """
    (pair,) = ranker.read([(linked.query, linked.document)])
    same = same_word(pair)
    shape = same.shape
    makers: dict[str, Callable[[], np.ndarray]] = {
        name: lambda method=MATRICES[name]: np.array(method.explain(ranker, pair).values) for name in methods
    }
    makers |= {
        "attention": lambda: attention(ranker, pair),
        "same word": lambda: same,
        "random": lambda: np.random.default_rng([number, 7]).random(shape),
    }
    truth = linked_words(pair, linked)
    found = {}
    for name, make in makers.items():
        start = time.process_time()
        try:
            values = np.abs(make())
        except BacklightError as problem:
            found[name] = {"failed": str(problem)}
            continue
        seconds = time.process_time() - start
        found[name] = {**_agreement(values, truth, same.astype(bool)), "seconds": seconds}
    return found


def linked_words(pair: Pair, linked: LinkedPair) -> np.ndarray:
    """Return which words of query and document are linked, (query words, document words)."""
    query, document = (word_parts(pair, side) for side in (QUERY, DOCUMENT))
    found = np.zeros((len(query), len(document)), bool)
    for query_span, document_span in linked.links:
        found |= np.outer(
            [_within(word, query_span) for word in query], [_within(word, document_span) for word in document]
        )
    return found


def _agreement(values: np.ndarray, truth: np.ndarray, same: np.ndarray) -> dict:
    """Return AUC, precision, and AUC among words that differ; nothing where there is nothing to tell apart."""
    found = {"auc": auc(values[truth], values[~truth]), "precision": precision(values, truth)}
    unlike = auc(values[truth & ~same], values[~truth & ~same])
    return {name: value for name, value in (found | {"auc_unlike": unlike}).items() if value is not None}


def auc(linked: np.ndarray, others: np.ndarray) -> float | None:
    """Return how often a linked couple has the larger value than another; among equals half. None without either."""
    if not len(linked) or not len(others):
        return None
    places = ranks(np.concatenate([linked, others]))[: len(linked)]
    return float((places.sum() - len(linked) * (len(linked) + 1) / 2) / (len(linked) * len(others)))


def precision(values: np.ndarray, truth: np.ndarray) -> float | None:
    """Return the share of linked couples among as many strongest as there are; None where there are none."""
    count = int(truth.sum())
    if not count:
        return None
    strongest = np.argsort(-values, axis=None, kind="stable")[:count]
    return float(truth.ravel()[strongest].mean())


def _within(word: Part, span: tuple[int, int]) -> bool:
    return word.start < span[1] and span[0] < word.end
