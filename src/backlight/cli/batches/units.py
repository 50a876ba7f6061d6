"""`backlight batch plan`, `work`, `finish` and `slurm`: a batch distributed over processes and machines."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backlight.cli.arguments import add_method, add_model, add_windows, positive
from backlight.cli.batches.arguments import add_output, add_reading, add_writing, reading_of, settings_of
from backlight.cli.batches.ending import Notices, end
from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.outputs import json_of
from backlight.cli.screens.batch_progress import watcher
from backlight.explain.batch.running import Batch
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.sharding.engines import engine_named, run_units
from backlight.explain.batch.sharding.merge import finish_batch
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.packed_parts import units_done
from backlight.explain.batch.sharding.plan import Plan, plan_batch, read_plan, read_units
from backlight.explain.batch.sharding.stores import is_url, store_of
from backlight.explain.batch.sharding.unit_worker import UnitTask, worker_for
from backlight.explain.batch.sharding.units import units_named
from backlight.explain.presentation.wording import count_of

OUT = "the folder of a planned job, or the URL of an object store (s3://…)"


def output_of(text: str) -> Path | str:
    """Return a folder, or an object store's URL as it is."""
    return text if is_url(text) else Path(text)


def model_of(given: Namespace) -> ModelReference:
    """Return the model that `add_model`'s arguments name."""
    return ModelReference(given.model, given.engine, given.label, given.instruction, given.read_typos)


def plan(argv: Sequence[str]) -> int:
    """Run `backlight batch plan`."""
    parser = Parser(
        prog="backlight batch plan",
        description="Divide an input into units, which any number of workers process with `backlight batch work OUT`.",
    )
    parser.add_argument("input", metavar="INPUT", help="as for `backlight batch`; workers must be able to read it")
    parser.add_argument("-o", "--out", type=output_of, required=True, metavar="OUT", help="a new folder, or s3://…")
    add_model(parser)
    add_method(parser)
    add_windows(parser)
    add_reading(parser)
    add_writing(parser)
    add_output(parser)
    given = parser.parse_args(argv)
    made = _planned(given, settings_of(given))
    if given.json:
        print(json_of({"out": str(given.out), "units": made.units, "rows": made.rows, "job": made.job}))
    elif not given.quiet:
        print(f"{count_of(made.units, 'unit')} of {count_of(made.rows, 'row')}; next:")
        print(f"  backlight batch work {given.out}               # here, or --units 1/8 … 8/8 on eight machines")
        print(f"  backlight batch finish {given.out}{' --to FOLDER' * is_url(given.out)}")
    return 0


def _planned(given: Namespace, settings: Settings) -> Plan:
    says = Notices(given.out).say
    return plan_batch(
        given.input,
        given.out,
        model_of(given),
        settings,
        reading=reading_of(given),
        replace=given.replace,
        notice=says,
    )


def work(argv: Sequence[str]) -> int:
    """Run `backlight batch work`."""
    parser = Parser(
        prog="backlight batch work",
        description="Process units of a planned job. Units may run in any order, on any number of machines, and more "
        "than once.",
    )
    parser.add_argument("out", type=output_of, metavar="OUT", help=OUT)
    parser.add_argument(
        "--units", metavar="K/N", help="share K of N, or unit numbers such as 7,12-15 (default: all that are not done)"
    )
    parser.add_argument("--on", metavar="ENGINE", help="as in `backlight batch` (default: this process)")
    parser.add_argument("--model", metavar="FOLDER", help="where the model is on this machine, if not as planned")
    parser.add_argument("--input", metavar="PATH", help="where the input is on this machine, if not as planned")
    parser.add_argument("--quiet", action="store_true", help="print only errors and warnings")
    given = parser.parse_args(argv)
    try:
        done = _work_here(given) if given.on is None else _work_on(given)
    except KeyboardInterrupt:
        notice(f"stopped; finished units are kept, and the same command resumes the job in {given.out}")
        return INTERRUPTED
    if not given.quiet:
        print(f"{count_of(done, 'unit')} done")
    return 0


def _work_here(given: Namespace) -> int:
    """Do units in this process, one after another."""
    made = read_plan(given.out)
    wanted = set(units_named(given.units, made.units)) - units_done(store_of(given.out))
    todo = [unit for unit in read_units(given.out, made) if unit.number in wanted]
    if not todo:
        return 0
    worker = worker_for(UnitTask(str(given.out), given.model, given.input))
    for unit in todo:
        found = worker.compute(unit)
        if not given.quiet:
            bad = f", {found.bad:,} bad" if found.bad else ""
            left = "" if found.created else " (another worker was first)"
            notice(f"unit {unit.number} done: {count_of(found.rows, 'row')}{bad}, {found.seconds:.1f} s{left}")
    return len(todo)


def _work_on(given: Namespace) -> int:
    numbers = None if given.units is None else units_named(given.units, read_plan(given.out).units)
    with watcher(given.quiet) as watch:
        engine = engine_named(given.on)
        return run_units(engine, given.out, numbers, model=given.model, given=given.input, watch=watch)


def finish(argv: Sequence[str]) -> int:
    """Run `backlight batch finish`."""
    parser = Parser(
        prog="backlight batch finish",
        description="Check that all units of a planned job are done, merge their parts, and write the summary. Missing "
        "units are listed, with exit code 2.",
    )
    parser.add_argument("out", type=output_of, metavar="OUT", help=OUT)
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="the folder for the merged job, if OUT is a URL")
    parser.add_argument("--input", type=Path, metavar="PATH", help="where the input is now, if it was moved")
    add_output(parser)
    given = parser.parse_args(argv)
    end(_finished(given.out, given.to, given.input, given.quiet), given)
    return 0


def _finished(out: Path | str, to: Path | None, input: Path | None, quiet: bool) -> Batch:
    with watcher(quiet) as watch:
        return finish_batch(out, to, given=input, watch=watch, notice=Notices(to or Path(out)).say)


def run_on_engine(given: Namespace, settings: Settings) -> Batch:
    """Plan a job, do its units on an engine, and merge them: what `backlight batch --on` does."""
    engine = engine_named(given.on)
    _planned(given, settings)
    with watcher(given.quiet) as watch:
        run_units(engine, given.out, watch=watch)
    return _finished(given.out, None, None, given.quiet)


SCRIPT = """#!/bin/bash
#SBATCH --job-name=backlight
#SBATCH --array=1-{tasks}
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
# Tasks may be killed, requeued or run twice: units that are done are skipped.
#   job=$(sbatch --parsable THIS_SCRIPT)
#   sbatch --dependency=afterany:$job --wrap {finish}
export BACKLIGHT_NUM_THREADS="${{SLURM_CPUS_PER_TASK:-{cpus}}}"
exec {work} --units "$SLURM_ARRAY_TASK_ID/{tasks}"
"""


def slurm(argv: Sequence[str]) -> int:
    """Run `backlight batch slurm`."""
    parser = Parser(prog="backlight batch slurm", description="Print a Slurm script that runs a planned job.")
    parser.add_argument("out", type=output_of, metavar="OUT", help=OUT)
    parser.add_argument("--tasks", type=positive, default=100, metavar="N", help="tasks in the array (default 100)")
    parser.add_argument("--cpus", type=positive, default=1, metavar="N", help="CPUs for each task (default 1)")
    given = parser.parse_args(argv)
    made = read_plan(given.out)
    out = str(given.out) if is_url(given.out) else str(given.out.resolve())
    command = f"{shlex.quote(sys.executable)} -m backlight batch"
    print(
        SCRIPT.format(
            tasks=min(given.tasks, made.units),
            cpus=given.cpus,
            work=f"{command} work {shlex.quote(out)}",
            finish=shlex.quote(f"{command} finish {shlex.quote(out)}"),
        ),
        end="",
    )
    return 0


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {"plan": plan, "work": work, "finish": finish, "slurm": slurm}
