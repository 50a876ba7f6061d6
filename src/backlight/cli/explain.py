"""`backlight explain`: rank documents and explain the best, in the terminal, on a page or as JSON."""

import dataclasses
from collections.abc import Sequence
from functools import partial

from backlight.cli.arguments import (
    add_documents,
    add_measuring,
    add_method,
    add_model,
    add_outputs,
    add_retrieval,
    add_windows,
    methods_of,
    positive,
    reading_of,
    reranker_of,
    retriever_of,
)
from backlight.cli.documents import LeftOut, read_documents
from backlight.cli.main import INTERRUPTED, Parser, notice
from backlight.cli.outputs import as_json
from backlight.cli.pages import (
    add_views,
    check_given,
    explained_again,
    page_data_of,
    report_language,
    report_query_truncation,
    report_spelling,
    report_unanswered,
    report_windows,
    typo_data,
    typo_of,
    views_of,
    write_files,
)
from backlight.cli.screens.ranking import show
from backlight.cli.screens.terminal import progress, screen
from backlight.explain.attribution import Ranking
from backlight.explain.presentation.wording import count_of
from backlight.explain.typos import TypoEffect
from backlight.models.retrieval.index import NONE
from backlight.web.pictures import ranking_svg


def explain(argv: Sequence[str]) -> int:
    """Run `backlight explain` with these arguments."""
    given = _parser().parse_args(argv)
    check_given(given)
    methods, views = methods_of(given), views_of(given)
    left_out: list[LeftOut] = []
    documents = read_documents(given.documents, left_out)
    reranker = reranker_of(given)
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    retriever, count = retriever_of(given, texts, reranker)
    chosen = count if given.top is None else min(given.top, count)
    reading = {**reading_of(given), "check": not given.no_check}
    checks = 1 if given.no_check else 2
    candidates = None if retriever == NONE else count
    ranked = partial(
        reranker.rank, given.query, texts, names=names, candidates=candidates, retriever=retriever, **reading
    )
    rankings: list[Ranking] = []
    typo, code = None, 0
    (first, own), *others = methods
    try:
        with progress(count + chosen * (checks + (checks + 1) * len(others))) as advance:
            rankings.append(ranked(explain=chosen, method=first.name, advance=advance, **own))
            typo = None if given.no_check else typo_of(reranker, rankings[0])
            for method, own in others:
                rankings.append(explained_again(reranker, rankings[0], method, advance, reading | own))
    except KeyboardInterrupt:
        code, views = INTERRUPTED, ()
        if rankings:
            notice(f"interrupted: {len(rankings)} of {count_of(len(methods), 'method')} explained the documents")
        else:
            notice("interrupted: the ranking follows, without explanations (Ctrl-C again to skip it)")
            rankings.append(ranked(explain=0))
    report_language(rankings[0].model, rankings[0].other_languages)
    report_spelling([one.read_as for one in rankings[0].documents])
    report_unanswered(rankings[0])
    report_query_truncation(rankings[0])
    report_windows([(one.name, one.window) for one in rankings[0].documents])
    if given.json:
        print(as_json(_data(rankings, typo, left_out)))
    else:
        show(rankings[0], screen(given.theme), typo)
        if len(rankings) > 1 and not given.html:
            print(f"Shown: {first.name}; use --html FILE or --json for the other methods.")
    write_files(
        given,
        lambda: page_data_of(reranker, rankings, views, reading_of(given), typo, left_out),
        lambda: ranking_svg(rankings[0], typo),
    )
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="backlight explain",
        description="Rank documents for a query and show which words made each score.",
    )
    add_documents(parser)
    add_model(parser)
    add_retrieval(parser)
    add_method(parser, several=True)
    parser.add_argument("--top", type=positive, metavar="N", help="explain the N best documents only")
    add_windows(parser)
    add_measuring(parser)
    add_outputs(parser)
    add_views(parser)
    return parser


def _data(rankings: Sequence[Ranking], typo: TypoEffect | None, left_out: Sequence[LeftOut]) -> dict:
    """Return a ranking, explained in one or several ways, as data (docs/explain.md describes it)."""
    first, *others = map(dataclasses.asdict, rankings)
    first |= typo_data(typo)
    first["left_out"] = [dataclasses.asdict(one) for one in left_out]
    return first | {"others": others} if others else first
