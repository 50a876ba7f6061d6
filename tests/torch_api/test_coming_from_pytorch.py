"""docs/coming-from-pytorch.md says what is there; what it says is what its tool finds."""

import sys
import warnings

import pytest
from paths import TESTS

sys.path.append(str(TESTS.parent / "tools"))
import coming_from_pytorch


@pytest.fixture(scope="module")
def found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return coming_from_pytorch.tables()


def test_the_page_lists_what_a_script_finds(found):
    page = coming_from_pytorch.PAGE.read_text(encoding="utf-8")
    assert coming_from_pytorch.BETWEEN.search(page)[0] == found, "run python tools/coming_from_pytorch.py"


def test_every_namespace_has_a_table(found):
    assert [line[3:] for line in found.splitlines() if line.startswith("## ")] == coming_from_pytorch.SPACES.split()


@pytest.mark.parametrize(("name", "reason"), [("sparse_coo_tensor", "sparse"), ("quantize_per_tensor", "quantised")])
def test_a_name_that_is_absent_has_a_reason(name, reason):
    assert reason in coming_from_pytorch.reason_of(name)


def test_a_name_without_a_reason_stops_the_tool():
    with pytest.raises(SystemExit, match="add one to REASONS"):
        coming_from_pytorch.reason_of("no_such_name")
