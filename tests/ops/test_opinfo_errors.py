"""backlight on PyTorch's own samples of wrong calls: the same exception, whose first line begins with PyTorch's.

`python tests/support/opinfo_errors.py NAME …` shows what differs.
"""

import pytest
from opinfo_complex import all_entries
from opinfo_errors import differences, wrong_calls
from opinfo_run import full_name

ENTRIES = {full_name(entry): entry for entry in all_entries() if entry.error_inputs_func is not None}


def test_the_entries_have_hundreds_of_wrong_calls():
    assert sum(len(wrong_calls(entry)) for entry in ENTRIES.values()) > 650


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_wrong_call_raises_pytorchs_exception(name):
    assert list(differences(ENTRIES[name])) == []
