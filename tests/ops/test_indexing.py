"""Square brackets: any index gives what PyTorch and NumPy give, read and written; mistakes give PyTorch's errors."""

import re
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import backlight

both = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])


@st.composite
def indexed_shapes(draw):
    """Return a shape and an index for it, described so that either module can make the index of its own tensors."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    length = draw(st.integers(1, 3))  # of all index arrays, so that they broadcast
    parts, dim = [], 0
    while dim < len(shape) and len(parts) < 6:
        kind = draw(
            st.sampled_from(["int", "number", "slice", "array", "list", "mask", "none", "flag", "ellipsis", "stop"])
        )
        size = shape[dim]
        place = st.integers(-size, size - 1)
        if kind == "stop":
            break
        if kind == "ellipsis":
            if ("ellipsis",) not in parts:
                parts.append(("ellipsis",))
                dim += draw(st.integers(0, len(shape) - dim))
            continue
        if kind in ("int", "number"):
            parts.append((kind, draw(place)))
        elif kind == "slice":
            bound = st.none() | st.integers(-6, 6)
            parts.append(("slice", draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "mask":
            true = draw(st.integers(0, size - 1))
            parts.append(("mask", [number == true for number in range(size)]))
        elif kind in ("array", "list"):
            parts.append((kind, draw(st.lists(place, min_size=length, max_size=length))))
        else:
            parts.append(("none",) if kind == "none" else ("flag", draw(st.booleans())))
            continue
        dim += 1
    return shape, parts


def index_of(t, parts):
    """Return an index described by `indexed_shapes` with tensors of a module."""
    made = []
    for kind, *values in parts:
        if kind == "ellipsis":
            made.append(...)
        elif kind == "none":
            made.append(None)
        elif kind == "slice":
            made.append(slice(*values))
        elif kind == "number" or kind in ("array", "mask"):
            made.append(t.tensor(values[0]))
        else:
            made.append(values[0])
    return made[0] if len(made) == 1 and kind != "list" else tuple(made)


def numbers(t, shape, requires_grad=False):
    values = t.arange(float(np.prod(shape)), dtype=t.float64).reshape(shape)
    return values.requires_grad_(requires_grad)


def read(t, shape, parts):
    x = numbers(t, shape, requires_grad=True)
    y = (x * 1)[index_of(t, parts)]
    weights = numbers(t, tuple(y.shape)) + 1
    (grad,) = t.autograd.grad((y * y * weights).sum(), x, create_graph=True)
    (second,) = t.autograd.grad((grad * grad).sum(), x, allow_unused=True)
    return y, grad, second


def error_of(call, *args):
    """Return what a call gives, or the kind of its error."""
    try:
        return call(*args), None
    except (IndexError, RuntimeError, TypeError, ValueError) as problem:
        kinds = (IndexError, TypeError, ValueError, RuntimeError)
        return None, next(kind for kind in kinds if isinstance(problem, kind))


def same(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy())


@settings(max_examples=400, deadline=None, derandomize=True)
@given(indexed_shapes())
def test_any_index_reads_what_pytorch_reads(described):
    shape, parts = described
    if not parts:
        return
    ours, our_error = error_of(read, backlight, shape, parts)
    theirs, their_error = error_of(read, torch, shape, parts)
    assert our_error == their_error
    if ours is not None:
        for a, b in zip(ours, theirs):
            same(a, b)
        assert (ours[0]._base is None) == (theirs[0]._base is None)


def write(t, shape, parts, like):
    """Return what `base[index] = value` leaves, with the gradients for the base and the value."""
    x = numbers(t, shape, requires_grad=True)
    value = (numbers(t, like) * 0.5 + 100).detach().requires_grad_()
    base = x * 2
    base[index_of(t, parts)] = value * 3
    grads = t.autograd.grad((base * base * (numbers(t, shape) + 1)).sum(), (x, value), create_graph=True)
    second = t.autograd.grad(sum((grad * grad).sum() for grad in grads), (x, value), allow_unused=True)
    return base, *grads, *[one for one in second if one is not None]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(indexed_shapes(), st.sampled_from(["whole", "ones", "scalar", "short"]))
def test_any_index_writes_what_pytorch_writes(described, kind):
    shape, parts = described
    if not parts or any(len(set(part[1])) < len(part[1]) for part in parts if part[0] in ("array", "list")):
        return
    found, error = error_of(lambda: numbers(torch, shape)[index_of(torch, parts)])
    if error is not None or any(part[0] in ("array", "list") and len(part[1]) > 1 for part in parts):
        return  # several arrays may name one place twice, where the order of writes is open
    like = {"whole": found.shape, "ones": (1, 1, *found.shape), "scalar": (), "short": found.shape[1:]}[kind]
    ours, our_error = error_of(write, backlight, shape, parts, tuple(like))
    theirs, their_error = error_of(write, torch, shape, parts, tuple(like))
    assert our_error == their_error
    if ours is not None:
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(indexed_shapes())
def test_any_index_reads_what_numpy_reads(described):
    shape, parts = described
    plain = [part for part in parts if part[0] not in ("int", "number")]  # next to arrays NumPy broadcasts integers
    if not plain:
        return
    array = np.arange(float(np.prod(shape))).reshape(shape)
    ours, our_error = error_of(lambda: backlight.from_numpy(array)[index_of(backlight, plain)])
    theirs, their_error = error_of(lambda: array[index_of(np_like, plain)])
    assert (our_error is None) == (their_error is None)
    if ours is not None:
        np.testing.assert_array_equal(ours.numpy(), theirs)


class np_like:  # noqa: N801 - stands for a module
    """NumPy under the names that `index_of` uses."""

    tensor = staticmethod(np.array)


NODES = {
    "x[0]": "SelectBackward0",
    "x[1:3]": "SliceBackward0",
    "x[:]": "SliceBackward0",
    "x[...]": "AliasBackward0",
    "x[()]": "AliasBackward0",
    "x[None]": "UnsqueezeBackward0",
    "x[0, 1]": "SelectBackward0",
    "x[:, ::2]": "SliceBackward0",
    "x[:, :0][:, 1:]": "SliceBackward0",
    "x[0, None, 1:]": "SliceBackward0",
    "x[:, :, None]": "UnsqueezeBackward0",
    "x[[0, 1]]": "IndexBackward0",
    "x[:, [0, 1]]": "IndexBackward0",
    "x[0, [0, 1]]": "IndexBackward0",
    "x[True]": "IndexBackward0",
    "x[x.detach() > 0]": "IndexBackward0",
    "x[t.tensor(1)]": "SelectBackward0",
    "x[t.tensor(True)]": "IndexBackward0",
    "x[range(2)]": "IndexBackward0",
}


@both
@pytest.mark.parametrize("index", NODES)
def test_the_node_of(t, index):
    names = {"t": t, "x": t.ones(4, 6, requires_grad=True) * 1}
    assert type(eval(index, names).grad_fn).__name__ == NODES[index]


@both
def test_an_element_of_a_vector_is_a_view(t):
    x = t.zeros(3)
    element = x[1]
    element.fill_(4)
    assert element.shape == () and element._base is x and x.tolist() == [0, 4, 0]


@both
def test_full_slices_between_others_make_no_node(t):
    x = t.ones(2, 3, 4, requires_grad=True) * 1
    assert x[:, 1].grad_fn.next_functions[0][0] is x.grad_fn
    assert x[:, :, 1:3].grad_fn.next_functions[0][0] is x.grad_fn


@both
def test_numpy_values_index_as_tensors_do(t):
    x = t.arange(12.0).reshape(3, 4)
    assert x[np.int64(1)].tolist() == x[1].tolist()
    assert x[np.array([2, 0])].tolist() == x[[2, 0]].tolist()
    assert x[np.array([True, False, True])].tolist() == x[[0, 2]].tolist()
    assert x[np.array([0, 1]), np.array([2, 3])].tolist() == [2, 7]


@both
def test_a_list_of_compound_parts_counts_as_a_tuple_for_now(t):
    x = t.arange(12.0).reshape(3, 4)
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        assert x[[[0, 1], [1, 2]]].tolist() == [1, 6]


@both
def test_bytes_index_as_masks_with_a_warning(t):
    x = t.arange(3.0)
    with warnings.catch_warnings(record=True) as given_warnings:
        warnings.simplefilter("always")
        assert x[t.tensor([1, 0, 1], dtype=t.uint8)].tolist() == [0, 2]
    assert "indexing with dtype torch.uint8 is now deprecated" in str(given_warnings[0].message)


@both
def test_gradients_add_up_where_an_index_repeats(t):
    x = t.zeros(3, requires_grad=True)
    (x[[0, 0, 2]] * t.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [11, 0, 100]


@both
def test_writing_converts_numbers_to_the_dtype_of_the_tensor(t):
    x = t.zeros(4, dtype=t.int64)
    x[0] = 2.9
    x[1:3] = t.tensor([1.7, -1.7])
    x[[3]] = True
    assert x.tolist() == [2, 1, -1, 1]


@both
def test_writing_with_an_operator(t):
    x = t.arange(6.0).reshape(2, 3)
    x[0] += 10
    x[:, 1] *= 2
    x[x > 10] -= 1
    assert x.tolist() == [[10, 21, 11], [3, 8, 5]]


@both
def test_writing_where_a_mask_is_true_takes_values_in_order(t):
    x = t.zeros(2, 3)
    x[t.tensor([[True, False, True], [False, True, False]])] = t.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [[1, 0, 2], [0, 3, 0]]


@both
@pytest.mark.parametrize("requires_grad", [False, True])
def test_one_value_for_a_mask_is_cast_and_for_an_index_is_not(t, requires_grad):
    x = t.zeros(3, requires_grad=requires_grad) + 0
    x[x < 1] = t.tensor([2.0], dtype=t.float64)
    x[t.tensor([True, False, False])] = 7
    assert x.tolist() == [7, 2, 2]
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[[0]] = t.tensor(2.0, dtype=t.float64)


@both
def test_adding_in_place_by_index_adds_once_where_an_index_repeats_unless_accumulating(t):
    x = t.zeros(3)
    x[[0, 0, 1]] += 1
    assert x.tolist() == [1, 1, 0]
    x.index_put_((t.tensor([0, 0, 1]),), t.tensor(1.0), accumulate=True)
    assert x.tolist() == [3, 2, 0]


ERRORS = {
    "x[4]": "index 4 is out of bounds for dimension 0 with size 4",
    "x[-5]": "index -5 is out of bounds for dimension 0 with size 4",
    "x[0, 0, 0]": "too many indices for tensor of dimension 2",
    "x[i, i, i]": "too many indices for tensor of dimension 2",
    "x[t.tensor([9])]": "index 9 is out of bounds for dimension 0 with size 4",
    "x[:, t.tensor([0, -9])]": "index -9 is out of bounds for dimension ",
    "x[i, t.tensor([0, 1, 2])]": (
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"
    ),
    "x[1.5]": (
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"
    ),
    "x[i.float()]": "tensors used as indices must be long, int, byte or bool tensors",
    "x[i.short()]": "tensors used as indices must be long, int, byte or bool tensors",
    "x[t.ones(3, dtype=t.bool)]": (
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [4, 6]"
    ),
    "x[0, 0][0]": "invalid index of a 0-dim tensor. Use `tensor.item()` in Python",
    "x[::-1]": "step must be greater than zero",
    "x[::0]": "slice step cannot be zero",
    "x[0.5:]": "slice indices must be integers or None or have an __index__ method",
    "x.__setitem__(0, t.ones(3))": (
        "The expanded size of the tensor (6) must match the existing size (3) at non-singleton "
        "dimension 0.  Target sizes: [6].  Tensor sizes: [3]"
    ),
    "x.__setitem__(i, t.ones(3))": (
        "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2, 6]"
    ),
    "x.__setitem__(x > 2, t.ones(2))": (
        "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result"
    ),
    "x.__setitem__(i, t.ones(6).double())": (
        "Index put requires the source and destination dtypes match, got Float for the "
        "destination and Double for the source."
    ),
    "x.__setitem__(0, [1.0])": "can't assign a list to a torch.FloatTensor",
    "x.__setitem__(0, np.ones(6))": "can't assign a numpy.ndarray to a torch.FloatTensor",
    "x.select(0, 4)": "select(): index 4 out of range for tensor of size [4, 6] at dimension 0",
    "x.select(2, 0)": "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    "x.narrow(0, 1, 9)": "start (1) + length (9) exceeds dimension size (4).",
    "x.split(0)": "split_size can only be 0 if dimension size is 0, but got dimension size of 4",
    "x.split([1, 2])": "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 0)",
    "x.chunk(0)": "chunk expects `chunks` to be greater than 0, got: 0",
    "t.cat([])": "torch.cat(): expected a non-empty list of Tensors",
    "t.cat([x, x[0, 0]])": "zero-dimensional tensor (at position 1) cannot be concatenated",
    "t.cat([x, t.ones(3, 5)])": "Sizes of tensors must match except in dimension 0. Expected size 6 but got size 5 for "
    "tensor number 1 in the list.",
    "t.cat([x, 1])": "expected Tensor as element 1 in argument 0, but got int",
    "t.stack([x, x[0]])": "stack expects each tensor to be equal size, but got [4, 6] at entry 0 and [6] at entry 1",
    "x.gather(1, t.tensor([[6]]))": "index 6 is out of bounds for dimension 1 with size 6",
    "x.gather(1, i)": "Index tensor must have the same number of dimensions as input tensor",
    "x.scatter(1, i[:, None], t.ones(1, 1))": (
        "Expected index [2, 1] to be no larger than self [4, 6] apart from dimension 1 "
        "and to be no larger size than src [1, 1]"
    ),
    "x.index_select(0, t.tensor([9]))": "index out of range in self",
    "x.masked_select(i)": "masked_select: expected BoolTensor for mask",
    "x.take(t.tensor([99]))": "out of range: tried to access index 99 on a tensor of 24 elements.",
    "x.reshape(5, 5)": "shape '[5, 5]' is invalid for input of size 24",
    "x.expand(4, 7)": (
        "The expanded size of the tensor (7) must match the existing size (6) at non-singleton dimension 1."
    ),
    "x.permute(0, 0)": "permute(): duplicate dims are not allowed.",
    "x.permute(0)": (
        "number of dimensions in the tensor input does not match the length of the desired ordering of dimensions"
    ),
    "x.repeat(2)": "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
    "x.unfold(0, 9, 1)": "maximum size for tensor at dimension 0 is 4 but size is 9",
    "x.copy_(t.ones(5))": "The size of tensor a (6) must match the size of tensor b (5) at non-singleton dimension 1",
    "x.fill_(t.ones(2))": "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.",
    "t.nn.functional.pad(x, (6, 0), mode='reflect')": (
        "Padding size should be less than the corresponding input dimension, "
        "but got: padding (6, 0) at dimension 1 of input [4, 6]"
    ),
    "t.nn.functional.one_hot(i, 2)": "Class values must be smaller than num_classes.",
}


@both
@pytest.mark.parametrize("call", ERRORS)
def test_the_error_of(t, call):
    names = {"t": t, "x": t.arange(24.0).reshape(4, 6), "i": t.tensor([0, 2]), "np": np}
    message = re.escape(ERRORS[call].rstrip("."))
    with pytest.raises((IndexError, RuntimeError, TypeError, ValueError), match=message) as raised:
        eval(call, names)
    if t is backlight:
        names = {"t": torch, "x": torch.arange(24.0).reshape(4, 6), "i": torch.tensor([0, 2]), "np": np}
        assert isinstance(raised.value, error_of(lambda: eval(call, names))[1])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_gradients_of_many_repeats_keep_their_precision(kind):
    """Thousands of ones added at one place: sums of half precision would stop growing at 2048."""
    x = backlight.zeros(2, 1, dtype=getattr(backlight, kind), requires_grad=True)
    x.expand(2, 4096).sum_to_size(2, 1).sum().backward()
    assert x.grad.tolist() == [[4096.0], [4096.0]]


@both
@pytest.mark.parametrize("kind", ["prod", "mean", "amax", "amin"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce_reduces_rows_that_share_an_index(t, kind):
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.5]])
    reduced = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[kind]
    x = t.ones(3, 2, dtype=t.float64)
    out = x.index_reduce(0, t.tensor([2, 0, 2]), t.from_numpy(rows), kind, include_self=False)
    np.testing.assert_allclose(out.numpy(), [rows[1], [1, 1], reduced(rows[[0, 2]], axis=0)])


def test_ties_share_the_gradient_of_an_extreme_equally():
    from case import assert_same
    from test_ops import gradients

    from cases.scattering import TIED

    for ours, theirs in zip(gradients(backlight, TIED, "float64"), gradients(torch, TIED, "float64")):
        assert_same(ours, theirs, 1e-10, 1e-12)
