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


def add_writing(parser: Parser) -> None:
    """Add what a batch writes."""
    group = parser.add_argument_group("what is written")
    group.add_argument("--format", choices=FORMATS, default="jsonl", help="of the parts; by default jsonl")
    group.add_argument("--top-words", type=positive, metavar="N", help="keep the N strongest words of each text only")
    group.add_argument("--tokens", action="store_true", help="keep the values of single tokens too")
    group.add_argument("--rows", type=positive, default=1024, metavar="N", help="rows a part; by default 1024")
    group.add_argument("--replace", action="store_true", help="remove the job that is in OUT, and begin anew")


def add_output(parser: Parser) -> None:
    """Add how the end of a batch is shown."""
    parser.add_argument("--json", action="store_true", help="print the summary as data and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print nothing but what went wrong")


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
