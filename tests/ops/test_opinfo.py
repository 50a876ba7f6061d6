"""backlight on PyTorch's own test samples (OpInfo): each of its entries either passes, or has a reason why it does not.

opinfo_passing.txt names the entries whose forward, gradient and second gradient equal PyTorch's in float64;
opinfo_missing.txt the others, each with its reason. Their forward is compared in float32, bfloat16 and float16 too, as
closely as PyTorch compares its own; opinfo_rounding.txt names what differs there, and why.

`python tests/support/opinfo_run.py NAME …` runs entries and shows what differs; without names it runs all of
them, with all their samples, which takes about two minutes.
"""

import pytest
import torch
from opinfo_run import entries, full_name, run_entry
from paths import TESTS

PASSING = (TESTS / "data" / "opinfo_passing.txt").read_text().split()
MISSING = dict(line.split(maxsplit=1) for line in (TESTS / "data" / "opinfo_missing.txt").read_text().splitlines())
ROUNDING = {
    tuple(line.split(maxsplit=2)[:2]): line.split(maxsplit=2)[2]
    for line in (TESTS / "data" / "opinfo_rounding.txt").read_text().splitlines()
}
ENTRIES = {full_name(entry): entry for entry in entries()}
AT_LEAST = 540
MOST_ELEMENTS = 100_000  # of a sample here; the full run takes larger ones too


def test_at_least_540_of_547_entries_pass():
    assert len(PASSING) == len(set(PASSING)) >= AT_LEAST


def test_every_entry_passes_or_has_a_reason():
    assert len(ENTRIES) == len(entries())
    unlisted = set(ENTRIES) - set(PASSING) - set(MISSING)
    assert not unlisted, f"run these with tests/support/opinfo_run.py, and list them: {sorted(unlisted)}"
    assert not set(PASSING) & set(MISSING), "an entry that passes needs no reason"
    assert set(PASSING) | set(MISSING) <= set(ENTRIES)
    assert all(len(reason) > 10 for reason in MISSING.values())


@pytest.mark.parametrize("name", PASSING)
def test_entry_equals_pytorch(name):
    outcome = run_entry(ENTRIES[name], MOST_ELEMENTS)
    assert outcome.status == "pass", outcome.reason
    assert outcome.samples > 0, "PyTorch gives no samples for this entry"


@pytest.mark.parametrize("name", PASSING)
def test_forward_equals_pytorch_in_narrower_dtypes(name):
    for kind in ("float32", "bfloat16", "float16"):
        dtype = getattr(torch, kind)
        if dtype in ENTRIES[name].dtypes and (name, kind) not in ROUNDING:
            outcome = run_entry(ENTRIES[name], 2_000, dtype, most_samples=3)
            assert outcome.status == "pass", f"{kind}: {outcome.reason}"


def test_every_difference_in_rounding_has_a_reason():
    assert {name for name, _ in ROUNDING} <= set(PASSING)
    assert all(len(reason) > 10 for reason in ROUNDING.values())


@pytest.mark.parametrize("name", MISSING)
def test_entry_with_a_reason_does_not_pass(name):
    assert run_entry(ENTRIES[name], MOST_ELEMENTS).status != "pass", "move it to opinfo_passing.txt"
