"""`backlight explain`: rank documents, explain the best, and show it on screen, as a page or as data."""

import dataclasses
from collections.abc import Sequence

from backlight.cli.arguments import (
    add_documents,
    add_measuring,
    add_method,
    add_model,
    add_outputs,
    add_windows,
    methods_of,
    positive,
    reranker_of,
)
from backlight.cli.documents import read_documents
from backlight.cli.main import Parser
from backlight.cli.outputs import as_json
from backlight.cli.pages import add_views, check_given, explained_again, exposition_of, views_of, write_files
from backlight.cli.screens.ranking import show
from backlight.cli.screens.terminal import progress, screen
from backlight.explain.attribution import Ranking
from backlight.web.pictures import ranking_svg


def explain(argv: Sequence[str]) -> int:
    """Run `backlight explain` with these arguments."""
    given = _parser().parse_args(argv)
    check_given(given)
    methods, views = methods_of(given), views_of(given)
    documents = list(read_documents(given.documents))
    reranker = reranker_of(given)
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    chosen = len(texts) if given.top is None else min(given.top, len(texts))
    reading = {"windows": given.windows, "stride": given.stride, "check": not given.no_check}
    with progress(len(texts) + chosen * (2 * len(methods) - 1)) as advance:
        (first, own), *others = methods
        rankings = [
            reranker.rank(
                given.query, texts, explain=chosen, method=first.name, names=names, advance=advance, **reading, **own
            )
        ]
        for method, own in others:
            rankings.append(explained_again(reranker, rankings[0], method, advance, reading | own))
    if given.json:
        print(as_json(_data(rankings)))
    else:
        show(rankings[0], screen(given.theme))
        if others and not given.html:
            print(f"Shown by {first.name}; --html FILE or --json gives the other methods too.")
    write_files(given, lambda: exposition_of(reranker, rankings, views, given.stride), lambda: ranking_svg(rankings[0]))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="backlight explain",
        description="Rank documents for a query, and show which words made each score.",
    )
    add_documents(parser)
    add_model(parser)
    add_method(parser, several=True)
    parser.add_argument("--top", type=positive, metavar="N", help="explain the N best documents only")
    add_windows(parser)
    add_measuring(parser)
    add_outputs(parser)
    add_views(parser)
    return parser


def _data(rankings: Sequence[Ranking]) -> dict:
    """Return a ranking, explained in one or several ways, as data (docs/explain.md describes it)."""
    first, *others = map(dataclasses.asdict, rankings)
    return first | {"others": others} if others else first
