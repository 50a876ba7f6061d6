"""Makes the programs, pages and pictures of docs/lessons.

    python tools/lessons.py OUT [--pictures]

A lesson's program is the block behind `<!-- replay: NAME step N -->`. For each, OUT/NAME.py and OUT/NAME.html, the
page that opens on its replay, are written. With --pictures also docs/lessons/images/NAME.svg and, if the lesson
shows it, NAME_step.png: the page at step N, as Chromium draws it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from backlight import lens
from backlight.cli.run import run_script
from backlight.lens.pictures.html import page_of
from backlight.lens.pictures.picture import picture_of
from backlight.lens.pictures.svg import svg
from backlight.lens.records.nodes import Place
from backlight.lens.records.record import Record
from backlight.web.svg_to_png import BROWSERS, FLAGS

LESSONS = Path(__file__).parent.parent / "docs" / "lessons"
IMAGES = LESSONS / "images"
PROGRAM = re.compile(r"<!-- replay: (\S+) step (\d+) -->\n```python\n(.*?)```", re.DOTALL)
QUOTED = re.compile(r"```text\n(.*?)```", re.DOTALL)
SIZE = "1280,900"


@dataclass(frozen=True)
class Lesson:
    """A lesson's program, a step and whether a picture shows it, and the lines of the replay that its page quotes."""

    name: str
    program: str
    step: int
    quoted: tuple[str, ...]
    shows_step: bool


def lessons() -> list[Lesson]:
    """Read the lessons that have a program."""
    found = []
    for page in sorted(LESSONS.glob("[0-9]_*.md")):
        text = page.read_text(encoding="utf-8")
        name, step, program = PROGRAM.search(text).groups()
        quoted = tuple(line for block in QUOTED.findall(text) for line in block.splitlines())
        found.append(Lesson(name, program, int(step), quoted, f"images/{name}_step.png" in text))
    return found


def record_of(script: Path, engine: str = "backlight") -> Record:
    """Run a lesson's program and return what was recorded of it."""
    watch = lens.watch(engine=engine, title=script.name)
    ended = run_script(str(script), engine=engine, around=watch)
    if ended:
        raise SystemExit(f"{script} ended with exit code {ended}")
    record = watch.record
    for place in places_of(record):  # a page says which line of which program, not in whose folder it lay
        place.file = script.name
    return record


def places_of(record: Record) -> list[Place]:
    """Return all lines of source that a record names."""
    of_nodes = [place for node in record.nodes for place in (node.place, *node.stack)]
    others = [one.place for one in (*record.backwards, *record.writes, *record.cuts)]
    return [place for place in (*of_nodes, *others) if place is not None]


def photograph(page: Path, step: int, picture: Path) -> None:
    """Write what a browser shows of a page at a step."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("pictures of the page are made by Chromium, and none is installed: apt-get install chromium")
    address = f"{page.resolve().as_uri()}#step-{step}"
    with tempfile.TemporaryDirectory() as profile:
        options = [f"--user-data-dir={profile}", "--virtual-time-budget=4000", f"--window-size={SIZE}"]
        command = [browser, *FLAGS, *options, f"--screenshot={picture.resolve()}", address]
        subprocess.run(command, check=True, capture_output=True)


def main(arguments: list[str]) -> int:
    """Write everything and return the exit code."""
    folders = [one for one in arguments if one != "--pictures"]
    if len(folders) != 1:
        print("usage: python tools/lessons.py OUT [--pictures]", file=sys.stderr)
        return 2
    out = Path(folders[0])
    out.mkdir(parents=True, exist_ok=True)
    for lesson in lessons():
        script, page = out / f"{lesson.name}.py", out / f"{lesson.name}.html"
        script.write_text(lesson.program, encoding="utf-8")
        record = record_of(script)
        page.write_text(page_of(record, replay=True), encoding="utf-8")
        print(f"{page}: {len(record.replay().steps)} steps")
        if "--pictures" in arguments:
            IMAGES.mkdir(exist_ok=True)
            (IMAGES / f"{lesson.name}.svg").write_text(svg(picture_of(record)), encoding="utf-8")
            if lesson.shows_step:
                photograph(page, lesson.step, IMAGES / f"{lesson.name}_step.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
