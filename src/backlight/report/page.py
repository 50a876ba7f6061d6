"""The kit of all HTML pages: one file each, with its styles, scripts and data in it, that needs no network.

Pages that must work without Jinja are a `string.Template` of a few parts (`filled`); the others are Jinja's, which
escapes what a person or a model wrote (`jinja_template`).

NOTE [A page's policy]
`default-src 'none'` forbids all; the page's own script and style are named by their SHA-256. A text that a person, a
model or a file brought in, were it to get past the escaping, still runs nothing, loads nothing and sends nothing.
Attributes `style="…"`, where a page is drawn without a script, cannot be named and are allowed there: with nothing to
load, they only look. `frame-ancestors` has no effect in a page's own policy.
"""

import base64
import datetime
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from backlight.errors import InputError, install_hint

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
        raise InputError(f"{needed_by} needs the jinja2 library: {install_hint('explain')}") from problem
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


NOTHING = ("default-src 'none'", "base-uri 'none'", "form-action 'none'")


def policy_element(*, scripts: Sequence[str] = (), styles: Sequence[str] = (), style_attributes: bool = False) -> str:
    """Return the `<meta>` element with a page's policy (see NOTE [A page's policy]).

    Args:
        scripts: the text of each script element, to the character.
        styles: the text of each style element.
        style_attributes: whether elements of the page have a `style` attribute in its HTML.
    """
    rules = [*NOTHING]
    if scripts:
        rules.append(f"script-src {' '.join(map(_hash_of, scripts))}")
    if styles:
        rules.append(f"style-src {' '.join(map(_hash_of, styles))}")
    if style_attributes:
        rules.append("style-src-attr 'unsafe-inline'")
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def _hash_of(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{found}'"
