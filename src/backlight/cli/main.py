"""The `backlight` command: run a subcommand, and report input errors in one line."""

import argparse
import importlib
import os
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import numpy as np

from backlight.errors import BacklightError, InputError, unknown
from backlight.kernels.native import core, description
from backlight.report.text import harmless

COMMANDS = {  # each but `info` and `torchrun` is the function of its name in the file of its name, with _ for -
    "rank": "rank documents for a query",
    "explain": "rank documents for a query and show which words made each score",
    "compare": "show why one document ranks above another, and which words would swap them",
    "matrix": "show which words of query and document work together",
    "what-if": "show how a document's score changes when it is edited",
    "evaluate": "measure how faithful the explanations of a model are",
    "batch": "score and explain every pair of a data set; can be stopped and resumed",
    "diff": "compare two recorded graphs",
    "run": "run a PyTorch script, unchanged, on backlight",
    "torchrun": "run a PyTorch script in several processes that train one model",
    "graph": "run a script, on PyTorch or backlight, and draw its backward graph",
    "replay": "step through the forward and backward of a script or of a saved record",
    "doctor": "run a script, on PyTorch or backlight, and find its mistakes with gradients",
    "train": "train the model that a config file describes, with a live display",
    "train-reranker": "train a reranker on your own pairs of query and document",
    "info": "show the versions and threads that backlight uses",
}


INTERRUPTED = 130  # the exit code that shells use for Ctrl-C


def notice(text: str) -> None:
    """Print a line on standard error; it may name other people's files and texts."""
    print("backlight:", harmless(text), file=sys.stderr)


NEGATIVE_VALUE = re.compile(r"-\d\S*")  # argparse reads these as options, except plain numbers


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line, without the usage, and accepts no abbreviations.

    Attributes:
        options: the action of each option, by each of its names.
    """

    def __init__(self, **options):
        self.options: dict[str, argparse.Action] = {}
        super().__init__(**{"allow_abbrev": False, **options})

    def add_argument(self, *names, **options) -> argparse.Action:
        """Add an argument as argparse does, and store its action by name."""
        action = super().add_argument(*names, **options)
        self.options.update(dict.fromkeys(action.option_strings, action))
        return action

    def parse_known_args(self, args=None, namespace=None):
        """Parse as argparse does, but read `-3s` after an option as its value, so that the type reports the error."""
        args = list(sys.argv[1:] if args is None else args)
        for place in range(len(args) - 1, 0, -1):
            option = self.options.get(args[place - 1])
            if option is not None and option.nargs is None and NEGATIVE_VALUE.fullmatch(args[place]):
                args[place - 1 : place + 1] = [f"{args[place - 1]}={args[place]}"]
        return super().parse_known_args(args, namespace)

    def error(self, message: str):
        """Raise an InputError with argparse's message."""
        raise InputError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        """Print help or a version. argparse's own ignores a failed write."""
        print(message, end="", file=file or sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 for input that cannot be used, 1 if output was lost."""
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except OSError as problem:
        with suppress(OSError, ValueError):  # so that Python does not try again to write the rest when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        notice(_described(problem))
        return 1


def _described(problem: OSError) -> str:
    """Describe an OSError; without a file name, it came from writing to standard output."""
    if problem.filename is not None:
        return f"cannot read or write {problem.filename}: {problem.strerror}"
    reason = "its reader closed it" if isinstance(problem, BrokenPipeError) else problem.strerror or problem
    return f"not all of the output could be written: {reason}"


def _run(argv: list[str]) -> int:
    """Run the subcommand, and report input errors in one line."""
    try:
        if argv and argv[0] in COMMANDS:
            return _call(argv[0], argv[1:])
        if argv and argv[0][:1] != "-":
            raise unknown("command", argv[0], COMMANDS)
        _top_level().parse_args(argv or ["--help"])
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BacklightError as problem:
        notice(" ".join(str(problem).split()))
        return 2


def _call(command: str, argv: list[str]) -> int:
    """Import a subcommand and run it; it raises InputError for input that cannot be used."""
    if command == "info":
        Parser(prog="backlight info", description=COMMANDS["info"]).parse_args(argv)
        print(information())
        return 0
    if command == "torchrun":
        return importlib.import_module("backlight.distributed.run").main(argv)
    name = command.replace("-", "_")
    module = importlib.import_module(f"backlight.cli.{name}")
    return getattr(module, name)(argv)


def _top_level() -> Parser:
    width = max(map(len, COMMANDS)) + 2
    parser = Parser(
        prog="backlight",
        description="Autograd you can see through.",
        epilog="commands:\n" + "\n".join(f"  {name:{width}}{does}" for name, does in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"backlight {version()}")
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="one of the commands below")
    return parser


def version() -> str:
    """Return backlight's version, as `backlight.__version__` states it."""
    return importlib.import_module("backlight").__version__


def information() -> str:
    """Return the versions and settings that a measurement or a bug report should state."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [f"{name}={os.environ[name]}" for name in _THREAD_LIMITS if name in os.environ]
    lines = {
        "backlight": version(),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "NumPy": np.__version__,
        "BLAS": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "kernels": description(),
        "engine": "Python" if core is None else "compiled for small plain tensors, Python for the rest",
        "threads": f"{cores} cores to run on" + (f", limited by {', '.join(limits)}" if limits else ""),
    }
    return "\n".join(f"{name:<11}{value}" for name, value in lines.items())


_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


if __name__ == "__main__":
    sys.exit(main())
