"""backlight on PyTorch's own samples in complex128: values, gradients and second gradients, or a reason why not.

opinfo_complex_missing.txt names the entries that do not pass. What takes no complex numbers in PyTorch must refuse
them here too: nothing is computed of them by an op that has no rule.
"""

import pytest
import torch
from opinfo_complex import all_entries, full_name, run_complex, run_refused, takes_complex
from paths import TESTS

from backlight.codegen.declaration import TABLE

MISSING = dict(
    line.split(maxsplit=1) for line in (TESTS / "data" / "opinfo_complex_missing.txt").read_text().splitlines()
)
ENTRIES = {full_name(entry): entry for entry in all_entries()}
TAKING = sorted(name for name, entry in ENTRIES.items() if takes_complex(entry))
DRAWING = {"randint", "normal.number_mean"}  # nothing of them is complex: they draw, by a size or a number
REFUSING = sorted(
    name
    for name, entry in ENTRIES.items()
    if not takes_complex(entry) and torch.float64 in entry.dtypes and name not in DRAWING
)


def test_more_than_350_entries_take_complex_numbers():
    assert set(MISSING) <= set(TAKING)
    assert len(TAKING) - len(MISSING) > 350
    assert all(len(reason) > 10 for reason in MISSING.values())


@pytest.mark.parametrize("name", [name for name in TAKING if name not in MISSING])
def test_complex_entry_equals_pytorch(name):
    outcome = run_complex(ENTRIES[name])
    assert outcome.status == "pass", outcome.reason


@pytest.mark.parametrize("name", sorted(MISSING))
def test_entry_with_a_reason_does_not_pass(name):
    if "nothing to compare" not in MISSING[name]:
        assert run_complex(ENTRIES[name]).status != "pass", "take it out of opinfo_complex_missing.txt"


@pytest.mark.parametrize("name", REFUSING)
def test_what_pytorch_refuses_of_complex_numbers_is_refused(name):
    outcome = run_refused(ENTRIES[name])
    assert outcome.status != "fail", outcome.reason


def test_every_op_says_how_it_takes_complex_arrays_or_refuses_them():
    assert {op.complex for op in TABLE.values()} <= {None, "linear", "holomorphic", "own"}
    taking = [name for name, op in TABLE.items() if op.complex is not None]
    assert len(taking) > 200
