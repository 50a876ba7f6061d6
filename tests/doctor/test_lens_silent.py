"""The doctor finds the mistakes of which no engine says anything, and leaves their healthy twins alone."""

import pytest
from optimizer_mistakes import MISTAKES as OF_OPTIMISERS
from optimizer_mistakes import NOTES as NOTES_OF_OPTIMISERS
from silent_mistakes import LOOP, MISTAKES, NOTES, Mistake
from training_mistakes import MISTAKES as OF_TRAININGS
from under_the_doctor import ENGINES, findings_of, marked_line

from backlight.lens.finding import NOTE

LEGAL = (*NOTES, *NOTES_OF_OPTIMISERS)
ALL = (*MISTAKES, *OF_OPTIMISERS, *OF_TRAININGS)
BOTH = [pytest.param(one, engine, id=f"{one.name}-{engine}") for one in ALL for engine in one.engines]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar")  # of a tensor of tensors
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # both engines say so, once a process
@pytest.mark.parametrize(("mistake", "engine"), BOTH)
def test_mistake_is_found_with_its_line_and_evidence(mistake: Mistake, engine: str):
    every = findings_of(mistake.wrong, engine, strict=mistake.strict)
    found = [one for one in every if one.slug == mistake.rule]
    assert len(found) == 1 and (len(every) == 1 or not mistake.alone)
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
@pytest.mark.parametrize(("slug", "source"), LEGAL, ids=[slug for slug, _ in LEGAL])
def test_legal_thing_is_a_note(slug: str, source: str, engine: str):
    (found,) = [one for one in findings_of(source, engine, notes=True) if one.slug == slug]
    assert (found.level, found.place.line) == (NOTE, marked_line(source))
    assert findings_of(source, engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_without_gradients_are_counted_in_words_that_fit(engine: str):
    program = LOOP + "for step in range(3):\n    model.requires_grad_(False)\n    optimizer.step()\n"
    (found,) = [one for one in findings_of(program, engine) if one.slug == "step-without-gradients"]
    assert found.times == 3 and found.evidence[1] == "No backward() has run yet."
    program = (
        LOOP
        + "w = torch.ones(1, requires_grad=True)\nfor step in range(3):\n    w.sum().backward()\n    optimizer.step()\n"
    )
    (found,) = [one for one in findings_of(program, engine) if one.slug == "step-without-gradients"]
    assert (
        found.evidence[1]
        == "3 backwards had run before the last of them, but left no gradient in model.weight, model.bias."
    )
