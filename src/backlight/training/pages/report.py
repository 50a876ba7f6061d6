"""A run as one self-contained HTML page: curves and the flow of gradients, in the light of the reader's choice."""

import datetime
from html import escape

from backlight.training.pages.charts import EVALUATED, Mark, Series, curves, short
from backlight.training.pages.page import curve_section, flow_section, page_of, section
from backlight.training.run_folder import RunFolder
from backlight.training.step_meter import BY_LAYER, said_of

NOT_METRICS = {"step", "epoch", "seconds", "loss", "lr", "gradient", "first_not_finite", *BY_LAYER}


def report(folder: RunFolder, when: datetime.datetime | None = None) -> str:
    """Return the page of a run.

    Args:
        when: the time stated; by default now.
    """
    records = folder.records()
    steps = [record for record in records if "loss" in record]
    evaluations = [record for record in records if "evaluation" in record]
    when = when or datetime.datetime.now().astimezone()
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
    key = "".join(f'<span class="key {series.look}">{escape(series.name)}</span>' for series in shown)
    return section(name.replace("_", " ").capitalize(), picture, key, _last_words(shown))


def _by_data(evaluations: list[dict]) -> dict[str, list[dict]]:
    """Return the evaluations on each kind of data, in the order in which it appeared."""
    found: dict[str, list[dict]] = {}
    for record in evaluations:
        found.setdefault(record.get("on") or "evaluation", []).append(record)
    return found


def _last_words(shown: list[Series]) -> str:
    """Return the last known value of each curve."""
    ends = [(series.name, [y for _, y in series.points if y is not None][-1]) for series in shown]
    return " · ".join(f"{name} {value:.4g}" for name, value in ends)


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


def _facts(config: dict, steps: list[dict], evaluations: list[dict], when: datetime.datetime) -> dict:
    """Return what stands in the page's head."""
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
    facts["Written"] = when.strftime("%d %B %Y, %H:%M").lstrip("0")
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
    """Describe what a reader must not overlook."""
    lost = [record["step"] for record in steps if record["loss"] is None]
    if not lost:
        return []
    return [f"The loss was not a finite number at {len(lost)} steps, first at step {lost[0]:,}."]
