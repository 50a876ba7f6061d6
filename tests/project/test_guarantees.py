"""The guarantees' page names tests and soak programs that are there, and every soak program."""

import re

from paths import TESTS

PAGE = (TESTS.parent / "docs" / "guarantees.md").read_text()
SOAK = {file.name for file in (TESTS / "soak").glob("*.py") if "\ndef run(seconds" in file.read_text()}


def test_the_tests_that_hold_a_promise_are_there():
    named = re.findall(r"`(test_\w+\.py)`", PAGE)
    assert len(named) > 10
    assert [name for name in named if not list(TESTS.glob(f"*/{name}"))] == []


def test_every_soak_program_attacks_a_promise():
    assert {name for name in re.findall(r"`(\w+\.py)`", PAGE) if not name.startswith("test_")} == SOAK
