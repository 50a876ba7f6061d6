"""What a model imitates on the pairs of training: the cosine of a bi-encoder and BM25 together, which rank better than
either.

Margins of a teacher: Hofstätter and others, Improving Efficient Neural Ranking Models with Cross-Architecture Knowledge
Distillation, 2020, arXiv:2010.02666. Passages that fool both are left to the labels: they have no score.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from backlight.models.retrieval.bm25 import BM25
from backlight.training.reranker.loss import COSINES

NATURAL = frozenset(
    ("bm25", "cosine", "random", "neighbour", "other_question")
)  # kinds of passages as people wrote them
LEXICAL = 3.0  # how much the best passage by BM25 gains, in logits: of 0 to 12 the mean reciprocal rank is highest
AHEAD = 1.0  # by how much the right passage is put before the wrong ones, where the teacher errs
WORDS = 180  # of a passage that are embedded
Embed = Callable[[Sequence[str]], np.ndarray]  # texts -> (texts, hidden), of length one


def taught(rows: Sequence[dict], embed: Embed) -> list[dict]:
    """Return rows with the teacher's scores: of the right passage, then of each wrong one, None where there is none.

    score = cosine / 0.05 + 3 · BM25 / the highest BM25 among the natural passages of the domain
    """
    queries = _embedded((row["query"] for row in rows), embed)
    documents = _embedded((text for row in rows for text in _natural(row)), embed)
    by_domain = defaultdict(list)
    for place, row in enumerate(rows):
        by_domain[row["domain"]].append(place)
    found: list[dict] = [{}] * len(rows)
    for places in by_domain.values():
        texts = list(dict.fromkeys(text for place in places for text in _natural(rows[place])))
        numbers, index = {text: number for number, text in enumerate(texts)}, BM25(texts)
        for place in places:
            row = rows[place]
            lexical = index.scores(row["query"])
            highest = max(float(lexical.max(initial=0.0)), 1e-6)
            scores = {
                text: float(queries[row["query"]] @ documents[text]) / COSINES
                + LEXICAL * float(lexical[numbers[text]]) / highest
                for text in _natural(row)
            }
            found[place] = {**row, "teacher": _in_order(row, scores)}
    return found


def _natural(row: dict) -> list[str]:
    """Return the right passage, if there is one, and the wrong ones that people wrote."""
    wrong = [text for text, kind in zip(row["negatives"], row["kinds"]) if kind in NATURAL]
    return [row["positive"], *wrong] if row["positive"] else wrong


def _in_order(row: dict, scores: dict[str, float]) -> list[float | None]:
    """Return the scores in the order of a row's passages, the right one at least `AHEAD` of the others."""
    wrong = [round(scores[text], 3) if kind in NATURAL else None for text, kind in zip(row["negatives"], row["kinds"])]
    if not row["positive"]:
        return [None, *wrong]
    known = [score for score in wrong if score is not None]
    right = scores[row["positive"]]
    return [round(max(right, max(known) + AHEAD) if known else right, 3), *wrong]


def _embedded(texts: Iterable[str], embed: Embed) -> dict[str, np.ndarray]:
    """Return the embedding of each text, by its beginning; texts of like lengths are embedded together."""
    found = sorted(set(texts), key=lambda text: (len(text.split()), text))
    return dict(zip(found, embed([" ".join(text.split()[:WORDS]) for text in found])))


def split(rows: Sequence[dict], share: float, fewest: int, seed: int) -> tuple[list[dict], list[dict]]:
    """Return the rows for training and those for validation: of each domain a share, or `fewest`; queries with the
    same words stay together."""
    by_domain = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_domain[row["domain"]][" ".join(sorted(set(row["query"].casefold().split())))].append(row)
    training, validation = [], []
    for number, domain in enumerate(sorted(by_domain)):
        keys = sorted(by_domain[domain])
        count = min(len(keys) // 2, max(fewest, round(share * len(keys))))
        held_out = set(np.random.default_rng([seed, 2, number]).permutation(len(keys))[:count].tolist())
        for place, key in enumerate(keys):
            (validation if place in held_out else training).extend(by_domain[domain][key])
    order = np.random.default_rng([seed, 3]).permutation(len(training))
    return [training[place] for place in order.tolist()], validation
