"""Arguments of batches: how the input is read, what is written."""

from argparse import Namespace
from dataclasses import fields
from pathlib import Path

from backlight.cli.arguments import options_of, positive
from backlight.cli.main import Parser
from backlight.errors import InputError
from backlight.explain.batch.inputs import FORMATS as INPUT_FORMATS
from backlight.explain.batch.inputs import Reading
from backlight.explain.batch.rows import Columns
from backlight.explain.batch.settings import FORMATS, SCORES_ONLY, Settings
from backlight.explain.methods.registry import method_called


def add_reading(parser: Parser) -> None:
    """Add how the input of a batch is read."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--input-format", choices=INPUT_FORMATS, help="the input's format, if its file name does not show it"
    )
    for field in fields(Columns):
        group.add_argument(
            f"--{field.name.replace('_', '-')}-column",
            default=field.default,
            metavar="NAME",
            help=f"the field with the {SAYS[field.name]} (default {field.default})",
        )
    group.add_argument("--no-quotes", action="store_true", help='treat " as an ordinary character in tables')
    for name, says in FILES.items():
        group.add_argument(f"--{name}", type=Path, metavar="FILE", help=says)
    group.add_argument(
        "--split", metavar="NAME", help="the qrels of a BEIR folder to use (default: test, or the only ones)"
    )


SAYS = {
    "query": "query",
    "document": "document",
    "documents": "list of documents, if rows have several",
    "id": "pair's id",
    "label": "label: above 0 means relevant",
    "labels": "list of labels, one for each of the documents",
    "query_id": "query's id",
    "document_id": "document's id",
}
FILES = {
    "corpus": "documents by id (JSON lines or TSV); INPUT is then a run or qrels",
    "queries": "queries by id, in the same formats",
    "qrels": "relevance judgements for a run",
    "run": "a TREC run: the pairs of a BEIR folder to score (default: the judged ones)",
}


def add_writing(parser: Parser) -> None:
    """Add what a batch writes."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=FORMATS, default="jsonl", help="format of the parts (default jsonl)")
    group.add_argument("--top-words", type=positive, metavar="N", help="keep only the N strongest words of each text")
    group.add_argument("--tokens", action="store_true", help="also keep the values of single tokens")
    group.add_argument("--rows", type=positive, default=1024, metavar="N", help="rows in each part (default 1024)")
    group.add_argument("--replace", action="store_true", help="delete the job in OUT and start over")


def add_output(parser: Parser) -> None:
    """Add how the end of a batch is shown."""
    parser.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    parser.add_argument("--quiet", action="store_true", help="print only errors and warnings")


def settings_of(given: Namespace) -> Settings:
    """Return what is computed and kept. Raises InputError: it cannot be."""
    if given.method != SCORES_ONLY:
        options = options_of(method_called(given.method), given.option)
    elif given.option:
        raise InputError(f"--option must come with a method, got --method {SCORES_ONLY}")
    else:
        options = {}
    plain = {field.name: getattr(given, field.name) for field in fields(Settings) if field.name != "options"}
    return Settings(**plain, options=options)


def reading_of(given: Namespace) -> Reading:
    """Return how the input is read."""
    columns = Columns(**{field.name: getattr(given, f"{field.name}_column") for field in fields(Columns)})
    quotes = False if given.no_quotes else None
    files = {name: getattr(given, name) for name in FILES}
    return Reading(columns=columns, format=given.input_format, quotes=quotes, split=given.split, **files)
