"""What two outcomes of one call say about backlight.

NOTE [Verdicts]
crash     the process died (a signal) while it made the call.
hang      the call computed for more than 20 s of the processor's time, or waited for more than 60 s without computing,
          and PyTorch's did not. Time spent waiting for a processor does not count.
internal  an exception that nobody wrote for the caller: not one of backlight's own (BacklightError), raised below
          the call (an error of Python's for the arguments of the call itself is a refusal), and
          * PyTorch returns a value, or raises an error of another built-in class, neither derived from the other, or
          * without PyTorch to compare, or where its error is one that nobody wrote either (a failed assertion inside,
            what a hostile object raised when it was asked): AttributeError, KeyError, IndexError, ZeroDivisionError,
            OverflowError, UnboundLocalError, AssertionError, RecursionError, SystemError, NameError, StopIteration.
          What a hostile object raises itself is its own, and MemoryError is counted apart.
accepted  a value where PyTorch refuses.
differs   a value of another dtype, shape or content than PyTorch's.
refused   one of our own errors, or Python's for the call, where PyTorch returns a value.
class     one of our own errors where PyTorch raises another class.
text      the same class, and a first line that does not begin as PyTorch's does.
memory    MemoryError where PyTorch raises RuntimeError or returns.
same      the same value, or the same class and beginning.
"""

import builtins
import math
import re
from dataclasses import dataclass

BUILT_IN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
NEVER_MEANT = {
    "AttributeError",
    "KeyError",
    "IndexError",
    "ZeroDivisionError",
    "OverflowError",
    "UnboundLocalError",
    "AssertionError",
    "RecursionError",
    "SystemError",
    "NameError",
    "StopIteration",
}
UNDEFINED_VALUES = ("empty", "resize", "new_tensor", "Tensor", "storage", "data_ptr", "rand", "dropout", "id")


@dataclass(frozen=True)
class Verdict:
    """A kind (NOTE [Verdicts]), the place or name that it is grouped by, and what happened."""

    kind: str
    group: str
    detail: str


def verdict(target: str, ours: dict, theirs: dict | None) -> Verdict:
    """Return what the outcomes of a call in backlight and in PyTorch (None: it has no such name) say."""
    for kind in ("crash", "hang"):
        if kind in ours:
            if kind == "hang" and theirs is not None and kind in theirs:
                return Verdict("slow in both", target, "")
            return Verdict(kind, target, str(ours[kind]))
    if "unbuildable" in ours or (theirs is not None and theirs.keys() & {"unbuildable", "crash", "hang"}):
        return Verdict("not compared", target, "")
    if "error" in ours:
        return _of_error(target, ours["error"], theirs)
    if theirs is None:
        return Verdict("same", target, "")
    if "error" in theirs:
        return Verdict("accepted", target, f"PyTorch: {shown(theirs['error'])}")
    if "value" in ours and not same(ours, theirs) and not any(word in target for word in UNDEFINED_VALUES):
        return Verdict("differs", target, f"{str(ours)[:150]} PyTorch: {str(theirs)[:150]}")
    return Verdict("same", target, "")


def _of_error(target: str, error: dict, theirs: dict | None) -> Verdict:
    detail, kinds = shown(error), error["classes"]
    problem = theirs["error"] if theirs is not None and "error" in theirs else None
    if theirs is not None:
        detail += f" · PyTorch: {shown(problem) if problem else 'a value'}"
    if kinds[0] == "HostileError":
        return Verdict("same", target, detail)
    matches = problem is not None and _related(kinds, problem["classes"])
    compares = theirs is not None and not (problem is not None and _says_nothing(problem))
    if kinds[0] in ("MemoryError", "_ArrayMemoryError"):
        return Verdict("memory", target, detail)
    if not error["own"] and error["place"] and not matches:
        if compares or kinds[0] in NEVER_MEANT:
            return Verdict("internal", error["place"], detail)
    if theirs is None:
        return Verdict("same", target, detail)
    if problem is None:
        return Verdict("refused", target, detail)
    if not matches:
        return Verdict("class", target, detail)
    return Verdict("same" if begins_alike(error["first"], problem["first"]) else "text", target, detail)


def _says_nothing(problem: dict) -> bool:
    """Tell whether PyTorch's error is one that nobody wrote for the caller either."""
    return problem["classes"][0] == "HostileError" or "INTERNAL ASSERT FAILED" in problem["first"]


def shown(error: dict) -> str:
    """Return an error as it is printed."""
    return f"{error['classes'][0] if error['classes'] else 'BaseException'}: {error['first'][:160]}"


def _related(ours: list[str], theirs: list[str]) -> bool:
    """Tell whether one error's nearest built-in class is the other's, or one that it derives from."""
    left = next((name for name in ours if name in BUILT_IN), "Exception")
    right = next((name for name in theirs if name in BUILT_IN), "Exception")
    return left in theirs or right in ours


def begins_alike(ours: str, theirs: str) -> bool:
    """Tell whether a message begins with PyTorch's, names of the package and addresses apart."""
    plain = [re.sub("0x[0-9a-f]+", "0x", one.replace("backlight", "torch")) for one in (ours, theirs)]
    return plain[0].startswith(plain[1].rstrip(". ")[:200])


def same(left, right) -> bool:
    """Tell whether two descriptions are equal, numbers nearly."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return (
            left == right or (left != left and right != right) or math.isclose(left, right, rel_tol=2e-2, abs_tol=1e-4)
        )
    return left == right
