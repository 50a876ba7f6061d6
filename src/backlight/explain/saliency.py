"""Gradient saliency: how strongly a score reacts to a small change of each word's embedding.

    importance of a token = Σ over the embedding's dims of |∂ score / ∂ embedding|

Source: Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, 2013, arXiv:1312.6034.

NOTE [The leaf]
The gradient is taken for a detached copy of the WORD embeddings. Positions and segments are added after it, by the
model, as in an ordinary call. Wrong turns that give no error elsewhere: `.clone()` of an embedding is no leaf; a leaf
that the model was not given has no gradient; a call that forgets segments explains another score. So the score of this
path must equal the ordinary call's, and a gradient that is missing, zero or not finite is an error. Nothing stands
in for it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.autograd.doors import grad
from backlight.errors import GraphError, InputError
from backlight.explain.attribution import Attribution, Ranked, Ranking, attribute_text, truncation_of
from backlight.models.ranker import BiEncoder, passes
from backlight.models.tokens import Batch, Tokens

METHOD = "gradient saliency, Σ|∂score/∂embedding|"
SAME_SCORE = 1e-5


def rank_and_explain(
    ranker: BiEncoder,
    query: str,
    documents: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    top: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Ranking:
    """Rank documents for a query and explain the best of them.

    Args:
        names: what to call the documents; their numbers by default.
        top: how many to explain; all by default.
        advance: called with the number of documents newly scored or explained.

    Raises:
        InputError: there is no document, or a text holds nothing that the model reads.
        RuntimeError: a score has no gradient (see NOTE [The leaf]).
    """
    if not documents:
        raise InputError("there must be a document at least, got none")
    if top is not None and top < 1:
        raise InputError(f"top must be 1 or more, got {top}")
    names = [f"document {number}" for number in range(1, len(documents) + 1)] if names is None else names
    asked, read = ranker.tokenizer(query), ranker.tokenizer.all_of(documents)
    check_readable(asked, "the query")
    for name, document in zip(names, read):
        check_readable(document, name)
    scores = ranker.scores(asked, read, advance)
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = order[:top]
    found = saliency(ranker, asked, [read[i] for i in chosen], scores[chosen], [names[i] for i in chosen], advance)
    explained = dict(zip(chosen, found))
    return Ranking(
        query=query,
        model=ranker.name,
        score_name=ranker.score_name,
        method=METHOD,
        max_tokens=ranker.tokenizer.max_length,
        documents=tuple(
            Ranked(rank, names[i], i, float(scores[i]), truncation_of(read[i]), explained.get(i))
            for rank, i in enumerate(order, 1)
        ),
    )


def check_readable(tokens: Tokens, name: str) -> None:
    """Raise if the tokeniser made no token of a text, as of one that consists of invisible characters."""
    if tokens.special.all():
        raise InputError(f"{name} must hold something that the model reads, and its tokeniser finds nothing in it")


def saliency(
    ranker: BiEncoder,
    query: Tokens,
    documents: Sequence[Tokens],
    scores: np.ndarray,
    names: Sequence[str],
    advance: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Explain the score of each document for a query.

    The query runs beside every document, so that its words have an importance of their own in each pair.

    Args:
        scores: what the ordinary call gave; this path must give the same.
        names: what to call the documents in errors.
        advance: called with the number of documents newly explained.

    Returns:
        One explanation a document, in units of the score per unit of embedding.

    Raises:
        RuntimeError: a gradient is missing, zero or not finite, or the two paths disagree.
    """
    explained = []
    for some in passes(documents, width=lambda document: len(document) + len(query)):
        here = slice(len(explained), len(explained) + len(some))
        batch = Batch.of([text for document in some for text in (query, document)])
        values = importances(ranker, batch, scores[here], names[here])
        for document, score, asked, read in zip(some, scores[here], values[0::2], values[1::2]):
            pair = attribute_text(query, asked), attribute_text(document, read)
            explained.append(Attribution(METHOD, ranker.name, float(score), *pair))
        advance(len(some))
    return explained


def importances(ranker: BiEncoder, pairs: Batch, scores: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
    """Return each token's importance, one array a text, for a batch query, document, query, document …

    Shapes: scores (pairs,) -> texts × (tokens of the text,)

    Raises:
        RuntimeError: a gradient is missing, zero or not finite, or the two paths disagree.
    """
    leaf = ranker.encoder.embed_words(pairs.ids).detach().requires_grad_()  # (tokens, hidden)
    again = ranker.pair_scores(pairs, leaf)
    check_same_scores(again.detach().numpy(), scores, names)
    slopes = None
    if again.requires_grad:
        (slopes,) = grad(again.sum(), [leaf], allow_unused=True)
    if slopes is None:
        raise GraphError(
            "the score must depend on the word embeddings, and no gradient reached them; nothing was explained"
        )
    values = pairs.parts(np.abs(slopes.numpy()).sum(axis=1))
    for number, (name, score) in enumerate(zip(names, scores)):
        if score > ranker.highest_score - SAME_SCORE / 10:
            raise GraphError(
                f"the score of {name} must be below {ranker.highest_score}, the highest there is, got {score:.6f}: the "
                "model reads query and document as the same, and there the gradient is zero; leave this document out"
            )
        check_gradient(np.concatenate(values[2 * number : 2 * number + 2]), name)
    return values


def check_same_scores(found: np.ndarray, ordinary: np.ndarray, names: Sequence[str]) -> None:
    """Raise unless the scores that are differentiated are the scores that the ordinary call gave."""
    for name, again, score in zip(names, found, ordinary):
        if not abs(again - score) <= SAME_SCORE:
            raise GraphError(
                f"the score of {name} must be the same in an ordinary call and in the one that is differentiated, got "
                f"{score:.6f} and {again:.6f}: the two do not read the same input"
            )


def check_gradient(values: np.ndarray, name: str) -> None:
    """Raise if a pair's importances are all zero, or one of them is not finite."""
    if not np.isfinite(values).all():
        raise GraphError(
            f"the gradient of the score of {name} must be finite, got NaN or infinity; nothing was explained"
        )
    if not values.any():
        raise GraphError(
            f"the gradient of the score of {name} must not be zero everywhere, and it is; nothing was explained"
        )
