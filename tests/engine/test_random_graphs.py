"""Random programs of twenty steps, views, in-place writes, hooks and no_grad blocks among them, beside PyTorch.

A program is a list of numbers; each step picks an op and its operands from the tensors made so far. Both run it: what
one refuses the other must refuse, and the gradients must be equal.
"""

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import NAMES, OPS

import backlight

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
