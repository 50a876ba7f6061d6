"""What is written on nodes, boxes and groups, and how much room it takes."""

import re
from collections.abc import Sequence
from functools import cache

from backlight.lens.pictures.boxes import REPEAT, Box, Group
from backlight.lens.records.nodes import LEAF, Summary
from backlight.report.numbers import size_text
from backlight.report.text import width_of

SIGNS = {"add": "+", "sub": "−", "rsub": "−", "mul": "×", "div": "÷", "neg": "−x", "pow": "xⁿ"}
SIGNS |= dict.fromkeys(("mm", "bmm", "mv", "matmul"), "@")
# PyTorch writes a capital after each underscore and after each digit: MaxPool2DWithIndices.
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])|(?<=\d[A-Z])(?=[A-Z][a-z])")
_SO_WRITTEN = (  # what no rule tells
    *(("col2_im", "col2im"), ("im2_col", "im2col"), ("deg2_rad", "deg2rad"), ("rad2_deg", "rad2deg")),
    *(("grid_sampler2d", "grid_sampler_2d"), ("grid_sampler3d", "grid_sampler_3d"), ("xlog1_py", "xlog1py")),
)


@cache
def label_of(node_type: str) -> str:
    """Return the label of a node by its type.

    >>> label_of("MulBackward0"), label_of("MaxPool2DWithIndicesBackward0"), label_of("Log1PBackward0")
    ('×', 'max_pool2d_with_indices', 'log1p')
    """
    name = name_of(node_type)
    return SIGNS.get(name, name)


def name_of(node_type: str) -> str:
    """Return the name of the op that a type of node belongs to, as PyTorch's functions are written."""
    name = node_type.rpartition("::")[2]
    name = re.sub(r"Backwards?\d*$", "", name) or name
    name = _WORD.sub("_", name).lower()
    for wrong, right in _SO_WRITTEN:
        name = name.replace(wrong, right)
    return name


LABEL_SIZE, LINE_SIZE, LINE_HEIGHT, EDGE = 14.0, 11.0, 15.0, 10.0
FEW, BEAD = 4, 10.0  # numbers that are written out; a bead's size
LONGEST = 36  # of a title, in characters
NOT_YET = "no gradient yet"


def describe(box: Box, output: Summary | None, gradient: Summary | None) -> None:
    """Write a box's lines, and give it its size.

    Args:
        output: of the node's first output.
        gradient: what `.grad` holds, or what arrived; None if nothing did.
    """
    box.lines = _lines(box, output, gradient)
    if box.module:
        box.lines.append(f"in {box.module}")
    if box.bead:
        box.width = max(3 * BEAD, width_of(box.label, LINE_SIZE) + 2 * EDGE)
        box.height = 2 * BEAD
        return
    widths = [width_of(title_of(box), LABEL_SIZE) * 1.06, *(width_of(line, LINE_SIZE) for line in box.lines)]
    box.width = max(44.0, max(widths) + 2 * EDGE)
    box.height = 24.0 + LINE_HEIGHT * len(box.lines) + (4.0 if box.lines else 0.0)


def title_of(box: Box) -> str:
    """Return what stands on a box in large letters: `c = +`, `w`.

    >>> title_of(Box(0, "op", "×", name="e"))
    'e = ×'
    """
    full_label = f"{box.name} = {box.label}" if box.name and box.name != box.label and box.kind != LEAF else box.label
    return full_label if len(full_label) <= LONGEST else f"{full_label[: LONGEST - 1]}…"


def describe_group(group: Group) -> None:
    """Write a closed group's lines, and give it its size."""
    group.lines = [line for line in (_what(group), _how_much(group), _gradient_of(group)) if line]
    widths = [width_of(group.title, LABEL_SIZE) * 1.06, *(width_of(line, LINE_SIZE) for line in group.lines)]
    group.width = max(90.0, max(widths) + 2 * EDGE + 14.0)
    group.height = 28.0 + LINE_HEIGHT * len(group.lines)


def _lines(box: Box, output: Summary | None, gradient: Summary | None) -> list[str]:
    if box.bead or output is None:
        return []
    values = short_values(output)
    gradient_values = short_values(gradient) if gradient is not None else None
    first = f"data {values}" if values is not None else shape_of(output)
    second = NOT_YET if box.kind == LEAF or box.arrived is False else ""
    if gradient is not None:
        second = f"grad {gradient_values}" if gradient_values is not None else _norm_of(gradient)
    if values is not None and not output.shape:
        return [" | ".join(filter(None, [first, second]))]
    return [first, second] if second else [first]


def _norm_of(gradient: Summary) -> str:
    if gradient.nonfinite():
        return f"grad with {', '.join(gradient.nonfinite())}"
    return f"‖grad‖ {number(gradient.norm)}" if gradient.norm is not None else "grad arrived"


def shape_of(output: Summary) -> str:
    """Return a shape in words, and the dtype unless it is the usual one."""
    shape = " × ".join(map(str, output.shape)) or "scalar"
    return shape if output.dtype == "float32" else f"{shape} {output.dtype}"


def short_values(summary: Summary) -> str | None:
    """Return a small tensor's values, or None if they are too many or not known."""
    if summary.values is None or summary.size > FEW or len(summary.shape) > 1:
        return None
    if isinstance(summary.values, list):
        return f"[{', '.join(map(number, summary.values))}]"
    return number(summary.values)


def number(value: float | str) -> str:
    """Return a number in at most four digits, with a real minus sign.

    >>> number(-0.123456)
    '−0.1235'
    """
    text = value if isinstance(value, str) else f"{value:.4g}"
    return text.replace("-", "−")


def _what(group: Group) -> str:
    ops = "1 op" if group.ops == 1 else f"{group.ops:,} ops"
    parameters = f" · {short_count(group.parameters)} parameters" if group.parameters else ""
    detail = "" if group.kind == REPEAT or group.detail in group.title else group.detail
    return f"{detail} · {ops}{parameters}".removeprefix(" · ")


def _how_much(group: Group) -> str:
    saved = f"{size_text(group.bytes)} saved" if group.bytes else ""
    time = f"{group.seconds * 1000:.3g} ms" if group.seconds is not None else ""
    return " · ".join(filter(None, [saved, time]))


def _gradient_of(group: Group) -> str:
    if not group.leaves:
        return f"max ‖grad‖ {number(group.largest)}" if group.largest is not None else ""
    if not group.reached:
        return NOT_YET
    norm = f"‖grad‖ {number(group.gradient)}" if group.gradient is not None else "grad arrived"
    if group.nonfinite:
        norm = f"grad with {group.nonfinite:,} NaN or inf"
    return norm if group.reached == group.leaves else f"{norm} in {group.reached} of {group.leaves} leaves"


def short_count(count: float, units: Sequence[str] = ("", " k", " M", " G")) -> str:
    """Return a count in three digits.

    >>> short_count(109_482_240)
    '109 M'
    """
    size = 0
    while count >= 999.5 and size + 1 < len(units):
        count, size = count / 1000, size + 1
    return f"{count:.3g}{units[size]}"
