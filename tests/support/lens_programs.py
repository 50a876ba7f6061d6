"""Small programs that the lens's tests run on both engines: `run(t)` with t = backlight or torch."""

import numpy as np


def drawn(t, *shape, seed=0, grad=True):
    """Return a tensor of fixed random numbers."""
    values = np.random.default_rng(seed).normal(size=shape)
    return t.tensor(values.tolist(), dtype=t.float64, requires_grad=grad)


def seeds_expression(t):
    a, b = t.tensor(2.0, requires_grad=True), t.tensor(1.0, requires_grad=True)
    e = (a + b) * (b * 2)
    e.backward()


def shared_leaf(t):
    x = drawn(t, 3, 4)
    loss = (x.tanh() * x + x.sigmoid()).sum()
    loss.backward()


def softmax_regression(t):
    x, w = drawn(t, 3, 4, grad=False), drawn(t, 4, 5, seed=1)
    logits = x @ w
    loss = -logits.log_softmax(-1)[:, 2].mean()
    loss.backward()


def written_in_place(t):
    x = drawn(t, 3, 4)
    h = x * 2
    h.add_(1)
    h.tanh_()
    loss = h.sum()
    loss.backward()


def view_written(t):
    x = drawn(t, 3, 4)
    h = x * 1
    h[1].mul_(2)
    loss = (h * h).sum()
    loss.backward()


def hooked(t):
    x = drawn(t, 3)
    h = x * x

    def halve(grad):
        return grad * 0.5

    h.register_hook(halve)
    loss = h.exp().sum()
    loss.backward()


def retained(t):
    x = drawn(t, 3)
    h = x * x
    h.retain_grad()
    loss = (h * 3).sum()
    loss.backward()


def accumulated_twice(t):
    w = drawn(t, 3)
    for number in range(2):
        loss = (w * (number + 1)).sum()
        loss.backward()


def twice_through_one_graph(t):
    x = drawn(t, 3)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()


def asked_for(t):
    x, y = drawn(t, 3), drawn(t, 3, seed=1)
    loss = (x * y + x.exp()).sum()
    t.autograd.grad(loss, [x])


def second_order(t):
    x = drawn(t, 3)
    loss = (x * x * x).sum()
    (slope,) = t.autograd.grad(loss, [x], create_graph=True)
    penalty = (slope * slope).sum()
    penalty.backward()


def several_outputs(t):
    x = drawn(t, 4, 3)
    first, _, third, _ = x.unbind(0)
    loss = (first * third).sum()
    loss.backward()


def several_roots(t):
    x, y = drawn(t, 3), drawn(t, 3, seed=1)
    first, second = (x * y).sum(), (x + y).exp().sum()
    t.autograd.backward([first, second])


def joined(t):
    x, y = drawn(t, 2, 3), drawn(t, 2, 3, seed=1)
    loss = (t.cat([x, y, x], 0).relu() * 2).mean()
    loss.backward()


PROGRAMS = [
    seeds_expression,
    shared_leaf,
    softmax_regression,
    written_in_place,
    view_written,
    hooked,
    retained,
    accumulated_twice,
    twice_through_one_graph,
    asked_for,
    second_order,
    several_outputs,
    several_roots,
    joined,
]
