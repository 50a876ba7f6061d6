"""Hard negatives: documents that look right and are not.

python benchmarks/reranker_traps.py DATA [--model M] [--queries N] [--json FILE]

Queries of collections that were not used for training (SQuAD's held-out articles, QED, and the held-out groups of
medquad and tldr). For each: how often the query itself, repeated, shuffled or inside a remark, scores above the right
passage; the same for passages stuffed with the query's words; by how much a sentence's score rises when it is repeated;
and, for SQuAD only, whose answers are known, how well scores tell right passages from hard negatives: the passage
without the answer's sentence, the passage next to it, the passage with a changed fact that the query names, and the
passage under a query with that fact changed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from backlight.training.reranker.measures import auroc
from backlight.training.reranker.model import scores_of
from reranker_sources import shared_data
from reranker_sources.mining import is_wrong
from reranker_sources.passages import coverage, sentences_of
from reranker_sources.source import Asked, Source, digest
from reranker_sources.traps import (
    Setting,
    changed_fact,
    changed_query,
    echo_shuffled,
    keyword_list,
    names_of,
    stuffed,
    without_answer,
)

SEED = 0
REMARKS = (  # none of them is in training
    "Someone wrote to us: {}",
    "{} The answer is left as an exercise.",
    "We are often sent the question “{}” by our readers.",
    "TODO: write a section about {}",
)
TIMES = (10, 100)  # how often a sentence is repeated
RISE = 0.5  # of the score, in logits, that repetition should not exceed
WRONG = 60  # passages of a collection among which a wrong one with the query's words is looked for
Score = Callable[[Sequence[tuple[str, str]]], np.ndarray]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--model", default="builtin", metavar="M", help="a reranker, by name or folder")
    options.add_argument("--queries", type=int, default=100, metavar="N", help="of each collection")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    given = options.parse_args()
    model = load_ranker(find_model(given.model), given.model)
    read = [shared_data.squad_test(given.data), shared_data.qed(given.data)]
    read += [reader(given.data).part(test=True) for reader in (shared_data.medquad, shared_data.tldr)]
    found: dict = {"model": given.model, "collections": {}}
    for source in read:
        asked = drawn(source, given.queries)
        found["collections"][source.name] = figures = measured(source, asked, partial(scores_of, model))
        print("\n".join(lines_of(source.name, figures)), flush=True)
    about = f"How {given.model} scores hard negatives made by rules, {given.queries} queries of each collection"
    found["sections"] = [{"about": about, "lines": table_of(found["collections"])}]
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def drawn(source: Source, count: int) -> list[Asked]:
    """Return queries drawn by a fixed seed."""
    rng = np.random.default_rng([SEED, digest(source.name)])
    return [source.asked[place] for place in rng.permutation(len(source.asked))[:count].tolist()]


def measured(source: Source, asked: Sequence[Asked], score: Score) -> dict[str, float]:
    """Return every figure of a collection."""
    rng = np.random.default_rng(SEED)
    settings = [setting_of(source, one, rng) for one in asked]
    right = score([(one.query, one.right) for one in settings])
    found = {"queries": len(settings), "right above 0": float((right > 0).mean())}
    for name, text in ABOVE.items():
        texts = [text(one, rng) for one in settings]
        held = [place for place, made in enumerate(texts) if made]
        scores = score([(settings[place].query, texts[place]) for place in held])
        found[f"{name} above right"] = float((scores > right[held]).mean())
    found |= repetition(settings, score)
    if all(one.answers for one in asked) and source.name == "squad":
        found |= hard_negatives(settings, right, score, rng)
    return found


def setting_of(source: Source, one: Asked, rng: np.random.Generator) -> Setting:
    """Return a query with the wrong passage, of some drawn, that shares most of the query's words."""
    numbers = rng.integers(len(source.passages), size=WRONG).tolist()
    texts = [source.passages[number].text for number in numbers if is_wrong(source, one, number)]
    wrong = max(texts, key=lambda text: coverage(one.query, text))
    beside = [source.passages[number].text for number in source.neighbours(one.right) if is_wrong(source, one, number)]
    names = names_of(texts)
    return Setting(one.query, source.passages[one.right].text, one.answers, (wrong,), beside, names=names)


ABOVE = {
    "query itself": lambda one, rng: one.query,
    "query ten times": lambda one, rng: " ".join([one.query] * 10),
    "shuffled query": echo_shuffled,
    "query in a remark": lambda one, rng: REMARKS[int(rng.integers(len(REMARKS)))].format(one.query),
    "keyword-stuffed passage": stuffed,
    "list of keywords": keyword_list,
}


def repetition(settings: Sequence[Setting], score: Score) -> dict[str, float]:
    """Return by how much scores rise when a sentence of a right or a wrong passage is repeated."""
    pairs = []
    for one in settings[: max(10, len(settings) // 4)]:
        held = max(sentences_of(one.right), key=lambda sentence: coverage(one.query, sentence))
        pairs += [(one.query, held), (one.query, sentences_of(one.wrong[0])[0])]
    once = score(pairs)
    found = {}
    for times in TIMES:
        rise = score([(query, " ".join([text] * times)) for query, text in pairs]) - once
        found[f"rise by {times} times, mean"] = float(rise.mean())
        found[f"rise by {times} times, 95th percentile"] = float(np.quantile(rise, 0.95))
        found[f"rise by {times} times, above {RISE}"] = float((rise > RISE).mean())
    return found


def hard_negatives(
    settings: Sequence[Setting], right: np.ndarray, score: Score, rng: np.random.Generator
) -> dict[str, float]:
    """Return how well scores tell right passages from hard negatives (see NOTE [Facts that are changed])."""
    made = {
        "answer cut": [without_answer(one.right, one.answers) for one in settings],
        "neighbour": [one.beside[0] if one.beside else None for one in settings],
        "fact changed": [changed_fact(one, rng) for one in settings],
    }
    queries = [changed_query(one, rng) for one in settings]
    asked = [(query, one.right) for query, one in zip(queries, settings) if query]
    changed = score(asked) if asked else np.empty(0)
    found: dict[str, float] = {"query changed: pairs": len(asked)}
    if asked:
        found["query changed: AUROC"] = auroc(right, changed)
        found["query changed: above 0"] = float((changed > 0).mean())
    together = []
    everything = [changed]
    for name, texts in made.items():
        held = [place for place, text in enumerate(texts) if text]
        if not held:
            continue
        scores = score([(settings[place].query, texts[place]) for place in held])
        found[f"{name}: pairs"] = len(held)
        found[f"{name}: AUROC"] = auroc(right, scores)
        found[f"{name}: above 0"] = float((scores > 0).mean())
        found[f"{name}: above its right passage"] = float((scores > right[held]).mean())
        everything.append(scores)
        if name != "fact changed":
            together.append(scores)
    if together:
        found["unanswerable: AUROC"] = auroc(right, np.concatenate(together))
        found["all hard negatives: AUROC"] = auroc(right, np.concatenate(everything))
        found["all hard negatives: above 0"] = float((np.concatenate(everything) > 0).mean())
    return found


def table_of(collections: dict[str, dict[str, float]]) -> list[str]:
    """Return the figures of all collections as Markdown, a column each."""
    names = list(dict.fromkeys(name for figures in collections.values() for name in figures))
    lines = [f"| | {' | '.join(collections)} |", f"|---|{'---|' * len(collections)}"]
    for name in names:
        values = (figures.get(name) for figures in collections.values())
        lines.append(f"| {name} | {' | '.join(map(shown, values))} |")
    return lines


def shown(value: float | None) -> str:
    """Return a figure as a cell: counts whole, shares with three digits."""
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def lines_of(name: str, figures: dict[str, float]) -> list[str]:
    """Return a collection's figures as Markdown."""
    return [f"\n| {name} | |", "|---|---|", *(f"| {key} | {shown(value)} |" for key, value in figures.items())]


if __name__ == "__main__":
    main()
