"""Files that commands write: checked before a script runs, and not after hours."""

import os
from pathlib import Path

from backlight.errors import InputError


def check_output(option: str, path: str | None) -> None:
    """Raise if a file that an option names cannot be written."""
    if path is None:
        return
    if Path(path).is_dir():
        raise InputError(f"{option} must name a file, got the folder {path}: add a file's name")
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"{option} must name a file in a folder that exists, got {path}")
    if not os.access(path if Path(path).exists() else Path(path).resolve().parent, os.W_OK):
        raise InputError(f"{option} must name a file that can be written, got {path}: it is read-only")
