"""backlight on PyTorch's own test samples: each entry in opinfo_passing.txt passes forward, gradient, second gradient.

`python tests/opinfo_run.py` runs all entries, those too that do not pass, and says why not.
"""

from pathlib import Path

import pytest

from opinfo_run import entries, full_name, run_entry

PASSING = Path(__file__).with_name("opinfo_passing.txt").read_text().split()
ENTRIES = {full_name(entry): entry for entry in entries()}
AT_LEAST = 170


def test_enough_entries_pass():
    assert len(PASSING) == len(set(PASSING)) >= AT_LEAST
    assert set(PASSING) <= set(ENTRIES)


@pytest.mark.parametrize("name", PASSING)
def test_entry_equals_pytorch(name):
    outcome = run_entry(ENTRIES[name])
    assert outcome.status == "pass", outcome.reason
    assert outcome.samples > 0, "PyTorch gives no samples for this entry"
