"""`backlight diff`: compare two recorded graphs."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from backlight.cli.main import Parser
from backlight.cli.outputs import check_output, write_file
from backlight.errors import InputError
from backlight.lens.differences.diff import Diff
from backlight.lens.differences.diff import diff as difference
from backlight.lens.records.reading import read_record
from backlight.lens.records.record import Record
from backlight.report.text import coloured, wants_colour

COLOURS = {"+": "32", "-": "31", "~": "33", "@": "36"}
CODES = {"same": 0, "close": 0, "differ": 1, "unknown": 2}


def diff(argv: Sequence[str]) -> int:
    """Run `backlight diff` with these arguments; return 1 if the records differ, else 0, 2 if they cannot be compared.

    Raises:
        InputError: something that was given cannot be used.
    """
    own = list(argv[: argv.index("--")]) if "--" in argv else list(argv)
    given, passed = _parser().parse_args(own), list(argv[len(own) + 1 :])
    check_output("--svg", given.svg)
    check_output("--html", given.html)
    before, after = _records(given, passed)
    found = difference(before, after, tolerance=given.tolerance)
    for path, drawn in ((given.svg, found.svg), (given.html, found.html)):
        if path:
            write_file(Path(path), drawn().encode())
    by_values = given.values or given.rerun is not None
    if given.json:
        print(found.to_json(ensure_ascii=False, indent=1))
    elif by_values:
        print(found.verdict())
    else:
        lines = [*_verdict(found), *found.text(details=given.all).splitlines()]
        print("\n".join(_coloured(lines, sys.stdout)))
    return CODES[found.values.status] if by_values else int(bool(found))


def _verdict(found: Diff) -> list[str]:
    """Return where the values diverge, for records that were made to be compared by their values."""
    return [*found.verdict().splitlines(), ""] if found.fingerprinted and found.values.status != "same" else []


def _records(given: argparse.Namespace, passed: Sequence[str]) -> list[Record]:
    """Return the two records that were named, or those of two runs of a script."""
    if given.rerun is None:
        if len(given.records) != 2 or passed:
            raise InputError(
                f"records must be two files, got {len(given.records)}: backlight diff before.json after.json"
            )
        return [read_record(Path(path)) for path in given.records]
    if given.records:
        raise InputError(f"--rerun takes one script, got {given.records[0]} too: put the script's arguments after --")
    with TemporaryDirectory() as folder:
        return [_run_of(given, passed, Path(folder) / f"{number}.json") for number in range(2)]


def _run_of(given: argparse.Namespace, passed: Sequence[str], path: Path) -> Record:
    """Run a script in a process of its own, and return the record of its last step."""
    options = ["--values", "hash", "--json", str(path)]
    options += [] if given.seed is None else ["--seed", str(given.seed)]
    options += [] if given.engine is None else ["--engine", given.engine]
    command = [sys.executable, "-m", "backlight", "graph", *options, given.rerun, *passed]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    if ended or not path.exists():
        raise InputError(f"{given.rerun} must run to its end, and ended with exit code {ended}: run it alone first")
    return read_record(path)


def _parser() -> Parser:
    parser = Parser(
        prog="backlight diff",
        description="Show how two recorded graphs differ: nodes added (+), removed (-) and changed (~). The exit code "
        "is 1 if they differ, else 0. With --values or --rerun, values are compared op by op: 0 if they agree within "
        "the tolerance, 1 if they diverge, 2 if they cannot be compared.",
    )
    parser.usage = "%(prog)s before.json after.json [options] | --rerun script.py [options] [-- the script's arguments]"
    parser.add_argument("records", nargs="*", metavar="record", help="two files that Record.save() wrote")
    parser.add_argument(
        "--values",
        action="store_true",
        help="print only where the values diverge: at which op, by how much, and whether it is rounding",
    )
    parser.add_argument(
        "--rerun",
        metavar="SCRIPT",
        help="run a script twice and print where its last steps diverge",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="with --rerun: seed both runs (default: as the script does)"
    )
    parser.add_argument("--engine", choices=("torch", "backlight"), help="with --rerun: what `import torch` gives it")
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="how much a value or gradient may differ, relative to its norm (default 1e-4; for values, by dtype)",
    )
    parser.add_argument("--all", action="store_true", help="list every node that differs, in full")
    parser.add_argument("--json", action="store_true", help="print the differences as JSON")
    parser.add_argument("--svg", metavar="FILE", help="draw both graphs as one picture")
    parser.add_argument("--html", metavar="FILE", help="write both graphs as a page")
    return parser


def _coloured(lines: Sequence[str], out: TextIO) -> list[str]:
    """Return lines in the colours of what they begin with, if they go to a terminal that wants colours."""
    return [coloured(line, COLOURS.get(line[:1])) for line in lines] if wants_colour(out) else list(lines)
