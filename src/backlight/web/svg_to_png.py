"""Convert SVG pictures to PNG with an installed browser, because no small library lays out text as well."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from backlight.errors import InputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
FLAGS = ("--headless=new", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", "--no-first-run", "--disable-sync")
PATIENCE = 300  # seconds
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # it runs nothing and loads nothing
PAGE = (
    f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    "<style>body{margin:0}svg{display:block}</style><svg/>"
)
SCALE = 2  # pixels a unit, for screens of today


def png_of(svg: str) -> bytes:
    """Return an SVG picture as PNG, two pixels a unit.

    Raises:
        InputError: no browser is installed, or it drew nothing.
    """
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise InputError(
            "a PNG is drawn by Chromium or Chrome, and none is installed: apt-get install chromium, or give --svg FILE"
        )
    width, height = re.search(r'width="(\d+)" height="(\d+)"', svg).groups()
    with tempfile.TemporaryDirectory(prefix="backlight-", ignore_cleanup_errors=True) as folder:
        page, picture, said = (Path(folder, name) for name in ("picture.html", "picture.png", "said.txt"))
        page.write_text(PAGE.replace("<svg/>", svg), encoding="utf-8")
        size = f"--window-size={width},{height}", f"--force-device-scale-factor={SCALE}"
        command = [
            browser,
            *FLAGS,
            *size,
            f"--user-data-dir={folder}/profile",
            f"--screenshot={picture}",
            page.as_uri(),
        ]
        try:
            # what is said goes to a file: a pipe stays open as long as any process that the browser started
            with said.open("wb") as out:
                subprocess.run(command, stdout=out, stderr=out, timeout=PATIENCE)
        except subprocess.TimeoutExpired as problem:
            raise InputError(f"{browser} must draw the picture in {PATIENCE} seconds, and did not") from problem
        if not picture.is_file():
            raise InputError(f"{browser} drew nothing: {said.read_text(errors='replace').strip()[-300:]}")
        return picture.read_bytes()
