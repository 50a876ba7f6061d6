"""After an interrupt at any point of a write, an optimizer's step or a backward, no gradient is silently wrong."""

import pytest

from soak.interrupted_writes import CASES
from soak.interrupts import Points, run_traced


def interrupted(case, at: int, error) -> tuple[Points, list[str]]:
    """Raise at a point of a case; return the points, and what is wrong afterwards."""
    points: list[Points] = []
    wrong = case.after(lambda program: points.append(run_traced(program, at, error)))
    return points[0], wrong


# An interrupt that arrives while an abandoned generator is closed is reported by Python, not raised.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_no_gradient_is_silently_wrong_after_an_interrupt(case, error):
    assert interrupted(case, -1, error)[1] == []  # what is built at the first call is built now
    whole, wrong = interrupted(case, -1, error)
    assert wrong == [] and whole.count > 0
    found = [interrupted(case, at, error) for at in range(1, whole.count + 1)]
    assert {points.where: wrong for points, wrong in found if wrong} == {}
