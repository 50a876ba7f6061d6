"""The self-contained page of a run: curves and the flow of gradients, for `backlight train` and records of the lens."""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from backlight.report.charts import EVALUATED, LOG, SHARE, Mark, Series, curves, ends_of, heat_map, short
from backlight.report.page import THEME, TOKENS, date_text, filled, joined
from backlight.training.run_folder import RunFolder
from backlight.training.step_meter import BY_LAYER, said_of

PAGES = Path(__file__).parent / "pages"


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


def page_of(
    *, kicker: str, title: str, facts: dict, notes: Sequence[str], sections: Sequence[str], printed: Sequence[str]
) -> str:
    """Return a page.

    Args:
        kicker: what the title is the title of.
        facts: names and values for its head; those without a value are left out.
        notes: what a reader must not overlook.
        sections: HTML, as the functions of this file make it; empty ones are left out.
        printed: texts to print as they are at the end.
    """
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in facts.items() if value
    )
    return filled(
        PAGES / "report.html",
        kicker=escape(kicker),
        title=escape(title),
        facts=rows,
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in notes),
        sections="\n".join(filter(None, sections)) or '<p class="note">Nothing has been recorded yet.</p>',
        printed="".join(f"<pre>{escape(text)}</pre>" for text in printed),
        style=joined(TOKENS, PAGES / "report.css"),
        script=joined(THEME, PAGES / "charts.js"),
        style_attributes=True,
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
    return section(title, picture, _key(shown) if len(shown) > 1 else "", end)


def _key(shown: Sequence[Series]) -> str:
    return "".join(f'<span class="key {one.look}">{escape(one.name)}</span>' for one in shown)


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


NOT_METRICS = {"step", "epoch", "seconds", "loss", "lr", "gradient", "first_not_finite", *BY_LAYER}


def report(folder: RunFolder, when: datetime.datetime | None = None) -> str:
    """Return the page of a run.

    Args:
        when: the time stated; by default now.
    """
    records = folder.records()
    steps = [record for record in records if "loss" in record]
    evaluations = [record for record in records if "evaluation" in record]
    config = folder.config()
    found = next((record["first_not_finite"] for record in steps if "first_not_finite" in record), None)
    mark = None if found is None else Mark(found["step"], found["kind"])

    def by_layer(quantity: str) -> dict[str, list]:
        names = dict.fromkeys(name for record in steps for name in record.get(quantity, {}))
        return {name: [record.get(quantity, {}).get(name) for record in steps] for name in names}

    return page_of(
        kicker="Run",
        title=folder.path.resolve().name,
        facts=_facts(config, steps, evaluations, when),
        notes=_notes(steps) + ([] if found is None else [said_of(found) + "."]),
        sections=[
            _measured("loss", steps, evaluations, zero=True, mark=mark),
            *[_measured(name, steps, evaluations) for name in _metrics_of(steps, evaluations)],
            _learning_rate(steps),
            _throughput(steps),
            flow_section(by_layer, [record["step"] for record in steps], config.get("layers", {}), mark),
        ],
        printed=[config.get("model", ""), config.get("optimizer", "")],
    )


def _metrics_of(steps: list[dict], evaluations: list[dict]) -> list[str]:
    """Return the names of the metrics, apart from the loss, in the order of their appearance."""
    names = [name for record in steps for name in record if name not in NOT_METRICS]
    names += [name for record in evaluations for name in record["evaluation"] if name != "loss"]
    return [name for name in dict.fromkeys(names) if not name.endswith("_per_second")]


def _measured(
    name: str, steps: list[dict], evaluations: list[dict], zero: bool = False, mark: Mark | None = None
) -> str:
    """Return the section of one number that training and evaluations measure."""
    trained = Series("training", _points(steps, name), "first", smooth=True)
    looks = iter(EVALUATED)
    evaluated = [
        Series(on, [(one["step"], one["evaluation"].get(name)) for one in found], next(looks, EVALUATED[-1]))
        for on, found in _by_data(evaluations).items()
    ]
    shown = [series for series in (trained, *evaluated) if any(y is not None for _, y in series.points)]
    picture = curves(shown, f"{name} over steps", zero=zero, mark=mark)
    last = ((one.name, [y for _, y in one.points if y is not None][-1]) for one in shown)
    end = " · ".join(f"{name} {value:.4g}" for name, value in last)
    return section(name.replace("_", " ").capitalize(), picture, _key(shown), end)


def _by_data(evaluations: list[dict]) -> dict[str, list[dict]]:
    """Return the evaluations on each kind of data, in the order in which it appeared."""
    found: dict[str, list[dict]] = {}
    for record in evaluations:
        found.setdefault(record.get("on") or "evaluation", []).append(record)
    return found


def _throughput(steps: list[dict]) -> str:
    unit = next((name for record in steps for name in record if name.endswith("_per_second")), None)
    if unit is None:
        return ""
    points = _points(steps, unit)
    words = unit.replace("_", " ")
    ordered = sorted(y for _, y in points if y is not None)
    middle = f"{short(ordered[len(ordered) // 2])} {words} in the median"
    return curve_section("Throughput", [Series(words, points, smooth=True)], zero=True, end=middle)


def _learning_rate(steps: list[dict]) -> str:
    points = _points(steps, "lr")
    if len({y for _, y in points}) < 2:
        return ""  # it stands among the optimizer's settings
    return curve_section("Learning rate", [Series("lr", points)], zero=True)


def _points(steps: list[dict], name: str) -> list[tuple]:
    return [(record["step"], record.get(name)) for record in steps]


def _facts(config: dict, steps: list[dict], evaluations: list[dict], when: datetime.datetime | None) -> dict:
    last = max((record["step"] for record in [*steps, *evaluations]), default=0)
    seconds = max([record.get("seconds") or 0 for record in [*steps, *evaluations]], default=0)
    facts = {
        "Model": config.get("model", "").partition("(")[0],
        "Parameters": f"{config.get('parameters', 0):,}",
        "Optimizer": config.get("optimizer", "").partition(" ")[0],
        "Schedule": config.get("schedule"),
        "Steps": f"{last:,}",
        "Time": f"{int(seconds) // 60}:{int(seconds) % 60:02} min" if seconds >= 60 else f"{seconds:.1f} s",
    }
    facts |= _reached(evaluations)
    facts["Written"] = date_text(when)
    return facts


def _reached(evaluations: list[dict]) -> dict[str, str]:
    """Return the best accuracy; where a validation chose the weights, that and what these reach on the test data."""
    facts, kinds = {}, _by_data(evaluations)
    for on, records in kinds.items():
        known = [(one["evaluation"].get("accuracy"), one["step"]) for one in records]
        known = [pair for pair in known if pair[0] is not None]
        if known and on == "test" and len(kinds) > 1:
            facts["Test accuracy"] = f"{100 * known[-1][0]:.2f} %"
        elif known:
            best, step = max(known, key=lambda pair: pair[0])
            name = "Best accuracy" if len(kinds) == 1 else f"Best {on} accuracy"
            facts[name] = f"{100 * best:.2f} % at step {step:,}"
    return facts


def _notes(steps: list[dict]) -> list[str]:
    lost = [record["step"] for record in steps if record["loss"] is None]
    if not lost:
        return []
    return [f"The loss was not a finite number at {len(lost)} steps, first at step {lost[0]:,}."]
