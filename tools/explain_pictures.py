"""Takes the pictures of `backlight explain` in README.md and docs/explain.md, by the command that README.md prints.

    PYTHONPATH=src:tests/support python tools/explain_pictures.py [FOLDER]

FOLDER is docs/images unless another is given. It needs Chromium. `report.png` is the page, `terminal.svg` the terminal,
`attention.png` and `against.png` are two of the page's views, which take minutes.
What they show is also kept as data in the PNG (`shown_in`), so that a test can hold it against the command.
"""

import io
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing
from pathlib import Path

from browser import Browser
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
COLUMNS = 100
WIDTH, HEIGHT = 1200, 1180
VIEW_HEIGHT = 860
VIEWS = [  # the picture, its theme, the tab to click, the part of the page
    ("attention.png", "light", "#tab-1-attention", "#document-1"),
    ("against.png", "dark", "", "#comparison-0"),
]
KEYWORD = b"backlight"  # of the PNG's tEXt chunk
STRONGEST = 3  # words of each document that are kept as data


def command() -> list[str]:
    """Return the first command of README.md, which is printed above its first picture."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.findall(r"```\n(.*?)```", readme.partition("![")[0], re.DOTALL)[-1]
    return shlex.split(block.strip().splitlines()[0])


def run(page: Path, *extra: str, **environment: str) -> str:
    """Run the command, with its page in another place and options more, and return what it prints."""
    name, *arguments = command()
    assert name == "backlight", f"README.md must print a backlight command above its first picture, prints {name}"
    arguments[arguments.index("--html") + 1] = str(page)
    line = [sys.executable, "-m", "backlight", *arguments, *extra]
    return subprocess.run(
        line, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True, encoding="utf-8"
    ).stdout


def shown(found: dict) -> dict:
    """Return what a picture shows of the command's data: the order, the scores, the strongest words."""
    documents = []
    for ranked in found["documents"]:
        made = ranked["attribution"]
        words = [word for word in made["document"]["words"] if word["effect"] == word["value"]] if made else []
        words.sort(key=lambda word: -abs(word["value"]))
        documents.append(
            {
                "name": ranked["name"],
                "score": round(ranked["score"], 3),
                "words": [[word["text"], round(word["value"], 3)] for word in words[:STRONGEST]],
                "verdict": made["check"]["verdict"] if made else None,
            }
        )
    return {"command": command(), "documents": documents}


def with_data(picture: bytes, data: dict) -> bytes:
    """Return a PNG with data in a tEXt chunk before its end."""
    content = KEYWORD + b"\0" + json.dumps(data).encode("ascii")
    chunk = struct.pack(">I", len(content)) + b"tEXt" + content + struct.pack(">I", zlib.crc32(b"tEXt" + content))
    return picture[:-12] + chunk + picture[-12:]


def shown_in(picture: bytes) -> dict:
    """Return the data in a PNG that `with_data` made."""
    start = picture.index(b"tEXt" + KEYWORD + b"\0")
    (length,) = struct.unpack(">I", picture[start - 4 : start])
    return json.loads(picture[start + 5 + len(KEYWORD) : start + 4 + length])


def page_picture(page: Path, folder: Path) -> bytes:
    """Return the upper part of a page in a light window, with a folder for what the browser writes."""
    with closing(Browser(folder / "profile")) as browser:
        browser.size(WIDTH, HEIGHT)
        browser.prefer("light")
        browser.open(page)
        browser.picture(folder / "page.png")
    return (folder / "page.png").read_bytes()


def view_pictures(page: Path, work: Path, folder: Path) -> None:
    """Write `attention.png`, in a light window, and `against.png`, in a dark one, of a page that has these views.

    Args:
        work: a folder for what the browser writes.
    """
    with closing(Browser(work / "views")) as browser:
        browser.size(WIDTH, VIEW_HEIGHT)
        for name, scheme, tab, part in VIEWS:
            browser.prefer(scheme)
            browser.open(page)
            if tab:
                browser.click(tab)
            browser.run(f"document.querySelector('{part}').scrollIntoView({{ behavior: 'instant' }}); scrollBy(0, -20)")
            browser.run("document.activeElement.blur()")
            browser.picture(folder / name)


def terminal_picture(printed: str) -> str:
    """Return what a terminal shows, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    kept = printed.split("\n\nranked, not explained")[0]
    console.print(Text.from_ansi(f"$ {shlex.join(command())}\n\n{kept}"))
    return console.export_svg(title="backlight")


def main(folder: Path) -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        page = Path(temporary) / "why.html"
        found = json.loads(run(page, "--json"))
        picture = page_picture(page, Path(temporary))
        colours = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        printed = run(page, **colours)
        run(page, "--views", "attention,compare")
        view_pictures(page, Path(temporary), folder)
    (folder / "report.png").write_bytes(with_data(picture, shown(found)))
    (folder / "terminal.svg").write_text(terminal_picture(printed), encoding="utf-8")
    print(f"report.png, terminal.svg, {' and '.join(view[0] for view in VIEWS)} are in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
