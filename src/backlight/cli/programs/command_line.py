"""Split a command line into the command's own options, the program, and the program's arguments.

NOTE [Whose option]
Options of the command come before the program; what follows it is the program's, as after `python script.py`. Two
exceptions: directly behind a script, up to the first `--`, the command's older options are still read as its own,
unless the script's source names them; and a record has no options of its own. After `-m module` all is the module's.
"""

import argparse
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from backlight.cli.main import Parser
from backlight.cli.programs.program import Module, Program, program_at
from backlight.errors import InputError

RECORD = ".json"
BEFORE_ONLY = {"-h", "--help", "-m", "--steps"}


def add_program(parser: Parser, source: str) -> None:
    """Add the program that a command runs.

    Args:
        source: what the usage calls a file: `script.py|record.json`.
    """
    parser.usage = f"%(prog)s [options] {source} [its arguments]\n       %(prog)s [options] -m module [its arguments]"
    parser.epilog = (
        "Arguments after the program are the program's own; put -- first to pass options that this command has, too."
    )
    parser.add_argument("-m", metavar="module", dest="module", help="run a module, as `python -m` does")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add which engine a program runs on."""
    parser.add_argument(
        "--engine",
        choices=("torch", "backlight"),
        help="what `import torch` gives the program; by default PyTorch if it is installed",
    )


def parsed(parser: Parser, argv: Sequence[str]) -> tuple[argparse.Namespace, Program | None]:
    """Return a command's own options, and the program that it names (NOTE [Whose option])."""
    own, rest = own_options(list(argv), parser)
    only_program = rest[:1] == ["--"]
    rest = rest[1:] if only_program else rest
    if not rest:
        return parser.parse_args(own), None
    first, rest = rest[0], rest[1:]
    if first[:2] == "-m" and not only_program:
        name, rest = (first[2:], rest) if first[2:] else (rest[0] if rest else "", rest[1:])
        if not name:
            raise InputError("-m must name a module, as in `-m package.module`")
        return parser.parse_args(own), Module(name, tuple(rest))
    if first[:1] == "-" and not only_program:
        parser.error(f"unrecognized arguments: {first}")
    later, rest = ([], rest) if only_program else own_options(rest, parser, _still_own(parser, first))
    if rest and first.endswith(RECORD):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return parser.parse_args([*own, *later]), program_at(first, tuple(rest[1:] if rest[:1] == ["--"] else rest))


def required(program: Program | None, what: str) -> Program:
    """Return a program; raise if the command line names none."""
    if program is None:
        raise InputError(f"{what}, or a module after -m, must be given")
    return program


def own_options(
    words: list[str], parser: Parser, options: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the options that words begin with, with what belongs to each, and the words after them.

    Args:
        options: which of the parser's are meant; all but `-m` by default.
    """
    options = set(parser.options) - {"-m"} if options is None else options
    end = 0
    while end < len(words):
        name, attached, _ = words[end].partition("=")
        if name not in options:
            break
        end += 1 if attached or parser.options[name].nargs == 0 else 2
    return words[:end], words[end:]


def _still_own(parser: Parser, path: str) -> set[str]:
    """Return the options that are read as the command's own behind a script (NOTE [Whose option])."""
    if path.endswith(RECORD):
        return set(parser.options)
    try:
        source = Path(path).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        source = ""
    named = {name for name in parser.options if re.search(rf"{re.escape(name)}(?![\w-])", source)}
    return set(parser.options) - BEFORE_ONLY - named
