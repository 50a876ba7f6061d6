"""Runs blocks of code one after the other in one session, and notes what each printed and warned of.

    python seed_session.py BLOCKS.json OUTCOMES.json

`import torch` is whatever the interpreter that runs this file makes of it: PyTorch, or backlight under `backlight run`.
"""

import contextlib
import io
import json
import sys
import warnings
from pathlib import Path

import torch


def outcome_of(block: str, names: dict) -> dict:
    """Run one block, and return its output, its warnings, and the kind of the exception that ended it, if one did."""
    printed, error = io.StringIO(), None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            exec(compile(block, "<block>", "exec"), names)
        except Exception as problem:
            error = f"{builtin_kind(problem)}: {problem}"
    return {"printed": printed.getvalue(), "warned": [str(one.message) for one in caught], "error": error}


def builtin_kind(problem: Exception) -> str:
    """Return the name of the built-in exception that a problem is a kind of."""
    return next(kind.__name__ for kind in type(problem).__mro__ if kind.__module__ == "builtins")


def main() -> None:
    """Run the session that the command line names."""
    blocks = json.loads(Path(sys.argv[1]).read_text())
    torch.manual_seed(0)  # the same random numbers on both sides
    names = {"__name__": "__main__", "display": print, "torch": torch, "device": "cpu"}
    Path(sys.argv[2]).write_text(json.dumps([outcome_of(block, names) for block in blocks]))


main()
