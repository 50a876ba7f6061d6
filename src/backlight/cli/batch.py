"""`backlight batch`: score and explain every pair of a data set, with progress."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from backlight.cli.arguments import add_method, add_model, add_windows, reranker_of
from backlight.cli.batches.arguments import add_output, add_reading, add_writing, reading_of, settings_of
from backlight.cli.batches.ending import Notices, end
from backlight.cli.batches.units import COMMANDS, output_of, run_on_engine
from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.screens.batch_progress import watcher
from backlight.errors import InputError
from backlight.explain.batch.running import Batch, run_batch
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.sharding.stores import is_url
from backlight.explain.methods.registry import DEFAULT

WITHOUT = " (without --replace)"


def batch(argv: Sequence[str]) -> int:
    """Run `backlight batch` with these arguments."""
    if argv and argv[0] in COMMANDS:
        return COMMANDS[argv[0]](argv[1:])
    given = _parser().parse_args(argv)
    settings = settings_of(given)
    if is_url(given.out):
        raise InputError(
            f"-o must be a folder, got {given.out}: for an object store use backlight batch plan, work and finish"
        )
    try:
        found = _run_here(given, settings) if given.on is None else _run_on(given, settings)
    except KeyboardInterrupt:
        notice(f"stopped; run the same command again to resume the job in {given.out}{WITHOUT * given.replace}")
        return INTERRUPTED
    end(found, given)
    return 0


def _run_here(given: Namespace, settings: Settings) -> Batch:
    """Run a batch in this process."""
    ranker = reranker_of(given)
    if settings.method == DEFAULT and ranker.estimate and "estimate" not in settings.options:
        settings = replace(settings, options={**settings.options, "estimate": ranker.estimate})
    with watcher(given.quiet) as watch:
        return run_batch(
            given.input,
            given.out,
            ranker,
            settings,
            reading=reading_of(given),
            replace=given.replace,
            strict=given.strict,
            watch=watch,
            notice=Notices(given.out).say,
        )


def _run_on(given: Namespace, settings: Settings) -> Batch:
    """Run a batch on other processes or machines."""
    if given.strict:
        raise InputError("--strict cannot be combined with --on: units run in any order, so no bad row is the first")
    return run_on_engine(given, settings)


def _parser() -> Parser:
    parser = Parser(
        prog="backlight batch",
        description="Score and explain every pair of a data set. Run the same command again to resume a job that was "
        "stopped (docs/batch.md). `backlight batch plan`, `work`, `finish` and `slurm` distribute a job over machines "
        "(docs/clusters.md).",
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="JSON lines, CSV, TSV or Parquet with a query and a document in each row, any of them but Parquet also "
        "as .gz; a BEIR folder; a TREC run; or - for JSON lines from standard input",
    )
    parser.add_argument("-o", "--out", type=output_of, required=True, metavar="OUT", help="a folder for the output")
    parser.add_argument(
        "--on",
        metavar="ENGINE",
        help="where to run: local:N for N processes on this machine, dask://HOST:PORT, ray://HOST:PORT, "
        "spark://HOST:PORT, or these with local:N as the address (docs/clusters.md); default: this process",
    )
    add_model(parser)
    add_method(parser)
    add_windows(parser)
    add_reading(parser)
    parser.add_argument("--strict", action="store_true", help="stop with an error at the first bad row")
    add_writing(parser)
    add_output(parser)
    return parser
