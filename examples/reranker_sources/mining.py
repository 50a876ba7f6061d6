"""Wrong passages that look right to BM25 or to a bi-encoder.

Source: Gao, Dai, Callan, Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline, 2021, arXiv:2101.08751;
leaving out what a bi-encoder finds clearly nearer than the right one, since it may be right too: Qu et al., RocketQA,
2021, arXiv:2010.08191.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.explain.faithfulness.questions import best_by_bm25
from reranker_sources.passages import overlap
from reranker_sources.source import Asked, Source

DEPTH = 16  # how far down a ranking wrong passages are looked for
POOL = 1_000  # passages among which they are looked for
ALIKE = 0.6  # share of words in common from which a passage is taken for a version of the right one
NEAR = 0.94  # cosine to the right passage from which it is
MARGIN = 0.05  # a passage nearer to the query than the right one by more may be right, where answers are not known
WORDS = 64  # of a text that are embedded: its beginning says what it is about, and is read in a third of the time
SPECIFIC = frozenset(("question", "faq", "task", "claim"))  # forms of queries that ask for one thing
PART = 256  # texts whose embeddings are written to disk at a time
Embed = Callable[[Sequence[str]], np.ndarray]  # texts -> (texts, hidden), of length one


@dataclass(frozen=True)
class Mined:
    """A query with the numbers of its wrong passages, the most similar first."""

    asked: Asked
    bm25: tuple[int, ...]
    cosine: tuple[int, ...]


class EmbeddingCache:
    """Embeds the beginnings of texts once, and keeps the embeddings in files, so that a stopped run can go on.

    Args:
        folder: has a file for each `PART` texts; embed: of a bi-encoder.
    """

    def __init__(self, folder: Path, embed: Embed):
        self.folder, self.embed = folder, embed
        self.known: dict[str, np.ndarray] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob("*.npz")):
            with np.load(file) as held:
                self.known.update(zip(held["keys"].tolist(), held["vectors"]))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embedding of each text, (texts, hidden)."""
        texts = [" ".join(text.split()[:WORDS]) for text in texts]
        keys = [hashlib.sha1(text.encode()).hexdigest() for text in texts]
        last = {key: place for place, key in enumerate(keys)}
        missing = [place for key, place in last.items() if key not in self.known]
        missing.sort(key=lambda place: len(texts[place]))
        for start in range(0, len(missing), PART):
            part = missing[start : start + PART]
            vectors = self.embed([texts[place] for place in part]).astype(np.float16)
            names = [keys[place] for place in part]
            half = self.folder / f"{names[0]}.part"
            with half.open("wb") as file:
                np.savez(file, keys=np.array(names), vectors=vectors)
            half.rename(self.folder / f"{names[0]}.npz")
            self.known.update(zip(names, vectors))
        return np.stack([self.known[key] for key in keys]).astype(np.float32)


def mine(source: Source, chosen: Sequence[Asked], embed: Embed, rng: np.random.Generator) -> list[Mined]:
    """Return for each query the passages that BM25 and cosine rank highest, less what may be right.

    The cosine ranks a pool, since embeddings take time. BM25 ranks the whole source for queries that ask for one
    thing; for others, such as headings, the pool, where the cosine tells which passages may be right too.
    """
    pool = pool_of(source, chosen, rng)
    texts = [source.passages[number].text for number in pool]
    places = {number: place for place, number in enumerate(pool)}
    queries = [one.query for one in chosen]
    lexical = _by_bm25(source, chosen, pool)
    documents, questions = embed(texts), embed(queries)
    found = []
    for one, words, vector in zip(chosen, lexical, questions):
        right = documents[places[one.right]]
        nearness, likeness = documents @ vector, documents @ right
        own = float(right @ vector)
        allowed = likeness < NEAR
        if not one.answers:
            allowed &= nearness <= own + MARGIN
        nearest = np.argsort(-nearness, kind="stable")[: 3 * DEPTH].tolist()
        rankings = words, [pool[place] for place in nearest]
        both = [
            tuple(
                number
                for number in ranking
                if (number not in places or allowed[places[number]]) and is_wrong(source, one, number)
            )[:DEPTH]
            for ranking in rankings
        ]
        found.append(Mined(one, *both))
    return found


def _by_bm25(source: Source, chosen: Sequence[Asked], pool: Sequence[int]) -> list[list[int]]:
    """Return for each query the numbers of the passages that BM25 ranks highest."""
    found: list[list[int]] = [[] for _ in chosen]
    for numbers, wanted in ((range(len(source.passages)), True), (pool, False)):
        asking = [place for place, one in enumerate(chosen) if (one.form in SPECIFIC) == wanted]
        if asking:
            texts = [source.passages[number].text for number in numbers]
            rankings = best_by_bm25(texts, [chosen[place].query for place in asking], DEPTH)
            for place, ranking in zip(asking, rankings):
                found[place] = [numbers[other] for other in ranking]
    return found


def pool_of(source: Source, chosen: Sequence[Asked], rng: np.random.Generator) -> list[int]:
    """Return the numbers of the right passages, and of others drawn until there are `POOL`, in order."""
    rights = {one.right for one in chosen}
    others = [number for number in range(len(source.passages)) if number not in rights]
    drawn = rng.permutation(len(others))[: max(0, POOL - len(rights))]
    return sorted(rights | {others[place] for place in drawn.tolist()})


def is_wrong(source: Source, one: Asked, number: int) -> bool:
    """Return whether a passage does not answer a query, as far as words can tell."""
    if number == one.right or number in one.also_right:
        return False
    text, right = source.passages[number].text, source.passages[one.right].text
    if one.answers:
        small = text.casefold()
        if any(answer.casefold() in small for answer in one.answers):
            return False
    return overlap(text, right) < ALIKE
