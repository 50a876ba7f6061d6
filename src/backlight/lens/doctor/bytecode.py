"""What becomes of a result, read from the bytecode after the instruction that made it."""

import dis
from functools import lru_cache
from itertools import islice
from types import CodeType

NAMED = {"STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF"}
NAMELESS = {"STORE_SUBSCR", "STORE_ATTR"}
DROPPED = {"POP_TOP", "PRINT_EXPR"}
ON_THE_WAY = ("LOAD_", "SWAP", "COPY", "CACHE")  # to `things[i] = ...`
PRINTS = 1  # what CALL_INTRINSIC_1 is given where an interactive statement's value is printed


def _after(code: CodeType, lasti: int):
    return (one for one in dis.get_instructions(code) if one.offset > lasti and one.opname != "CACHE")


@lru_cache(maxsize=4096)
def stored_in(code: CodeType, lasti: int) -> str | None:
    """Return the name that the result of an instruction is stored under, "" for a place without a name, None if not."""
    for one in islice(_after(code, lasti), 4):
        if one.opname in NAMED:
            return one.argval
        if one.opname in NAMELESS:
            return ""
        if not one.opname.startswith(ON_THE_WAY):
            return None
    return None


@lru_cache(maxsize=4096)
def is_dropped(code: CodeType, lasti: int) -> bool:
    """Return whether the result of the call at an instruction is dropped: a statement of its own."""
    after = next(_after(code, lasti), None)
    printed = after is not None and after.opname == "CALL_INTRINSIC_1" and after.arg == PRINTS
    return after is not None and (after.opname in DROPPED or printed)
