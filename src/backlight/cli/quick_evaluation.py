"""`backlight evaluate --quick`: which method of few passes suits a model, in less than two minutes."""

import argparse
import dataclasses
import datetime
import sys
from collections.abc import Sequence

from backlight.cli.arguments import reranker_of
from backlight.cli.main import INTERRUPTED, version
from backlight.cli.outputs import as_json
from backlight.cli.screens.quick_evaluation import live, markdown_of, show_quick
from backlight.cli.screens.terminal import screen
from backlight.errors import InputError
from backlight.explain.faithfulness.measure import Variant
from backlight.explain.faithfulness.questions import Listed, shuffled
from backlight.explain.faithfulness.quick import SECONDS, QuickCheck, QuickRow, cheap_variants, verdict_of
from backlight.explain.faithfulness.saved_choice import SavedChoice, write_choice
from backlight.models.checkpoint import find_model

FIGURES = ("signs", "query_signs", "top", "order")


def evaluate_quickly(
    given: argparse.Namespace, data: str, listed: Sequence[Listed], variants: Sequence[Variant] | None
) -> int:
    """Measure methods of few passes on a model, and print the table and what follows from it.

    Args:
        given: the arguments of `backlight evaluate`.
        data: what the questions are called.
        variants: the methods; those of few passes by default.
    """
    ranker = reranker_of(given).scorer
    questions = shuffled(listed, given.seed)[: given.pairs]
    variants = cheap_variants(ranker) if variants is None else variants
    check = QuickCheck(ranker, questions, variants, given.seconds or SECONDS, given.seed)
    stopped = not _run(check)
    about = f"{ranker.name} on {len(check.found)} pairs of {data}"
    if given.json:
        print(as_json(_data(check, ranker.name, data)))
    elif given.markdown:
        print(markdown_of(check))
    else:
        show_quick(check, about, screen(given.theme).console)
    if given.save:
        _save(given, check, data)
    return INTERRUPTED if stopped else 0


def _run(check: QuickCheck) -> bool:
    """Measure, and tell whether all was: Ctrl-C shows what was measured until then."""
    try:
        with live(check, sys.stderr) as tell:
            check.run(tell)
    except KeyboardInterrupt:
        if not check.found:
            raise
        print("Stopped: the table is of what was measured so far.", file=sys.stderr)
        return False
    return True


def _save(given: argparse.Namespace, check: QuickCheck, data: str) -> None:
    """Keep the best method with the model.

    Raises:
        InputError: nothing could be measured, or the folder cannot be written.
    """
    verdict = verdict_of(check.rows())
    if verdict is None:
        raise InputError("--save must have a method to keep, and none could be measured on these pairs")
    row = verdict.estimate
    measured = _figures(row) | {
        "believable": verdict.believable,
        "data": data,
        "date": datetime.date.today().isoformat(),
        "version": version(),
    }
    choice = SavedChoice(row.variant.method.name, dict(row.variant.options), measured)
    file = write_choice(find_model(given.model), choice)
    print(f"The choice is kept in {file}", file=sys.stderr)


def _figures(row: QuickRow) -> dict:
    """Return a row's figures as plain numbers; null where there is none."""
    found = {name: mean and round(mean.value, 4) for name in FIGURES for mean in [getattr(row, name)]}
    return found | {"passes": row.passes, "seconds": round(row.seconds, 4), "pairs": row.pairs}


def _data(check: QuickCheck, model: str, data: str) -> dict:
    """Return the table and the verdict as data (docs/faithfulness.md describes it)."""
    verdict, rows = verdict_of(check.rows()), []
    for row in check.rows():
        means = {name: mean and dataclasses.asdict(mean) for name in FIGURES for mean in [getattr(row, name)]}
        cost = {"passes": row.passes, "seconds": row.seconds, "pairs": row.pairs, "failed": row.failed}
        rows.append({"method": row.variant.method.name, "options": dict(row.variant.options), **means, **cost})
    said = verdict and {
        "estimate": verdict.estimate.label,
        "signs": verdict.signs.label,
        "believable": verdict.believable,
        "text": verdict.text,
    }
    return {"model": model, "data": data, "pairs": len(check.found), "rows": rows, "verdict": said}
