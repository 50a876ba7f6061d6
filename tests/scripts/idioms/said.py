"""What the scripts here print of a call: its result, or the kind and first words of its error."""

from collections.abc import Callable


def attempt(name: str, function: Callable[[], object]) -> None:
    """Print a name and what a call returns; of an error, Python's exception type and where its text begins."""
    try:
        found = function()
    except Exception as problem:
        found = error(problem)
    print(name, found)


def error(problem: Exception) -> str:
    """Return the kind of an exception, as Python names it, and the beginning of its text: what follows may differ."""
    kind = next(kind.__name__ for kind in type(problem).__mro__ if kind.__module__ in ("builtins", "_pickle"))
    text = min(str(problem).partition(mark)[0] for mark in (";", "\n"))
    return f"{kind}: {text[:44].rstrip()}"
