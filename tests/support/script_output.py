"""What a script prints, and the warnings that it gives."""

import contextlib
import io
import re
import warnings
from collections.abc import Callable

ADDRESS = re.compile(r"0x[0-9a-f]+")
TRIGGERED = re.compile(r" \(Triggered internally at [^)]*\)")


def said_by(run: Callable[[], object]) -> tuple[str, list[str]]:
    """Return what a function printed, addresses apart, and the texts of its warnings."""
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        run()
    return ADDRESS.sub("0x", printed.getvalue()), [TRIGGERED.sub("", str(one.message)) for one in caught]
