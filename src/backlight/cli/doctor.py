"""`backlight doctor`: run a script and say what is wrong with its gradients."""

import argparse
import sys
import time
from collections.abc import Sequence

from backlight.cli.main import INTERRUPTED, Parser
from backlight.cli.outputs import check_output, write_output
from backlight.cli.run import add_engine, engine_requested, parsed, run_script
from backlight.errors import InputError
from backlight.lens.doctor.cures.rerun import Rerun
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.report import Report, ReportLine, parts, plain_line
from backlight.lens.doctor.rule_index import explain, families
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.visit import Visit
from backlight.lens.finding import NOTE, Finding
from backlight.report.text import coloured, wants_colour

HEALTHY, ILL, CANNOT = 0, 1, 2
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
    """Run the command; return 0 if nothing was found, 1 for errors and warnings, 2 if the script cannot be judged."""
    given, given.arguments = parsed(_arguments(), argv)
    if given.explain is not None:
        print(explain(given.explain), end="")
        return HEALTHY
    if given.list:
        print(listed())
        return HEALTHY
    if given.script is None:
        raise InputError("script must be the path of a Python file; --explain and --list need none")
    return _examine(given)


def _arguments() -> argparse.ArgumentParser:
    parser = Parser(prog="backlight doctor", description="Run a script and say what is wrong with its gradients.")
    parser.add_argument("script", nargs="?", help="a Python file")
    add_engine(parser, "script.py")
    parser.add_argument("--strict", action="store_true", help="also find writes that no engine counts, by fingerprints")
    parser.add_argument("--notes", action="store_true", help="also report what is legal and often misunderstood")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="run the script again with each corrected line, and say which of them cure",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as the last line of stdout, as JSON")
    parser.add_argument("--sarif", metavar="FILE", help="write the findings to a file, as SARIF 2.1.0")
    parser.add_argument("--explain", metavar="ID", help="explain a rule, by its id or name, and stop")
    parser.add_argument("--list", action="store_true", help="list all rules, and stop")
    return parser


def _examine(given: argparse.Namespace) -> int:
    engine = engine_requested(given.engine)
    check_output("--sarif", given.sarif)
    visit = Visit(strict=given.strict, notes=given.notes, engines=[engine], annotate=False)
    began = time.monotonic()
    ended = run_script(given.script, given.arguments, engine=engine.name, around=visit)
    sys.stdout.flush()
    if ended == INTERRUPTED:
        return INTERRUPTED
    report = visit.report or Report(Session())  # none if the script could not even be compiled
    if given.verify:
        options = ["--engine", engine.name, *(["--strict"] if given.strict else [])]
        report.verify(Rerun(given.script, given.arguments, options, time.monotonic() - began))
    if given.sarif is not None:
        write_output(given.sarif, report.to_sarif(indent=1), "--sarif")
    if given.json:
        print(report.to_json())
    else:
        _show(report, ended)
    if any(found.level != NOTE for found in report):
        return ILL
    return CANNOT if ended else HEALTHY


def _show(report: Report, ended: int) -> None:
    colours = wants_colour(sys.stderr)
    for found in report:
        print(file=sys.stderr)
        for part in parts(found):
            print(_painted(found, part, colours), file=sys.stderr)
    summary = counted(len(report), "finding") if len(report) else "no findings"
    if ended and not len(report):
        summary += f", but the script ended with exit code {ended}: what came after that was not seen"
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
