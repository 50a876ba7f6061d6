"""`backlight train`: train the model that a config file describes, with a live display."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from backlight.cli.arguments import positive
from backlight.cli.main import INTERRUPTED, Parser
from backlight.cli.screens.training import screen_for
from backlight.distributed.collectives import barrier
from backlight.distributed.groups import destroy_process_group, get_rank, init_process_group, is_torchelastic_launched
from backlight.distributed.run import Job, launch
from backlight.errors import InputError
from backlight.training.config import as_toml, read_config
from backlight.training.processes import Processes, beside
from backlight.training.run_folder import BEST, REPORT, RunFolder
from backlight.training.train import Parts, Run, assemble, prepare

ENDING = 60.0  # seconds that processes have to write a checkpoint after Ctrl-C


def train(argv: Sequence[str]) -> int:
    """Run `backlight train` with these arguments."""
    given = _parser().parse_args(argv)
    config = read_config(given.config, given.set)
    if given.dry_run:
        print(plan(assemble(config)))
        return 0
    existing = "resume" if given.resume else "replace" if given.replace else "refuse"
    if existing == "refuse" and RunFolder(config.out).holds_a_run():
        raise InputError(
            f"{config.out} already holds a run: add --resume to resume it, --replace to start over, or "
            f"change out in {given.config}"
        )
    if given.nproc > 1 and not is_torchelastic_launched():
        command = [sys.executable, "-m", "backlight", "train", *argv]
        return launch(command, Job(given.nproc, name="backlight train", ending=ENDING))
    if given.nproc == 1:
        return _shown(prepare(config, existing), given)
    init_process_group("mpi")
    with TemporaryDirectory() as folder:
        mine = config if get_rank() == 0 else beside(config, Path(folder))
        barrier()  # before rank 0 changes the folder of which the others made copies
        run = prepare(mine, existing, Processes)
        code = _shown(run, given) if get_rank() == 0 else _unseen(run)
        destroy_process_group()
    return code


def _shown(run: Run, given: Namespace) -> int:
    """Train, with a live display."""
    try:
        with screen_for(run, sys.stdout) as seen:
            run.train(seen)
    except KeyboardInterrupt:
        print(f"Stopped after step {run.recorder.steps:,}; resume with: {_resume_command(given)}")
        return INTERRUPTED
    print(_ending(run))
    return 0


def _unseen(run: Run) -> int:
    """Train in a process of a rank above 0, without a display."""
    with suppress(KeyboardInterrupt):
        run.train()
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight train",
        description="Train the model that a TOML or JSON file describes, and record the run (docs/training.md).",
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a TOML or JSON file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a setting of the file, such as optimizer.lr=0.1; may be repeated",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would run, with all settings, and write nothing"
    )
    parser.add_argument(
        "--nproc",
        type=positive,
        default=1,
        metavar="N",
        help="processes on this machine that share each batch (docs/distributed.md)",
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--resume", action="store_true", help="resume from the last checkpoint in the run folder")
    existing.add_argument("--replace", action="store_true", help="delete the run in the run folder and start over")
    return parser


def plan(parts: Parts) -> str:
    """Return all settings of a run as a TOML file, with what follows from them as comments at its end."""
    config, batches = parts.config, parts.batches
    learnt = len(batches.images)
    held_out = 0 if parts.validation is None else len(parts.validation)
    size = f"{config.batch_size} × {config.accumulate}" if config.accumulate > 1 else str(config.batch_size)
    facts = {
        "images": f"{learnt:,} for training, {held_out:,} for validation, {len(parts.test):,} for testing",
        "steps": f"{config.epochs:,} epochs × {len(batches):,} = {parts.steps:,} steps of {size} images",
        "schedule": f"{config.schedule.name}, by {'step' if config.schedule.by_step else 'epoch'}",
        "parameters": f"{sum(parameter.numel() for parameter in parts.model.parameters()):,}",
        "model": str(parts.model),
    }
    if RunFolder(config.out).holds_a_run():
        facts["out"] = f"{config.out} already holds a run: pass --resume or --replace"
    lines = [f"{name + ':':<12}{said}" for name, said in facts.items()]
    return as_toml(config) + "\n" + "\n".join(f"# {line}" for line in "\n".join(lines).splitlines())


def _resume_command(given: Namespace) -> str:
    changes = [part for change in given.set for part in ("--set", change)]
    processes = ["--nproc", str(given.nproc)] if given.nproc > 1 else []
    return shlex.join(["backlight", "train", str(given.config), *changes, *processes, "--resume"])


def _ending(run: Run) -> str:
    folder, best = run.recorder.folder, run.best.record
    lines = []
    if run.ended_early:
        lines.append(f"Stopped early: no improvement on the validation set in {run.best.since} epochs.")
    reached = folder.evaluations("test")[-1:]
    if best is not None:
        lines.append(f"The best weights (epoch {best['epoch'] + 1}) are in {folder.path / BEST}")
    lines += [f"Test accuracy {100 * one['evaluation']['accuracy']:.2f} %. " for one in reached]
    lines[-1:] = [f"{lines[-1] if reached else ''}The page is in {folder.path / REPORT}"]
    return "\n".join(lines)
