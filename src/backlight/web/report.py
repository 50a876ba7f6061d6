"""Explanations as one self-contained HTML page: styles, script and data are in it, and it needs no network."""

import datetime
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.presentation.scales import activation_of
from backlight.explain.presentation.scores import score_text
from backlight.report.page import TOKENS, data_script, jinja_template, joined, policy_element
from backlight.web.page_data import LISTED, PageData, island

HERE = Path(__file__).parent
SCRIPTS = (  # in this order: each uses what stands before it
    "elements",
    "tip",
    "words",
    "matrix",
    "attention",
    "layers",
    "heading",
    "comparison",
    "documents",
    "ranking",
    "page",
)


def report(page: PageData, version: str, when: datetime.datetime | None = None) -> str:
    """Return a page as HTML.

    Args:
        version: backlight's, for the foot of the page.
        when: the time stated; by default now.

    Raises:
        InputError: there is nothing to show, or the library that fills the page in is not installed.
    """
    if not page.rankings and not page.comparisons:
        raise InputError("a page must show a ranking or a comparison, got neither")
    documents = page.rankings[0].documents if page.rankings else ()
    activation = activation_of(documents)
    style = joined(TOKENS, HERE / "report.css")
    return jinja_template(HERE / "report.html.jinja").render(
        policy=policy_element(scripts=[script()], styles=[style]),
        query=page.query,
        documents=documents,
        scores=[score_text(ranked.score, ranked.activated, activation) for ranked in documents],
        candidates=page.rankings[0].retrieval if page.rankings else None,
        not_reranked=page.rankings[0].not_reranked[:LISTED] if page.rankings else (),
        version=version,
        style=style,
        island=island(page, version, when or datetime.datetime.now().astimezone()),
        script=script(),
    )


def script() -> str:
    """Return the page's script."""
    begin = 'const state = { method: data.methods.length ? data.methods[0].name : null, view: "words", shown: null };\n'
    return data_script(*(HERE / "page" / f"{name}.js" for name in SCRIPTS), begin=begin)
