"""`backlight matrix`: how the words of a query and of a document interact."""

from argparse import Namespace
from collections.abc import Sequence

from backlight.cli.arguments import add_method, add_model, add_outputs, add_windows, options_of, reading_of, reranker_of
from backlight.cli.documents import read_documents
from backlight.cli.main import Parser
from backlight.cli.outputs import as_json
from backlight.cli.pages import (
    check_given,
    report_language,
    report_spelling,
    report_truncation,
    report_windows,
    write_files,
)
from backlight.cli.screens.pairs import show_matrix
from backlight.cli.screens.terminal import progress, screen
from backlight.errors import InputError, unknown
from backlight.explain.methods.interactions import MATRICES, Interactions
from backlight.explain.reranker import Reranker
from backlight.web.page_data import PageData
from backlight.web.pictures import interactions_svg

DEFAULT = "joint-occlusion"


def matrix(argv: Sequence[str]) -> int:
    """Run `backlight matrix` with these arguments."""
    given = _parser().parse_args(argv)
    check_given(given)
    if given.method not in MATRICES:
        raise unknown("method", given.method, MATRICES)
    options = options_of(MATRICES[given.method], given.option)
    documents = read_documents([given.document])
    if len(documents) != 1:
        raise InputError(f"matrix must get one document, got {len(documents)}: name a file or give a text")
    ((name, text),) = documents
    reranker = reranker_of(given)
    with progress(None, "reading pairs of words"):
        found = reranker.matrix(given.query, text, method=given.method, **reading_of(given), **options)
    report_language(reranker.name, reranker.other_languages(given.query, documents))
    report_spelling([found.read_as])
    report_windows([(name, found.window)])
    report_truncation([(name, found.truncation, found.window)])
    if given.json:
        print(as_json(found))
    else:
        show_matrix(found, screen(given.theme))
    write_files(given, lambda: _page(reranker, given, text, name, found), lambda: interactions_svg(found))
    return 0


def _page(reranker: Reranker, given: Namespace, text: str, name: str, found: Interactions) -> PageData:
    """Return the page of a matrix, which says the document's score too."""
    return PageData([reranker.rank(given.query, [text], names=[name], **reading_of(given))], {0: [found]})


def _parser() -> Parser:
    parser = Parser(
        prog="backlight matrix",
        description="Show which words of a query and a document work together: what each pair adds to the score.",
    )
    parser.add_argument("query", help="the search query")
    parser.add_argument("document", metavar="DOCUMENT", help="a text file, the text itself, or - for standard input")
    add_model(parser)
    add_method(parser, DEFAULT, table=MATRICES)
    add_windows(parser, mean=False)
    add_outputs(parser)
    return parser
