"""`backlight graph`: run a script, or read a record, and draw its backward graph."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from backlight.cli.main import INTERRUPTED, Parser
from backlight.cli.outputs import check_output, write_output
from backlight.cli.programs.command_line import RECORD, add_engine, add_program, parsed, required
from backlight.cli.run import engine_requested, run_program
from backlight.errors import InputError
from backlight.lens.differences.runs import set_seed
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import WAYS, Picture, picture_of
from backlight.lens.pictures.svg import svg
from backlight.lens.pictures.text import dot, tree
from backlight.lens.records.reading import read_record
from backlight.lens.records.record import Record
from backlight.lens.records.watching import VALUES, Watch, watch

OUTPUTS = {"html": "page", "svg": "picture", "dot": "Graphviz file", "json": "record"}


def graph(argv: Sequence[str]) -> int:
    """Run the command; return the script's exit code, 1 if it ended with an exception."""
    given, program = parsed(_arguments(), argv)
    program = required(program, "a script or a record")
    for name in OUTPUTS:
        check_output(f"--{name}", getattr(given, name))
    if program.name.endswith(RECORD):
        _draw(read_record(Path(program.name)), given, given.backward)
        return 0
    engine = engine_requested(given.engine).name
    if given.seed is not None:
        set_seed(given.seed)
    watched = watch(values=given.values, engine=engine, title=program.title, steps=_kept(given.backward))
    ended = run_program(program, engine=engine, around=watched)
    ended.show()
    if ended.code == INTERRUPTED or (ended.code and not _records(watched)):
        return ended.code
    with ended.where_it_began():
        _draw(_chosen(watched, given, program.name), given, -1)
    return ended.code


def _arguments() -> Parser:
    parser = Parser(prog="backlight graph", description="Run a script and draw its backward graph.")
    add_program(parser, "script.py|notebook.ipynb|record.json")
    add_engine(parser)
    parser.add_argument(
        "--backward",
        type=int,
        default=-1,
        metavar="N",
        help="draw the graph of the Nth backward pass; -1 (default) is the last, -2 the one before",
    )
    parser.add_argument("--by", choices=WAYS, default=WAYS[0], help="how to group nodes (default: module)")
    parser.add_argument(
        "--values", choices=VALUES, default=VALUES[0], help="what to record of tensors (default: a summary)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed the engine, NumPy and Python before the script runs"
    )
    parser.add_argument(
        "--width", type=int, metavar="N", help="truncate the tree's lines at column N (default: the terminal's width)"
    )
    parser.add_argument("--html", metavar="FILE", help="write an interactive, self-contained page")
    parser.add_argument("--svg", metavar="FILE", help="draw a picture")
    parser.add_argument("--dot", metavar="FILE", help="write a Graphviz file")
    parser.add_argument("--json", metavar="FILE", help="save the record, to draw or compare it later")
    return parser


def _kept(backward: int) -> int:
    """Return how many graphs to hold: counted from the end just those, counted from the beginning all."""
    if backward == 0:
        raise InputError("--backward must be 1 or more, or -1 or less to count from the last, got 0")
    return -backward if backward < 0 else sys.maxsize


def _records(watched: Watch) -> list[Record]:
    """Return the graphs that a backward ran through; where none ran, those there are."""
    ran = [record for record in watched.records if record.backwards]
    return ran or watched.records


def _chosen(watched: Watch, given: argparse.Namespace, name: str) -> Record:
    records = _records(watched)
    if not records:
        raise InputError(
            f"{name} must compute something that requires grad, and nothing did: check requires_grad, and that "
            "it is not all under no_grad()"
        )
    place = given.backward - 1 if given.backward > 0 else given.backward
    if not -len(records) <= place < len(records):
        raise InputError(f"--backward must be one of the {len(records)} that ran, got {given.backward}")
    return records[place]


def _draw(record: Record, given: argparse.Namespace, backward: int) -> None:
    """Write the requested outputs; print the tree if there are none."""
    count = len(record.backwards)
    if count and not 1 <= abs(backward) <= count:
        raise InputError(f"--backward must be one of the {count} that ran, from 1 or -1 on, got {backward}")
    backward = backward - 1 if backward > 0 else backward
    made = {
        "html": lambda: page_of(record, by=given.by, backward=backward),
        "svg": lambda: svg(_picture(record, given, backward)),
        "dot": lambda: dot(_picture(record, given, backward)),
        "json": lambda: record.to_json(),
    }
    requested = [name for name in OUTPUTS if getattr(given, name) is not None]
    for name in requested:
        path = getattr(given, name)
        write_output(path, made[name](), f"--{name}")
        print(f"The {OUTPUTS[name]} is in {path}")
    if not requested:
        width = given.width or (shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
        print(tree(_picture(record, given, backward), width=width))


def _picture(record: Record, given: argparse.Namespace, backward: int) -> Picture:
    return picture_of(record, by=given.by, backward=backward)
