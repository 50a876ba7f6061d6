"""`backlight explain`: read what was given, rank, explain, and show it on screen, as a page or as data."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from backlight.cli.arguments import add_documents, add_method, add_model, add_outputs, method_of, positive, scorer_of
from backlight.cli.documents import check_query, read_documents
from backlight.cli.main import Parser, version
from backlight.cli.show import progress, screen, show
from backlight.errors import InputError
from backlight.explain.attribution import Ranking
from backlight.explain.ranking import rank_and_explain
from backlight.web.report import report


def explain(argv: Sequence[str]) -> int:
    """Run `backlight explain` with these arguments.

    Raises:
        InputError: something that was given cannot be used.
    """
    given = _parser().parse_args(argv)
    check_query(given.query)
    if given.html is not None and given.html.is_dir():
        raise InputError(f"--html must be a file, got the folder {given.html}")
    documents = list(read_documents(given.documents))
    method, options = method_of(given)
    ranker = scorer_of(given)
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    chosen = len(texts) if given.top is None else min(given.top, len(texts))
    with progress(len(texts) + chosen) as advance:
        ranking = rank_and_explain(
            ranker, given.query, texts, names, top=given.top, method=method.name, advance=advance, **options
        )
    made = given.html is not None and _write(given.html, report(ranking, version()))
    if given.json:
        print(as_json(ranking))
    else:
        show(ranking, screen(given.theme))
    if given.html is not None:
        folder = f" (the folder {given.html.parent} is new)" if made else ""
        print(f"The page is in {given.html}{folder}", file=sys.stderr if given.json else sys.stdout)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight explain",
        description="Rank documents for a query, and show which words made each score.",
    )
    add_documents(parser)
    add_model(parser)
    add_method(parser)
    add_outputs(parser)
    parser.add_argument("--top", type=positive, metavar="N", help="explain the N best documents only")
    return parser


def _write(file: Path, page: str) -> bool:
    """Write a page, and tell whether its folder had to be made."""
    new = not file.parent.exists()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
        return new
    except OSError as problem:
        raise InputError(f"cannot write {file}: {problem.strerror}") from problem


def as_json(ranking: Ranking) -> str:
    """Return a ranking as one JSON document (docs/explain.md describes it)."""
    found = {"backlight": version(), **dataclasses.asdict(ranking)}
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)
