"""A study of faithfulness as one self-contained HTML page: its tables and the curves behind them."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from backlight.explain.faithfulness.columns import PANELS, Column, Panel, cells_of, tables_of
from backlight.explain.faithfulness.curves import TENTHS
from backlight.explain.faithfulness.measure import ALWAYS
from backlight.explain.faithfulness.table import LinkRow, Row
from backlight.report.page import jinja_template, joined, policy_element
from backlight.web.curves import STYLE, curves

HERE = Path(__file__).parent


def page(
    rows: Sequence[Row],
    links: Sequence[LinkRow],
    description: Mapping,
    version: str,
    when: datetime.datetime | None = None,
) -> str:
    """Return the page of a study.

    Args:
        description: which model was measured on which data.
        version: backlight's, for the foot of the page.
        when: the time stated; by default now.
    """
    style = joined(HERE / "evaluation.css")
    return jinja_template(HERE / "evaluation.html.jinja").render(
        policy=policy_element(styles=[style, STYLE]),
        style=style,
        description=description,
        pairs=max(row.pairs for row in rows),
        failed=[(row.title, row.failed) for row in rows if row.failed],
        panels=[_panel(*one) for one in tables_of(rows, links)],
        picture=deletion_picture(rows),
        version=version,
        when=when or datetime.datetime.now().astimezone(),
    )


def deletion_picture(rows: Sequence[Row]) -> str | None:
    """Return how much of the score each method's words take away as they leave; None where that was not measured."""
    lines = {row.title: row.curve for row in rows if row.curve is not None}
    if not lines:
        return None
    controls = [row.title for row in rows if row.label in ALWAYS]
    return curves("score lost as words leave the attention, strongest first", TENTHS, lines, controls)


def _panel(panel: Panel, columns: Sequence[Column], rows: Sequence[Row] | Sequence[LinkRow]) -> dict:
    lines = []
    for row, found in cells_of(columns, rows):
        cells = []
        for column, mean, best in found:
            value, _, interval = ("" if mean is None else column.written(mean)).partition(" ")
            cells.append({"value": value, "interval": interval, "best": best, "count": mean.count if mean else 0})
        lines.append({"title": row.title, "pairs": getattr(row, "pairs", None), "cells": cells})
    return {"title": panel.title, "columns": columns, "lines": lines, "shows_pairs": panel is PANELS[0]}
