"""The self-contained page of a run: its parts, for runs of `backlight train` and for records of the lens."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from backlight.report.content_policy import policy_element
from backlight.training.pages.charts import Mark, Series, curves
from backlight.training.pages.heat_map import LOG, SHARE, ends_of, heat_map

HERE = Path(__file__).parent
THEME = HERE / "theme.js"


@dataclass(frozen=True)
class View:
    """One of the numbers by layer, as the page shows it."""

    quantity: str
    title: str
    scale: str
    said: str


VIEWS = (
    View(
        "gradient_norms",
        "Gradient norm",
        LOG,
        "The norm of each layer's gradient, in the order of the model. A layer that fades learns little; one that "
        "glows ever more may run away.",
    ),
    View(
        "gradient_ratios",
        "Gradient / weight",
        LOG,
        "The norm of the gradient divided by the norm of the layer's weights: how much of itself it would be moved by.",
    ),
    View(
        "update_norms",
        "Update norm",
        LOG,
        "The norm of what a step changed of the layer's weights, measured before and after it.",
    ),
    View(
        "update_ratios",
        "Update / weight",
        LOG,
        "The norm of the update divided by the norm of the weights. About 0.001 is usual; far less and a layer hardly "
        "learns, far more and it is thrown about.",
    ),
    View("zero_gradients", "Zero gradients", SHARE, "The share of the layer's gradients that are exactly 0."),
    View(
        "dead_units",
        "Dead units",
        SHARE,
        "The share of units that were 0 for all samples of the last recorded steps (100, unless asked otherwise): of "
        "ReLU and its like their outputs, of layers with a bias those to whose bias no gradient came.",
    ),
)


def page_of(*, kicker: str, title: str, facts: dict, notes: Sequence[str], sections: Sequence[str], printed) -> str:
    """Return a page.

    Args:
        kicker: what the title is the title of.
        facts: names and values for its head; those without a value are left out.
        notes: what a reader must not overlook.
        sections: HTML, as the functions of this file make it; empty ones are left out.
        printed: texts to print as they are at the end.
    """
    style = (HERE / "report.css").read_text(encoding="utf-8")
    script = "\n".join(script.read_text(encoding="utf-8") for script in (THEME, HERE / "charts.js"))
    page = Template((HERE / "report.html").read_text(encoding="utf-8"))
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in facts.items() if value
    )
    return page.substitute(
        kicker=escape(kicker),
        title=escape(title),
        facts=rows,
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in notes),
        sections="\n".join(filter(None, sections)) or '<p class="note">Nothing has been recorded yet.</p>',
        printed="".join(f"<pre>{escape(text)}</pre>" for text in printed),
        policy=policy_element(scripts=[script], styles=[style], style_attributes=True),
        style=style,
        script=script,
    )


def section(title: str, picture: str, key: str = "", end: str = "", said: str = "") -> str:
    """Return a card with a picture, or nothing if there is none.

    Args:
        key: HTML that says what the curves are.
        end: a word at the right of the title.
        said: what the picture means.
    """
    if not picture:
        return ""
    said = f'<p class="said">{said}</p>' if said else ""
    return (
        f'<article><header><h2>{escape(title)}</h2><span class="keys">{key}</span>'
        f'<span class="end">{escape(end)}</span></header>{picture}{said}</article>'
    )


def curve_section(
    title: str,
    shown: Sequence[Series],
    *,
    zero: bool = False,
    log: bool = False,
    mark: Mark | None = None,
    last: float | None = None,
    end: str = "",
) -> str:
    """Return a card with curves over steps, and a key to them if there are several."""
    picture = curves(shown, f"{title} over steps", zero=zero, log=log, mark=mark, last=last)
    key = "".join(f'<span class="key {one.look}">{escape(one.name)}</span>' for one in shown if len(shown) > 1)
    return section(title, picture, key, end)


def flow_section(
    by_layer: Callable[[str], dict[str, list]], steps: Sequence[float], types: dict[str, str], mark: Mark | None = None
) -> str:
    """Return the card of the layers: a heat map for each of `VIEWS` of which something is known.

    Args:
        by_layer: gives for a quantity the values of each layer, one a step.
        steps: the numbers of the steps.
        types: the class of each layer.
    """
    drawn = [_view(view, by_layer(view.quantity), steps, types, mark) for view in VIEWS] if steps else []
    if not any(drawn):
        return ""
    return (
        '<article class="views"><header><h2>Gradient flow</h2>'
        f'<span class="tabs" role="group" aria-label="what is shown"></span></header>{"".join(drawn)}</article>'
    )


def _view(view: View, found: dict[str, list], steps: Sequence[float], types: dict[str, str], mark: Mark | None) -> str:
    rows = {f"{name} {types.get(name, '')}".strip(): values for name, values in found.items()}
    if not rows:
        return ""
    label = f"{view.title} by layer over steps"
    picture = heat_map(rows, steps[-1], label, steps=steps, scale=view.scale, mark=mark)
    if not picture:
        return ""
    low, high = (f'<span class="ends">{end}</span>' for end in ends_of(rows, view.scale))
    values = [value for row in rows.values() for value in row]
    key = f'{low}<span class="ramp" aria-hidden="true"></span>{high}' + _signs(values)
    return (
        f'<section class="view" data-name="{escape(view.title)}"><div class="head"><h3>{escape(view.title)}</h3>'
        f'<span class="keys">{key}</span></div>{picture}<p class="said">{view.said}</p></section>'
    )


def _signs(values: list) -> str:
    """Return the key to what is no shade, as far as it is seen."""
    signs = {
        "zero": ("exactly 0", any(value == 0 for value in values)),
        "broken": ("not finite", any(value is not None and not math.isfinite(value) for value in values)),
        "none": ("none", None in values),
    }
    return "".join(f'<span class="sign {name}">{word}</span>' for name, (word, there) in signs.items() if there)


def finite(points: Sequence[tuple]) -> list[tuple]:
    """Return points with None for what is not finite."""
    return [(x, y if y is not None and math.isfinite(y) else None) for x, y in points]
