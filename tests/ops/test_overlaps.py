"""In-place ops whose operands share memory with what is written, or that write to expanded memory, as in PyTorch."""

import warnings

import pytest
import torch

import backlight

MEET = "some elements of the input tensor and the written-to tensor refer to a single memory location"
REFUSED = {
    "a row": lambda t, x: x.add_(x[0]),
    "an element": lambda t, x: x.mul_(x[0, 0]),
    "the transpose": lambda t, x: x.sub_(x.t()),
    "rows moved": lambda t, x: x[1:].add_(x[:-1]),
    "a third operand": lambda t, x: x.addcmul_(x, x.t()),
    "a copy": lambda t, x: x.copy_(x.t()),
    "an assignment of rows": lambda t, x: x.__setitem__(slice(1, None), x[:-1]),
    "an assignment at indices": lambda t, x: x.__setitem__([0, 1], x[1]),
    "index_put_": lambda t, x: x.index_put_((t.tensor([0]),), x[1]),
    "index_add_ of itself": lambda t, x: x.index_add_(0, t.tensor([0, 1, 2]), x),
    "scatter_": lambda t, x: x.scatter_(0, t.zeros((1, 3), dtype=t.int64), x[1:2]),
    "a comparison": lambda t, x: x.gt_(x[0]),
    "a view with another shape": lambda t, x: x.unsqueeze(0).add_(x),
    "an element with another stride": lambda t, x: x[0, :1].add_(x[0, :1][::2]),
    "a detached part": lambda t, x: x.add_(x.detach()[0]),
    "a part of .data": lambda t, x: x.add_(x.data[0]),
}
ALLOWED = {
    "itself": lambda t, x: x.add_(x),
    "all of it": lambda t, x: x.add_(x[...]),
    "an element broadcast to its own shape": lambda t, x: x[:1, :1].add_(x[:1, :1].expand(1, 1)),
    "detached": lambda t, x: x.mul_(x.detach()),
    "another row": lambda t, x: x[0].add_(x[1]),
    "another row copied": lambda t, x: x[0].copy_(x[1]),
    "an element to fill with": lambda t, x: x.fill_(x[0, 0]),
    "an assignment that is expanded": lambda t, x: x.__setitem__(slice(None), x[0]),
    "an element to put at a mask": lambda t, x: x.masked_fill_(x > 3, x[0, 0]),
}


def squares(t, recorded: bool):
    x = t.arange(9.0).reshape(3, 3).clone() + 1
    return x.requires_grad_() * 1 if recorded else x


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", REFUSED)
def test_an_operand_that_is_written_to_meanwhile_is_refused(name, recorded):
    if name == "a comparison" and recorded:
        recorded = False  # a comparison of a tensor that requires grad is refused for another reason
    for t in (torch, backlight):
        x = squares(t, recorded)
        with pytest.raises(RuntimeError, match=MEET):
            REFUSED[name](t, x)
        assert x.tolist() == squares(t, False).tolist()


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", ALLOWED)
def test_an_operand_that_is_what_is_written_to_or_beside_it_is_allowed(name, recorded):
    found = []
    for t in (torch, backlight):
        x = squares(t, recorded)
        ALLOWED[name](t, x)
        found.append(x.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("write", ["zero_", "fill_"])
def test_expanded_memory_may_be_filled(write):
    found = []
    for t in (torch, backlight):
        base = t.tensor([[1.0], [2.0], [3.0]])
        shown = base.expand(3, 4)
        shown.zero_() if write == "zero_" else shown.fill_(0.5)
        found.append((base.tolist(), shown.tolist(), base._version))
    assert found[0] == found[1]


SHARED = "unsupported operation: more than one element of the written-to tensor refers to a single memory location"
MASK = [[True, False, False, True], [False, False, False, True], [False, False, False, False]]
EXPANDED = {
    "fill_": lambda t, x, v: x.fill_(v),
    "masked_fill_": lambda t, x, v: x.masked_fill_(t.tensor(MASK), v),
    "masked_fill_ with a number": lambda t, x, v: x.masked_fill_(t.tensor(MASK), 0.5),
    "index_fill_": lambda t, x, v: x.index_fill_(1, t.tensor([0, 2]), v),
    "index_put_": lambda t, x, v: x.index_put_((t.tensor([0, 0]), t.tensor([1, 2])), v * t.tensor([1.0, 2.0])),
    "index_put_ that adds": lambda t, x, v: x.index_put_((t.tensor([0, 1]),), v, accumulate=True),
    "an assignment where a mask is true": lambda t, x, v: x.__setitem__(t.tensor(MASK), v),
    "tril_": lambda t, x, v: x.tril_(),
    "triu_": lambda t, x, v: x.triu_(1),
    "copy_": lambda t, x, v: x.copy_(v),
    "mul_": lambda t, x, v: x.mul_(2),
}


@pytest.mark.parametrize("requires_grad", [False, True], ids=["of plain memory", "of memory that requires grad"])
@pytest.mark.parametrize("recorded", [False, True], ids=["a plain value", "a value that requires grad"])
@pytest.mark.parametrize("name", EXPANDED)
def test_writes_to_expanded_memory_do_what_they_do_in_pytorch(name, recorded, requires_grad):
    ours, theirs = (
        after_write(t, EXPANDED[name], recorded, requires_grad, name == "index_fill_") for t in (backlight, torch)
    )
    assert ours == theirs


def after_write(t, write, recorded: bool, requires_grad: bool, columns: bool) -> list:
    """Return what a write of 7 to expanded memory leaves, and the gradients of what was there and of the 7."""
    leaf = t.tensor([[1.0], [2.0], [3.0]] if columns else [[1.0, 2.0, 3.0, 4.0]])
    base = leaf.requires_grad_() * 1 if requires_grad else leaf
    shown, value = base.expand(3, 4), t.tensor(7.0, requires_grad=recorded)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = [said_by(lambda: write(t, shown, value))]
    found += [str(one.message).partition(" (Triggered")[0] for one in warned]
    found += [shown.tolist(), base.tolist(), shown.grad_fn and shown.grad_fn.name()]
    if shown.requires_grad:
        found.append(said_by(lambda: (shown * shown).sum().backward()))
    return found + [None if one.grad is None else one.grad.tolist() for one in (leaf, value) if one.is_leaf]


def said_by(act):
    try:
        act()
    except RuntimeError as problem:
        assert str(problem).startswith(SHARED)
        return "refused"
    return "done"


def test_expanded_memory_that_was_filled_passes_no_gradient_to_what_was_there():
    for t in (torch, backlight):
        leaf = t.ones(3, 1, requires_grad=True)
        base = leaf * 2
        base.expand(3, 4).zero_()
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
            base.sum().backward()


def test_expanded_memory_may_not_be_assigned_to():
    for t in (torch, backlight):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
            t.ones(3, 1).expand(3, 4)[0] = 2.0


def test_views_of_inference_tensors_are_no_views_and_are_not_recorded():
    found = []
    for t in (torch, backlight):
        with t.inference_mode():
            x = t.ones(3, 3).requires_grad_()
            inside = x[0]
        views = [inside, x[0], x.view(-1), x.t(), x.expand(2, 3, 3), *x.unbind(0), *x.chunk(2), x.diagonal()]
        found.append([(one.requires_grad, one.grad_fn, one._is_view(), one.is_inference()) for one in views])
    assert found[0] == found[1]
    assert set(found[0]) == {(False, None, False, True)}


def test_numpy_shows_a_tensor_that_requires_grad_while_nothing_is_recorded():
    for t in (torch, backlight):
        x = t.ones(3, requires_grad=True)
        with t.no_grad():
            assert x.numpy().tolist() == x.__array__().tolist() == [1, 1, 1]
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            x.numpy()


OUTS = {
    "cat into an operand that grows": lambda t, x: t.cat([x[:0, 0], x.view(-1)], out=x[:0, 0]),
    "cat into an operand": lambda t, x: t.cat([x, x], out=x),
    "vstack into an operand": lambda t, x: t.vstack([x, x], out=x),
    "gather into what lies before": lambda t, x: t.gather(x.view(-1)[1:], 0, t.arange(8), out=x.view(-1)[:1]),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", OUTS)
def test_an_out_that_reaches_into_an_operand_once_it_is_resized_is_refused(name):
    for t in (torch, backlight):
        with pytest.raises(RuntimeError, match=MEET):
            OUTS[name](t, squares(t, False))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_elementwise_op_looks_at_its_out_before_it_is_resized():
    for t in (torch, backlight):
        x = t.arange(9.0)
        assert t.add(x[1:], 1, out=x[:1]).tolist() == list(range(2, 10))


def test_out_of_a_recorded_result_is_refused_before_an_inference_tensor_is():
    for t in (torch, backlight):
        with t.inference_mode():
            factor = t.ones(3)
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            t.mul(t.ones(3, requires_grad=True), factor, out=t.zeros(3))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_that_repeats_saves_its_input(mode):
    for t in (torch, backlight):
        x = t.ones(1, 2, 3, 3, requires_grad=True) * 1
        total = t.nn.functional.pad(x, (1, 1, 1, 1), mode=mode).sum()
        x.mul_(2)
        with pytest.raises(
            RuntimeError, match="one of the variables needed for gradient computation has been modified"
        ):
            total.backward()
