"""Write the tables and pictures of docs/performance.md from benchmarks/results.json and results_other_machine.json.

    python benchmarks/draw.py

A table stands between `<!-- table: NAME -->` and `<!-- end -->`, with its picture; a suite's name gives its rows,
`bars` all bars, `machine` what was measured on, `other_machine` the ratios to PyTorch on both machines. Pictures go to
docs/images/performance_<suite>.svg.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from measure import FLOOR, OURS, RIVAL
from pictures import growth_picture, ratio_picture
from run_all import OTHER, RESULTS
from suite import UNITS, bar_text, rate_of

DOCS = Path(__file__).parent.parent / "docs"
PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GROWTH = "growth"


def page_with_tables(page: str, results: Mapping, other: Mapping) -> str:
    """Return the page with each marked table written anew; a suite without results keeps what stands there.

    Args:
        page: Markdown.
        results: results.json.
        other: the same of another machine.
    """

    def written(match: re.Match) -> str:
        begin, name, end = match.groups()
        if name == "bars":
            return begin + bars_table(results["suites"]) + end
        if name == "machine":
            return begin + machine_text(results) + end
        if name == "other_machine":
            return f"{begin}{machine_text(other)}\n{both_table(results, other)}{end}"
        if name not in results["suites"]:
            return match.group(0)
        suite = results["suites"][name]
        return f"{begin}![{suite['title']}](images/{picture_name(name)})\n\n{suite_table(suite)}{end}"

    return PLACE.sub(written, page)


def suite_table(suite: Mapping) -> str:
    """Return a suite's rows: a line a row where only PyTorch is the rival, else a line a candidate."""
    rows = suite["rows"]
    timed = [row for row in rows if row["seconds"]]
    if all(set(row["seconds"]) == {OURS, RIVAL} for row in timed):
        text = _table(("work", "backlight", "PyTorch", "ratio", "the floor", "share of it"), map(_short_line, timed))
    else:
        lines = [line for row in timed for line in _long_lines(row)]
        text = _table(("work", "by", "median (quartiles)", "backlight's time over it"), lines)
    used = [row for row in rows if row["memory"]]
    if used:
        lines = [_memory_line(row["row"], name, one) for row in used for name, one in row["memory"].items()]
        text += "\n" + _table(("work", "by", "MiB", "of it before the first call"), lines)
    return text


def bars_table(suites: Mapping[str, Mapping]) -> str:
    """Return every bar with what was reached."""
    lines = [
        (suite["title"], row["row"], bar_text(bar), {True: "yes", False: "**no**", None: "–"}[bar["met"]])
        for suite in suites.values()
        for row in suite["rows"]
        for bar in row["bars"]
    ]
    return _table(("work", "row", "reached, asked", "met"), lines)


def both_table(results: Mapping, other: Mapping) -> str:
    """Return backlight's time over each arrangement of PyTorch on two machines, for the rows measured on both."""
    lines = []
    for name, suite in other["suites"].items():
        here = {row["row"]: row["ratios"] for row in results["suites"].get(name, {"rows": ()})["rows"]}
        for row in suite["rows"]:
            for rival in (one for one in row["ratios"] if one.startswith(RIVAL)):
                if rival in here.get(row["row"], ()):
                    found = ("{1:.2f} ({0:.2f}–{2:.2f})".format(*of[rival]) for of in (here[row["row"]], row["ratios"]))
                    lines.append((suite["title"], row["row"], rival, *found))
    processors = (one["machine"]["processor"] for one in (results, other))
    return _table(("work", "row", "backlight's time over", *processors), lines)


def machine_text(results: Mapping) -> str:
    """Return a sentence about the machine, its libraries, and rows that were measured amid noise."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    rows = [row for suite in results["suites"].values() for row in suite["rows"]]
    noisy = sum(row["noisy"] for row in rows)
    amid = f" {noisy} of {len(rows)} rows were measured while other processes used the CPU." if noisy else ""
    return (
        f"Measured on {results['date']}: {machine['processor']}, {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}, {versions}; kernels: {machine['kernels']}.{amid}\n"
    )


def _short_line(row: Mapping) -> tuple[str, ...]:
    ratio = "{1:.2f} ({0:.2f}–{2:.2f})".format(*row["ratios"][RIVAL])
    floor = row.get("floor")
    share = f"{100 / floor['ratio'][1]:.2g} %" if floor else ""
    return (row["row"], _time(row, OURS), _time(row, RIVAL), ratio, rate_of(floor) if floor else "", share)


def _long_lines(row: Mapping) -> list[tuple[str, ...]]:
    lines = []
    for name in row["seconds"]:
        ratio = "{1:.2f} ({0:.2f}–{2:.2f})".format(*row["ratios"][name]) if name != OURS else ""
        lines.append((row["row"] if not lines else "", name, _time(row, name), ratio))
    lines += [("", name, f"left out: {reason}", "") for name, reason in row["left_out"].items()]
    if "floor" in row:
        least = _number(row["floor"]["seconds"], row["unit"])
        ratio = "{1:.2f} ({0:.2f}–{2:.2f})".format(*row["floor"]["ratio"])
        lines.append(("", f"{FLOOR}, {rate_of(row['floor'])}", least, ratio))
    return lines


def _time(row: Mapping, name: str) -> str:
    low, middle, high = row["seconds"][name]
    size = UNITS[row["unit"]]
    return f"{_number(middle, row['unit'])} ({low * size:.3g}–{high * size:.3g})"


def _number(seconds: float, unit: str) -> str:
    return f"{seconds * UNITS[unit]:.3g} {unit.replace('us', 'µs')}"


def _memory_line(row: str, name: str, used: Mapping) -> tuple[str, ...]:
    sizes = [f"{used[key]:.3g}" if key in used else "" for key in ("peak", "before")]
    return (row, name, *sizes)


def _table(titles, lines) -> str:
    written = [titles, ("---",) * len(titles), *lines]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in written)


def pictures(suites: Mapping[str, Mapping]) -> dict[str, str]:
    """Return the SVG of each suite by its file's name."""
    found = {}
    for name, suite in suites.items():
        rows = [row for row in suite["rows"] if row["seconds"]]
        drawn = growth_picture(rows) if name == GROWTH else ratio_picture(suite["title"], rows)
        found[picture_name(name)] = drawn
    return found


def picture_name(suite: str) -> str:
    """Return the name of a suite's picture."""
    return f"performance_{suite}.svg"


def main() -> int:
    results, other = json.loads(RESULTS.read_text()), json.loads(OTHER.read_text())
    PAGE.write_text(page_with_tables(PAGE.read_text(), results, other))
    IMAGES.mkdir(exist_ok=True)
    for name, svg in pictures(results["suites"]).items():
        (IMAGES / name).write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
