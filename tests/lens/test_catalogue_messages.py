"""Every case of the catalogue of messages, run on both engines: the same kind of error, the same words first."""

import copy
import re
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from snippets import Outcome, always_warning

import backlight
from backlight.torch_api.module_names import torch_names
from catalogue import CASES
from catalogue.case import Case

# What linear saves is its weight, in PyTorch a transposed view of it: the message of 3g names what was saved.
OTHERWISE = {"3g"}
APPLYING = [case for case in CASES if "backlight" in case.only and case.id not in OTHERWISE]
BY_ID = {case.id: case for case in CASES}


def shown(case: Case, module) -> Outcome:
    names = {"np": np, "copy": copy, "nn": module.nn, "F": module.nn.functional}
    with nullcontext() if module is torch else torch_names():
        module.manual_seed(0)
        return always_warning(module, case.program, **names)


def spoken(outcome: Outcome) -> list[tuple[type, str]]:
    """Return the warnings, without NumPy's that PyTorch's `__array__` is written for NumPy 1."""
    return [(kind, text) for kind, text in outcome.warned if kind is not DeprecationWarning]


def begins_alike(ours: str, theirs: str) -> bool:
    """Tell whether a text begins with PyTorch's; of a traceback, PyTorch's shows the frames of the test, too."""
    title, found, frames = theirs.partition("Traceback of forward call that caused the error:\n")
    if not found:
        return ours.startswith(theirs)
    return ours.startswith(title + found) and frames.endswith(ours.removeprefix(title + found))


@pytest.mark.parametrize("case", APPLYING, ids=lambda case: case.id)
def test_a_case_shows_what_it_shows_on_pytorch(case):
    theirs, ours = shown(case, torch), shown(case, backlight)
    assert (ours.error is None) == (theirs.error is None), (ours.error, theirs.error)
    if theirs.error is not None:
        assert isinstance(ours.error, type(theirs.error))
        assert str(ours.error).startswith(str(theirs.error))
    assert ours.printed == theirs.printed
    assert [kind for kind, _ in spoken(ours)] == [kind for kind, _ in spoken(theirs)]
    for (_, mine), (_, other) in zip(spoken(ours), spoken(theirs)):
        assert begins_alike(mine, other), (mine, other)


WITH_A_LINE = [
    *("1f", "2d", "2f", "2g", "2h", "2i", "2r", "2w", "2x", "3b", "3c", "3d", "3e", "3f", "3i", "3l", "3m", "3q", "3s"),
    *("4f", "4g", "4h", "4i", "4j", "6a", "6e", "7l", "7p", "8b"),
]


def test_errors_of_the_graph_go_on_with_the_line_and_a_remedy():
    for name in WITH_A_LINE:
        theirs, ours = shown(BY_ID[name], torch), shown(BY_ID[name], backlight)
        more = str(ours.error).removeprefix(str(theirs.error))
        assert re.search(r"<snippet>:\d", more), f"{name}: {ours.error}"


def test_an_in_place_error_of_a_linear_layer_names_the_weight_itself():
    theirs, ours = shown(BY_ID["3g"], torch), shown(BY_ID["3g"], backlight)
    same, _, what = str(theirs.error).partition("[torch.FloatTensor [2, 1]], which is output 0 of AsStrided, ")
    assert str(ours.error).startswith(f"{same}[torch.FloatTensor [1, 2]] {what}")
    assert "It was written by SGD.step at <snippet>:3" in str(ours.error)


def test_numpys_functions_are_recorded_where_pytorch_refuses_them():
    assert isinstance(shown(BY_ID["5c"], torch).error, RuntimeError)
    assert shown(BY_ID["5c"], backlight).error is None
