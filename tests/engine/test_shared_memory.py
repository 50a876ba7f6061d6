"""What shares memory knows all of it, as in PyTorch: offsets, strides and `as_strided`, whichever door it came by."""

import copy
import io

import pytest
import torch

import backlight


def numbers(t):
    """Return the numbers from 0 to 11."""
    return t.arange(12, dtype=t.float64)


def rows(t):
    """Return them as three rows."""
    return numbers(t).reshape(3, 4)


def inside(mode, make):
    """Return what is made in a mode."""
    with mode:
        return make()


def given_data(t, value):
    """Return a tensor that was given other memory."""
    made = t.zeros(3, dtype=t.float64)
    made.data = value
    return made


def old_view(t):
    """Return a view of a tensor that was given other memory since."""
    whole = numbers(t)
    view = whole[3:]
    whole.data = t.zeros(20, dtype=t.float64)
    return view


def gradient(t):
    """Return a part of a gradient, detached."""
    x = numbers(t).requires_grad_()
    (x[3:] * x[:9]).sum().backward()
    return x.grad[2:].detach()


def saved(t):
    """Return what a node saved of a view."""
    x = numbers(t).requires_grad_()[3:]
    return (x * x).grad_fn._saved_self


def loaded(t):
    """Return a view that was saved with its base, and loaded."""
    file, whole = io.BytesIO(), numbers(t)
    t.save([whole, whole[3:]], file)
    file.seek(0)
    return t.load(file)[1]


def from_vector(t):
    """Return a parameter whose memory is a part of a vector."""
    layer = t.nn.Linear(2, 2).double()
    t.nn.utils.vector_to_parameters(numbers(t)[:6], layer.parameters())
    return layer.bias


def custom(t):
    """Return a view that a custom Function made."""

    class Tail(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[2:]

        @staticmethod
        def backward(ctx, grad):
            return None

    return Tail.apply(numbers(t)[1:].detach().requires_grad_())


DOORS = {
    "a slice": lambda t: numbers(t)[3:],
    "detach": lambda t: numbers(t)[3:].detach(),
    "a slice of detach": lambda t: numbers(t)[3:].detach()[2:],
    "detach twice": lambda t: numbers(t)[3:].detach()[2:].detach(),
    "a leaf from detach": lambda t: numbers(t)[3:].detach().requires_grad_()[2:],
    "data": lambda t: numbers(t)[3:].data,
    "a slice of data": lambda t: numbers(t)[3:].data[1:],
    "data of data": lambda t: numbers(t)[3:].data[1:].data,
    "no_grad": lambda t: inside(t.no_grad(), lambda: numbers(t).requires_grad_()[3:].detach()),
    "inference": lambda t: inside(t.inference_mode(), lambda: numbers(t)[3:][2:]),
    "detach in inference": lambda t: inside(t.inference_mode(), lambda: numbers(t)[3:].detach()),
    "data in inference": lambda t: inside(t.inference_mode(), lambda: numbers(t)[3:].data),
    "a view of an inference tensor": lambda t: inside(t.inference_mode(), lambda: numbers(t))[3:],
    "a slice, viewed in inference": lambda t: (lambda x: inside(t.inference_mode(), lambda: x[2:]))(numbers(t)[1:]),
    "numpy and back": lambda t: t.from_numpy(numbers(t)[3:].numpy()),
    "a slice of NumPy's": lambda t: t.from_numpy(numbers(t).numpy()[3:]),
    "DLPack": lambda t: t.utils.dlpack.from_dlpack(numbers(t)[3:]),
    "unbind": lambda t: rows(t).unbind(1)[1],
    "a detached piece of unbind": lambda t: rows(t).unbind(1)[1].detach(),
    "a detached piece of split": lambda t: numbers(t).split(5)[1].detach(),
    "a detached piece of chunk": lambda t: numbers(t).chunk(3)[1].detach(),
    "a detached part of a matrix": lambda t: rows(t)[1:, 1:].t().detach(),
    "a detached diagonal": lambda t: rows(t).diagonal(1).detach(),
    "a detached element": lambda t: numbers(t)[3].detach(),
    "data of an element": lambda t: numbers(t)[3].data,
    "detached windows": lambda t: numbers(t)[3:].unfold(0, 3, 2).detach(),
    "detached as_strided": lambda t: numbers(t).as_strided((2, 2), (3, 1), 4).detach(),
    "an expanded element": lambda t: numbers(t)[3:4].expand(3).detach(),
    "another dtype": lambda t: numbers(t)[3:].view(t.int32).view(t.float64),
    "parameter": lambda t: t.nn.Parameter(numbers(t)[3:]),
    "data of a parameter": lambda t: t.nn.Parameter(numbers(t)[3:]).data,
    "buffer": lambda t: t.nn.Buffer(numbers(t)[3:]),
    "a parameter from a vector": from_vector,
    "deepcopy": lambda t: copy.deepcopy(numbers(t)[3:].detach()),
    "copy": lambda t: copy.copy(numbers(t)[3:]),
    "clone": lambda t: numbers(t)[3:].clone(),
    "loaded": loaded,
    "given a slice as data": lambda t: given_data(t, numbers(t)[3:]),
    "a view of what was given a slice": lambda t: given_data(t, numbers(t)[3:])[1:],
    "a twin of what was given a slice": lambda t: given_data(t, numbers(t)[3:]).detach(),
    "a view of what it was before": old_view,
    "a twin of that view": lambda t: old_view(t).detach(),
    "gradient": gradient,
    "saved": saved,
    "a twin of what was saved": lambda t: saved(t).detach(),
    "custom Function": custom,
    "a twin of a custom Function's": lambda t: custom(t).detach(),
    "squeeze_": lambda t: numbers(t).reshape(1, 12)[:, 3:].squeeze_(0),
    "resize_": lambda t: numbers(t)[3:].detach().resize_(2),
}
LAYOUTS = [((2,), (1,)), ((2,), (1,), 0), ((2,), (1,), 4), ((2, 2), (2, 1)), ((40,), (1,)), ((12,), (1,), 0)]


def shown(t, tensor, layout):
    """Return what `as_strided` shows of a tensor's memory, or why it refuses."""
    try:
        return tensor.detach().as_strided(*layout).tolist()
    except RuntimeError as problem:
        return str(problem).split(" are out of bounds")[0]


@pytest.mark.parametrize("door", DOORS)
def test_what_shares_memory_knows_all_of_it(door):
    theirs, ours = (DOORS[door](t) for t in (torch, backlight))
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.stride() == tuple(theirs.stride())
    for layout in LAYOUTS:
        assert shown(backlight, ours, layout) == shown(torch, theirs, layout)
    assert ours.data_ptr() == ours.detach().data_ptr() == ours.data.data_ptr()


def test_a_gradient_passes_as_strided_only_into_what_the_twin_shows():
    found = []
    for t in (torch, backlight):
        x = numbers(t)[3:8].detach().requires_grad_()
        x.as_strided((4, 2), (2, 1), 1).pow(2).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_resizing_a_part_keeps_what_lies_before_it():
    found = []
    for t in (torch, backlight):
        part = numbers(t)[3:].detach().resize_(12)
        found.append((part.storage_offset(), part[:9].tolist(), part.as_strided((12,), (1,), 0).tolist()))
    assert found[0] == found[1]


def test_a_view_cannot_be_detached_in_place_even_without_a_gradient():
    for t in (torch, backlight):
        with pytest.raises(RuntimeError, match="Can't detach views in-place"):
            numbers(t)[3:].detach_()
