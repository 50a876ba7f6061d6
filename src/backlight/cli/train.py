"""`backlight train`: run what a file describes, and show it while it runs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from backlight.cli.main import Parser
from backlight.cli.training_screen import screen_for
from backlight.errors import InputError
from backlight.training.config import read_config
from backlight.training.run_folder import RunFolder
from backlight.training.train import Run, prepare

INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended


def train(argv: Sequence[str]) -> int:
    """Run `backlight train` with these arguments.

    Raises:
        InputError: something that was given cannot be used.
    """
    given = _parser().parse_args(argv)
    config = read_config(given.config)
    existing = "resume" if given.resume else "replace" if given.replace else "refuse"
    if existing == "refuse" and RunFolder(config.out).holds_a_run():
        raise InputError(
            f"{config.out} holds a run already: add --resume to go on with it, --replace to begin anew, or "
            f"change out in {given.config}"
        )
    run = prepare(config, existing)
    try:
        with screen_for(run, sys.stdout) as seen:
            run.go(seen)
    except KeyboardInterrupt:
        print(f"Stopped after step {run.recorder.steps:,}; go on with: backlight train {given.config} --resume")
        return INTERRUPTED
    print(_ending(run))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight train",
        description="Train the model that a TOML or JSON file describes (docs/training.md), and record the run.",
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a TOML or JSON file")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the run folder")
    existing.add_argument("--replace", action="store_true", help="remove the run that is in the run folder")
    return parser


def _ending(run: Run) -> str:
    evaluations = [one["evaluation"] for one in run.recorder.folder.records() if "evaluation" in one]
    reached = f"Test accuracy {100 * evaluations[-1]['accuracy']:.2f} %. " if evaluations else ""
    return f"{reached}The page is in {run.recorder.folder.path / 'report.html'}"
