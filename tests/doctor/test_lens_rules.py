"""Every rule is explained by a program that ends in it and by one that does not; docs/doctor.md lists them all."""

import re
import runpy
import textwrap
import warnings

import pytest
from paths import ROOT
from under_the_doctor import ENGINES, ONLY_TORCH, findings_of

from backlight.lens.doctor.rule_index import explain, rules
from backlight.lens.finding import ERROR, NOTE, WARNING
from catalogue.found import COUNTS

PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
NEEDS_PROCESSES = {"BL714"}  # its program is run as case 8e of the catalogue
PAIRS = [
    (rule, engine)
    for rule in rules().values()
    for engine in ENGINES
    if rule.id not in NEEDS_PROCESSES and (engine == "torch" or rule.id not in ONLY_TORCH)
]


def examined(source: str, engine: str, **options) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [found.rule for found in findings_of(textwrap.dedent(source).lstrip(), engine, strict=True, **options)]


@pytest.mark.parametrize(("rule", "engine"), PAIRS, ids=[f"{rule.id}-{engine}" for rule, engine in PAIRS])
def test_the_wrong_program_ends_in_the_rule_and_the_right_one_in_none(rule, engine):
    assert rule.id in examined(rule.wrong, engine, notes=True)
    assert examined(rule.right, engine) == []


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_a_rule_is_whole(rule):
    assert rule.level in (ERROR, WARNING, NOTE)
    assert all((rule.title, rule.cause, rule.cure, rule.explanation, rule.wrong, rule.right))
    text = explain(rule.id)
    assert all(part in text for part in (rule.id, rule.slug, "Wrong:\n    ", "Right:\n    "))


def test_the_page_lists_every_rule():
    tool = runpy.run_path(str(ROOT / "tools" / "doctor_rules.py"))
    assert tool["BETWEEN"].search(PAGE)[0] == tool["table"](), "run: python tools/doctor_rules.py"


def test_the_page_states_the_counts_that_the_catalogue_reaches():
    rows = re.findall(r"^\| (?:PyTorch 2.13|backlight) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert [tuple(map(int, row)) for row in rows] == [COUNTS["torch"], COUNTS["backlight"]]
