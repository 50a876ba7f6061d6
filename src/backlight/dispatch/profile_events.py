"""What a profile found: events with their times, grouped by name, as a table and as a trace for a browser."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import ValueProblem

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

STEP = "ProfilerStep*"  # what all steps of a schedule are grouped as
SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "count")


@dataclass(frozen=True)
class Interval:
    """From when to when, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return how long, in microseconds."""
        return self.end - self.start


@dataclass(eq=False, repr=False)
class FunctionEvent:
    """One call of an op, one node of a backward, or one `record_function` block."""

    id: int
    name: str
    thread: int
    start: float
    end: float = 0.0
    input_shapes: list = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    is_user_annotation: bool = False
    cpu_parent: "FunctionEvent | None" = None
    cpu_children: list["FunctionEvent"] = field(default_factory=list)
    count: int = 1

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def time_range(self) -> Interval:
        """From when to when."""
        return Interval(self.start, self.end)

    @property
    def cpu_time_total(self) -> float:
        """How long it ran, in microseconds."""
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """The same without the events inside it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={_time(self.cpu_time)} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


@dataclass(eq=False, repr=False)
class FunctionEventAvg:
    """All events of one name, and of the same input shapes if grouped by these."""

    key: str
    input_shapes: list
    is_user_annotation: bool
    stack: list[str]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """How long one ran on average, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        """Count one event more."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_time_total += 0 if _inside_its_like(event) else event.cpu_time_total

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={_time(self.self_cpu_time_total)} "
            f"cpu_time={_time(self.cpu_time)} calls={self.count} input_shapes={self.input_shapes}>"
        )


def _inside_its_like(event: FunctionEvent) -> bool:
    """Tell whether an event of the same name is around one, whose total includes its time already."""
    above = event.cpu_parent
    while above is not None and above.name != event.name:
        above = above.cpu_parent
    return above is not None


class EventList(list):
    """Events, or groups of them, in the order in which they began."""

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> "EventList":
        """Group events by name.

        Args:
            group_by_input_shape: and by the shapes of the tensors they were called with.
            group_by_stack_n: and by this many innermost lines of their stacks.
        """
        groups = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else []
            stack = event.stack[:group_by_stack_n] if group_by_stack_n > 0 else []
            name = STEP if event.name.startswith(STEP[:-1] + "#") else event.name
            group = (name, event.is_user_annotation, str(shapes), tuple(stack))
            if group not in groups:
                groups[group] = FunctionEventAvg(name, shapes, event.is_user_annotation, stack)
            groups[group].add(event)
        return EventList(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """Return all events as one group."""
        total = FunctionEventAvg("Total", [], False, [])
        for event in self:
            total.count += event.count
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_time_total += event.self_cpu_time_total
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each without those inside it, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a table with a row an event or group.

        Args:
            sort_by: "cpu_time", "cpu_time_total", "self_cpu_time_total" or "count", the greatest first.
            row_limit: how many rows at most; -1 for all.
            max_name_column_width: where names are cut.
            max_shapes_column_width: where shapes are cut.
            header: a line above the table.
            top_level_events_only: leave out events inside others.
        """
        rows = [one for one in self if not (top_level_events_only and getattr(one, "cpu_parent", None) is not None)]
        if sort_by is not None:
            if sort_by not in SORTS:
                raise ValueProblem(f"sort_by must be one of {', '.join(SORTS)}, got {sort_by!r}")
            rows.sort(key=lambda row: getattr(row, sort_by), reverse=True)
        columns = _columns(self.self_cpu_time_total, max_name_column_width)
        if any(row.input_shapes for row in rows):
            columns["Input Shapes"] = lambda row: _cut(str(row.input_shapes), max_shapes_column_width)
        lines = _aligned(list(columns), [[show(row) for show in columns.values()] for row in rows[: row_limit % 2**62]])
        title = [] if header is None else ["=" * len(lines[0]), header]
        return "\n".join([*title, *lines, f"Self CPU time total: {_time(self.self_cpu_time_total)}", ""])

    __str__ = table

    def export_chrome_trace(self, path: str) -> None:
        """Write the events of a profile as a trace for a browser's tracing page (chrome://tracing, Perfetto)."""
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": os.getpid(),
                "tid": event.thread,
                "ts": event.start,
                "dur": event.cpu_time_total,
                "args": {"Input Dims": event.input_shapes, "Call stack": ";".join(event.stack)},
            }
            for event in self
        ]
        Path(path).write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def _columns(total: float, name_width: int) -> dict[str, Callable]:
    """Return how each column shows a row."""
    return {
        "Name": lambda row: _cut(row.key, name_width),
        "Self CPU %": lambda row: _share(row.self_cpu_time_total, total),
        "Self CPU": lambda row: _time(row.self_cpu_time_total),
        "CPU total %": lambda row: _share(row.cpu_time_total, total),
        "CPU total": lambda row: _time(row.cpu_time_total),
        "CPU time avg": lambda row: _time(row.cpu_time),
        "# of Calls": lambda row: str(row.count),
    }


def _aligned(names: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(names, *rows)]
    rule = "  ".join("-" * width for width in widths)
    shown = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in (names, *rows)]
    return [rule, shown[0], rule, *shown[1:], rule]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


def _time(microseconds: float) -> str:
    """Return a time with PyTorch's units."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"
