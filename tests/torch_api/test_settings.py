"""Settings that are only remembered: what they return and refuse is PyTorch's."""

import warnings

import pytest
import torch

import backlight
from backlight import settings
from backlight.dispatch.arguments.checked import unwrapped


@pytest.fixture(autouse=True)
def _put_back():
    yield
    for engine in (torch, backlight):
        engine.use_deterministic_algorithms(False)
        engine.set_float32_matmul_precision("highest")


CALLS = {
    "on": lambda engine: engine.use_deterministic_algorithms(True),
    "off": lambda engine: engine.use_deterministic_algorithms(False, warn_only=True),
    "warn only": lambda engine: engine.use_deterministic_algorithms(mode=True, warn_only=True),
    "no bool": lambda engine: engine.use_deterministic_algorithms(1),
    "error": lambda engine: engine.set_deterministic_debug_mode("error"),
    "one": lambda engine: engine.set_deterministic_debug_mode(1),
    "default": lambda engine: engine.set_deterministic_debug_mode("default"),
    "no such mode": lambda engine: engine.set_deterministic_debug_mode("x"),
    "no such number": lambda engine: engine.set_deterministic_debug_mode(7),
    "no mode": lambda engine: engine.set_deterministic_debug_mode(None),
    "high": lambda engine: engine.set_float32_matmul_precision("high"),
    "medium": lambda engine: engine.set_float32_matmul_precision("medium"),
    "no such precision": lambda engine: engine.set_float32_matmul_precision("x"),
    "no precision": lambda engine: engine.set_float32_matmul_precision(3),
}


def outcome(engine, call) -> tuple:
    """Return what a call warned of or raised, and all settings after it."""
    said = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(engine)
        except (RuntimeError, TypeError) as problem:
            said = str(problem)
    return (
        said,
        [str(warning.message).partition(" (Triggered")[0] for warning in caught],
        engine.are_deterministic_algorithms_enabled(),
        engine.is_deterministic_algorithms_warn_only_enabled(),
        engine.get_deterministic_debug_mode(),
        engine.get_float32_matmul_precision(),
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_setting_is_remembered_or_refused_as_in_pytorch(name):
    assert outcome(backlight, CALLS[name]) == outcome(torch, CALLS[name])


def test_every_setting_has_a_name_at_the_front():
    assert all(unwrapped(getattr(backlight, name)) is getattr(settings, name) for name in settings.__all__)
