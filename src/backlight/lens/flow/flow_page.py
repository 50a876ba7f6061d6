"""The page of a `lens.Recorder`: curves, layers over steps, and where the first NaN or inf was."""

import datetime
import math

from backlight.lens.flow.history import History
from backlight.report.charts import Mark, Series
from backlight.report.numbers import clock
from backlight.report.page import date_text, some_of
from backlight.training.report import curve_section, finite, flow_section, page_of
from backlight.training.step_meter import said_of

ENGINES = {"torch": "PyTorch"}


def flow_page(history: History, when: datetime.datetime | None = None) -> str:
    """Return the page of a record.

    Args:
        when: the time stated; by default now.
    """
    about, found = history.about, history.found
    mark = None if found is None else Mark(found["step"], found["kind"])
    last = None if history.last is None else history.last["step"]
    return page_of(
        kicker="Gradient flow",
        title=about["title"],
        facts=_facts(history, when),
        notes=_notes(history),
        sections=[
            curve_section("Loss", [_series(history, "loss", smooth=True)], mark=mark, last=last, end=_end(history)),
            *_metrics(history, last),
            curve_section("Learning rate", _rates(history), zero=True, last=last),
            curve_section(
                "Gradient norm of all layers", [_series(history, "gradient")], log=True, mark=mark, last=last
            ),
            flow_section(history.by_layer, [point["step"] for point in history.points], about["layers"], mark),
        ],
        printed=[about["model"], *about["optimizers"]],
    )


def _series(history: History, name: str, smooth: bool = False) -> Series:
    return Series(name, finite([(point["step"], point[name]) for point in history.points]), smooth=smooth)


def _end(history: History) -> str:
    loss = history.last and history.last["loss"]
    if loss is None:
        return ""
    return f"{loss:.4g} at the end" if math.isfinite(loss) else "not finite at the end"


def _metrics(history: History, last: float | None) -> list[str]:
    names = dict.fromkeys(name for point in history.points for name in point["metrics"])
    found = []
    for name in names:
        points = finite([(point["step"], point["metrics"].get(name)) for point in history.points])
        title = name.replace("_", " ").capitalize()
        found.append(curve_section(title, [Series(name, points, smooth=True)], last=last))
    return found


def _rates(history: History) -> list[Series]:
    """Return the learning rate of each parameter group; groups with the same course are one curve."""
    count = max((len(point["lr"]) for point in history.points), default=0)
    groups: dict[tuple, list[int]] = {}
    for group in range(count):
        course = tuple((point["step"], point["lr"][group]) for point in history.points if group < len(point["lr"]))
        groups.setdefault(course, []).append(group)
    looks = ("first", "evaluated", "tested")
    return [
        Series(_group_name(numbers, count), finite(course), f"rate {looks[min(place, 2)]}")
        for place, (course, numbers) in enumerate(groups.items())
    ]


def _group_name(numbers: list[int], count: int) -> str:
    if len(numbers) == count:
        return "learning rate"
    return f"group {', '.join(map(str, numbers))}" if len(numbers) < 5 else f"{len(numbers)} groups"


def _facts(history: History, when: datetime.datetime | None) -> dict[str, str]:
    about, last = history.about, history.last or {"step": 0, "seconds": 0.0}
    return {
        "Model": about["model"].partition("(")[0],
        "Engine": ENGINES.get(about["engine"], about["engine"]),
        "Parameters": f"{about['parameters']:,}",
        "Optimizer": ", ".join(text.partition(" ")[0] for text in about["optimizers"]),
        "Steps": f"{last['step']:,}",
        "Time": f"{clock(last['seconds'])} min" if last["seconds"] >= 60 else f"{last['seconds']:.1f} s",
        "Written": date_text(when),
    }


def _notes(history: History) -> list[str]:
    notes = [] if history.found is None else [said_of(history.found) + "."]
    norms = history.by_layer("gradient_norms")
    untouched = [name for name, values in norms.items() if values and all(value is None for value in values)]
    if untouched:
        notes.append(f"No gradient ever came to {some_of(untouched)}.")
    return notes
