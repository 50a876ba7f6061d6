"""Random programs of twenty steps, views, in-place writes, hooks and no_grad blocks among them, beside PyTorch.

A program is a list of numbers; each step picks an op and its operands from the tensors made so far. Both run it: what
one refuses the other must refuse, and the gradients must be equal.
"""

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import backlight


def unary(name):
    return lambda t, x, y, k: getattr(x, name)()


def in_place(name, *values):
    def write(t, x, y, k):
        getattr(x, name)(*values)
        return x

    return write


def write_other(name):
    def write(t, x, y, k):
        getattr(x, name)(y)
        return x

    return write


def assign(t, x, y, k):
    x[k % x.shape[0]] = y.reshape(-1)[0]
    return x


def under_no_grad(t, x, y, k):
    with t.no_grad():
        return x * 0.5 + y


def write_under_no_grad(t, x, y, k):
    with t.no_grad():
        x.mul_(0.75)
    return x


def hook(t, x, y, k):
    x.register_hook(lambda grad: grad * 0.5)
    return x


def retained(t, x, y, k):
    x.retain_grad()
    return x


OPS = {
    "add": lambda t, x, y, k: x + y,
    "sub": lambda t, x, y, k: y - x,
    "mul": lambda t, x, y, k: x * y,
    "div": lambda t, x, y, k: x / (y * y + 1),
    "scale": lambda t, x, y, k: x * 0.5,
    "tanh": unary("tanh"),
    "sigmoid": unary("sigmoid"),
    "sin": unary("sin"),
    "relu": unary("relu"),
    "abs": unary("abs"),
    "softmax": lambda t, x, y, k: x.softmax(-1),
    "matmul": lambda t, x, y, k: x @ y.t() @ x * 0.1,
    "mean": lambda t, x, y, k: x.mean(0, keepdim=True).expand(3, 4).clone(),
    "sum": lambda t, x, y, k: x.sum(1, keepdim=True) * 0.25 + x,
    "where": lambda t, x, y, k: t.where(x > y, x, y * 2),
    "cat": lambda t, x, y, k: t.cat([x, y], 0)[1:4],
    "stack": lambda t, x, y, k: t.stack([x, y], 1).sum(1),
    "index": lambda t, x, y, k: x[[0, 2, 0]],
    "clone": unary("clone"),
    "detach": lambda t, x, y, k: x.detach() + y,
    "row view": lambda t, x, y, k: x[k % 3].expand(3, 4).clone(),
    "flat view": lambda t, x, y, k: x.reshape(12)[:].view(3, 4),
    "flip view": lambda t, x, y, k: x.t().t(),
    "narrow view": lambda t, x, y, k: t.cat([x.narrow(1, k % 2, 3), x[:, 3:]], 1),
    "unbind": lambda t, x, y, k: t.stack(x.unbind(0)[::-1]),
    "no_grad": under_no_grad,
    "tanh_": in_place("tanh_"),
    "mul_": in_place("mul_", 0.5),
    "zero_": in_place("zero_"),
    "add_": write_other("add_"),
    "copy_": write_other("copy_"),
    "write a row": lambda t, x, y, k: (x[k % 3].mul_(0.5), x)[1],
    "write a column": lambda t, x, y, k: (x[:, k % 4].add_(y[:, 0]), x)[1],
    "write through a view": lambda t, x, y, k: (x.view(12)[2:7].sigmoid_(), x)[1],
    "assign": assign,
    "write under no_grad": write_under_no_grad,
    "hook": hook,
    "retain": retained,
}
NAMES = list(OPS)

step = st.tuples(st.sampled_from(NAMES), *[st.integers(0, 1000)] * 3)
programs = st.lists(step, min_size=3, max_size=20)


def play(t, program):
    """Run a program; return what was refused, the leaves' gradients, and the retained ones."""
    rng = np.random.default_rng(0)
    draw = [rng.normal(size=(3, 4)).tolist() for _ in range(3)]
    leaves = [t.tensor(values, dtype=t.float64, requires_grad=True) for values in draw[:2]]
    made = [*leaves, t.tensor(draw[2], dtype=t.float64), leaves[0] * 1]
    refused, kept = [], []
    for number, (name, a, b, k) in enumerate(program):
        x, y = made[-1 - a % min(len(made), 4)], made[b % len(made)]
        assert x.grad_fn is None or x.requires_grad  # brings a view of a written tensor up to date in PyTorch
        try:
            out = OPS[name](t, x, y, k)
        except RuntimeError:
            refused.append(number)
            continue
        if out is not x:
            made.append(out)
        elif name == "retain" and not any(out is one for one in kept):
            kept.append(out)
    total = sum((one * (0.5 + number)).sum() for number, one in enumerate(made))
    try:
        total.backward()
    except RuntimeError as problem:
        return refused, str(problem)[:60], []
    return refused, None, [one.grad for one in [*leaves, *kept]]


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(programs)
def test_random_programs_give_pytorchs_gradients(program):
    ours, theirs = play(backlight, program), play(torch, program)
    assert ours[:2] == theirs[:2]
    for mine, other in zip(ours[2], theirs[2], strict=True):
        assert (mine is None) == (other is None)
        if other is not None:
            np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12)
