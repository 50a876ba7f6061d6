"""Views and in-place writes: every claim holds in backlight and in PyTorch alike."""

import re

import numpy as np
import pytest
import torch

import backlight

both = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])

VIEWS = {
    "alias": lambda x: x[...],
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)),
    "detached": lambda x: x[0].detach()[:1],
    "diagonal": lambda x: x.diagonal(),
    "expand": lambda x: x.expand(2, 3, 4),
    "flatten": lambda x: x.flatten(),
    "mT": lambda x: x.mT,
    "movedim": lambda x: x.movedim(0, 1),
    "narrow": lambda x: x.narrow(0, 1, 2),
    "None": lambda x: x[None],
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.reshape(4, 3),
    "row": lambda x: x[0],
    "0-d": lambda x: x[0, 0],
    "slice": lambda x: x[:, 1:],
    "split": lambda x: x.split(2)[1],
    "squeeze": lambda x: x.squeeze(),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(0, 1),
    "unbind": lambda x: x.unbind(1)[2],
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(2, 6),
    "view_as": lambda x: x.view_as(x),
}

COPIES = {
    "clone": lambda x: x.clone(),
    "contiguous of a transpose": lambda x: x.t().contiguous(),
    "diag": lambda x: x.diag(),
    "flip": lambda x: x.flip(0),
    "index tensor": lambda x: x[[0, 1]],
    "mask": lambda x: x[[True, False, True]],
    "repeat": lambda x: x.repeat(1, 1),
    "reshape of a transpose": lambda x: x.t().reshape(-1),
    "roll": lambda x: x.roll(0),
    "tril": lambda x: x.tril(),
    "cast": lambda x: x.to(dtype=x.int().dtype),
}


def numbers(t, *shape, requires_grad=False):
    """Return 0.0, 1.0, 2.0, … in a shape."""
    made = t.tensor([float(i) for i in range(int(np.prod(shape)))], dtype=t.float64).reshape(shape)
    return made.detach().requires_grad_(requires_grad)


@both
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_and_version(t, name):
    x = numbers(t, 3, 4)
    view = VIEWS[name](x)
    assert view._is_view()
    assert view._base is x or name == "detached"
    before = x._version
    if name not in ("expand", "unfold"):
        view.fill_(7)
        assert (x._version, view._version) == (before + 1, before + 1)
        assert 7 in x.flatten().tolist()


@both
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_shares_nothing(t, name):
    x = numbers(t, 3, 4)
    copy = COPIES[name](x)
    assert not copy._is_view() and copy._base is None
    copy.zero_()
    assert x.tolist() == numbers(t, 3, 4).tolist() and x._version == 0


@both
def test_a_view_of_a_view_has_the_first_tensor_as_its_base(t):
    x = numbers(t, 3, 4)
    assert x[1][2:].unsqueeze(0)._base is x


@both
def test_contiguous_returns_the_tensor_itself_where_it_can(t):
    x = numbers(t, 3, 4)
    assert x.contiguous() is x and x[1].contiguous()._is_view()


@both
def test_strides_are_pytorchs(t):
    x = numbers(t, 4, 6)
    assert x.stride() == (6, 1) and x.t().stride() == (1, 6) and x.stride(-2) == 6
    assert x.expand(2, 4, 6).stride() == (0, 6, 1)
    assert x[:, 1:2].stride() == (6, 1) and not x[:, 1:2].is_contiguous()
    assert x.unsqueeze(0).stride() == (24, 6, 1)
    assert x[1:, 2:].storage_offset() == 8
    assert x.t().clone().stride() == (1, 6) and x.expand(2, 4, 6).clone().stride() == (24, 6, 1)
    assert t.stack([x.t(), x.t()]).stride() == (24, 4, 1) and t.zeros(3, 0, 2).stride() == (2, 2, 1)


REFUSED = {
    "a leaf": (
        lambda t, a: a.add_(1),
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "an element of a leaf": (
        lambda t, a: a.__setitem__(0, 5),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "a view of a leaf": (
        lambda t, a: a.view(-1).mul_(2),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "a part of a split": (
        lambda t, a: (a * 1).split(2)[0].mul_(2),
        "Output 0 of Split is a view and is being modified inplace. This view is the output of a function that returns "
        "multiple views. Such functions do not allow the output views to be modified inplace.",
    ),
    "a part of a chunk": (lambda t, a: (a * 1).chunk(2)[1].zero_(), "Output 1 of Split is a view"),
    "a part of split_with_sizes": (
        lambda t, a: (a * 1).split([1, 3])[1].zero_(),
        "Output 1 of SplitWithSizes is a view",
    ),
    "a row met in a loop": (
        lambda t, a: [row.add_(1) for row in (a * 1).view(2, 2)],
        "Output 0 of Unbind is a view and is being modified inplace.",
    ),
    "a view of a part of a split": (
        lambda t, a: (a * 1).split(2)[0][:1].mul_(2),
        "is a view and is being modified inplace",
    ),
    "an expanded tensor": (
        lambda t, a: (a[:1] * 1).expand(3).add_(t.arange(3.0)),
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.",
    ),
    "a view whose base is written to by a larger shape": (
        lambda t, a: (a * 1).add_(t.ones(2, 4)),
        "output with shape [4] doesn't match the broadcast shape [2, 4]",
    ),
}


@both
@pytest.mark.parametrize("name", REFUSED)
def test_writing_is_refused_to(t, name):
    write, message = REFUSED[name]
    with pytest.raises(RuntimeError, match=re.escape(message)):
        write(t, t.ones(4, requires_grad=True))


@both
def test_a_view_made_without_recording_may_not_be_written_to_with_recording(t):
    a = t.ones(4, requires_grad=True) * 1
    with t.no_grad():
        view = a.view(2, 2)
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad"
    ):
        view.mul_(2)


@both
def test_leaves_may_be_written_to_without_recording(t):
    a = t.ones(4, requires_grad=True)
    with t.no_grad():
        a[0] = 5
        a.view(2, 2)[1] *= 3
        a.mul_(2)
    assert a.tolist() == [10, 2, 6, 6] and a.is_leaf and a.requires_grad and a._version == 4


@both
@pytest.mark.parametrize("shape", [(2, 6), (24,)])
def test_view_refuses_strides_that_it_cannot_follow(t, shape):
    message = (
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead."
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        numbers(t, 3, int(np.prod(shape)) // 3).t().view(shape)


@both
def test_view_follows_strides_where_it_can(t):
    x = numbers(t, 4, 6)[:, :4]
    assert x.view(2, 2, 2, 2).stride() == (12, 6, 2, 1)
    assert x.t().view(2, 2, 4).tolist() == x.t().tolist() or x.t().view(2, 2, 4)._base is x._base


SAVED_THEN_WRITTEN = {
    "an op's own output": lambda t, h: (h.exp(), lambda y: y.add_(1)),
    "an op's input": lambda t, h: (h * h, lambda y: h.zero_()),
    "an input through detach": lambda t, h: (h * h, lambda y: h.detach().fill_(100.0)),
    "an input through a view": lambda t, h: (h * h, lambda y: h[:1].fill_(100.0)),
    "an input through its base": lambda t, h: (h[1:] * h[1:], lambda y: h.fill_(100.0)),
    "an input through a sibling view": lambda t, h: (h[1:] * h[1:], lambda y: h.view(2, 1).zero_()),
    "an input by index": lambda t, h: (h * h, lambda y: h.__setitem__(0, 3.0)),
    "an input by index tensors": lambda t, h: (h * h, lambda y: h.__setitem__([0], 3.0)),
    "a view of an op's own output": lambda t, h: (h.exp(), lambda y: y[:1].zero_()),
}


@both
@pytest.mark.parametrize("name", SAVED_THEN_WRITTEN)
def test_backward_notices_a_write_to(t, name):
    h = t.ones(2, requires_grad=True) * 1
    y, write = SAVED_THEN_WRITTEN[name](t, h)
    total = y.sum()
    write(y)
    message = "one of the variables needed for gradient computation has been modified by an inplace operation: [torch."
    with pytest.raises(RuntimeError, match=re.escape(message)):
        (total if name != "an op's own output" else y.sum()).backward()


@both
def test_backward_notices_a_write_to_a_saved_index(t):
    x, index = t.ones(3, requires_grad=True), t.tensor([0, 2])
    y = x[index]
    index[0] = 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_the_error_names_the_line_that_wrote():
    a = backlight.ones(2, requires_grad=True)
    y = a.exp()
    total = y.sum()
    y[:1] = 4
    with pytest.raises(RuntimeError, match=r"It was written by \w+ at .*test_views\.py:\d+: y\[:1\] = 4"):
        total.backward()


@both
def test_writes_through_data_are_not_counted(t):
    a = t.tensor(3.0, requires_grad=True)
    h = a * 1
    y = h * h
    h.data.fill_(100.0)
    y.backward()
    assert a.grad.item() == 200 and h._version == 0


@both
def test_writes_through_numpy_are_not_counted(t):
    a = t.tensor([3.0], requires_grad=True)
    h = a * 1
    y = h * h
    h.detach().numpy()[0] = 100.0
    y.backward()
    assert a.grad.item() == 200


@both
def test_detach_shares_memory(t):
    a = t.ones(2, requires_grad=True)
    d = a.detach()
    d[0] = 9
    assert a.tolist() == [9, 1] and a._version == 1 and a.requires_grad


@both
def test_inputs_that_no_wanted_gradient_needs_may_be_written_to(t):
    a, constant = t.ones(2, requires_grad=True), t.full((2,), 3.0)
    h = a * 1
    y = h * constant
    h.zero_()
    assert y.grad_fn._saved_self is None and y.grad_fn._saved_other is constant
    y.sum().backward()
    assert a.grad.tolist() == [3, 3]


@both
def test_ops_that_save_nothing_do_not_mind_writes(t):
    a = t.ones(3, requires_grad=True)
    h = a * 1
    y = (h + 1).reshape(3, 1).expand(3, 2)
    h.zero_()
    y.sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def on_a_view(t, b):
    b[:2].mul_(3)


def on_an_element(t, b):
    b[1] = 5


def on_a_view_of_a_view(t, b):
    b[1:][1:].mul_(2)


def on_a_transposed_view(t, b):
    b.view(2, 2).t()[0].mul_(4)


def on_a_diagonal(t, b):
    b.view(2, 2).fill_diagonal_(2)


def on_a_squeezed_view(t, b):
    b.unsqueeze(0).unsqueeze(-1).squeeze()[3] *= 7


def twice(t, b):
    b[:2].mul_(3)
    b[1:].mul_(b[1:].detach().clone())
    b *= 2


def by_a_mask(t, b):
    b[b.detach() > 1] = 0


def by_index_tensors(t, b):
    b[[0, -1]] = b[[1, 2]] * 3


def on_rows_of_a_view(t, b):
    b.view(2, 2)[:, [1]] = 6


def adding(t, b):
    b[1:] += b[:-1] * 2


def copying(t, b):
    b[:2].copy_(b[2:])


def zeroing(t, b):
    b[1:3].zero_()


def with_no_grad(t, b):
    with t.no_grad():
        b[:2].mul_(3)


WRITES = [
    on_a_view,
    on_an_element,
    on_a_view_of_a_view,
    on_a_transposed_view,
    on_a_diagonal,
    on_a_squeezed_view,
    twice,
    by_a_mask,
    by_index_tensors,
    on_rows_of_a_view,
    adding,
    copying,
    zeroing,
    with_no_grad,
]


def after_write(t, write, order: int):
    """Return the gradient (of an order) of a cubic of what a write left, beside the values."""
    a = numbers(t, 4, requires_grad=True)
    b = a * a
    write(t, b)
    out = (b * b * numbers(t, 4)).sum()
    found = t.autograd.grad(out, a, create_graph=True)[0]
    for _ in range(order - 1):
        found = t.autograd.grad((found * numbers(t, 4)).sum(), a, create_graph=True)[0]
    return b.tolist(), found.tolist()


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_gradients_follow_a_write(write, order):
    ours, theirs = after_write(backlight, write, order), after_write(torch, write, order)
    np.testing.assert_allclose(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1])


@both
def test_a_write_to_a_view_changes_the_history_of_its_base(t):
    a = t.ones(4, requires_grad=True)
    b = a * 1
    view = b[:2]
    view.mul_(3)
    assert type(b.grad_fn).__name__ == "CopySlices" and type(view.grad_fn).__name__ == "AsStridedBackward0"
    b.sum().backward()
    assert a.grad.tolist() == [3, 3, 1, 1]


@both
def test_a_write_of_a_tensor_with_history_gives_the_base_one(t):
    base, w = t.zeros(2, 3), t.ones(3, requires_grad=True)
    view = base[1]
    view.copy_(w * 2)
    assert base.requires_grad and view.requires_grad and not base.is_leaf
    (base * base).sum().backward()
    assert w.grad.tolist() == [8, 8, 8]


@both
def test_all_live_views_follow_a_write_to_one(t):
    a = t.ones(4, requires_grad=True)
    b = a * 2
    first, second, third = b[:3], b[1:], b.view(2, 2).t()
    second.mul_(5)
    weights = t.tensor([1.0, 10.0, 100.0])
    (first * weights).sum().backward(retain_graph=True)
    assert a.grad.tolist() == [2, 100, 1000, 0]
    a.grad = None
    (third * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert a.grad.tolist() == [2, 30, 20, 40]


@both
def test_all_live_views_follow_a_write_to_the_base(t):
    a = t.ones(4, requires_grad=True)
    b = a * 2
    view = b[1:3]
    b.mul_(4)
    view.sum().backward()
    assert a.grad.tolist() == [0, 8, 8, 0]


@both
def test_views_made_after_a_write_follow_it_too(t):
    a = t.ones(4, requires_grad=True)
    b = a * 2
    b[:2] = 0
    b[1:].sum().backward()
    assert a.grad.tolist() == [0, 0, 2, 2]


@both
def test_a_view_of_a_buffer_gets_a_history_when_its_base_does(t):
    buffer, w = t.zeros(4), t.ones(2, requires_grad=True)
    view = buffer[1:]
    buffer[:2] += w
    assert view.requires_grad
    view.sum().backward()
    assert w.grad.tolist() == [0, 1]


@both
def test_in_place_on_a_tensor_without_history_gives_it_one(t):
    buffer, w = t.zeros(2), t.ones(2, requires_grad=True)
    buffer += w
    assert buffer.requires_grad and type(buffer.grad_fn).__name__ == "AddBackward0"
    buffer += w
    buffer.sum().backward()
    assert w.grad.tolist() == [2, 2]


@both
def test_copy_broadcasts_and_casts_and_so_does_its_gradient(t):
    target, source = t.zeros(2, 3, dtype=t.float64), t.ones(3, dtype=t.float32, requires_grad=True)
    target.copy_(source)
    assert type(target.grad_fn).__name__ == "CopyBackwards" and target.dtype == t.float64
    (target * t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=t.float64)).sum().backward()
    assert source.grad.tolist() == [5, 7, 9] and source.grad.dtype == t.float32


def test_overlapping_slices_with_gaps_are_copied_as_if_they_did_not_overlap():
    """PyTorch's result depends on the order in which it copies."""
    x = numbers(backlight, 3, 4)
    x[:, 1:] = x[:, :-1]
    assert x.tolist() == [[0, 0, 1, 2], [4, 4, 5, 6], [8, 8, 9, 10]]


@both
def test_a_write_counts_one_version(t):
    x = t.zeros(3, 4)
    x[0] = 1
    x[1:, 2] = t.ones(2)
    x[[0, 1]] = 3
    x[x > 2] = 0
    x.fill_diagonal_(2)
    x.t().add_(1)
    assert x._version == 6


IN_PLACE_SHAPES = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(-1, 0),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.unsqueeze_(0).squeeze_(),
}


@both
@pytest.mark.parametrize("name", IN_PLACE_SHAPES)
def test_in_place_shapes_change_the_tensor_itself(t, name):
    a = numbers(t, 2, 3, requires_grad=True)
    b = a * 2
    out = IN_PLACE_SHAPES[name](b)
    assert out is b
    weights = numbers(t, 6).reshape(b.shape)
    (b * weights).sum().backward()
    x = numbers(torch, 2, 3, requires_grad=True)
    y = IN_PLACE_SHAPES[name](x * 2)
    (y * numbers(torch, 6).reshape(y.shape)).sum().backward()
    assert a.grad.tolist() == x.grad.tolist() and tuple(b.shape) == tuple(y.shape)


@both
def test_shapes_of_a_leaf_do_not_change_in_place(t):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        t.ones(2, 3, requires_grad=True).t_()


@pytest.mark.parametrize("fill", [0.25, "tensor", "zero_"])
def test_a_recorded_write_to_a_view_of_a_view_runs_no_node_of_what_the_view_was(fill):
    found = []
    for t in (torch, backlight):
        leaf, seen = t.ones(3, 4, requires_grad=True), []
        base = leaf * 2
        view = base.view(4, 3)
        view.grad_fn.register_hook(lambda inputs, outputs, seen=seen: seen.append(len(outputs)))
        if fill == "zero_":
            view[:2].zero_()
        else:
            view[:2] = fill if fill == 0.25 else t.ones(3)
        (base.sum() + (view * 3).sum()).backward()
        found.append((seen, leaf.grad.tolist(), base.tolist()))
    assert found[0] == found[1]
    assert found[0][0] == []


@pytest.mark.parametrize("name", ["erf", "erfinv", "lgamma", "digamma", "i0", "exp"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise_results_lie_in_memory_as_their_input(name, dtype):
    numbers = np.linspace(0.1, 0.9, 24).astype(dtype).reshape(2, 3, 4).transpose(2, 0, 1)
    ours, theirs = getattr(backlight.from_numpy(numbers), name)(), getattr(torch.from_numpy(numbers), name)()
    assert ours.stride() == theirs.stride()
    assert np.allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
