"""Makes rows of training: a query, the passage that is right, and wrong ones of every kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from reranker_sources.forms import other_form
from reranker_sources.mining import Embed, Mined, is_wrong, mine
from reranker_sources.passages import coverage, sentences_of
from reranker_sources.source import Asked, Source, digest
from reranker_sources.traps import FAMILIES, Setting, changed_query, make_traps, names_of

UNANSWERED = 0.1  # share of rows that nothing answers: the right passage is left out, or the query is changed
CHANGED = 0.7  # of those, the share whose query is changed where it names something
REPEATED, EMBEDDED = 0.06, 0.12  # shares of right passages that are repeated, or stand inside a longer text
FORMS = {"question": 1.0, "faq": 1.0, "task": 1.0, "title": 0.8, "definition": 0.8, "claim": 1.0, "sentence": 0.4}
FAVOURED = {"encyclopedia": 1.8, "words": 0.6, "commands": 0.7, "databases": 0.7}  # questions that people asked, first
LONG = 400  # words of a right passage inside a longer text, at most
STRANGERS = 200  # passages of a source that others take as wrong ones


@dataclass(frozen=True)
class Counts:
    """How many wrong passages of each kind a row has, at most."""

    bm25: int = 2
    cosine: int = 2
    random: int = 1
    traps: int = 3


def budgets(sources: Sequence[Source], size: int) -> dict[str, int]:
    """Return how many rows each source gets: domains by the square root of their queries, and sources inside alike.

    Domains of `FAVOURED` get more. What a domain cannot fill goes to the others.
    """
    asked = {one.name: len(one.asked) for one in sources}
    domains = sorted({one.domain for one in sources})
    members = {domain: [one.name for one in sources if one.domain == domain] for domain in domains}
    by_domain = _shared({domain: sum(asked[name] for name in members[domain]) for domain in domains}, size, FAVOURED)
    found = {}
    for domain in domains:
        found |= _shared({name: asked[name] for name in members[domain]}, by_domain[domain])
    return found


def _shared(
    available: Mapping[str, int], size: int, weights: Mapping[str, float] = MappingProxyType({})
) -> dict[str, int]:
    """Share a number out by the square roots of what is available times a weight, never more than is available."""
    roots = {name: count**0.5 * weights.get(name, 1.0) for name, count in available.items()}
    found: dict[str, int] = {}
    left = size
    for name in sorted(
        available, key=lambda name: (available[name], name)
    ):  # the smallest first: the rest is passed on
        rest = sum(root for other, root in roots.items() if other not in found)
        found[name] = min(available[name], round(left * roots[name] / rest) if rest else 0)
        left -= found[name]
    return found


def choose(source: Source, count: int, rng: np.random.Generator) -> list[Asked]:
    """Return queries drawn by their form, and rather those that share few words with their right passage."""
    weights = np.array(
        [FORMS[one.form] * (1.3 - coverage(one.query, source.passages[one.right].text)) for one in source.asked]
    )
    drawn = rng.choice(len(source.asked), size=min(count, len(source.asked)), replace=False, p=weights / weights.sum())
    return [source.asked[number] for number in np.sort(drawn)]


def rows_of(
    source: Source,
    count: int,
    embed: Embed,
    strangers: Sequence[str],
    words: Mapping[str, str],
    *,
    seed: int,
    counts: Counts = Counts(),
) -> Iterator[dict]:
    """Yield `count` rows of a source; they depend on the seed, the source and the number of rows alone.

    Args:
        strangers: passages of other domains; words: each with another of the same sense (see `other_form`).
    """
    rng = np.random.default_rng([seed, digest(source.name)])
    chosen = choose(source, count, rng)
    if not chosen:
        return
    names = names_of([one.text for one in source.passages[:2000]])
    queries = [one.query for one in chosen]
    for place, mined in enumerate(mine(source, chosen, embed, rng)):
        yield _row(
            source,
            mined,
            queries,
            names,
            strangers,
            words,
            counts,
            np.random.default_rng([seed, place, digest(source.name)]),
        )


def _row(
    source: Source,
    mined: Mined,
    queries: Sequence[str],
    names: Sequence[str],
    strangers: Sequence[str],
    words: Mapping[str, str],
    counts: Counts,
    rng: np.random.Generator,
) -> dict:
    asked = mined.asked
    query, form = other_form(asked.query, asked.answers, words, rng)
    wrong = [source.passages[number].text for number in dict.fromkeys(mined.bm25 + mined.cosine)]
    setting = Setting(
        query,
        source.passages[asked.right].text,
        asked.answers,
        wrong,
        [source.passages[number].text for number in source.neighbours(asked.right) if is_wrong(source, asked, number)],
        [other for other in queries if other != asked.query],
        names,
    )
    negatives = _hard(source, mined, counts, rng)
    while len(negatives) < counts.bm25 + counts.cosine + counts.random:
        negatives.append(("random", _stranger(source, asked, strangers, rng)))
    unanswered = rng.random() < UNANSWERED
    other = changed_query(setting, rng) if unanswered and rng.random() < CHANGED else None
    if other:
        setting = replace(setting, query=other)
        negatives.append(("other_fact", setting.right))
    elif unanswered:
        negatives += _topic(setting, rng)
    negatives += make_traps(setting, counts.traps, rng)
    positive, kind = (None, "none") if unanswered else _right(setting, rng)
    texts = {text: kind for kind, text in reversed(negatives) if text.strip() and (other or text != setting.right)}
    return {
        "query": setting.query,
        "positive": positive,
        "negatives": list(texts),
        "kinds": list(texts.values()),
        "domain": source.domain,
        "source": source.name,
        "form": asked.form if form == "as it is" else f"{asked.form}, {form}",
        "positive_kind": kind,
    }


def _hard(source: Source, mined: Mined, counts: Counts, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return wrong passages drawn from those that BM25 and cosine rank highest, the best ones more often."""
    found: list[tuple[str, str]] = []
    taken: set[int] = set()
    for kind, ranking, count in (("bm25", mined.bm25, counts.bm25), ("cosine", mined.cosine, counts.cosine)):
        left = [number for number in ranking if number not in taken]
        weights = 1 / (2 + np.arange(len(left)))
        drawn = (
            rng.choice(len(left), size=min(count, len(left)), replace=False, p=weights / weights.sum()) if left else []
        )
        for place in drawn:
            taken.add(left[place])
            found.append((kind, source.passages[left[place]].text))
    return found


def _stranger(source: Source, asked: Asked, strangers: Sequence[str], rng: np.random.Generator) -> str:
    """Return any passage that does not answer: of the source, or of another domain."""
    for _ in range(20):
        number = int(rng.integers(len(source.passages)))
        if rng.random() < 0.5 and strangers:
            return strangers[int(rng.integers(len(strangers)))]
        if is_wrong(source, asked, number):
            return source.passages[number].text
    return "This page is empty."


def _topic(setting: Setting, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return all that is on the right topic and does not answer."""
    made = [(kind, trap(setting, rng)) for kind, trap in FAMILIES["topic"].items()]
    return [(kind, text) for kind, text in made if text]


def _right(setting: Setting, rng: np.random.Generator) -> tuple[str, str]:
    """Return the right passage as it is, repeated, or inside a longer text, and which it is."""
    drawn, size = rng.random(), len(setting.right.split())
    if drawn < REPEATED and size <= 60:
        return " ".join([setting.right] * int(rng.integers(2, 7))), "repeated"
    if REPEATED <= drawn < REPEATED + EMBEDDED and size <= 120 and setting.wrong:
        return embedded(setting, rng), "embedded"
    return setting.right, "as it is"


def embedded(setting: Setting, rng: np.random.Generator) -> str:
    """Return the right passage after some sentences of a wrong one and before others, up to `LONG` words."""
    before = sentences_of(setting.wrong[int(rng.integers(len(setting.wrong)))])[: int(rng.integers(0, 3))]
    text = " ".join([*" ".join(before).split()[:50], setting.right])
    limit = int(rng.integers(120, LONG))
    for place in rng.permutation(len(setting.wrong)).tolist():
        left = limit - len(text.split())
        if left < 10:
            break
        text = f"{text} {' '.join(setting.wrong[place].split()[:left])}"
    return text
