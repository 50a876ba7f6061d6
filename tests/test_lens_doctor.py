"""The doctor turns errors and warnings into findings, and puts back what it changed."""

import warnings

import pytest

import backlight as torch
from backlight import lens
from backlight.errors import InputError
from backlight.lens.doctor.rules import FAMILIES, RULES, explain, rule
from backlight.lens.doctor.session import Session


def test_every_rule_has_its_family_and_a_slug_of_its_own():
    for prefix, (_, rules) in FAMILIES.items():
        assert all(found.id.startswith(prefix) and len(found.id) == 5 for found in rules)
    assert len({found.slug for found in RULES.values()}) == len(RULES)


def test_a_rule_is_found_by_id_and_by_slug():
    assert rule("bl301") is rule("in-place-on-leaf") is RULES["BL301"]
    with pytest.raises(InputError, match="did you mean in-place-on-leaf"):
        rule("in-place-leaf")
    assert "Likely cause" in explain("BL301")


def test_an_error_becomes_a_finding_and_a_note():
    y = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="scalar outputs") as caught, lens.doctor() as report:
        y.backward()
    (found,) = report.findings
    assert (found.rule, found.place.text) == ("BL201", "y.backward()")
    assert any("BL201" in note and "try:" in note for note in caught.value.__notes__)


def test_a_warning_becomes_a_finding_and_is_shown_as_before():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf"), lens.doctor() as report:
        y.grad  # noqa: B018
    assert [(found.rule, found.place.text.split("  #")[0]) for found in report] == [("BL101", "y.grad")]


def test_a_warning_that_the_program_silenced_is_a_finding_that_nobody_sees():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore")
        with lens.doctor() as report:
            y.grad  # noqa: B018
    assert [found.rule for found in report] == ["BL101"] and not shown


def test_a_program_that_ignores_warnings_is_examined_all_the_same_and_keeps_its_filters():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings(record=True) as shown:
        with lens.doctor() as report:
            warnings.filterwarnings("ignore")
            y.grad  # noqa: B018
        action, *rest = warnings.filters[0]
        warnings.warn("ignored still", stacklevel=1)
    assert [found.rule for found in report] == ["BL101"] and not shown
    assert (action, rest[0]) == ("ignore", None)


def test_a_warning_that_the_program_makes_an_error_is_raised_and_found():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="not a leaf"), lens.doctor() as report:
        warnings.simplefilter("error")
        y.grad  # noqa: B018
    assert [found.rule for found in report] == ["BL101"]


def test_the_same_finding_at_the_same_line_is_counted():
    y = torch.ones(3, requires_grad=True) * 2
    with pytest.warns(UserWarning), lens.doctor() as report:
        for _ in range(3):
            y.grad  # noqa: B018
    assert [found.times for found in report] == [3]


def test_a_decorated_function_prints_what_was_found(capsys):
    @lens.doctor
    def read(tensor):
        return tensor.grad

    with pytest.warns(UserWarning):
        assert read(torch.ones(3, requires_grad=True) * 2) is None
    assert "BL101" in capsys.readouterr().err and [found.rule for found in read.report] == ["BL101"]


def test_patches_are_put_back():
    class Owner:
        def method(self):
            return 1

    class Heir(Owner):
        pass

    session = Session()
    session.begin()
    session.patch(Heir, "method", lambda original: lambda self: original(self) + 1)
    assert Heir().method() == 2
    session.end()
    assert Heir().method() == 1 and "method" not in vars(Heir)
