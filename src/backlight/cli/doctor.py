"""`backlight doctor`: run a script and find its mistakes with gradients."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.outputs import check_output, write_output
from backlight.cli.programs.command_line import add_engine, add_program, parsed, required
from backlight.cli.programs.program import Notebook, Program, Script
from backlight.cli.run import engine_requested, run_program
from backlight.errors import InputError
from backlight.lens.doctor.corrections.rerun import Rerun
from backlight.lens.doctor.doctor_block import DoctorBlock
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.report import Report, ReportLine, parts, plain_line
from backlight.lens.doctor.rule_index import explain, families
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.step_limit import StepLimit
from backlight.lens.finding import NOTE, Finding
from backlight.report.text import coloured, wants_colour

CLEAN, FINDINGS, FAILED = 0, 1, 2
COLOURS = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "place": "2",
    "corrected": "32",
    "verified": "32",
    "source": "31",
}


def doctor(argv: Sequence[str]) -> int:
    """Run the command; return 0 if nothing was found, 1 for errors and warnings, 2 if the script failed otherwise."""
    given, program = parsed(_arguments(), argv)
    if given.explain is not None:
        print(explain(given.explain), end="")
        return CLEAN
    if given.list:
        print(listed())
        return CLEAN
    return _examine(required(program, "a script (--explain and --list need none)"), given)


def _arguments() -> Parser:
    parser = Parser(prog="backlight doctor", description="Run a script and find its mistakes with gradients.")
    add_program(parser, "script.py|notebook.ipynb")
    add_engine(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="also detect writes that bypass version counters, by hashing saved tensors",
    )
    parser.add_argument("--notes", action="store_true", help="also report legal code that is often misunderstood")
    parser.add_argument("--steps", type=int, metavar="N", help="stop the program after N optimizer steps")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="rerun the script with each corrected line, and report which ones fix it",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as the last line of stdout, as JSON")
    parser.add_argument("--sarif", metavar="FILE", help="write the findings to a file, as SARIF 2.1.0")
    parser.add_argument("--explain", metavar="ID", help="explain a rule, by its id or name, and exit")
    parser.add_argument("--list", action="store_true", help="list all rules, and exit")
    return parser


def _examine(program: Program, given: argparse.Namespace) -> int:
    engine = engine_requested(given.engine)
    check_output("--sarif", given.sarif)
    if given.verify and not isinstance(program, Script):
        raise InputError(f"--verify must come with a script, which it corrects in a copy, got {program.name}")
    _report_skipped(program)
    limit = None if given.steps is None else StepLimit(given.steps)
    block = DoctorBlock(strict=given.strict, notes=given.notes, engines=[engine], annotate=False, limit=limit)
    began = time.monotonic()
    ended = run_program(program, engine=engine.name, around=block)
    report = block.report or Report(Session())  # none if the script could not even be compiled
    try:
        with ended.where_it_began():
            if given.verify and ended.code != INTERRUPTED:
                report.verify(_rerun(program, given, engine.name, time.monotonic() - began))
            _write_report(report, given, ended.code)
        if limit is not None and limit.reached:
            print(f"doctor: stopped after {counted(limit.steps, 'optimizer step')}", file=sys.stderr)
    finally:
        ended.show()  # also where the report cannot be written
    if ended.code == INTERRUPTED:
        return INTERRUPTED
    if any(found.level != NOTE for found in report):
        return FINDINGS
    return FAILED if ended.code else CLEAN


def _rerun(program: Program, given: argparse.Namespace, engine: str, seconds: float) -> Rerun:
    """Return the settings to rerun the script with: those of this run."""
    options = ["--engine", engine, *(["--strict"] if given.strict else [])]
    options += [] if given.steps is None else ["--steps", str(given.steps)]
    return Rerun(program.name, program.arguments, options, seconds)


def _report_skipped(program: Program) -> None:
    """Report the lines of a notebook that are IPython syntax and are not run."""
    if isinstance(program, Notebook):
        for cell in program.cells():
            for line in cell.skipped:
                notice(f"skipped IPython syntax: {line} ({Path(cell.file).name})")


def _write_report(report: Report, given: argparse.Namespace, ended: int) -> None:
    """Write and print what was found."""
    if given.sarif is not None:
        write_output(given.sarif, report.to_sarif(indent=1), "--sarif")
    if given.json:
        print(report.to_json())
    else:
        _print_report(report, ended)


def _print_report(report: Report, ended: int) -> None:
    colours = wants_colour(sys.stderr)
    for found in report:
        print(file=sys.stderr)
        for part in parts(found):
            print(_painted(found, part, colours), file=sys.stderr)
    summary = report.summary
    if ended and not len(report):
        summary += f", but the script ended with exit code {ended}: nothing after that was examined"
    print(f"\ndoctor: {summary}", file=sys.stderr)


def _painted(found: Finding, part: ReportLine, colours: bool) -> str:
    code = COLOURS.get(found.level if part.kind == "head" else part.kind)
    return coloured(plain_line(found, part), code if colours else None)


def listed() -> str:
    """Return all rules, a line each, by family."""
    lines = []
    for prefix, (name, rules) in families().items():
        lines += ["", f"{prefix}xx  {name}"]
        lines += [f"  {rule.id}  {rule.level:8}{rule.slug}" for rule in rules]
    return "\n".join(lines[1:])
