"""`backlight diff`: what is different between two recorded graphs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from backlight.cli.main import Parser
from backlight.cli.outputs import check_output, write_file
from backlight.lens.differences.diff import diff as difference
from backlight.lens.records.reading import read_record
from backlight.report.text import coloured, wants_colour

COLOURS = {"+": "32", "-": "31", "~": "33", "@": "36"}


def diff(argv: Sequence[str]) -> int:
    """Run `backlight diff` with these arguments; return 1 if the records differ, 0 if not.

    Raises:
        InputError: something that was given cannot be used.
    """
    given = _parser().parse_args(argv)
    check_output("--svg", given.svg)
    check_output("--html", given.html)
    before, after = (read_record(Path(path)) for path in (given.before, given.after))
    found = difference(before, after, tolerance=given.tolerance)
    for path, drawn in ((given.svg, found.svg), (given.html, found.html)):
        if path:
            write_file(Path(path), drawn().encode())
    if given.json:
        print(found.to_json(ensure_ascii=False, indent=1))
    else:
        print("\n".join(_coloured(found.text(details=given.all).splitlines(), sys.stdout)))
    return int(bool(found))


def _parser() -> Parser:
    parser = Parser(
        prog="backlight diff",
        description="Show what is different between two recorded graphs: nodes added (+), gone (-) and changed (~). "
        "The exit code is 1 if anything is, 0 if nothing is.",
    )
    parser.add_argument("before", help="a file that Record.save() wrote")
    parser.add_argument("after", help="another one")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        metavar="X",
        help="what share of its norm a value or gradient may differ by",
    )
    parser.add_argument("--all", action="store_true", help="list every node that differs, and all about it")
    parser.add_argument("--json", action="store_true", help="print the differences as JSON")
    parser.add_argument("--svg", metavar="FILE", help="write both graphs as one picture")
    parser.add_argument("--html", metavar="FILE", help="write both graphs as a page")
    return parser


def _coloured(lines: Sequence[str], out: TextIO) -> list[str]:
    """Return lines in the colours of what they begin with, if they go to a terminal that wants colours."""
    return [coloured(line, COLOURS.get(line[:1])) for line in lines] if wants_colour(out) else list(lines)
