"""What a text may be wherever one is given: to the Python interface, on the command line, in a row of a batch.

NOTE [What is no text]
A text is a `str` of Unicode characters. Two kinds of character are refused everywhere, because they show that what was
given is something else: a NUL, which binary files and UTF-16 hold and which libraries and terminals drop or end at, and
halves of characters (lone surrogates), which stand for bytes that are not UTF-8.
"""

from collections.abc import Iterable, Mapping

from backlight.errors import InputError, InputTypeError

NUL = "\0"
KINDS = {type(None): "None", bytes: "bytes", bytearray: "bytes", dict: "a dict", list: "a list", tuple: "a tuple"}
SHOWN = 40  # characters of a value that an error shows


def no_text_because(text: str) -> str | None:
    """Return why a string is no text, as the end of a sentence; None where it is one (see NOTE [What is no text])."""
    if NUL in text:
        return f"has a NUL at character {text.index(NUL)}: it is binary, or UTF-16, and must be converted to text first"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "has bytes or halves of characters that are not UTF-8"
    return None


def check_text(value: object, what: str) -> str:
    """Return a text as it is.

    Args:
        what: what it is called in errors: "the query".

    Raises:
        InputTypeError: it is no `str`.
        InputError: it holds a NUL or half a character (see NOTE [What is no text]).
    """
    if not isinstance(value, str):
        raise InputTypeError(f"{what} must be a text (str), got {_kind_of(value)}{_advice(value)}")
    problem = no_text_because(value)
    if problem:
        raise InputError(f"{what} must be a text, and {problem}")
    return value


def check_texts(values: object, what: str) -> list[str]:
    """Return texts as a list.

    Args:
        values: a list or another iterable of `str`, but no lone `str`, no dict and no set.
        what: what the argument is called in errors: "documents".

    Raises:
        InputTypeError: it is none, or an item is no text; the error names its place.
        InputError: an item holds a NUL or half a character (see NOTE [What is no text]).
    """
    if isinstance(values, str):
        raise InputTypeError(f"{what} must be a list of texts, got one text: put it into a list, [text]")
    found = _as_list(values, f"{what} must be a list of texts")
    return [check_text(value, f"{what}[{place}]") for place, value in enumerate(found)]


def check_pairs(pairs: object) -> list[tuple[str, str]]:
    """Return pairs of texts as a list.

    Raises:
        InputTypeError: they are no list, or an item is no pair of texts; the error names its place.
        InputError: a text holds a NUL or half a character (see NOTE [What is no text]).
    """
    rule = "pairs must be a list of pairs (query, document)"
    if isinstance(pairs, str):
        raise InputTypeError(f"{rule}, got one text: give (query, document), or a list of such pairs")
    found = []
    for place, pair in enumerate(_as_list(pairs, rule)):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            count = f" of {len(pair)}" if isinstance(pair, (tuple, list)) else ""
            raise InputTypeError(
                f"pair {place} must be a query and a document, two texts, got {_kind_of(pair)}{count}: give (query, "
                "document)"
            )
        for part, name in zip(pair, ("query", "document")):
            if not isinstance(part, str):
                raise InputTypeError(
                    f"pair {place} must be a query and a document, two texts, got {_kind_of(part)} for its {name}"
                    f"{_advice(part)}"
                )
            check_text(part, f"the {name} of pair {place}")
        found.append((pair[0], pair[1]))
    return found


def check_names(names: object, count: int) -> list[str]:
    """Return the names of `count` documents as a list. Raises InputError: there are more or fewer."""
    found = check_texts(names, "names")
    if len(found) != count:
        raise InputError(f"names must hold a name for each of the {count} documents, got {len(found)}")
    return found


def _as_list(values: object, rule: str) -> list:
    if values is None or isinstance(values, (bytes, bytearray, Mapping, set, frozenset)):
        raise InputTypeError(f"{rule}, got {_kind_of(values)}{_advice(values, several=True)}")
    if not isinstance(values, Iterable):
        raise InputTypeError(f"{rule}, got {_kind_of(values)}")
    return list(values)


def _kind_of(value: object) -> str:
    if type(value) in KINDS:
        return KINDS[type(value)]
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    return f"{type(value).__name__} {shown}"


def _advice(value: object, several: bool = False) -> str:
    """Return what to give instead, after a colon."""
    if value is None:
        return ": give the texts" if several else ": give its text, or leave it out"
    if isinstance(value, (bytes, bytearray)):
        return ': decode it first, .decode("utf-8")'
    if isinstance(value, Mapping):
        return ": give a list" if several else ': give its text, for example document["text"]'
    if isinstance(value, (set, frozenset)):
        return ": a set has no order, give a list"
    if isinstance(value, (list, tuple)):
        return ": give one flat list of texts"
    return ": give str(value), or leave it out"
