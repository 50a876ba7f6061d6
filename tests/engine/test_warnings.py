"""Warnings: PyTorch's text, at the line of the program."""

import warnings

import pytest
import torch

import backlight
import backlight.nn


def _hook_without_inputs(engine):
    module = engine.nn.Linear(2, 2)
    module.register_full_backward_hook(lambda *_: None)
    module(engine.ones(1, 2)).sum().backward()


def _no_freedom(name: str, *sizes: int, **options):
    return lambda engine: getattr(engine, name)(engine.ones(*sizes), **options)


WARNED = {
    "a hook without inputs": _hook_without_inputs,
    "T of three dims": lambda engine: engine.ones(2, 3, 4).T,
    "std": _no_freedom("std", 1),
    "var of rows": _no_freedom("var", 3, 1, dim=1),
    "var with a large correction": _no_freedom("var", 2, correction=3),
    "var_mean": _no_freedom("var_mean", 1),
    "std_mean of rows": _no_freedom("std_mean", 3, 1, dim=1),
    "std of no rows": _no_freedom("std", 0, 3, dim=1),
    "cov": _no_freedom("cov", 2, 1),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", WARNED)
def test_a_warning_has_pytorchs_text_and_points_into_the_program(case):
    said = []
    for engine in (torch, backlight):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            WARNED[case](engine)
        caught = [one for one in caught if one.category is UserWarning]
        assert len(caught) == 1
        said.append(str(caught[0].message).partition(" (Triggered")[0])
        assert caught[0].filename == __file__
    assert said[0] == said[1]


def test_a_warning_points_into_code_that_a_string_holds():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        exec(compile("\n\nones(2, 3, 4).T", "<string>", "exec"), {"ones": backlight.ones})
    assert (caught[0].filename, caught[0].lineno) == ("<string>", 3)


def test_an_ordinary_deviation_does_not_warn():
    for found in (backlight.std(backlight.arange(3.0)), backlight.ones(1).var(correction=0)):
        assert found.item() in (0.0, 1.0)
