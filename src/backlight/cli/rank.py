"""`backlight rank`: rank documents for a query, in the terminal or as the JSON that reranking services return."""

import dataclasses
from collections.abc import Sequence

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
    whole_number,
)
from backlight.cli.documents import LeftOut, read_documents
from backlight.cli.main import Parser, version
from backlight.cli.outputs import json_of
from backlight.cli.pages import (
    check_given,
    page_data_of,
    report_language,
    report_query_truncation,
    report_spelling,
    report_unanswered,
    report_windows,
    typo_data,
    typo_of,
    write_files,
)
from backlight.cli.screens.ranking import show
from backlight.cli.screens.terminal import progress, screen
from backlight.explain.attribution import Ranked, Ranking
from backlight.explain.typos import TypoEffect
from backlight.models.retrieval.index import NONE
from backlight.web.pictures import ranking_svg


def rank(argv: Sequence[str]) -> int:
    """Run `backlight rank` with these arguments."""
    given = _parser().parse_args(argv)
    check_given(given)
    ((method, options),) = methods_of(given)
    left_out: list[LeftOut] = []
    documents = read_documents(given.documents, left_out)
    reranker = reranker_of(given)
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    retriever, count = retriever_of(given, texts, reranker)
    steps = count + min(given.explain, count) * (1 if given.no_check else 2)
    with progress(steps, "ranking") as advance:
        ranking = reranker.rank(
            given.query,
            texts,
            given.top_k,
            explain=given.explain,
            method=method.name,
            names=names,
            check=not given.no_check,
            candidates=None if retriever == NONE else count,
            retriever=retriever,
            advance=advance,
            **reading_of(given),
            **options,
        )
        typo = None if given.no_check else typo_of(reranker, ranking)
    report_language(ranking.model, ranking.other_languages)
    report_spelling([one.read_as for one in ranking.documents])
    report_unanswered(ranking)
    report_query_truncation(ranking)
    report_windows([(one.name, one.window) for one in ranking.documents])
    if given.json:
        print(as_json(ranking, typo, left_out))
    else:
        show(ranking, screen(given.theme), typo)
    write_files(
        given,
        lambda: page_data_of(reranker, [ranking], (), typo=typo, left_out=left_out),
        lambda: ranking_svg(ranking, typo),
    )
    return 0


def _parser() -> Parser:
    parser = Parser(prog="backlight rank", description="Rank documents for a query.")
    add_documents(parser)
    add_model(parser)
    add_retrieval(parser)
    parser.add_argument("--top-k", type=positive, metavar="N", help="show the N best documents only")
    parser.add_argument(
        "--explain", type=whole_number, default=0, metavar="N", help="also explain the N best documents"
    )
    add_method(parser)
    add_windows(parser)
    add_measuring(parser)
    add_outputs(parser)
    return parser


def as_json(ranking: Ranking, typo: TypoEffect | None = None, left_out: Sequence[LeftOut] = ()) -> str:
    """Return a ranking as reranking services do: `results`, best first, each with `index` and `relevance_score`.

    Documents of a long list that were no candidates are in `not_reranked`, without a score.

    Args:
        typo: what typos in the query do to the ranking (`try_typos`).
        left_out: the files that were not read.
    """
    explained = any(ranked.attribution is not None for ranked in ranking.documents)
    found = {
        "results": [_result(ranked) for ranked in ranking.documents],
        "not_reranked": [
            {"rank": one.rank, "index": one.index, "document": {"text": one.text, "name": one.name}}
            for one in ranking.not_reranked
        ],
        "meta": {
            "backlight": version(),
            "query": ranking.query,
            "model": ranking.model,
            "score_name": ranking.score_name,
            "max_tokens": ranking.max_tokens,
            "method": ranking.method if explained else None,
            "retrieval": None if ranking.retrieval is None else dataclasses.asdict(ranking.retrieval),
            **typo_data(typo),
            "threshold": ranking.threshold,
            "answered": ranking.answered,
            "other_languages": [dataclasses.asdict(one) for one in ranking.other_languages],
            "left_out": [dataclasses.asdict(one) for one in left_out],
        },
    }
    return json_of(found)


def _result(ranked: Ranked) -> dict:
    """Return one result; `relevance_score` is the activated score, `logit` the raw score."""
    return {
        "index": ranked.index,
        "relevance_score": ranked.activated,
        "logit": ranked.score,
        "document": {"text": ranked.text, "name": ranked.name},
        "truncation": dataclasses.asdict(ranked.truncation),
        "read_as": [dataclasses.asdict(one) for one in ranked.read_as],
        "window": None if ranked.window is None else dataclasses.asdict(ranked.window),
        "explanation": None if ranked.attribution is None else dataclasses.asdict(ranked.attribution),
    }
