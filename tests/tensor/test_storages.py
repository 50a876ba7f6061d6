"""Storages: the memory that tensors share, as PyTorch shows it; and tensors set to show other memory."""

import numpy as np
import pytest
import torch
from case import as_array

import backlight

CALLS = {
    "bytes": lambda t, x: [x[1].untyped_storage().nbytes(), len(x.untyped_storage()), x.untyped_storage().size()],
    "the same memory": lambda t, x: x[1].untyped_storage().data_ptr() == x.t().untyped_storage().data_ptr(),
    "equal": lambda t, x: x.untyped_storage() == x.detach().view(6).untyped_storage(),
    "not equal": lambda t, x: x.untyped_storage() == x.clone().untyped_storage(),
    "address of a whole": lambda t, x: x.untyped_storage().data_ptr() == x.data_ptr(),
    "address of a part": lambda t, x: x[1].data_ptr() - x[1].untyped_storage().data_ptr(),
    "of a transposed base": lambda t, x: x.t().clone().untyped_storage().nbytes(),
    "of no elements": lambda t, x: t.ones(0).untyped_storage().nbytes(),
    "of one number": lambda t, x: t.tensor(2.0).untyped_storage().tolist(),
    "a byte": lambda t, x: [x.untyped_storage()[6], list(x.untyped_storage())[:8], x.untyped_storage()[:4].tolist()],
    "where": lambda t, x: [x.untyped_storage().device.type, x.untyped_storage().is_shared()],
    "text": lambda t, x: repr(t.tensor([1], dtype=t.uint8).untyped_storage()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_storage_is_pytorchs(name):
    found = [CALLS[name](module, module.arange(6.0).reshape(2, 3)) for module in (backlight, torch)]
    assert found[0] == found[1]


def test_a_storage_of_numbers_warns_and_is_pytorchs():
    found = []
    for module in (backlight, torch):
        x = module.arange(6.0).reshape(2, 3)
        with pytest.warns(UserWarning, match="^TypedStorage is deprecated") as caught:
            storage = x[1].storage()
        assert caught[0].filename == __file__
        storage[1] = 7
        kind = str(storage.dtype).split(".")[-1]
        found.append([repr(storage), storage.tolist(), len(storage), storage.nbytes(), kind, x.tolist()])
    assert found[0] == found[1]


SETTINGS = {
    "a tensor": lambda t, x, y: y.set_(x),
    "a part of a tensor": lambda t, x, y: y.set_(x, 1, (2,), (2,)),
    "a view": lambda t, x, y: y.set_(x[1]),
    "a storage": lambda t, x, y: y.set_(x.untyped_storage(), 1, (2,), (2,)),
    "a storage row by row": lambda t, x, y: y.set_(x.untyped_storage(), 2, (2, 2)),
    "nothing": lambda t, x, y: y.set_(),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_tensor_that_is_set_shows_the_other_memory(name):
    found = []
    for module in (backlight, torch):
        x, y = module.arange(6.0).reshape(2, 3), module.zeros(2)
        alias = y.detach()
        made = SETTINGS[name](module, x, y)
        made.add_(10)
        found.append([as_array(one) for one in (x, y, alias, made)] + [np.array(y._version), np.array(x._version)])
    for ours, theirs in zip(*found):
        np.testing.assert_array_equal(ours, theirs)


REFUSED = {
    "another dtype": lambda t: t.zeros(2).set_(t.zeros(2).double()),
    "a leaf": lambda t: t.zeros(2, requires_grad=True).set_(t.zeros(2)),
    "no memory": lambda t: t.zeros(2).set_(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_setting_that_cannot_be_is_refused_in_pytorchs_words(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](torch)
    with pytest.raises(theirs.type) as ours:
        REFUSED[name](backlight)
    assert str(ours.value).startswith(str(theirs.value).split(" (int)")[0])


def test_memory_is_not_shown_beyond_its_end_nor_without_a_derivative():  # PyTorch enlarges the memory; no grad_fn
    with pytest.raises(RuntimeError, match="are out of bounds for storage of size 24"):
        backlight.zeros(2).set_(backlight.arange(6.0).untyped_storage(), 1, (20,))
    with pytest.raises(RuntimeError, match=r"^set_\(\) has no derivative"):
        backlight.zeros(2).set_(backlight.ones(2, requires_grad=True))


def test_writes_through_a_set_tensor_leave_what_backward_saved():
    x = backlight.ones(3, requires_grad=True)
    y = x.exp()
    backlight.zeros(1).set_(backlight.ones(3)).mul_(2)
    y.sum().backward()
    np.testing.assert_allclose(as_array(x.grad), np.exp(np.ones(3)), 1e-6)
