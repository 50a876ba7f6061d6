"""`backlight matrix`: what each word of the query and each word of a document bring together."""

import dataclasses
import json
import sys
from collections.abc import Sequence

from backlight.cli.arguments import add_method, add_model, add_outputs, options_of, reranker_of
from backlight.cli.documents import check_query, read_documents
from backlight.cli.main import Parser, version
from backlight.cli.pages import check_page, exposition_of, write_page
from backlight.cli.screen import screen
from backlight.cli.show_pairs import show_matrix
from backlight.errors import InputError
from backlight.explain.interactions import MATRICES

DEFAULT = "joint-occlusion"


def matrix(argv: Sequence[str]) -> int:
    """Run `backlight matrix` with these arguments.

    Raises:
        InputError: something that was given cannot be used.
    """
    given = _parser().parse_args(argv)
    check_query(given.query)
    check_page(given.html)
    if given.method not in MATRICES:
        raise InputError(f"method must be one of {', '.join(MATRICES)}, got {given.method}")
    options = options_of(MATRICES[given.method], given.option)
    documents = list(read_documents([given.document]))
    if len(documents) != 1:
        raise InputError(f"matrix must get one document, got {len(documents)}: name a file or give a text")
    ((name, text),) = documents
    reranker = reranker_of(given)
    found = reranker.matrix(given.query, text, method=given.method, **options)
    said = None
    if given.html:
        ranking = reranker.rank(given.query, [text], names=[name])
        page = dataclasses.replace(exposition_of(reranker, [ranking], ()), matrices={0: [found]})
        said = write_page(given.html, page)
    if given.json:
        told = {"backlight": version(), **dataclasses.asdict(found)}
        print(json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False))
    else:
        show_matrix(found, screen(given.theme))
    if said:
        print(said, file=sys.stderr if given.json else sys.stdout)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight matrix",
        description="Show what each word of a query and each word of a document bring to the score together.",
    )
    parser.add_argument("query", help="what was looked for")
    parser.add_argument("document", metavar="DOCUMENT", help="a text file, a text itself, or - for standard input")
    add_model(parser)
    add_method(parser, DEFAULT, table=MATRICES)
    add_outputs(parser)
    return parser
