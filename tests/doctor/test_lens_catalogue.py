"""Every mistake of the catalogue ends in its finding, at its line, on PyTorch and on backlight."""

import pytest
from under_the_doctor import ENGINES

from backlight.lens.doctor.rule_index import rules
from backlight.lens.finding import NOTE, Finding
from catalogue import CASES
from catalogue.case import Case
from catalogue.found import COUNTS, found_in

MISSES: dict[tuple[str, str], str] = {}  # (case, engine) -> why the doctor does not find it
PAIRS = [(case, engine) for case in CASES for engine in case.only]


def is_right(case: Case, engine: str) -> bool:
    return (case.rule, case.line) in {(found.rule, found.place.line) for found in found_in(case, engine)}


def is_loud(case: Case, found: Finding) -> bool:
    return found.rule == case.rule and found.level != NOTE


@pytest.mark.parametrize(("case", "engine"), PAIRS, ids=[f"{case.id}-{engine}" for case, engine in PAIRS])
def test_case_ends_in_its_finding_at_its_line(case: Case, engine: str):
    found = found_in(case, engine)
    seen = [(one.rule, one.place.line, one.place.text) for one in found]
    assert is_right(case, engine) != ((case.id, engine) in MISSES), seen
    others = {one.rule for one in found if one.level != NOTE} - {case.rule, *case.also}
    assert not others, seen


@pytest.mark.parametrize(("case", "engine"), PAIRS, ids=[f"{case.id}-{engine}" for case, engine in PAIRS])
def test_what_is_legal_is_a_note_at_most(case: Case, engine: str):
    level = rules()[case.rule].level
    levels = {found.level for found in found_in(case, engine) if found.rule == case.rule}
    assert levels <= ({level, NOTE} if case.rule == "BL502" else {level})  # a number that is printed is a note
    if level == NOTE:
        assert {found.rule for found in found_in(case, engine) if found.level != NOTE} <= set(case.also)


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_are_what_is_published(engine: str):
    cases = [case for case in CASES if engine in case.only]
    right = [case for case in cases if is_right(case, engine)]
    loud = [case for case in right if any(is_loud(case, found) for found in found_in(case, engine))]
    assert (len(cases), len(right), len(loud)) == COUNTS[engine]
    assert len(loud) >= 100


def test_the_catalogue_has_all_cases_once_and_says_what_is_left_out():
    assert len({case.id for case in CASES}) == len(CASES) == 125
    assert all(case.why for case in CASES if case.only != ENGINES)
    assert all(not case.why for case in CASES if case.only == ENGINES)
