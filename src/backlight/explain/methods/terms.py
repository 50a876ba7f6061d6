"""Term weights of a sparse encoder for two texts; the score is the dot product of the two.

Source: Formal, Piwowarski, Clinchant, SPLADE: Sparse Lexical and Expansion Model for First Stage Ranking, 2021,
arXiv:2107.05720.
"""

from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError
from backlight.explain.presentation.tables import Tabular
from backlight.models.pairs import DOCUMENT, QUERY, Pair
from backlight.models.scorer import Scorer

SHOWN = 3  # terms in a short description


@dataclass(frozen=True)
class Term:
    """A term of the vocabulary with its weight in both texts.

    Args:
        text: the term as spelt in the vocabulary.
        query, document: its weights.
        value: its contribution to the score: the product of the weights.
        in_query, in_document: whether the text has a token that is this term; else the model added it (expansion).
    """

    text: str
    query: float
    document: float
    value: float
    in_query: bool
    in_document: bool


@dataclass(frozen=True)
class TermWeights(Tabular):
    """The terms that have a weight in query or document: score = Σ query · document.

    Args:
        model: the model's name.
        score: the raw score.
        query_text, document_text: the texts.
        terms: those with a weight, the largest contribution to the score first.
    """

    model: str
    score: float
    query_text: str
    document_text: str
    terms: tuple[Term, ...]

    def of_document(self, count: int | None = None) -> list[Term]:
        """Return what the document says in the model's words: its terms, the heaviest first; all by default."""
        return sorted((term for term in self.terms if term.document), key=lambda term: -term.document)[:count]

    def of_query(self, count: int | None = None) -> list[Term]:
        """Return what the query says in the model's words, as `of_document`."""
        return sorted((term for term in self.terms if term.query), key=lambda term: -term.query)[:count]

    def rows(self) -> list[dict]:
        """Return a row a term: its text, weights, what it brings to the score, and which text has it."""
        return [dict(vars(term)) for term in self.terms]

    def __repr__(self) -> str:
        most = ", ".join(f"{term.text} {term.value:.3g}" for term in self.terms[:SHOWN])
        return f"TermWeights({len(self.terms)} terms of {self.score:.4g}: {most})"


def term_weights(ranker: Scorer, pair: Pair) -> TermWeights:
    """Return the terms of a pair.

    Raises:
        InputError: the model is not a sparse term-weight model.
    """
    if not hasattr(ranker, "term_weights"):
        raise InputError(f"terms needs a SparseEncoder, whose score is a sum over terms, and {ranker.name} is none")
    score, weights = ranker.term_weights(pair)
    values = weights[0].astype(np.float64) * weights[1]
    active = np.flatnonzero(weights.any(axis=0))
    order = active[np.lexsort((active, -weights[1][active], -np.abs(values[active])))]
    has = [set(pair.ids[pair.of_side(side)].tolist()) for side in (QUERY, DOCUMENT)]
    spelled = ranker.tokenizer.spelled(order)
    terms = tuple(
        Term(text, float(weights[0, i]), float(weights[1, i]), float(values[i]), i in has[0], i in has[1])
        for text, i in zip(spelled, order.tolist())
    )
    return TermWeights(ranker.name, score, pair.query, pair.document, terms)
