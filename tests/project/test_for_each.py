"""Checks of many samples in one test fail as tests of their own would: each by its name, none instead of another."""

import random

import pytest
from for_each import for_each, together


def notes_of(caught) -> list[str]:
    return [note for problem in caught.value.exceptions for note in problem.__notes__]


def test_every_sample_that_fails_is_named():
    ran = []

    def check(number):
        ran.append(number)
        if number == 3:
            with pytest.raises(ValueError):
                pass
        assert number != 1

    with pytest.raises(BaseExceptionGroup, match="2 of 5 fail") as caught:
        for_each(range(5), check)
    assert (ran, notes_of(caught)) == ([0, 1, 2, 3, 4], ["for 1", "for 3"])


def test_each_sample_draws_what_a_test_of_its_own_would():
    found = []
    for_each("ab", lambda _: found.append(random.random()))
    assert found[0] == found[1]


def test_a_test_gets_every_combination_and_its_fixtures():
    @together(kind="ab", number=(1, 2))
    def check(given, kind, number):
        assert given == "fixture" and (kind, number) != ("b", 1)

    with pytest.raises(BaseExceptionGroup, match="1 of 4 fail") as caught:
        check(given="fixture")
    assert notes_of(caught) == ["for {'kind': 'b', 'number': 1}"]


def test_what_is_skipped_does_not_skip_the_rest_and_nothing_is_no_success():
    def check(number):
        if number < 2:
            pytest.skip("not here")
        assert number != 2

    with pytest.raises(BaseExceptionGroup, match="1 of 3"):
        for_each(range(3), check)
    with pytest.raises(pytest.skip.Exception, match="not here"):
        for_each(range(2), check)
    with pytest.raises(AssertionError, match="nothing to check"):
        for_each([], check)
