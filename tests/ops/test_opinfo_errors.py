"""backlight on PyTorch's own samples of wrong calls: the same exception, whose first line begins with PyTorch's.

opinfo_errors_missing.txt names the entries at which backlight differs, each with its reason.
`python tests/support/opinfo_errors.py NAME …` shows what differs.
"""

import pytest
from opinfo_complex import all_entries
from opinfo_errors import differences, wrong_calls
from opinfo_run import full_name
from paths import TESTS

LINES = (TESTS / "data" / "opinfo_errors_missing.txt").read_text().splitlines()
MISSING = dict(line.split(maxsplit=1) for line in LINES)
ENTRIES = {full_name(entry): entry for entry in all_entries() if entry.error_inputs_func is not None}


def test_all_but_four_entries_with_wrong_calls_raise_what_pytorch_raises():
    assert set(MISSING) <= set(ENTRIES)
    assert len(MISSING) <= 4
    assert all(len(reason) > 10 for reason in MISSING.values())
    assert sum(len(wrong_calls(entry)) for entry in ENTRIES.values()) > 650


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(ENTRIES) - set(MISSING)))
def test_a_wrong_call_raises_pytorchs_exception(name):
    assert list(differences(ENTRIES[name])) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(MISSING))
def test_an_entry_with_a_reason_differs(name):
    assert list(differences(ENTRIES[name])), "take it out of opinfo_errors_missing.txt"
