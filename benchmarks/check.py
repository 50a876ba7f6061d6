"""Compare the rows that have a bar with the figures kept in benchmarks/kept.json, as ratios to PyTorch in the same run.

    python benchmarks/check.py [--suite tiny]

A figure more than 10 % worse than the one kept fails, if it is still so when its row is measured a second and a third
time. Exits with 1 then, with a line for each.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from run_all import KEPT, SUITES, figures, key_of, run_suite

WORSE = 1.10
AGAIN = 2  # measurements more of a row that fails


@dataclass(frozen=True)
class Failure:
    """A figure that is worse than the one kept; `value` is None if it was not measured."""

    row: str
    figure: str
    value: float | None
    kept: float

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.row}: {self.figure} was not measured; kept is {self.kept:.2f} × PyTorch"
        return (
            f"{self.row}: {self.figure} is {self.value:.2f} × PyTorch, kept is {self.kept:.2f}: "
            f"{self.value / self.kept - 1:.0%} worse"
        )


def compare(kept: Mapping[str, Mapping[str, float]], rows: Sequence[dict]) -> list[Failure]:
    """Return each kept figure that these rows are more than 10 % above, or do not have."""
    measured = {key_of(row): figures(row) for row in rows}
    return [
        Failure(row, name, measured.get(row, {}).get(name), value)
        for row, values in kept.items()
        for name, value in values.items()
        if not measured.get(row, {}).get(name, float("inf")) <= value * WORSE
    ]


def confirmed(kept: Mapping[str, Mapping[str, float]], rows: Sequence[dict], measure: Callable) -> list[Failure]:
    """Return the failures that remain when their rows are measured again, twice; the best figure counts.

    Args:
        measure: returns the new rows for the names of rows, as they stand in `kept`.
    """
    failures = compare(kept, rows)
    for _ in range(AGAIN):
        if not failures:
            break
        names = sorted({failure.row for failure in failures})
        best = {(failure.row, failure.figure): failure for failure in failures}
        failures = []
        for failure in compare({name: kept[name] for name in names}, measure(names)):
            before = best.get((failure.row, failure.figure))
            if before is not None:
                failures.append(min(before, failure, key=lambda one: float("inf") if one.value is None else one.value))
    return failures


def measure_again(names: Sequence[str]) -> list[dict]:
    """Measure single rows again, named as in kept.json."""
    found = []
    for suite in SUITES:
        only = [name.removeprefix(f"{suite} / ") for name in names if name.startswith(f"{suite} / ")]
        if only:
            print(f"\n== {suite}, again", flush=True)
            found += run_suite(suite, [argument for row in only for argument in ("--only", row)])["rows"]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", action="append", choices=SUITES, help="check this one only; may be repeated")
    suites = parser.parse_args(argv).suite or list(SUITES)
    if not KEPT.exists():
        print(f"there is no {KEPT.name} to compare with: write it with run_all.py --keep")
        return 1
    every = json.loads(KEPT.read_text())
    kept = {row: values for row, values in every.items() if row.split(" / ")[0] in suites}
    rows = []
    for suite in suites:
        if any(row.startswith(f"{suite} / ") for row in kept):
            print(f"\n== {suite}", flush=True)
            rows += run_suite(suite, ["--barred"])["rows"]
    failures = confirmed(kept, rows, measure_again)
    print()
    for failure in failures:
        print(failure)
    if not failures:
        print(f"{len(kept)} rows are as fast and as small as the figures kept, within 10 %")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
