"""Five hundred random programs on PyTorch and on backlight; `python tests/fuzz.py` runs more, from another seed."""

from fuzzing.machine import STEPS
from fuzzing.play import play_many


def test_random_programs_do_what_they_do_in_pytorch():
    counts = play_many(500, seed=0)
    assert set(STEPS) <= set(counts)
    assert counts["refused"] + counts["impossible"] < 0.15 * counts["run"]
    assert counts["stopped"] < 0.02 * counts["programs"]
