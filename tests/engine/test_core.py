"""The compiled core does what the generated Python code does: values, graph, gradients and refusals are the same."""

import gc
import resource

import numpy as np
import pytest
from for_each import together

import backlight as bl
from backlight.codegen.core_ops import prepare
from backlight.codegen.declaration import TABLE
from backlight.kernels.native import core

pytestmark = [pytest.mark.skipif(core is None, reason="the core is not in use here")] if core is None else []

COMPILED = sorted(
    name for name, op in TABLE.items() if core is not None and hasattr(op.public, "__wrapped__") and prepare(op)
)
SHAPES = [(), (1,), (5,), (4, 4), (3, 1, 7), (700,), (2, 1030), (0,), (2, 0)]


def values(shape, kind, seed):
    rng = np.random.default_rng(seed)
    found = np.asarray(rng.normal(size=shape) * 2, kind)
    if found.size > 6:
        found.flat[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 3e-39]
    return found


def arguments(op, shape, kind):
    tensors = [bl.tensor(values(shape, kind, seed)) for seed in range(len(op.arrays))]
    for tensor in tensors:
        tensor.requires_grad_(bool(op.rules))
    return tensors


@together(kind=[np.float32, np.float64], shape=SHAPES)
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_op_gives_what_its_python_code_gives(name, shape, kind):
    op = TABLE[name]
    ours, theirs = arguments(op, shape, kind), arguments(op, shape, kind)
    here, there = op.public(*ours), op.public.__wrapped__(*theirs)
    near = {"rtol": 8 * np.finfo(kind).eps, "atol": 8 * np.finfo(kind).smallest_subnormal, "equal_nan": True}
    np.testing.assert_allclose(here._data, there._data, **near)
    assert (here.dtype, here.shape, type(here._data)) == (there.dtype, there.shape, type(there._data))
    if not op.rules:
        return
    a, b = here.grad_fn, there.grad_fn
    assert type(a) is type(b) and [e[0].variable is t for e, t in zip(a.next_functions, ours)] == [True] * len(ours)
    for slot in type(b).__slots__:
        assert same_saved(getattr(a, slot), getattr(b, slot), ours, theirs), slot
    grad = values(shape, kind, 9)
    here.backward(bl.tensor(grad))
    there.backward(bl.tensor(grad))
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.grad._data, other.grad._data, **near | {"atol": 64 * np.finfo(kind).eps})


def same_saved(mine, other, ours, theirs):
    if isinstance(other, bl.Tensor):
        return any(mine is a and other is b for a, b in zip(ours, theirs))
    if isinstance(other, np.ndarray | np.generic):
        return type(mine) is type(other) and mine.shape == other.shape
    return type(mine) is type(other)


def test_many_ops_are_compiled():
    assert {"add", "sub", "mul", "true_divide", "neg", "exp", "log", "tanh", "sigmoid", "relu", "sqrt"} <= set(COMPILED)


def test_a_number_beside_a_tensor_has_its_dtype_on_both_sides():
    for kind in (bl.float32, bl.float64, bl.float16):
        x = bl.ones(3, dtype=kind, requires_grad=True)
        for y in (x * 2, x * 2.5, x + 1, x / 3, 2.5 * x, 1 - x, x * True):
            assert y.dtype is kind
            y.sum().backward()
    assert (bl.ones(2, dtype=bl.int64) * 2.5).dtype is bl.float32


def test_a_node_remembers_the_line_that_called_the_op():
    x = bl.ones(3, requires_grad=True)
    y = x * 2.0
    assert y.grad_fn.where.endswith("y = x * 2.0")
    z = (lambda: bl.tanh(x))()
    assert "bl.tanh(x)" in z.grad_fn.where


def test_a_gradient_given_by_the_user_is_not_written_to():
    x = bl.ones(16, requires_grad=True)
    given = bl.full((16,), 3.0)
    bl.tanh(x * x).backward(given)
    assert (given.numpy() == 3).all() and x.grad is not given


def test_gradients_of_two_leaves_that_are_equal_are_not_shared():
    a, b = bl.ones(4, requires_grad=True), bl.ones(4, requires_grad=True)
    (a + b).backward(bl.ones(4))
    a.grad.mul_(5)
    assert (b.grad.numpy() == 1).all()


def test_writing_to_a_saved_input_is_an_error_that_names_both_lines():
    x = bl.ones(3, requires_grad=True)
    w = bl.ones(3)
    y = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation(?s:.*)y = x \* w(?s:.*)w.add_"):
        y.sum().backward()


def test_writing_to_a_saved_output_is_an_error():
    x = bl.ones(3, requires_grad=True)
    y = bl.tanh(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="which is output 0 of Tanh"):
        y.sum().backward()


def test_a_second_backward_is_an_error_unless_the_graph_was_kept():
    x = bl.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    assert (x.grad.numpy() == 4).all()


def test_nothing_is_recorded_without_grad():
    x = bl.ones(3, requires_grad=True)
    with bl.no_grad():
        assert not (x * x).requires_grad
    with bl.inference_mode():
        y = x * x
    assert not y.requires_grad and y.is_inference()


def test_strided_broadcast_and_mixed_operands_go_to_python_and_agree():
    x = bl.arange(12.0).reshape(3, 4).requires_grad_()
    row = bl.ones(4, requires_grad=True)
    y = x.t() * 2.0 + (x * row).t() + x.double().t()
    y.sum().backward()
    assert y.dtype is bl.float64 and row.grad.tolist() == [12.0, 15.0, 18.0, 21.0] and (x.grad.numpy() == 4).all()


def test_a_saved_number_that_needs_a_gradient_gets_its_sum():
    x, s = bl.ones(5, requires_grad=True), bl.tensor(2.0, requires_grad=True)
    (x * s).sum().backward()
    assert s.grad.item() == 5 and s.grad.shape == ()


def test_a_chain_of_200000_ops_runs_and_is_freed():
    x = bl.ones(2, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_memory_stays_flat_over_many_steps():
    x, w = bl.ones(16, requires_grad=True), bl.ones(16, requires_grad=True)

    def steps(count):
        for _ in range(count):
            x.grad = w.grad = None
            bl.tanh(x * w + 1.0).sum().backward()
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = steps(3000)
    assert steps(20000) - before < 4096  # KiB


def test_an_error_inside_a_rule_names_the_node():
    class Broken(bl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ZeroDivisionError("by hand")

    x = bl.ones(3, requires_grad=True)
    with pytest.raises(ZeroDivisionError) as caught:
        (Broken.apply(x * 2.0) * 3.0).sum().backward()
    assert any("raised while running" in note for note in caught.value.__notes__)


def test_op_functions_look_like_functions():
    import copy
    import pickle

    assert bl.tanh.__name__ == "tanh" and bl.tanh.__doc__
    assert pickle.loads(pickle.dumps(bl.tanh)) is bl.tanh and copy.deepcopy(bl.tanh) is bl.tanh
    assert bl.Tensor.tanh is bl.tanh.__wrapped__ and bl.ones(1).tanh().item() == pytest.approx(np.tanh(1))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: bl.nn.functional.leaky_relu(x, 0.2), [0.2, 1, 1]),
        (lambda x: bl.nn.functional.hardtanh(x, 0, 6), [0, 1, 0]),
        (lambda x: bl.nn.functional.hardshrink(x, 3.0), [0, 0, 1]),
        (lambda x: bl.sub(bl.ones(3), x, alpha=3), [-3, -3, -3]),
    ],
)
def test_options_other_than_the_defaults_reach_the_derivative(call, expected):
    x = bl.tensor([-1.0, 2.0, 8.0], requires_grad=True)
    call(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected)
