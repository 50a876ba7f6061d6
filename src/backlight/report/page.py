"""The kit of all HTML pages: one file each, with its styles, scripts and data in it, that needs no network.

Pages that must work without Jinja are a `string.Template` of a few parts (`filled`); the others are Jinja's, which
escapes what a person or a model wrote (`jinja_template`).
"""

import datetime
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from backlight.errors import InputError
from backlight.report.content_policy import policy_element

HERE = Path(__file__).parent
TOKENS = HERE / "tokens.css"  # the colours and fonts of all pages
ELEMENTS = HERE / "elements.js"  # makes elements of HTML and SVG
THEME = HERE / "theme.js"  # the button that changes between light and dark


@cache
def joined(*files: Path) -> str:
    """Return the texts of files, one after another."""
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def json_island(data: object) -> str:
    """Return data as JSON that may stand in a script element: no text in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def data_script(*files: Path, begin: str = "") -> str:
    """Return the kit's elements and scripts as one that has the page's data as `data`; each uses what stands before."""
    read = 'const data = JSON.parse(document.getElementById("data").textContent);\n'
    return f'"use strict";\n(() => {{\n{read}{begin}{joined(ELEMENTS, *files)}\n}})();\n'


def filled(template: Path, *, style: str, script: str, style_attributes: bool = False, **parts: str) -> str:
    """Return a page with its style, its script, the policy that names both, and parts that are HTML.

    Args:
        style_attributes: whether elements of the page have a `style` attribute.
    """
    policy = policy_element(scripts=[script], styles=[style], style_attributes=style_attributes)
    return Template(joined(template)).substitute(parts, style=style, script=script, policy=policy)


@cache
def jinja_template(file: Path, needed_by: str = "--html"):
    """Return a template of Jinja, which escapes everything that a person or a model wrote.

    Raises:
        InputError: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError as problem:
        raise InputError(f'{needed_by} needs the jinja2 library: pip install "backlight[explain]"') from problem
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(file.parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(file.name)


def date_text(when: datetime.datetime | None) -> str:
    """Return a time as pages state it, `3 March 2026, 14:05`; by default now."""
    when = when or datetime.datetime.now().astimezone()
    return when.strftime("%d %B %Y, %H:%M").lstrip("0")


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first few of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
