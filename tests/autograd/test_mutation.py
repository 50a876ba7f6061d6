"""Inside `allow_mutation_on_saved_tensors` what is saved may be written to: backward uses it as it was."""

import pytest
import torch

import backlight

SIDES = pytest.mark.parametrize("lib", [torch, backlight], ids=["torch", "backlight"])


def block(lib):
    return lib.autograd.graph.allow_mutation_on_saved_tensors()


@SIDES
def test_a_saved_tensor_is_copied_when_it_is_written_to(lib):
    with block(lib) as copies:
        x = lib.ones(2, 3, requires_grad=True)
        h = x.clone()
        y = (h**2).sum()
        assert (len(copies.original), len(copies.cloned)) == (1, 0)
        h.sin_()
        assert (len(copies.original), len(copies.cloned)) == (1, 1)  # sin_ saves what it read
        y.backward()
        assert x.grad.tolist() == [[2, 2, 2]] * 2  # 2 h, as h was


@SIDES
def test_each_version_is_kept(lib):
    with block(lib):
        x, w = lib.ones(3, requires_grad=True), lib.ones(3)
        y = x * w
        w += 1
        z = x * w
        w.copy_(w * 7)
        (y + z).sum().backward()
        assert x.grad.tolist() == [3, 3, 3]


@SIDES
def test_numbers_and_parts_may_be_written_to(lib):
    with block(lib):
        x = lib.tensor(2.0, requires_grad=True)
        h = x * 1
        y = h * h
        h.mul_(3)
        z = h * h
        h.zero_()
        (y + z).backward()
        assert x.grad.item() == 40  # 2 x + 18 x
        x = lib.ones(3, requires_grad=True)
        h = x * 2
        y = h * h
        h[0] = 5
        (y + h * h).sum().backward()
        assert x.grad.tolist() == [8, 16, 16]


def test_writing_to_the_base_copies_its_saved_views():
    with block(backlight):
        x = backlight.ones(4, requires_grad=True)
        h = x.clone()
        part = h[1:]
        y = (part * h[:3]).sum()
        h.mul_(3)
        part.add_(1)
        z = (part * part).sum()
        h.zero_()
        (y + z).backward()
        assert x.grad.tolist() == [1, 26, 26, 25]  # of y: 1 for each use; of z: 2 · 4 · 3


@SIDES
def test_an_optimizer_may_step_between_two_backwards(lib):
    with block(lib):
        layer = lib.nn.Linear(2, 1, bias=False)
        with lib.no_grad():
            layer.weight.fill_(2.0)
        x = lib.ones(1, 2, requires_grad=True)
        y = layer(x).sum()
        y.backward(retain_graph=True)
        lib.optim.SGD(layer.parameters(), lr=0.1).step()
        x.grad = None
        y.backward()
        assert x.grad.tolist() == [[2, 2]]


def left(lib):
    with block(lib):
        x = lib.ones(2, requires_grad=True)
        y = (x * x).sum()
    y.backward()


def nested(lib):
    with block(lib), block(lib):
        pass


@pytest.mark.parametrize("program", [left, nested])
def test_errors_begin_as_pytorchs(program):
    problems = []
    for lib in (torch, backlight):
        with pytest.raises((AssertionError, RuntimeError)) as problem:
            program(lib)
        problems.append(problem.value)
    assert isinstance(problems[1], type(problems[0]))
    assert str(problems[1]).startswith(str(problems[0]))


def test_a_write_that_does_not_ask_before_is_an_error_not_a_wrong_gradient():
    with block(backlight):
        x, w = backlight.ones(2, requires_grad=True), backlight.ones(2)
        y = (x * w).sum()
        w.numpy()[:] = 5
        backlight.autograd.graph.increment_version(w)
        with pytest.raises(RuntimeError, match=r"increment_version at .*test_mutation.py:.* writes without asking"):
            y.backward()


def test_afterwards_a_write_is_a_mistake_again():
    with block(backlight):
        x, w = backlight.ones(2, requires_grad=True), backlight.ones(2)
        (x * w).sum().backward()
    y = (x * w).sum()
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
