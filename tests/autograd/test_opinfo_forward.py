"""Forward mode on PyTorch's own samples: each entry either passes, or has a reason why it does not.

opinfo_forward_passing.txt names the entries whose tangents, reverse over forward and forward over reverse equal
PyTorch's in float64, or, for those without forward mode in PyTorch, whose tangents agree with PyTorch's gradients;
opinfo_forward_missing.txt the others, each with its reason. Here each entry runs with its first small samples; `python
tests/support/opinfo_forward.py` runs all of them.
"""

import importlib
import warnings

import pytest
from opinfo_forward import forward_entries, run_sample
from opinfo_run import full_name, run_entry
from paths import TESTS

with warnings.catch_warnings():  # PyTorch's first make_dual imports this, which warns
    warnings.simplefilter("ignore")
    importlib.import_module("torch._decomp.decompositions_for_jvp")

PASSING = (TESTS / "data" / "opinfo_forward_passing.txt").read_text().split()
MISSING = dict(
    line.split(maxsplit=1) for line in (TESTS / "data" / "opinfo_forward_missing.txt").read_text().splitlines()
)
ENTRIES = {full_name(entry): entry for entry in forward_entries()}
AT_LEAST = 525
SMALL = {"most_elements": 2_000, "most_samples": 2}


def test_at_least_525_of_547_entries_pass():
    assert len(PASSING) == len(set(PASSING)) >= AT_LEAST


def test_every_entry_passes_or_has_a_reason():
    unlisted = set(ENTRIES) - set(PASSING) - set(MISSING)
    assert not unlisted, f"run these with tests/support/opinfo_forward.py, and list them: {sorted(unlisted)}"
    assert not set(PASSING) & set(MISSING), "an entry that passes needs no reason"
    assert set(PASSING) | set(MISSING) <= set(ENTRIES)
    assert all(len(reason) > 10 for reason in MISSING.values())


@pytest.mark.parametrize("name", PASSING)
def test_entry_equals_pytorch(name):
    outcome = run_entry(ENTRIES[name], compared=run_sample, **SMALL)
    assert outcome.status == "pass", outcome.reason
