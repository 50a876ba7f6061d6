"""`backlight compare`: why one document ranks above another, in the terminal, on a page or as JSON."""

from collections.abc import Sequence

from backlight.cli.arguments import (
    add_method,
    add_model,
    add_outputs,
    add_windows,
    methods_of,
    positive,
    reading_of,
    reranker_of,
    whole_number,
)
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
from backlight.cli.screens.pairs import show_comparison
from backlight.cli.screens.terminal import progress, screen
from backlight.errors import InputError
from backlight.explain.comparison import MEASURED
from backlight.explain.methods.registry import METHODS
from backlight.web.page_data import PageData
from backlight.web.pictures import comparison_svg

SIGNED = {name: method for name, method in METHODS.items() if method.signed}


def compare(argv: Sequence[str]) -> int:
    """Run `backlight compare` with these arguments."""
    given = _parser().parse_args(argv)
    check_given(given)
    ((method, options),) = methods_of(given)
    documents = read_documents([given.a, given.b])
    if len(documents) != 2:
        raise InputError(f"compare must get two documents, got {len(documents)}: name two files or give two texts")
    (name_a, a), (name_b, b) = documents
    reranker = reranker_of(given)
    searched = {"most": given.most, "beam": given.beam, "budget": given.budget, **reading_of(given)}
    with progress(None, "comparing"):
        found = reranker.compare(given.query, a, b, method=method.name, names=(name_a, name_b), **searched, **options)
    report_language(reranker.name, reranker.other_languages(given.query, documents))
    report_spelling([made.read_as for *_, made in found.sides])
    report_windows([(name, made.window) for _, name, _, made in found.sides])
    report_truncation([(name, made.document.truncation, made.window) for _, name, _, made in found.sides])
    if given.json:
        print(as_json(found))
    else:
        show_comparison(found, screen(given.theme))
    write_files(given, lambda: PageData(comparisons=[found]), lambda: comparison_svg(found))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight compare",
        description="Show why document A ranks above document B, or B above A, and which words would swap them.",
    )
    parser.add_argument("query", help="the search query")
    for name in ("a", "b"):
        parser.add_argument(name, metavar=name.upper(), help="a text file, the text itself, or - for standard input")
    add_model(parser)
    add_method(parser, MEASURED, table=SIGNED)
    parser.add_argument(
        "--most", type=whole_number, default=8, metavar="N", help="most words of a swap; 0 skips the search (default 8)"
    )
    parser.add_argument(
        "--beam",
        type=positive,
        default=3,
        metavar="N",
        help="word sets kept at each size of the beam search (default 3)",
    )
    parser.add_argument(
        "--budget", type=positive, default=2000, metavar="N", help="word sets that the search may score (default 2000)"
    )
    add_windows(parser, mean=False)
    add_outputs(parser)
    return parser
