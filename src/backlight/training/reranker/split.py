"""Which queries are trained on and which are held out."""

from collections.abc import Sequence

import numpy as np

from backlight.errors import InputError
from backlight.training.reranker.candidates import words_of
from backlight.training.reranker.rows import Judged

FEWEST = 2  # queries of a domain that are split: of a single one none is held out


def split_queries(
    queries: Sequence[Judged], share: float, seed: int, own_file: bool = False
) -> tuple[list[Judged], list[Judged]]:
    """Return the queries for training and those for validation, by domain; queries with the same words stay together.

    Args:
        share: of the queries of each domain that is held out; one at least, where there are two.
        own_file: whether the validation queries are those of the second file.

    Raises:
        InputError: one of the two parts has no query with a right document.
    """
    held_out = {key_of(query) for query in queries if query.part} if own_file else _drawn(queries, share, seed)
    if own_file:
        validation = [query for query in queries if query.part]
        training = [query for query in queries if not query.part and key_of(query) not in held_out]
    else:
        validation = [query for query in queries if key_of(query) in held_out]
        training = [query for query in queries if key_of(query) not in held_out]
    for part, name in ((training, "training"), (validation, "validation")):
        if not any(query.answered for query in part):
            raise InputError(
                f"the data must hold a query with a right document for {name}, and none of the {len(part)} queries of "
                "that part has one: add rows"
            )
    return training, validation


def key_of(query: Judged) -> frozenset[str]:
    """Return what two queries have in common that ask the same: their words, without case and signs."""
    return words_of(query.text) or frozenset({query.text})


def _drawn(queries: Sequence[Judged], share: float, seed: int) -> set[frozenset[str]]:
    """Return the keys that are held out: of each domain a share, each in the domain where it comes first."""
    by_domain: dict[str, list[frozenset[str]]] = {}
    for key, domain in {key_of(query): query.domain for query in reversed(queries)}.items():
        by_domain.setdefault(domain, []).append(key)
    held_out: set[frozenset[str]] = set()
    for domain in sorted(by_domain):
        keys = sorted(by_domain[domain], key=sorted)
        count = max(1, round(share * len(keys))) if len(keys) >= FEWEST else 0
        order = np.random.default_rng([seed, 0, len(keys)]).permutation(len(keys))[:count]
        held_out.update(keys[place] for place in order.tolist())
    return held_out
