"""In-place operators whose other operand is an object with reflected methods."""

import torch
from said import error


class Reflected:
    def __radd__(self, other):
        return "radd"

    def __rsub__(self, other):
        return "rsub"

    def __rmul__(self, other):
        return "rmul"

    def __rtruediv__(self, other):
        return "rtruediv"

    def __rand__(self, other):
        return "rand"

    def __rpow__(self, other):
        return "rpow"

    def __rfloordiv__(self, other):
        return "rfloordiv"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __rmod__(self, other):
        return "rmod"


def attempt(code, other):
    names = {"x": torch.ones(2), "other": other}
    try:
        exec(code, names)
        print(code, names["x"])
    except Exception as problem:
        print(code, error(problem))


for symbol in ("+", "-", "*", "/", "&", "**", "//", "@", "%"):
    attempt(f"x {symbol}= other", Reflected())
    attempt(f"x = x {symbol} other", Reflected())
for symbol in ("+", "-", "*", "/", "**"):
    attempt(f"x {symbol}= other", "text")
    attempt(f"x {symbol}= other", None)
    attempt(f"x {symbol}= other", object())
attempt("x |= other", 1.5)
attempt("x <<= other", object())
attempt("x = other < x", object())
attempt("x = x == other", object())
