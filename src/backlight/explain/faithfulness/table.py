"""From the records of a study to its table: a row for each method, a mean with its interval for each measure.

Intervals hold 95 %, by drawing the questions anew (report/intervals.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.explain.faithfulness.curves import SHARES, TENTHS, area, lost
from backlight.explain.faithfulness.measure import Variant
from backlight.explain.faithfulness.randomisation import HALF, WHOLE
from backlight.explain.faithfulness.study import Study, check_key, links_key, pair_key
from backlight.explain.methods.interactions import MATRICES
from backlight.report.intervals import Mean, difference, mean_of

FIFTH = SHARES.index(0.2)  # the share of words after which ranks are reported


Value = Callable[[Mapping, Mapping], float | None]  # of a pair's record and a method's part of it; None: not measured


def _curve(part: str, kind: str) -> Value:
    return lambda pair, own: lost(pair["score"], own[part][kind]) if part in own else None


def _area(kind: str) -> Value:
    return lambda pair, own: area(TENTHS, own["tenths"][kind]) if "tenths" in own else None


MEASURES: dict[str, Value] = {  # what is reported of a method on a pair; columns.py says what it means
    "comprehensiveness": _curve("mask", "deletion"),
    "sufficiency": _curve("mask", "insertion"),
    "comprehensiveness_deleted": _curve("drop", "deletion"),
    "sufficiency_deleted": _curve("drop", "insertion"),
    "comprehensiveness_by_magnitude": lambda pair, own: (
        lost(pair["score"], own["by_size"]) if "by_size" in own else None
    ),
    "deletion_auc": _area("deletion"),
    "insertion_auc": _area("insertion"),
    "naopc": lambda pair, own: own.get("naopc"),
    "ranks_lost": lambda pair, own: own["ranks"][FIFTH] - pair["rank"] if "ranks" in own else None,
    "ndcg_lost": lambda pair, own: pair["ndcg"] - own["ndcgs"][FIFTH] if "ndcgs" in own else None,
    "gap": lambda pair, own: None if own["gap"] is None else abs(own["gap"]),
    "passes": lambda pair, own: own["passes"],
    "seconds": lambda pair, own: own["seconds"],
}
CHECKS = {  # by the name of the measure: the check, and the part of its record
    "shortcut": ("shortcut", "precisions"),
    "half_random": ("randomised", HALF),
    "all_random": ("randomised", WHOLE),
    "batch_effect": ("batch_effect", "differences"),
}


@dataclass(frozen=True)
class Row:
    """All that was measured of one method."""

    label: str
    title: str
    signed: bool
    pairs: int
    failed: int
    means: Mapping[str, Mean]  # by the measure's name; what was not measured is missing
    behind: Mean | None  # by how much its comprehensiveness lies below the best method's, on the same pairs
    curve: tuple[float, ...] | None  # score lost by the share of words left, over the pairs that were looked at closely


def rows_of(study: Study) -> list[Row]:
    """Return the table of what is measured so far, the most comprehensive method first on the pairs they share."""
    pairs = [study.records[key] for number in range(len(study.questions)) if (key := pair_key(number)) in study.records]
    queries: dict[str, int] = {}
    units = [queries.setdefault(one.text, len(queries)) for one in study.questions]
    losses = {one.label: _by_pair(MEASURES["comprehensiveness"], pairs, one.label) for one in study.variants}
    best = _best(losses)
    seed = study.plan.seed
    rows = []
    for variant in study.variants:
        own = [pair["methods"][variant.label] for pair in pairs if variant.label in pair["methods"]]
        means = {
            name: mean_of(list(found.values()), [units[number] for number in found], seed=seed)
            for name, value in MEASURES.items()
            if (found := _by_pair(value, pairs, variant.label))
        }
        rows.append(
            Row(
                label=variant.label,
                title=variant.title,
                signed=variant.method.signed,
                pairs=len(own),
                failed=sum(variant.label in pair["failed"] for pair in pairs),
                means=means | dict(_checks(study, variant, seed)),
                behind=_behind(losses[best], losses[variant.label], units, seed) if variant.label != best else None,
                curve=_mean_curve(pairs, variant.label),
            )
        )
    explained = {row.label: 0.0 if "comprehensiveness" in row.means else np.inf for row in rows}
    return sorted(rows, key=lambda row: row.behind.value if row.behind else explained[row.label])


def _by_pair(value: Value, pairs: Sequence[Mapping], label: str) -> dict[int, float]:
    found = {
        number: value(pair, pair["methods"][label]) for number, pair in enumerate(pairs) if label in pair["methods"]
    }
    return {number: value for number, value in found.items() if value is not None}


def _best(losses: Mapping[str, Mapping[int, float]]) -> str:
    """Return the method that took most of the score on the pairs that all methods explained."""
    shared = set.intersection(*(set(found) for found in losses.values() if found))
    return max(losses, key=lambda label: np.mean([losses[label][n] for n in shared]) if losses[label] else -np.inf)


def _behind(best: Mapping[int, float], own: Mapping[int, float], units: Sequence[int], seed: int) -> Mean | None:
    both = sorted(set(best) & set(own))
    if not both:
        return None
    return difference([best[n] for n in both], [own[n] for n in both], [units[n] for n in both], seed=seed)


def _checks(study: Study, variant: Variant, seed: int) -> Iterable[tuple[str, Mean]]:
    for name, (check, part) in CHECKS.items():
        key = check_key(check, variant)
        if key in study.records and part in study.records[key]:
            yield name, mean_of(study.records[key][part], seed=seed)


def _mean_curve(pairs: Sequence[Mapping], label: str) -> tuple[float, ...] | None:
    """Return the mean score lost at each tenth of the words, over the pairs that were looked at closely."""
    found = [
        pair["score"] - np.array(pair["methods"][label]["tenths"]["deletion"])
        for pair in pairs
        if "tenths" in pair["methods"].get(label, {})
    ]
    return tuple(np.mean(found, axis=0).tolist()) if found else None


@dataclass(frozen=True)
class LinkRow:
    """How well a matrix of interactions finds the words that people linked."""

    label: str
    title: str
    means: Mapping[str, Mean]  # auc, auc_unlike, precision, seconds


def link_rows_of(study: Study) -> list[LinkRow]:
    """Return the table of interactions, the best first; empty where no links were given."""
    keys = map(links_key, range(len(study.links)))
    records = [study.records[key] for key in keys if key in study.records]
    rows = []
    for name in records[0] if records else ():
        means = {}
        for measure in ("auc", "auc_unlike", "precision", "seconds"):
            found = [record[name][measure] for record in records if measure in record.get(name, {})]
            if found:
                means[measure] = mean_of(found, seed=study.plan.seed)
        title = MATRICES[name].title if name in MATRICES else name
        rows.append(LinkRow(name, title, means))
    return sorted(rows, key=lambda row: -row.means["auc"].value if "auc" in row.means else np.inf)
