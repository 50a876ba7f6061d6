"""Healthy programs end in no finding, and the doctor does not change what they compute."""

from pathlib import Path

import pytest
from paths import TESTS
from under_the_doctor import ENGINES, engine_called, run

from backlight import lens

PROGRAMS = sorted((TESTS / "healthy").glob("*.py"))
PAIRS = [(path, engine) for path in PROGRAMS for engine in ENGINES]


def bits(numbers: list) -> list:
    """Return numbers in a form in which only the very same are equal."""
    return [one.hex() if isinstance(one, float) else one for one in numbers]


@pytest.mark.parametrize(("path", "engine"), PAIRS, ids=[f"{path.stem}-{engine}" for path, engine in PAIRS])
def test_healthy_program_ends_in_no_finding_and_the_same_bits(path: Path, engine: str):
    source = path.read_text(encoding="utf-8")
    alone = run(source, engine, name=str(path))["numbers"]
    for strict in (False, True):
        visit = lens.doctor(strict=strict, engines=[engine_called(engine)])
        seen = run(source, engine, visit, name=str(path))["numbers"]
        assert visit.session.findings == []
        assert bits(seen) == bits(alone)


def test_there_are_enough_of_them():
    assert len(PROGRAMS) >= 24
