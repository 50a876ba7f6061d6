"""Conjugates and their imaginary parts are views: what is written to one side shows on the other, with its history."""

import gc

import pytest
import torch
from parity import described

import backlight


def both(program) -> None:
    """Assert that a program, called with PyTorch and with backlight, returns the same values."""
    theirs, ours = program(torch), program(backlight)
    assert [plain(one) for one in ours] == [plain(one) for one in theirs]


def plain(value):
    """Return a value in a form that compares across the two modules; of zeros the sign is left open."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        return [
            complex(round(number.real, 4) + 0.0, round(number.imag, 4) + 0.0) for number in value.reshape(-1).tolist()
        ]
    return described(value)


def test_writes_go_both_ways():
    def program(torch):
        x = torch.tensor([1 + 2j, 3 - 1j, 2j])
        conjugate = x.conj()
        found = [conjugate.is_conj(), conjugate._is_view(), conjugate._base is x, conjugate.data_ptr() == x.data_ptr()]
        conjugate.add_(1j)
        found += [x.clone(), conjugate.clone(), x._version, conjugate._version]
        x.mul_(2)
        x[0] = 5 + 5j
        found += [conjugate.clone()]
        conjugate[1] = 7j
        x.view(-1)[2:].fill_(1 - 1j)
        found += [x.clone(), conjugate.clone()]
        torch.view_as_real(x).mul_(3.0)
        conjugate.detach().sub_(1)
        conjugate.conj_physical_()
        return [*found, x, conjugate, x._version]

    both(program)


def test_imaginary_parts_of_conjugates_are_negative_views():
    def program(torch):
        x = torch.tensor([1 + 2j, 3 - 1j])
        parts = x.conj().imag
        found = [
            parts.clone(),
            parts.is_neg(),
            parts.is_conj(),
            x.conj().real.is_neg(),
            parts[:1].is_neg(),
            x.imag.is_neg(),
        ]
        parts.fill_(3.0)
        found += [
            x.clone(),
            parts.resolve_neg().is_neg(),
            parts.clone().is_neg(),
            (parts + 1).is_neg(),
            parts._base is x,
        ]
        x.imag.add_(1)
        return [*found, parts, x]

    both(program)


def test_the_conjugate_of_a_conjugate_is_a_plain_view():
    def program(torch):
        x = torch.tensor([[1 + 2j, 3 - 1j]])
        first = x.conj()
        second = first[0].conj()
        second.mul_(1j)
        adjoint = x.mH
        adjoint[0, 0] = 9
        return [second.is_conj(), second.data_ptr() == x.data_ptr(), adjoint.is_conj(), x, first, second, adjoint]

    both(program)


def test_a_number_without_dims():
    def program(torch):
        x = torch.tensor(1 + 2j)
        conjugate = x.conj()
        conjugate.add_(1j)
        x.mul_(2)
        return [x, conjugate]

    both(program)


WRITES = {
    "to the conjugate": lambda torch, y, c: c.mul_(3j),
    "to the source": lambda torch, y, c: y.mul_(1j),
    "to an element of the conjugate": lambda torch, y, c: c.__setitem__(0, y[1]),
    "to the imaginary parts": lambda torch, y, c: c.imag.mul_(3),
    "to both": lambda torch, y, c: (c.mul_(2j), y.add_(c), c.add_(y)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("of_a_view", [False, True])
def test_gradients_flow_through_writes(write, of_a_view):
    def program(torch):
        x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        whole = x * 2
        y = whole[:] if of_a_view else whole
        conjugate = y.conj()
        write(torch, y, conjugate)
        ((whole * whole * y).real + (conjugate * y * 1j).real + conjugate.imag).sum().backward()
        return [x.grad, whole, y, conjugate]

    both(program)


def test_what_may_not_be_written_to_raises():
    x = backlight.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x.conj().add_(1)
    with backlight.no_grad():
        x.conj().add_(1)
    assert x.tolist() == [2 + 2j]
    y = x * 2
    square = y.conj() * y.conj()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.real.sum().backward()
    with pytest.raises(RuntimeError, match="Tensor that has negative bit set"):
        backlight.tensor([1j]).conj().imag.numpy()
    with pytest.raises(RuntimeError, match=r"made by conj\(\) inside a transform cannot be written to"):
        backlight.vmap(lambda one: one.conj().mul_(2))(y.detach())


def test_mirrors_that_are_gone_are_forgotten():
    x = backlight.tensor([1 + 2j])
    kept = x.conj()
    for _ in range(20):
        x.conj()
    gc.collect()
    assert len(x._storage.mirrors.living) == 1
    assert (kept + x).tolist() == [2]
