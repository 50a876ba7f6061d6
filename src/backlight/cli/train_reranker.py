"""`backlight train-reranker`: train a reranker on your own pairs of query and document."""

import shlex
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.outputs import as_json
from backlight.cli.screens.reranker_training import watcher
from backlight.explain.presentation.wording import count_of
from backlight.training.reranker import LossWeights, Optimisation, RerankerSettings
from backlight.training.reranker import train_reranker as train
from backlight.training.reranker.card import figure_lines
from backlight.training.reranker.result import Result

GROUPS: dict[type, str] = {RerankerSettings: "data and steps", LossWeights: "loss", Optimisation: "optimisation"}
HELP = {  # the settings that are options: their metavar and help
    "seed": ("N", "seed of the split, the sampled documents and the order"),
    "validation": ("SHARE_OR_FILE", "share of the queries to hold out for validation, or a file with these queries"),
    "eval_queries": ("N", "validation queries to rank during training; all are ranked at the end"),
    "candidates": ("N", "documents to rank for each validation query"),
    "mining_model": ("MODEL", "a bi-encoder to mine hard negatives by cosine, in addition to BM25"),
    "hard_negatives": ("N", "hard negatives to mine for a query that has fewer than --negatives"),
    "near_duplicates": (
        "SHARE",
        "do not use a document as a negative if it shares this part of its words with a positive",
    ),
    "teacher": ("MODEL", "a cross- or bi-encoder to distil, in place of the teacher's scores in the data"),
    "epochs": ("N", "passes over the queries, at most"),
    "minutes": ("M", "approximate limit on the whole run; the number of steps is reduced to fit"),
    "queries": ("N", "queries in each step"),
    "negatives": ("N", "negatives for each positive"),
    "max_length": ("N", "truncate pairs to N tokens"),
    "evaluations": ("N", "validations during training"),
    "patience": ("N", "stop after N validations without improvement"),
    "checkpoint_minutes": ("M", "minutes between checkpoints"),
    "listwise": ("W", "weight of the softmax cross-entropy over a query's documents"),
    "logistic": ("W", "weight of the pointwise logistic loss"),
    "distillation": ("W", "weight of the distillation loss"),
    "distillation_loss": ("kl|margin-mse", "the distillation loss"),
    "temperature": ("T", "temperature of the teacher's scores; by default 1, or 0.05 for the cosines of --teacher"),
    "learning_rate": ("R", "peak learning rate"),
    "head_learning_rate": ("R", "peak learning rate of the head; by default --learning-rate, or 0.001 for a new head"),
    "warmup_ratio": ("SHARE", "share of the steps used for warm-up"),
    "weight_decay": ("D", "weight decay of matrices"),
    "max_grad_norm": ("NORM", "clip the gradient to this norm"),
    "tokens_per_pass": ("N", "tokens in one forward pass; larger steps are split"),
}
OPTIONS = {"listwise": "listwise-weight", "logistic": "logistic-weight", "distillation": "distillation-weight"}
OLD_OPTIONS = {  # names of 0.1.0, still accepted
    "eval_queries": "looked-at",
    "evaluations": "looks",
    "mining_model": "miner",
    "hard_negatives": "mined",
    "near_duplicates": "alike",
    "listwise": "listwise",
    "logistic": "logistic",
    "distillation": "imitation",
    "distillation_loss": "imitation-loss",
    "learning_rate": "rate",
    "head_learning_rate": "head-rate",
    "warmup_ratio": "warm-up",
    "max_grad_norm": "clip",
    "tokens_per_pass": "tokens",
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
        notice(f"stopped; resume with: {shlex.join(['backlight', 'train-reranker', *_resuming(argv)])}")
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
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write the model to")
    parser.add_argument("--resume", action="store_true", help="resume from the last checkpoint in FOLDER")
    parser.add_argument(
        "--int8", action="store_true", help="also write a quantised model, a quarter of the size, to FOLDER/int8"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar='"NAME, LICENCE"',
        help="source of the texts, for the model card; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print only JSON")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    for kind, title in GROUPS.items():
        _add_settings(parser.add_argument_group(title), kind)
    return parser


def _add_settings(parser: ArgumentParser, kind: type) -> None:
    """Add an option for each setting in `HELP`."""
    for one in fields(kind):
        if one.name in HELP and one.default is not MISSING:
            metavar, words = HELP[one.name]
            read = str if one.name == "validation" else _kind_of(one.type)
            shown = "" if one.default is None else f"; by default {one.default}"
            name = OPTIONS.get(one.name, one.name.replace("_", "-"))
            parser.add_argument(f"--{name}", dest=one.name, type=read, metavar=metavar, help=words + shown)
            if one.name in OLD_OPTIONS:
                old = f"--{OLD_OPTIONS[one.name]}"
                parser.add_argument(old, dest=one.name, type=read, default=SUPPRESS, help=SUPPRESS)


def _kind_of(annotation: object) -> type:
    """Return the type of an option's value: int, float or str."""
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
    """Return the result of a training as text."""
    calibration, counts = result.calibration, result.counts
    lines = [
        f"{count_of(counts['training queries'], 'query', 'queries')}, {count_of(result.steps, 'step')}, "
        f"{result.minutes:.1f} minutes; "
        f"the best weights are those after step {result.best_step:,}",
        f"not used as negatives: {counts['positives not used as negatives']:,} positives, "
        f"{counts['near-duplicates not used as negatives']:,} near-duplicates of a positive",
        "",
        f"nDCG@10 on {counts['validation queries']:,} held-out queries (95 % intervals):",
        *figure_lines(result.figures),
        "",
        f"expected calibration error {calibration.before['all']:.3f} before, {calibration.after['all']:.3f} after",
        f"the model and its card are in {result.folder}",
    ]
    return "\n".join(lines)
