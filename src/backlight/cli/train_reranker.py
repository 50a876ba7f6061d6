"""`backlight train-reranker`: train a reranker on pairs of one's own, and show how it goes."""

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.outputs import as_json
from backlight.cli.screens.reranker_training import watcher
from backlight.training.reranker import LossWeights, Optimisation, RerankerSettings
from backlight.training.reranker import train_reranker as train
from backlight.training.reranker.card import figure_lines
from backlight.training.reranker.result import Result

GROUPS: dict[type, str] = {RerankerSettings: "data and steps", LossWeights: "loss", Optimisation: "optimisation"}
HELP = {  # of the settings that are options, and what argparse calls a value
    "seed": ("N", "of the split, the documents drawn and the order"),
    "validation": ("SHARE_OR_FILE", "the share of the queries that is held out, or a file with these"),
    "looked_at": ("N", "queries of the validation part that are ranked on the way; all are in the end"),
    "candidates": ("N", "documents that are ranked for a query of the validation part"),
    "miner": ("MODEL", "a bi-encoder whose cosine finds wrong documents, beside BM25"),
    "mined": ("N", "wrong documents that are found for a query that has fewer than --negatives"),
    "alike": ("SHARE", "a document with this share of words in common with a right one is no wrong one"),
    "teacher": ("MODEL", "a cross- or bi-encoder whose scores are imitated, in place of those in the data"),
    "epochs": ("N", "how often each query is seen, at most"),
    "minutes": ("M", "how long all of it may take, about: fewer steps are made then"),
    "queries": ("N", "queries that a step sees"),
    "negatives": ("N", "wrong documents beside the right one"),
    "max_length": ("N", "tokens of a pair that are read"),
    "looks": ("N", "how often the validation part is ranked on the way"),
    "patience": ("N", "end after so many looks without a better one"),
    "checkpoint_minutes": ("M", "minutes between two checkpoints"),
    "listwise": ("W", "weight of the softmax cross-entropy over a query's documents"),
    "logistic": ("W", "weight of the logistic loss of each document alone"),
    "imitation": ("W", "weight of the imitation of a teacher"),
    "imitation_loss": ("kl|margin-mse", "how a teacher is imitated"),
    "temperature": ("T", "what a teacher's scores are divided by; by default 1, and 0.05 for the cosines of --teacher"),
    "rate": ("R", "highest learning rate"),
    "head_rate": ("R", "that of the head; by default the same, or 0.001 for a new head"),
    "warm_up": ("SHARE", "share of the steps in which rates rise"),
    "weight_decay": ("D", "of matrices"),
    "clip": ("NORM", "greatest norm of the gradient"),
    "tokens": ("N", "tokens that run at once; larger steps are run in parts"),
}


def train_reranker(argv: Sequence[str]) -> int:
    """Run `backlight train-reranker` with these arguments."""
    given = _parser().parse_args(argv)
    share, file = _validation(given.validation)
    loss, optimisation = (_made(kind, given) for kind in (LossWeights, Optimisation))
    settings = _made(RerankerSettings, given, start=given.start, validation=share, loss=loss, optimisation=optimisation)
    try:
        with watcher(given.quiet) as watch:
            result = train(
                given.data,
                given.out,
                settings,
                validation=file,
                sources=given.source,
                resume=given.resume,
                int8=given.int8,
                watch=watch,
            )
    except KeyboardInterrupt:
        notice(f"stopped; go on with: {shlex.join(['backlight', 'train-reranker', *_resuming(argv)])}")
        return INTERRUPTED
    print(as_json(result) if given.json else text_of(result))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight train-reranker",
        description="Train a reranker on pairs of query and document (docs/training-rerankers.md).",
    )
    parser.add_argument("data", type=Path, metavar="PAIRS", help="a .jsonl or .csv file")
    parser.add_argument(
        "--from",
        dest="start",
        default="builtin",
        metavar="MODEL",
        help="a cross-encoder, or a bi-encoder whose encoder gets a new head; by default builtin",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder of the new model")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in FOLDER")
    parser.add_argument("--int8", action="store_true", help="also write FOLDER/int8, a quarter of the size")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar='"NAME, LICENCE"',
        help="where the texts are from, for the model card; may be given again",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    for kind, title in GROUPS.items():
        _add_settings(parser.add_argument_group(title), kind)
    return parser


def _add_settings(parser: ArgumentParser, kind: type) -> None:
    """Add an option for each setting that has a line of help."""
    for one in fields(kind):
        if one.name in HELP and one.default is not MISSING:
            metavar, words = HELP[one.name]
            read = str if one.name == "validation" else _kind_of(one.type)
            shown = "" if one.default is None else f"; by default {one.default}"
            name = "--" + one.name.replace("_", "-")
            parser.add_argument(name, dest=one.name, type=read, metavar=metavar, help=words + shown)


def _kind_of(annotation: object) -> type:
    """Return what reads an option's value: int, float or str."""
    return next((kind for kind in (int, float) if annotation in (kind, kind | None)), str)


def _made(kind: type, given: Namespace, **others: object) -> object:
    """Return settings with the options that were given."""
    chosen = {one.name: getattr(given, one.name, None) for one in fields(kind) if one.name in HELP}
    return kind(**({name: value for name, value in chosen.items() if value is not None} | others))


def _validation(given: str | None) -> tuple[float, Path | None]:
    """Return the share that is held out, and the file with the queries that are."""
    if given is None:
        return RerankerSettings.validation, None
    try:
        return float(given), None
    except ValueError:
        return RerankerSettings.validation, Path(given)


def _resuming(argv: Sequence[str]) -> list[str]:
    return [*argv, *(() if "--resume" in argv else ("--resume",))]


def text_of(result: Result) -> str:
    """Return what came of a training, for a terminal."""
    calibration, counts = result.calibration, result.counts
    lines = [
        f"{counts['training queries']:,} queries, {result.steps:,} steps, {result.minutes:.1f} minutes; "
        f"the weights are those after step {result.best_step:,}",
        f"left out as wrong documents: {counts['left out as right for the query']:,} that are right, "
        f"{counts['left out as versions of a right one']:,} that are nearly the same as a right one",
        "",
        f"nDCG@10 on {counts['validation queries']:,} held-out queries (95 % intervals):",
        *figure_lines(result.figures),
        "",
        f"expected calibration error {calibration.before['all']:.3f} before, {calibration.after['all']:.3f} after",
        f"the model and its card are in {result.folder}",
    ]
    return "\n".join(lines)
