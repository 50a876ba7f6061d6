"""A corrected line is right: the program with it no longer ends in the finding; what is not certain is not written."""

import ast
import linecache
import textwrap
import warnings

import pytest
from under_the_doctor import findings_of

from backlight.lens.doctor.corrections import by_rule
from backlight.lens.doctor.corrections import lines as corrections
from backlight.lens.doctor.detectors.accumulation import preceded
from backlight.lens.doctor.rule_index import rules
from backlight.lens.doctor.source import Spot, span
from backlight.lens.finding import NOTE, Finding
from catalogue import CASES
from catalogue.found import found_in

PAIRS = [(case, engine) for case in CASES for engine in case.only]


def opens_block(found: Finding, program: str) -> bool:
    return found.corrected.endswith(":") and not line_of(found, program).endswith(":")


def line_of(found: Finding, program: str) -> str:
    return program.splitlines()[(found.corrected_at or found.place).line - 1]


def mended(program: str, found: Finding) -> str:
    """Return a program with the corrected line in the place of the wrong one."""
    lines = program.splitlines()
    number = (found.corrected_at or found.place).line - 1
    indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    lines[number] = textwrap.indent(found.corrected, indent)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("case", "engine"), PAIRS, ids=[f"{case.id}-{engine}" for case, engine in PAIRS])
def test_the_corrected_program_no_longer_ends_in_the_finding(case, engine):
    before = [found for found in found_in(case, engine) if found.level != NOTE]
    for found in before:
        if found.corrected is None or opens_block(found, case.program):
            continue
        program = mended(case.program, found)
        ast.parse(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = findings_of(program, engine, strict=case.strict)
        assert found.rule not in {one.rule for one in after if one.place.line == found.place.line}
        assert len(after) < len(before), [(one.rule, one.place.line, one.place.text) for one in after]


def test_enough_lines_are_corrected():
    for engine in ("torch", "backlight"):
        with_line = {case.id for case, on in PAIRS if on == engine for found in found_in(case, on) if found.corrected}
        assert len(with_line) >= 45


def spot(source: str, kind: type = ast.Call, number: int = 0) -> Spot:
    """Return the spot of the first piece of syntax of a kind in a source (or the one of a number)."""
    name = f"<source {abs(hash(source))}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kind)]
    return Spot(name, "", span(nodes[number]))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("(a * 2).backward()", "(a * 2).sum().backward()"),
        ("f(x)[0].backward()  # why", "f(x)[0].sum().backward()  # why"),
        ("y.backward(gradient=g)", None),
        ("torch.autograd.grad(a * 2, a)", "torch.autograd.grad((a * 2).sum(), a)"),
        ("torch.autograd.grad(\n    y,\n    x,\n)", "torch.autograd.grad(\n    y.sum(),\n    x,\n)"),
        ("torch.autograd.grad([y], [x])", None),
    ],
)
def test_a_loss_is_reduced(wrong, right):
    assert by_rule.reduced(spot(wrong)) == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("x.numpy()", "x.detach().numpy()"),
        ("é = x.numpy()", "é = x.detach().numpy()"),
        ("np.sin(x + y)", "np.sin((x + y).detach())"),
        ("np.sin(*x)", None),
        ("np.stack([x, y])", None),
        ("plot(x, y)", None),
    ],
)
def test_a_tensor_is_detached_before_numpy(wrong, right):
    assert by_rule.detached(spot(wrong)) == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f(a,)", "f(a,k=1)"),
        ("f(a, k=None)", "f(a, k=1)"),
        ("f(\n    a,\n)", "f(\n    a,\nk=1)"),
    ],
)
def test_a_keyword_is_added(wrong, right):
    assert corrections.with_keyword(spot(wrong), "k", "1") == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("w = torch.randn(3, requires_grad=True) * 0.1", "w = (torch.randn(3) * 0.1).requires_grad_()"),
        ("w = 0.1 * torch.randn((3), requires_grad=True)", None),
        ("w = torch.randn(3, requires_grad=True, device=d) * 0.1", None),
        ("w = torch.ones(2, requires_grad=True) + torch.ones(2, requires_grad=True)", None),
        ("w = (torch.randn(3, requires_grad=True) * 0.1)", None),
    ],
)
def test_requires_grad_comes_last(wrong, right):
    assert corrections.requires_grad_last(spot(wrong, ast.Assign)) == right


@pytest.mark.parametrize(
    ("wrong", "kind", "right"),
    [
        ("b.add_(1)", ast.Call, "b = b.add(1)"),
        ("b += 1", ast.AugAssign, "b = b + 1"),
        ("b *= c + 1", ast.AugAssign, "b = b * (c + 1)"),
        ("self.b.add_(1)", ast.Call, None),
        ("c = b.add_(1)", ast.Call, None),
        ("b.fill_(1)", ast.Call, None),
        ("b[0] += 1", ast.AugAssign, None),
    ],
)
def test_a_write_is_taken_out_of_place(wrong, kind, right):
    assert corrections.out_of_place(spot(wrong, kind)) == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("import torch\na += 1", "with torch.no_grad(): a += 1"),
        ("import backlight as bl\na += 1  # step", "with bl.no_grad(): a += 1"),
        ("import torch\nif ready: a += 1", None),
        ("a += 1", None),
    ],
)
def test_an_update_is_put_under_no_grad(wrong, right):
    assert corrections.under_no_grad(spot(wrong, ast.AugAssign)) == right


def test_every_repair_belongs_to_a_rule():
    assert set(by_rule.REPAIRS) <= set(rules())


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("loss.backward()", "opt.zero_grad()\nloss.backward()"),
        (
            "for i in few: loss(i).backward(); opt.step()",
            "for i in few: opt.zero_grad(); loss(i).backward(); opt.step()",
        ),
        ('while more("é"): loss().backward()', 'while more("é"): opt.zero_grad(); loss().backward()'),
        ("for i in range(3):", "opt.zero_grad()\nfor i in range(3):"),
    ],
)
def test_what_is_to_come_first_goes_into_a_loop_of_one_line(text: str, wanted: str):
    assert preceded(text, "opt.zero_grad()") == wanted
