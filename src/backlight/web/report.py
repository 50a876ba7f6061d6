"""Explanations as one self-contained HTML page: styles, script and data are in it, and it needs no network."""

import datetime
from functools import cache
from pathlib import Path

from backlight.errors import InputError
from backlight.report.content_policy import policy_element
from backlight.web.exposition import Exposition, island

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


def report(page: Exposition, version: str, when: datetime.datetime | None = None) -> str:
    """Return a page as HTML.

    Args:
        version: backlight's, for the foot of the page.
        when: the time stated; by default now.

    Raises:
        InputError: there is nothing to show, or the library that fills the page in is not installed.
    """
    if not page.rankings and not page.comparisons:
        raise InputError("a page must show a ranking or a comparison, got neither")
    style = (HERE / "report.css").read_text(encoding="utf-8")
    return _template().render(
        policy=policy_element(scripts=[script()], styles=[style]),
        query=page.query,
        documents=page.rankings[0].documents if page.rankings else (),
        version=version,
        style=style,
        island=island(page, version, when or datetime.datetime.now().astimezone()),
        script=script(),
    )


@cache
def script() -> str:
    """Return the page's script: its files, one after another."""
    begin = (
        '"use strict";\n(() => {\nconst data = JSON.parse(document.getElementById("data").textContent);\n'
        'const state = { method: data.methods.length ? data.methods[0].name : null, view: "words" };\n'
    )
    files = ((HERE / "page" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return begin + "\n".join(files) + "\n})();\n"


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
