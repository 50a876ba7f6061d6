"""How the scripts of the reranker end where what they were given cannot be used."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from backlight.errors import InputError


@contextmanager
def in_one_line() -> Iterator[None]:
    """Print an InputError as one line, and end with exit code 2."""
    try:
        yield
    except InputError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
