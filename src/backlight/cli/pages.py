"""The pages and notices of commands: the views on a page, the lines on standard error, the files written."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from backlight.cli.documents import LeftOut, check_query
from backlight.cli.main import notice, version
from backlight.cli.outputs import write_file
from backlight.cli.screens.terminal import progress
from backlight.errors import InputError
from backlight.explain.attribution import OtherLanguage, Ranked, Ranking, Truncation, Window
from backlight.explain.comparison import MEASURED
from backlight.explain.methods.attention_links import attention_links
from backlight.explain.methods.interactions import joint_occlusion
from backlight.explain.methods.logit_lens import build_up
from backlight.explain.methods.registry import METHODS, Method
from backlight.explain.presentation.wording import (
    count_of,
    language_line,
    preselection_line,
    spelling_line,
    unanswered_line,
)
from backlight.explain.reranker import Reranker
from backlight.explain.typos import TypoEffect, try_typos
from backlight.explain.windows import BEST
from backlight.models.misspellings import Misspelling
from backlight.models.pairs import Pair
from backlight.models.retrieval.index import NONE
from backlight.models.scorer import Progress
from backlight.web.page_data import PageData
from backlight.web.report import report
from backlight.web.svg_to_png import png_of

VIEWS = ("attention", "layers", "matrix", "compare")
QUICK = ("attention", "layers")  # a pass or two for each document; the others take hundreds
ALL_DEFAULTS = {"windows": BEST}
LOOKED_INTO = 3  # documents whose attention and layers are on a page


def add_views(parser: argparse.ArgumentParser) -> None:
    """Add the option for what the page shows in addition to the words."""
    parser.add_argument(
        "--views",
        metavar="LIST",
        help=f"what the page also shows of the best {LOOKED_INTO} documents: any of {', '.join(VIEWS)}, separated by "
        f"commas, or all, or none (default {','.join(QUICK)})",
    )


def views_of(given: argparse.Namespace) -> tuple[str, ...]:
    """Return the requested views. Raises InputError: there is no such view."""
    if given.views is None:
        return () if given.engine == "torch" else QUICK
    if given.views in ("all", "none"):
        return VIEWS if given.views == "all" else ()
    chosen = tuple(given.views.split(","))
    for name in chosen:
        if name not in VIEWS:
            raise InputError(f"--views must be of {', '.join(VIEWS)}, or all, or none, got {name}")
    return chosen


def explained_again(
    reranker: Reranker, ranking: Ranking, method: Method, advance: Progress, options: Mapping[str, object]
) -> Ranking:
    """Return the documents of a ranking that were explained, explained by another method.

    Args:
        options: how long documents are read, and the method's options.
    """
    best = [ranked for ranked in ranking.documents if ranked.attribution is not None]
    again = reranker.rank(
        ranking.query,
        [ranked.text for ranked in best],
        explain=len(best),
        method=method.name,
        names=[ranked.name for ranked in best],
        retriever=NONE,
        advance=advance,
        **options,
    )
    found = [replace(one, index=best[one.index].index, rank=best[one.index].rank) for one in again.documents]
    return replace(again, documents=tuple(sorted(found, key=lambda one: one.rank)))


def page_data_of(
    reranker: Reranker,
    rankings: Sequence[Ranking],
    views: Sequence[str],
    reading: Mapping[str, str | int | None] = ALL_DEFAULTS,
    typo: float | None = None,
    left_out: Sequence[LeftOut] = (),
) -> PageData:
    """Return what the page of rankings shows, with the requested views of the best documents.

    Args:
        reading: how long documents were read, as `reading_of` gives it.
        typo: how much a typo in the query changes the best document's score.
        left_out: the files that were not read.
    """
    ranking, attention, layers, matrices = rankings[0], {}, {}, {}
    best = [ranked for ranked in ranking.documents if ranked.attribution is not None][:LOOKED_INTO]
    for ranked in best:
        pair = pair_of(reranker, ranking.query, ranked, reading.get("stride"))
        if pair is None:
            continue
        if "attention" in views:
            links = attention_links(reranker.scorer, pair)
            if links is not None:
                attention[ranked.index] = links
        if "layers" in views:
            layers[ranked.index] = build_up(reranker.scorer, [pair])[0].after
        if "matrix" in views:
            try:
                matrices[ranked.index] = [joint_occlusion(reranker.scorer, pair)]
            except InputError as problem:  # it takes too many passes: the rest of the page is made all the same
                notice(f"the page has no matrix of {ranked.name}: {problem}")
    comparisons = []
    if "compare" in views and len(best) > 1:
        first, second = best[:2]
        method = next((one.method for one in rankings if METHODS[one.method].signed), MEASURED)
        names = first.name, second.name
        how = {**reading, "windows": reading.get("windows") and BEST}  # of a mean too: one window is compared
        comparisons.append(reranker.compare(ranking.query, first.text, second.text, method=method, names=names, **how))
    return PageData(rankings, matrices, attention, layers, comparisons, typo, [asdict(one) for one in left_out])


def report_language(model: str, found: Sequence[OtherLanguage]) -> None:
    """Say on standard error which texts look to be in a language that the model does not read."""
    line = language_line(model, found)
    if line is not None:
        notice(line)


def report_spelling(found: Sequence[Sequence[Misspelling]]) -> None:
    """Say on standard error which words of the query are read as others.

    Args:
        found: the `read_as` of each document.
    """
    line = spelling_line(found)
    if line is not None:
        notice(f"in the query {line}; --no-read-typos reads it as it is written")


def report_unanswered(ranking: Ranking) -> None:
    """Say on standard error if no document reaches the model's threshold."""
    line = unanswered_line(ranking)
    if line is not None:
        notice(line)


def report_windows(documents: Sequence[tuple[str, Window | None]]) -> None:
    """Say on standard error of which documents not all windows were scored.

    Args:
        documents: the name and the window of each.
    """
    line = preselection_line(documents)
    if line is not None:
        notice(f"{line}; --max-windows 0 scores all")


def report_query_truncation(ranking: Ranking) -> None:
    """Say on standard error how much of the query the model did not read."""
    report_truncation([("the query", ranking.query_truncation, None)])


def report_truncation(texts: Sequence[tuple[str, Truncation | None, Window | None]]) -> None:
    """Say on standard error which texts were cut at the end of what the model reads, and where.

    Args:
        texts: of each the name, what was left out, and the window that was read; one of those is no cut.
    """
    for name, left, window in texts:
        if left and window is None:
            notice(
                f"{name} was cut at character {left.characters_read:,}: {count_of(left.tokens_left_out, 'token')} "
                "after it were not read"
            )


def typo_of(reranker: Reranker, ranking: Ranking) -> TypoEffect | None:
    """Return what typos in the query do to the ranking; None where nothing was explained.

    Documents read in windows are scored by the window that was the best; None for a mean of windows.
    """
    best = ranking.documents[0]
    if best.attribution is None or (best.window is not None and best.window.number is None):
        return None
    texts = [_scored_part(one) for one in ranking.documents]
    return try_typos(reranker.scorer, ranking.query, texts, [one.score for one in ranking.documents])


def typo_data(typo: TypoEffect | None) -> dict:
    """Return what typos did as fields of the data (docs/explain.md describes them)."""
    order = None if typo is None else {name: getattr(typo, name) for name in ("close", "tried", "overturned")}
    return {"typo_effect": None if typo is None else typo.effect, "typo_order": order}


def _scored_part(ranked: Ranked) -> str:
    """Return the part of a document that gave its score: the best window of one that was read in windows."""
    window = ranked.window
    return ranked.text if window is None else ranked.text[window.first_character : window.last_character]


def pair_of(reranker: Reranker, query: str, ranked: Ranked, stride: int | None = None) -> Pair | None:
    """Return the pair that gave a document its score; None where that was the mean of several windows."""
    if ranked.window is None:
        return reranker.scorer.read([(query, ranked.text)])[0]
    if ranked.window.number is None:
        return None
    return reranker.scorer.windows(query, ranked.text, stride)[ranked.window.number - 1]


def check_given(given: argparse.Namespace) -> None:
    """Raise if the query is no text, or a page or a picture cannot be written because of what lies there."""
    check_query(given.query)
    for name in ("html", "svg", "png"):
        file = getattr(given, name)
        if file is None:
            continue
        if file.is_dir():
            raise InputError(f"--{name} must be a file, got the folder {file}")
        above = next(folder for folder in file.absolute().parents if folder.exists())
        if not above.is_dir():
            raise InputError(f"cannot write {file}: {above} is not a folder")


def write_files(given: argparse.Namespace, page: Callable[[], PageData], picture: Callable[[], str]) -> None:
    """Write the requested page and pictures, and say where they are: on stderr if data is printed."""
    said = []
    if given.html is not None:
        with progress(None, "making the page"):
            made = report(page(), version()).encode()
        said.append(f"The page is in {write_file(given.html, made)}")
    if given.svg is not None or given.png is not None:
        drawn = picture()
        if given.svg is not None:
            said.append(f"The picture is in {write_file(given.svg, drawn.encode())}")
        if given.png is not None:
            said.append(f"The picture is in {write_file(given.png, png_of(drawn))}")
    for line in said:
        print(line, file=sys.stderr if given.json else sys.stdout)
