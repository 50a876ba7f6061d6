"""The doctor turns errors and warnings into findings, and puts back what it changed."""

import json
import warnings

import pytest
from under_the_doctor import ENGINES, engine_called, findings_of

import backlight as torch
from backlight import lens
from backlight.errors import InputError
from backlight.lens.doctor.rule_index import explain, families, rule, rules
from backlight.lens.doctor.session import Session


def test_every_rule_has_its_family_and_a_slug_of_its_own():
    for prefix, (_, family) in families().items():
        assert all(found.id.startswith(prefix) and len(found.id) == 5 for found in family)
    assert len({found.slug for found in rules().values()}) == len(rules())


def test_a_rule_is_found_by_id_and_by_slug():
    assert rule("bl301") is rule("in-place-on-leaf") is rules()["BL301"]
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


def state_of(module) -> list:
    """What the doctor stands in for while it looks, and must leave as it was."""
    owners = (module.Tensor, module.autograd, module.optim.Optimizer, module.no_grad, module.nn.Module, warnings)
    names = [(id(owner), name, id(value)) for owner in owners for name, value in vars(owner).items()]
    return [sorted(names), module.is_warn_always_enabled(), list(warnings.filters), torch_functions(module)]


def torch_functions(module) -> list:
    return [id(getattr(module.nn.functional, name)) for name in ("relu", "softmax", "cross_entropy", "mse_loss")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["(w * x).sum()", "w * x"])
def test_everything_is_put_back_also_after_an_error(engine, loss):
    module = engine_called(engine).module
    program = f"w, x = nn.Linear(2, 2)(torch.ones(2)), torch.ones(2)\n({loss}).backward()\n"
    findings_of(program, engine, strict=True, notes=True)
    before = state_of(module)
    findings_of(program, engine, strict=True, notes=True)
    assert state_of(module) == before


def test_doctors_may_be_nested():
    y = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError), lens.doctor() as outer, lens.doctor() as inner:
        y.backward()
    assert [found.rule for found in inner] == [found.rule for found in outer] == ["BL201"]


def test_a_report_shows_text_of_the_program_as_text():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError), lens.doctor() as report:
        (x * len("<script>")).backward()
    page = report._repr_html_()
    assert "&lt;script&gt;" in page and "<script" not in page
    assert json.loads(report.to_json())["findings"][0]["place"]["text"].startswith("(x * len")
    assert "BL201" in str(report) and repr(report) == "<Report: 1 finding in 0 backwards>"


def test_a_report_without_findings_says_so():
    with lens.doctor() as report:
        torch.ones(3, requires_grad=True).sum().backward()
    assert str(report) == "doctor: no findings in 1 backward" and len(report) == 0
    assert "no findings in 1 backward" in report._repr_html_()
