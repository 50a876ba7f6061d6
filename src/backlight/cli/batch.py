"""`backlight batch`: score and explain all pairs of a data set, and show how far it is."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from backlight.cli.arguments import add_method, add_model, add_windows, options_of, positive, reranker_of
from backlight.cli.main import INTERRUPTED, Parser, notice, version
from backlight.cli.outputs import json_of
from backlight.cli.screens.batch_progress import watcher
from backlight.errors import InputError
from backlight.explain.batch.checksums import Repair
from backlight.explain.batch.excerpts import SIDES
from backlight.explain.batch.files import write_file
from backlight.explain.batch.inputs import FORMATS as INPUT_FORMATS
from backlight.explain.batch.inputs import Reading
from backlight.explain.batch.job import REPORT
from backlight.explain.batch.rows import Columns
from backlight.explain.batch.running import Batch, run_batch
from backlight.explain.batch.settings import FORMATS, SCORES_ONLY, Settings
from backlight.explain.batch.words import matters
from backlight.explain.methods.registry import DEFAULT, method_called
from backlight.explain.presentation.wording import count_of
from backlight.report.text import harmless
from backlight.web.batch import batch_page

NAMED_LANGUAGES = 5  # that the line at the end names
NAMED = 20  # damaged files that are named on standard error; --json names all
WITHOUT = " (without --replace)"


def batch(argv: Sequence[str]) -> int:
    """Run `backlight batch` with these arguments."""
    given = _parser().parse_args(argv)
    settings = _settings_of(given)
    ranker = reranker_of(given)
    if settings.method == DEFAULT and ranker.estimate and "estimate" not in settings.options:
        settings = replace(settings, options={**settings.options, "estimate": ranker.estimate})
    try:
        with watcher(given.quiet) as watch:
            found = run_batch(
                given.input,
                given.out,
                ranker,
                settings,
                reading=_reading_of(given),
                replace=given.replace,
                strict=given.strict,
                watch=watch,
                notice=Notices(given.out).say,
            )
    except KeyboardInterrupt:
        notice(f"stopped; the same command goes on with the job in {given.out}{WITHOUT * given.replace}")
        return INTERRUPTED
    write_file(found.folder / REPORT, batch_page(found.folder, version()).encode())
    if found.bad:
        notice(f"{found.bad:,} of {found.rows:,} rows could not be used; {found.bad_rows} says which and why")
    for line in remarks(found.summary):
        notice(line)
    if given.json:
        print(json_of(_as_data(found)))
    elif not given.quiet:
        print(*map(harmless, as_text(found).split("\n")), sep="\n")
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight batch",
        description="Score and explain all pairs of a data set, in parts; the same command goes on where a job was "
        "stopped (docs/batch.md).",
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="JSON lines, CSV, TSV or Parquet with a query and a document in each row, any of them but Parquet also "
        "as .gz; a BEIR folder; a TREC run; or - for JSON lines from standard input",
    )
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="a folder for the output")
    add_model(parser)
    add_method(parser)
    add_windows(parser)
    _add_reading(parser)
    _add_writing(parser)
    return parser


def _add_reading(parser: Parser) -> None:
    group = parser.add_argument_group("how the input is read")
    group.add_argument(
        "--input-format", choices=INPUT_FORMATS, help="what the input is, where its name's ending does not tell"
    )
    for field in fields(Columns):
        group.add_argument(
            f"--{field.name.replace('_', '-')}-column",
            default=field.default,
            metavar="NAME",
            help=f"the field with the {SAYS[field.name]}; by default {field.default}",
        )
    group.add_argument("--no-quotes", action="store_true", help='" is a character like others in a table')
    for name, says in FILES.items():
        group.add_argument(f"--{name}", type=Path, metavar="FILE", help=says)
    group.add_argument("--split", metavar="NAME", help="which qrels of a BEIR folder; by default test or the only ones")
    group.add_argument("--strict", action="store_true", help="end with an error at the first row that cannot be used")


SAYS = {
    "query": "query",
    "document": "document",
    "documents": "list of documents, where a row has several",
    "id": "pair's id",
    "label": "label, above 0 for relevant",
    "labels": "list of labels beside a list of documents",
    "query_id": "query's id",
    "document_id": "document's id",
}
FILES = {
    "corpus": "documents by id (JSON lines or TSV); INPUT is then a run or qrels",
    "queries": "queries by id, likewise",
    "qrels": "judgements beside a run",
    "run": "the pairs of a BEIR folder to score; by default those that were judged",
}


def _add_writing(parser: Parser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument("--format", choices=FORMATS, default="jsonl", help="of the parts; by default jsonl")
    group.add_argument("--top-words", type=positive, metavar="N", help="keep the N strongest words of each text only")
    group.add_argument("--tokens", action="store_true", help="keep the values of single tokens too")
    group.add_argument("--rows", type=positive, default=1024, metavar="N", help="rows a part; by default 1024")
    group.add_argument("--replace", action="store_true", help="remove the job that is in OUT, and begin anew")
    group.add_argument("--json", action="store_true", help="print the summary as data and nothing else")
    group.add_argument("--quiet", action="store_true", help="print nothing but what went wrong")


def _settings_of(given: Namespace) -> Settings:
    if given.method != SCORES_ONLY:
        options = options_of(method_called(given.method), given.option)
    elif given.option:
        raise InputError(f"--option must come with a method, got --method {SCORES_ONLY}")
    else:
        options = {}
    plain = {field.name: getattr(given, field.name) for field in fields(Settings) if field.name != "options"}
    return Settings(**plain, options=options)


def _reading_of(given: Namespace) -> Reading:
    columns = Columns(**{field.name: getattr(given, f"{field.name}_column") for field in fields(Columns)})
    quotes = False if given.no_quotes else None
    files = {name: getattr(given, name) for name in FILES}
    return Reading(columns=columns, format=given.input_format, quotes=quotes, split=given.split, **files)


class Notices:
    """Names damaged files of a job, the first of them, on standard error."""

    def __init__(self, folder: Path):
        self.folder, self.said = folder, 0

    def say(self, repair: Repair) -> None:
        """Name a file."""
        self.said += 1
        if self.said <= NAMED:
            notice(f"{self.folder / repair.file} {repair.damage}: {repair.repair}")
        elif self.said == NAMED + 1:
            notice("more files were damaged; --json names all of them at the end")


def _as_data(found: Batch) -> dict:
    counts = {name: getattr(found, name) for name in ("rows", "bad", "resumed")}
    repairs = [asdict(repair) for repair in found.repairs]
    places = {"out": str(found.folder), "page": str(found.folder / REPORT)}
    return {**places, **counts, "repairs": repairs, "summary": found.summary}


def remarks(summary: dict) -> list[str]:
    """Return what a batch has to say of its rows beside their scores: other languages, windows that were not scored."""
    lines, job = [], summary["job"]
    languages = summary["languages"]
    if languages and languages["rows"]:
        said = [
            f"{side}: {', '.join(f'{language} {count:,}' for language, count in list(found.items())[:NAMED_LANGUAGES])}"
            for side in SIDES
            if (found := languages[side])
        ]
        looks = "row looks" if languages["rows"] == 1 else "rows look"
        model = job["model"]["name"]
        lines.append(
            f"{languages['rows']:,} {looks} to be in another language ({'; '.join(said)}); {model} reads English only"
        )
    if many := summary["windows"]["preselected"]:
        most = job["settings"]["max_windows"]
        lines.append(
            f"of {count_of(many, 'long document')} only {most} windows were scored (windows_read in the rows); "
            "--max-windows 0 scores all"
        )
    return lines


def as_text(found: Batch) -> str:
    """Return what was found, in a few lines."""
    summary = found.summary
    score, labels, queries = summary["score"], summary["labels"], summary["queries"]
    lines = [
        count_of(score["count"], "pair") + (f" ({count_of(found.resumed, 'row')} done before)" if found.resumed else "")
    ]
    spread = score["quantiles"]
    lines.append(
        f"score: mean {score['mean']:.3f}, half of them between {spread['25 %']:.3f} and {spread['75 %']:.3f}, "
        f"from {score['lowest']:.3f} to {score['highest']:.3f}"
    )
    if labels:
        auc = "" if labels["roc_auc"] is None else f", ROC-AUC {labels['roc_auc']:.4f}"
        lines.append(f"labels: {labels['relevant']:,} of {labels['labelled']:,} relevant{auc}")
    if queries:
        lines.append(
            f"ranking: nDCG@10 {queries['ndcg@10']:.4f}, MRR@10 {queries['mrr@10']:.4f}, "
            + count_of(queries["queries"], "query", "queries")
        )
    if check := summary["check"]:
        lines.append(
            f"explanations checked: {check['rows']:,}, of which {check['holds']:,} hold, {check['fails']:,} fail; a "
            f"score falls by {check['drop']:.3g} without the 5 strongest words, by {check['random']:.3g} without others"
        )
    for side, words in summary["words"].items():
        named = [word["word"] for word in words if matters(word)][:10]
        if named:
            lines.append(f"{side} words that mattered most (z of log-odds): {', '.join(named)}")
    lines.append(f"The page is in {found.folder / REPORT}")
    return "\n".join(lines)
