"""`backlight replay`: step through the forward and backward of a script or of a saved record."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from backlight.cli.main import INTERRUPTED, Parser
from backlight.cli.outputs import check_output, write_output
from backlight.cli.programs.command_line import RECORD, add_engine, add_program, parsed, required
from backlight.cli.run import engine_requested, run_program
from backlight.errors import InputError
from backlight.lens.pictures.html import page_of
from backlight.lens.records.reading import read_record
from backlight.lens.records.record import Record
from backlight.lens.records.watching import watch
from backlight.lens.replays.replay import BEGIN, Replay


def replay(argv: Sequence[str]) -> int:
    """Run the command; return the script's exit code, or 0."""
    given, program = parsed(_arguments(), argv)
    program = required(program, "a script or a record")
    check_output("--html", given.html)
    if program.name.endswith(RECORD):
        _show(read_record(Path(program.name)), given, program.name)
        return 0
    name = engine_requested(given.engine).name
    watching = watch(engine=name, title=program.title)
    ended = run_program(program, engine=name, around=watching)
    ended.show()
    if watching.recordings and ended.code != INTERRUPTED:  # none of what could not be compiled
        with ended.where_it_began():
            _show(watching.record, given, program.name)
    return ended.code


def _show(record: Record, given: argparse.Namespace, name: str) -> None:
    """Write the page, print the steps, or step through them in a terminal."""
    if not record.nodes:
        raise InputError(
            f"{name!r} must compute something that requires grad: nothing was recorded, so there is no step"
        )
    replay = record.replay()
    if given.html is not None:
        write_output(given.html, page_of(record, replay=True), "--html")
        print(f"replay: {len(replay.steps)} steps in {given.html}", file=sys.stderr)
    elif given.json:
        print(_chosen(replay, given.backward).to_json())
    elif sys.stdin.isatty() and sys.stdout.isatty():
        screen = importlib.import_module("backlight.cli.screens.replay")
        screen.step_through(screen.ReplayScreen(replay, record.nodes, _begin_of(replay, given.backward)))
    else:
        print(_chosen(replay, given.backward).text())


def _arguments() -> Parser:
    parser = Parser(
        prog="backlight replay",
        description="Step through the forward and backward of a script. In a terminal, → and ← go to the next and the "
        "previous step and q quits; elsewhere all steps are printed.",
    )
    add_program(parser, "script.py|notebook.ipynb|record.json")
    add_engine(parser)
    parser.add_argument("--backward", type=int, metavar="N", help="start at, or print only, backward N (from 1)")
    parser.add_argument("--html", metavar="FILE", help="write a self-contained page that opens with the replay")
    parser.add_argument("--json", action="store_true", help="print the steps as JSON")
    return parser


def _begin_of(replay: Replay, number: int | None) -> int:
    """Return the step at which a backward begins; the first step by default."""
    if number is None:
        return 0
    begins = [step.number for step in replay.steps if step.kind == BEGIN]
    if not 1 <= number <= len(begins):
        raise InputError(f"backward must be one of the {len(begins)} that were recorded, got {number}: count from 1")
    return begins[number - 1]


def _chosen(replay: Replay, number: int | None) -> Replay:
    """Return the requested steps: all, or those of one backward."""
    if number is None:
        return replay
    _begin_of(replay, number)
    return replace(replay, steps=tuple(step for step in replay.steps if step.backward == number - 1))
