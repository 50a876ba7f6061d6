"""Replays of real programs on both engines: every equation is true by hand, and the order is that of the record."""

import re

import lens_programs as programs
import numpy as np
import pytest
import torch
from by_hand import by_hand

import backlight
from backlight import lens
from backlight.lens.replays.replay import FIRE, FORWARD, GRAD

ENGINES = {"backlight": backlight, "torch": torch}
PROGRAMS = [
    value
    for name, value in vars(programs).items()
    if callable(value) and name != "drawn" and value.__module__ == "lens_programs"
]
EQUATION = re.compile(
    r"(?:^|[=≈] )(?P<numbers>[^=≈]*?) (?P<sign>[=≈]) (?P<value>−?[\d.e−+]+|\[[^]]*\])(?:, (?:repeated|summed).*)?$"
)
EXPONENT = re.compile(r"(?<=\d)e[−+]\d+")
NAME = re.compile(r"#\d|[a-zA-Z_]\w*\b(?!\()")
UNARY = ("tanh", "sigmoid", "exp", "sin", "cos", "relu", "sqrt", "log")
BINARY = ("__add__", "__mul__", "__sub__", "__truediv__")


def recorded(engine: str, program):
    with lens.watch(engine=engine) as watch:
        program(ENGINES[engine])
    return watch.record


def random_program(seed: int):
    """Return a program of ten random ops on numbers and short vectors, with shared results, and its backward."""

    def program(t):
        random = np.random.default_rng(seed)
        known = [t.tensor(random.uniform(0.5, 1.5, shape).tolist(), requires_grad=True) for shape in ((), (3,), ())]
        for _ in range(10):
            first, second = (known[number] for number in random.integers(0, len(known), 2))
            if random.random() < 0.5:
                known.append(getattr(first, random.choice(UNARY))())
            else:
                known.append(getattr(first, random.choice(BINARY))(second))
            if not bool(((known[-1] > 0.05) & (known[-1] < 20)).all()):
                known[-1] = known[-1] * 0 + first  # stay where every function has a value
        sum(known).sum().backward()

    return program


def equations(step):
    """Give the equations of a step that have only numbers on the left, with their values."""
    for part in step.parts:
        if part.kind in ("formula", "compute") and len(part.lines) <= 3:
            found = EQUATION.search(part.lines[-1])
            if found and not NAME.search(EXPONENT.sub("", found["numbers"])):
                yield found["numbers"], found["sign"], found["value"]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_equation_of_random_graphs_is_true_by_hand(engine):
    count = 0
    for seed in range(30):
        for step in recorded(engine, random_program(seed)).replay().steps:
            for numbers, sign, value in equations(step):
                shown, close = by_hand(value), 2e-3 if sign == "≈" else 1e-5
                most = max(1e-30, float(np.abs(shown).max()))
                assert by_hand(numbers) == pytest.approx(shown, rel=0, abs=close * most), step.text()
                count += 1
    assert count > 300


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_nodes_fire_in_the_recorded_order_with_the_recorded_gradients(engine, program):
    record = recorded(engine, program)
    replay = record.replay()
    for number, backward in enumerate(record.backwards):
        assert replay.firing(number) == [step.node for step in backward.steps]
    assert {step.node for step in replay.steps if step.kind == FORWARD} == {node.id for node in record.nodes}
    for step in replay.steps:
        assert step.held >= 0
        if step.kind in (FIRE, GRAD):
            told = next(one for one in record.backwards[step.backward].steps if one.node == step.node)
            assert (step.gradient is None) == all(one is None for one in told.incoming)
            assert step.freed == told.freed


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hook_that_changes_a_gradient_is_named(engine):
    text = recorded(engine, programs.hooked).replay().text()
    assert "halve changes it" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retained_gradient_is_written_by_its_op(engine):
    assert "retained in " in recorded(engine, programs.retained).replay().text()


@pytest.mark.parametrize("engine", ENGINES)
def test_second_order_ops_are_forward_steps_of_a_recorded_backward(engine):
    text = recorded(engine, programs.second_order).replay().text()
    assert "in a backward that is recorded itself (order 2)" in text


def slope_of_a_cube(t):
    x = t.tensor(3.0, requires_grad=True)
    y = x**3
    (slope,) = t.autograd.grad(y, x, create_graph=True)
    slope.backward()


def test_the_derivative_of_a_cube_can_be_followed_on_pytorch():
    text = recorded("torch", slope_of_a_cube).replay().text()
    assert "not recorded;" not in text and "values were not recorded" not in text
    assert "x^2 = 3^2 = 9" in text and "#2 · 3 = 9 · 3 = 27" in text and "slope = 1 · #3 = 1 · 27 = 27" in text


def test_what_a_later_op_keeps_is_known_of_the_op_that_made_it():
    record = recorded("torch", lambda t: t.nn.functional.cross_entropy(t.ones(1, 4, requires_grad=True), t.tensor([1])))
    (inner,) = [node for node in record.nodes if node.type == "LogSoftmaxBackward0"]
    assert np.allclose(inner.outputs[0].values, -np.log(4))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_autograd_grad_returns_is_complete_only_when_all_users_have_fired(engine):
    def program(t):
        x = t.tensor(3.0, requires_grad=True)
        t.autograd.grad(x * x + x, x)

    replay = recorded(engine, program).replay()
    waiting = [flow.waiting for step in replay.steps for flow in step.flows if flow.end == 0]
    assert waiting == [2, 1, 0] and "7 for x" in replay.steps[-1].text()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_says_where_what_it_reads_had_left_the_graph(engine):
    def program(t):
        w = t.tensor(2.0, requires_grad=True)
        hidden = w * 3
        scale = hidden.detach()
        (w * scale).backward()

    replay = recorded(engine, program).replay()
    told = [step for step in replay.steps if "it reads what detach made of hidden" in step.text()]
    assert [step.kind for step in told] == [FORWARD, FIRE] and "scale = hidden.detach()" in told[0].text()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_operand_that_was_not_recorded_is_left_open(engine):
    """`10 - d` is no `−(d)`: that equation would be false."""

    def program(t):
        w, x = t.tensor([2.0], requires_grad=True), t.tensor([3.0, 5.0])
        y = t.add(w, x, alpha=2)
        z = 10.0 - y
        z.sum().backward()

    text = recorded(engine, program).replay().text()
    assert "y = w + 2 · … = [8, 12]" in text and "z = … − y = [2, −2]" in text
