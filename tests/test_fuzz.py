"""Two thousand random programs on PyTorch and on backlight; `python tests/fuzz.py` runs more, from another seed."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings

from fuzzing.machine import STEPS
from fuzzing.play import play, programs


def test_random_programs_do_what_they_do_in_pytorch():
    counts = Counter()

    @settings(
        max_examples=2000,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs)
    def agree(program):
        played = play(program)
        counts.update(played.counts)
        assert played.difference is None, played.difference

    agree()
    assert set(STEPS) <= set(counts)
    assert counts["refused"] + counts["impossible"] < 0.15 * counts["run"]
    assert counts["stopped"] < 0.25 * counts["programs"]
