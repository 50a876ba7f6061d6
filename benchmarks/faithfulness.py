"""Measure the faithfulness of all methods on the built-in model, and write the tables and curves of the docs from it.

    python benchmarks/faithfulness.py DATA      measure: half an hour on two idle cores; goes on where it was stopped
    python benchmarks/faithfulness.py           write the tables and curves of benchmarks/faithfulness.json anew

DATA is a folder that holds squad/ and qed/. A table stands between `<!-- table: NAME -->` and `<!-- end -->` in
docs/faithfulness.md; the curves go to docs/images/faithfulness_deletion.svg.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from backlight.cli.main import main as backlight
from backlight.explain.faithfulness.columns import markdown_tables
from backlight.explain.faithfulness.table import LinkRow, Row
from backlight.report.intervals import Mean
from backlight.training.run_folder import write_atomically
from backlight.web.evaluation import deletion_picture

HERE = Path(__file__).parent
RESULTS, RECORDS = HERE / "faithfulness.json", HERE.parent / "out" / "faithfulness.jsonl"
PAGE = HERE.parent / "docs" / "faithfulness.md"
PICTURE = PAGE.parent / "images" / "faithfulness_deletion.svg"
PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Measure, if data was given, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="the folder that holds squad/ and qed/")
    parser.add_argument("--model", default="builtin")
    given = parser.parse_args()
    if given.data is not None:
        measure(given.data, given.model)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    PICTURE.write_text(deletion_picture(rows_in(results)), encoding="utf-8")


def measure(data: Path, model: str) -> None:
    """Run `backlight evaluate` on the data, from where it was stopped, and keep what it prints."""
    command = ["evaluate", str(data / "squad"), "--model", model, "--links", str(data / "qed" / "qed-dev.jsonlines")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = backlight([*command, "--records", str(RECORDS), "--resume", "--json"])
    if code:
        sys.exit(code)
    write_atomically(RESULTS, printed.getvalue().encode())


def page_with_tables(page: str, results: Mapping) -> str:
    """Return the page with each marked table written anew."""
    links = [LinkRow(**row | {"means": _means(row["means"])}) for row in results["links"]]
    tables = markdown_tables(rows_in(results), links)
    tables["picture"] = f"![The score that is lost as words leave, strongest first](images/{PICTURE.name})\n"
    most, planned = max(row["pairs"] for row in results["rows"]), results["plan"]["pairs"]
    tables["pairs"] = f"Measured so far: {most} pairs of {planned}; the tables say how many by each method.\n"
    return PLACE.sub(lambda match: match[1] + tables.get(match[2], "") + match[3], page)


def rows_in(results: Mapping) -> list[Row]:
    """Return the rows of a study that was kept as JSON."""
    return [
        Row(
            **row
            | {
                "means": _means(row["means"]),
                "behind": row["behind"] and Mean(**row["behind"]),
                "curve": row["curve"] and tuple(row["curve"]),
            }
        )
        for row in results["rows"]
    ]


def _means(found: Mapping) -> dict[str, Mean]:
    return {name: Mean(**mean) for name, mean in found.items()}


if __name__ == "__main__":
    main()
