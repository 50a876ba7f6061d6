"""The doctor finds the mistakes of which no engine says anything, and leaves their healthy twins alone."""

import pytest

from backlight.lens.finding import NOTE
from optimiser_mistakes import MISTAKES as OF_OPTIMISERS
from silent_mistakes import MISTAKES, NOTES, Mistake
from under_the_doctor import ENGINES, findings_of, marked_line

ALL = (*MISTAKES, *OF_OPTIMISERS)
BOTH = [pytest.param(one, engine, id=f"{one.name}-{engine}") for one in ALL for engine in one.engines]


@pytest.mark.parametrize(("mistake", "engine"), BOTH)
def test_mistake_is_found_with_its_line_and_evidence(mistake: Mistake, engine: str):
    found = [one for one in findings_of(mistake.wrong, engine, strict=mistake.strict) if one.slug == mistake.rule]
    assert len(found) == 1
    (finding,) = found
    assert finding.place is not None and finding.place.line == marked_line(mistake.wrong)
    assert mistake.says in " ".join((finding.title, finding.cause, *finding.evidence))
    assert finding.evidence and mistake.cure in finding.cure and finding.cure
    if mistake.corrected is not None:
        assert finding.corrected == mistake.corrected


@pytest.mark.parametrize(("mistake", "engine"), BOTH)
def test_healthy_twin_ends_in_no_finding(mistake: Mistake, engine: str):
    assert findings_of(mistake.right, engine, strict=True) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("slug", "source"), NOTES, ids=[slug for slug, _ in NOTES])
def test_legal_thing_is_a_note(slug: str, source: str, engine: str):
    (found,) = [one for one in findings_of(source, engine, notes=True) if one.slug == slug]
    assert (found.level, found.place.line) == (NOTE, marked_line(source))
    assert findings_of(source, engine) == []
