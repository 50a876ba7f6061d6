"""The faces of a record: how it shows itself as a page, a tree of text, SVG, for Graphviz and in notebooks."""

from collections.abc import Sequence
from pathlib import Path

from backlight.lens.answers.answer import Answer
from backlight.lens.answers.answering import answer_to
from backlight.lens.answers.case import case_in
from backlight.lens.pictures.boxes import Picture
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import picture_of, with_open
from backlight.lens.pictures.place import place
from backlight.lens.pictures.render.dot import dot
from backlight.lens.pictures.render.svg import svg
from backlight.lens.pictures.render.tree import tree


class Faces:
    """What a `Record` can be shown as. Options of all: `by`, `most`, `backward`, as `picture_of` has them."""

    __slots__ = ()

    def picture(self, *, by: str = "module", most: int = 60, backward: int = -1) -> Picture:
        """Return the picture that all renderers draw: groups, boxes, links, rows; `to_json()` gives it as JSON."""
        return picture_of(self, by=by, most=most, backward=backward)

    def tree(
        self,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        width: int | None = None,
        color: bool | None = None,
    ) -> str:
        """Return the graph as text, from the root up.

        Args:
            width: columns, at which lines are cut; by default they are not.
            color: by default if the output is a terminal and NO_COLOR is not set.
        """
        return tree(self.picture(by=by, most=most, backward=backward), width=width, color=color)

    def svg(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        open: Sequence[str] = (),
    ) -> str:
        """Return the graph as SVG, and write it to a file if a path is given.

        Args:
            open: dotted paths of modules to show with all that they hold; the others as at first.
        """
        picture = self.picture(by=by, most=most, backward=backward)
        return written(svg(picture, place(picture, with_open(picture, open))), path)

    def dot(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        most: int = 60,
        backward: int = -1,
        open: Sequence[str] = (),
    ) -> str:
        """Return the graph for Graphviz, and write it to a file if a path is given; `open` as in `svg`."""
        picture = self.picture(by=by, most=most, backward=backward)
        return written(dot(picture, with_open(picture, open)), path)

    def html(
        self,
        path: Path | str | None = None,
        *,
        by: str = "module",
        backward: int = -1,
        replay: bool = False,
    ) -> str:
        """Return the graph as a self-contained HTML page, and write it to a file if a path is given.

        Args:
            replay: whether the page opens on the replay.
        """
        return written(page_of(self, by=by, backward=backward, replay=replay), path)

    def why(self, name_or_id: str | int) -> Answer:
        """Explain why the gradient of a tensor is None, 0, NaN or huge, or what it is made of (see `lens.why`).

        Args:
            name_or_id: a variable's or parameter's name, or a node's number.
        """
        return answer_to(case_in(self, name_or_id))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """Show the graph in a notebook."""
        picture = self.picture()
        return {"image/svg+xml": svg(picture), "text/plain": tree(picture, width=100, color=False)}


def written(text: str, path: Path | str | None) -> str:
    """Return text, and write it to a file if a path is given."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
