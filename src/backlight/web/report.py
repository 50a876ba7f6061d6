"""A ranking as one HTML page that stands alone: styles and script are in it, and it asks no network for anything."""

import datetime
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.attribution import Ranked, Ranking, TextAttribution

HERE = Path(__file__).parent
LISTED = 6  # strongest words listed beneath a document
BRIGHT = 0.55  # the share from which a word's ground is bright in the dark theme, and its letters dark


def report(ranking: Ranking, version: str, when: datetime.datetime | None = None) -> str:
    """Return the page of a ranking.

    Args:
        version: backlight's, for the foot of the page.
        when: the time stated; by default now.
    """
    when = when or datetime.datetime.now().astimezone()
    return _template().render(
        ranking=ranking,
        query=_text(ranking.mean_query()),
        documents=[_document(ranked) for ranked in ranking.documents],
        explained=sum(ranked.attribution is not None for ranked in ranking.documents),
        version=version,
        when=when,
        style=(HERE / "report.css").read_text(encoding="utf-8"),
        script=(HERE / "report.js").read_text(encoding="utf-8"),
    )


@cache
def _template():
    """Return the page's template, which escapes everything that a person or a model wrote."""
    try:
        import jinja2
    except ImportError as problem:
        raise InputError('--html needs the jinja2 library: pip install "backlight[explain]"') from problem
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja")


def _document(ranked: Ranked) -> dict:
    """Return what the template says of one document."""
    folder = ranked.name.rfind("/") + 1
    pair = ranked.attribution
    return {
        "rank": ranked.rank,
        "folder": ranked.name[:folder],
        "name": ranked.name[folder:],
        "score": f"{ranked.score:.3f}".replace("-", "\N{MINUS SIGN}"),
        "width": 100 * min(1.0, max(0.0, ranked.score)),
        "truncation": ranked.truncation,
        "text": None if pair is None else _text(pair.document),
        "query": None if pair is None else _text(pair.query),
        "special": () if pair is None else pair.special,
    }


def _text(text: TextAttribution) -> dict:
    """Return a text cut into pieces, its strongest words, what stood apart and what was left out."""
    ranks = {word.start: rank for rank, word in enumerate(text.strongest(), 1)}
    return {
        "pieces": list(_pieces(text, ranks)),
        "words": len(text.words),
        "strongest": [(word, text.share(word)) for word in text.strongest(LISTED)],
        "truncation": text.truncation,
    }


def _pieces(text: TextAttribution, ranks: dict[int, int]) -> Iterator[dict]:
    """Give each word with its share of the strongest word's importance, and what stands between words."""
    for piece, word in text.segments():
        if word is None:
            yield {"text": piece, "word": None}
        else:
            share = text.share(word)
            yield {"text": piece, "word": word, "share": share, "rank": ranks[word.start], "bright": share >= BRIGHT}
