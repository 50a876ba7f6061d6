"""A picture in Graphviz's language, for further processing; nothing here needs Graphviz."""

from collections.abc import Collection

from backlight.lens.pictures.boxes import Box, Group, Picture
from backlight.lens.pictures.labels import title_of
from backlight.lens.pictures.render.seen import seen
from backlight.lens.records.nodes import LEAF
from backlight.report.text_width import printable

FILL = {"leaf": "#dcf2d6", "op": "#fdf0c2", "given": "#efeae0"}
STROKE = {"leaf": "#4f9a55", "op": "#c39a1c", "given": "#a49a88"}


def dot(picture: Picture, shown: Collection[int] | None = None) -> str:
    """Return a picture as a digraph: open groups are clusters, closed ones boxes.

    Args:
        shown: ids of the groups that are open; by default those that are at first.
    """
    found = seen(picture, shown)
    lines = [f"digraph {_quoted(picture.title or 'graph')} {{"]
    lines.append('  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11];')
    lines.append('  graph [fontname="Helvetica" fontsize=11 labeljust=l]; edge [color="#8a8172" arrowsize=0.6];')
    waiting: list[tuple[str, str]] = [("  ", item) for item in reversed(picture.groups[0].children)]
    while waiting:
        indent, item = waiting.pop()
        if item == "}":
            lines.append(f"{indent}}}")
        elif item[0] == "n":
            lines.append(f"{indent}{_box(picture.boxes[int(item[1:])])}")
        elif int(item[1:]) in found.opened:
            group = picture.groups[int(item[1:])]
            lines.append(f'{indent}subgraph cluster_{group.id} {{ label={_quoted(group.title)}; color="#cfc4ac";')
            waiting.append((indent, "}"))
            waiting += [(f"{indent}  ", part) for part in reversed(group.children)]
        else:
            lines.append(f"{indent}{_closed(picture.groups[int(item[1:])])}")
    for arrow in (arrow for arrows in found.into.values() for arrow in arrows):
        label = f" [label={_quoted(', '.join(arrow.beads))} fontsize=9]" if arrow.beads else ""
        lines.append(f"  {arrow.start} -> {arrow.end}{label};")
    return "\n".join([*lines, "}", ""])


def _box(box: Box) -> str:
    label = _quoted("\n".join([title_of(box), *box.lines]))
    root = ' penwidth=2.5 color="#b3541e"' if box.root else f' color="{STROKE[box.kind]}"'
    style = ' style="filled"' if box.kind != LEAF else ""
    return f'n{box.id} [label={label} fillcolor="{FILL[box.kind]}"{root}{style}];'


def _closed(group: Group) -> str:
    return (
        f'g{group.id} [label={_quoted(chr(10).join([group.title, *group.lines]))} peripheries=2 fillcolor="#f6efe0"];'
    )


def _quoted(text: str) -> str:
    r"""Return a text in quotes as Graphviz reads it; a line break is \n.

    >>> print(_quoted('say "a\\b"'))
    "say \"a\\b\""
    """
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
