"""Functions of one array."""

from case import Case, normal

CASES = [
    Case("tanh", lambda t, x: t.tanh(x), [normal(3, 4)], integer=True),
    Case("exp", lambda t, x: t.exp(x), [normal(3, 4)], integer=True),
]
