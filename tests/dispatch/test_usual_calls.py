"""What programs usually write is taken wherever PyTorch takes it: odd ints and floats, tuples of all kinds, keywords.

The checks of arguments (NOTE [Kinds of arguments]) must not refuse more than PyTorch does.
"""

import enum
from collections import namedtuple

import numpy as np
import pytest
import torch
from paths import TESTS

import backlight

CALLS = (TESTS / "data" / "usual_calls.txt").read_text().splitlines()
Dim = enum.IntEnum("Dim", "B C", start=0)
Pair = namedtuple("Pair", ["a", "b"])


class MyInt(int):
    """A number that is more than an int."""


class MyFloat(float):
    """A number that is more than a float."""


class MyTuple(tuple):
    """Sizes in a class of their own."""


def taken(module, call: str):
    """Return the shape of what a call gives, None if that has none, or the exception."""
    x = module.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    names = {"torch": module, "F": module.nn.functional, "np": np, "x": x, "Dim": Dim, "NT": Pair}
    names |= {"MyInt": MyInt, "MyFloat": MyFloat, "MyTuple": MyTuple}
    names |= {"img": module.ones(1, 1, 4, 4), "w": module.ones(2, 1, 3, 3), "q": module.ones(1, 3, 4)}
    try:
        found = eval(call, names)
    except Exception as problem:
        return problem
    return tuple(found.shape) if isinstance(found, module.Tensor) else None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_usual_calls_are_taken_where_pytorch_takes_them(part):
    for call in CALLS[part::8]:
        theirs, ours = taken(torch, call), taken(backlight, call)
        if isinstance(theirs, Exception):
            assert isinstance(ours, Exception), call
        else:
            assert ours == theirs, f"{call}: {ours!r}, PyTorch: {theirs!r}"
