"""The content security policy of every page: what a page may run and load is what backlight put into it, no network.

NOTE [A page's policy]
`default-src 'none'` forbids all; the page's own script and style are named by their SHA-256. A text that a person, a
model or a file brought in, were it to get past the escaping, still runs nothing, loads nothing and sends nothing.
Attributes `style="…"`, where a page is drawn without a script, cannot be named and are allowed there: with nothing to
load, they only look. `frame-ancestors` has no effect in a page's own policy.
"""

import base64
import hashlib
from collections.abc import Sequence

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
