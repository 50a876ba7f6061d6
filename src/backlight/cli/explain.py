"""`backlight explain`: rank documents, explain the best, and show it on screen, as a page or as data."""

import dataclasses
import json
from collections.abc import Sequence

from backlight.cli.arguments import (
    add_documents,
    add_method,
    add_model,
    add_outputs,
    add_windows,
    methods_of,
    positive,
    reranker_of,
)
from backlight.cli.documents import check_query, read_documents
from backlight.cli.main import Parser, version
from backlight.cli.pages import add_views, check_files, explained_again, exposition_of, views_of, write_files
from backlight.cli.screens.ranking import show
from backlight.cli.screens.terminal import progress, screen
from backlight.explain.attribution import Ranking
from backlight.web.pictures import ranking_svg


def explain(argv: Sequence[str]) -> int:
    """Run `backlight explain` with these arguments.

    Raises:
        InputError: something that was given cannot be used.
    """
    given = _parser().parse_args(argv)
    check_query(given.query)
    check_files(given)
    methods, views = methods_of(given), views_of(given)
    documents = list(read_documents(given.documents))
    reranker = reranker_of(given)
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    chosen = len(texts) if given.top is None else min(given.top, len(texts))
    window_options = {"windows": given.windows, "stride": given.stride}
    with progress(len(texts) + chosen * (2 * len(methods) - 1)) as advance:
        (first, options), *others = methods
        ranking_options = {"explain": chosen, "method": first.name, "names": names, "advance": advance}
        rankings = [reranker.rank(given.query, texts, **ranking_options, **window_options, **options)]
        for method, options in others:
            rankings.append(explained_again(reranker, rankings[0], method, advance, **window_options, **options))
    if given.json:
        print(as_json(rankings))
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
    add_outputs(parser)
    add_views(parser)
    return parser


def as_json(rankings: Sequence[Ranking]) -> str:
    """Return a ranking, explained in one or several ways, as one JSON document (docs/explain.md describes it)."""
    first, *others = rankings
    found = {"backlight": version(), **dataclasses.asdict(first)}
    if others:
        found["others"] = [dataclasses.asdict(ranking) for ranking in others]
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)
