"""L-BFGS takes PyTorch's steps: with and without line search, with a short history, and after its state was loaded."""

import copy

import numpy as np
import pytest
import torch

import backlight
from backlight import optim

OPTIONS = [
    {"lr": 0.1},
    {"lr": 0.5, "max_iter": 4},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_iter": 6, "history_size": 3, "lr": 0.5},
    {"line_search_fn": "strong_wolfe", "max_iter": 10, "max_eval": 5},
    {"lr": 0.1, "tolerance_grad": 1e-1, "tolerance_change": 1e-3},
]


def rosenbrock(params):
    """A curved valley, in which the line search has work to do."""
    point, extra = params
    return (100 * (point[1:] - point[:-1] ** 2) ** 2 + (1 - point[:-1]) ** 2).sum() + ((extra - 2) ** 4).sum()


def started(module, dtype="float64"):
    values = [np.array([-1.2, 1.0, 0.5, 2.0]), np.array([[0.5], [3.0]])]
    return [module.tensor(value, dtype=getattr(module, dtype), requires_grad=True) for value in values]


def closure_of(params, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(params)
        loss.backward()
        return loss

    return closure


def walked(module, options, steps, dtype="float64"):
    params = started(module, dtype)
    optimizer = module.optim.LBFGS(params, **options)
    losses = [optimizer.step(closure_of(params, optimizer)).item() for _ in range(steps)]
    return params, optimizer, losses


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps_are_pytorchs(options):
    ours, step_ours, losses_ours = walked(backlight, options, 10)
    theirs, step_theirs, losses_theirs = walked(torch, options, 10)
    np.testing.assert_allclose(losses_ours, losses_theirs, rtol=1e-6, atol=1e-12)
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-6, atol=1e-9)
    assert repr(step_ours) == repr(step_theirs)
    mine, other = step_ours.state_dict()["state"][0], step_theirs.state_dict()["state"][0]
    assert mine.keys() == other.keys()
    assert [mine[name] for name in ("func_evals", "n_iter")] == [other[name] for name in ("func_evals", "n_iter")]


def test_it_comes_to_rest_where_the_gradient_is_zero():
    params, _, _ = walked(backlight, {"line_search_fn": "strong_wolfe"}, 5)
    np.testing.assert_allclose(params[0].grad.numpy(), np.zeros(4), atol=1e-3)  # it was 216 at the start


def test_float32_parameters_stay_so():
    params, optimizer, losses = walked(backlight, {"line_search_fn": "strong_wolfe"}, 3, "float32")
    assert {param.dtype for param in params} == {backlight.float32}
    assert optimizer.state[params[0]]["d"].dtype == backlight.float32
    assert losses[-1] < losses[0]


def test_a_loaded_optimizer_goes_on_where_the_saved_one_was():
    params, optimizer, _ = walked(backlight, {"line_search_fn": "strong_wolfe", "max_iter": 3}, 2)
    twins = [param.detach().clone().requires_grad_() for param in params]
    loaded = optim.LBFGS(twins)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for each, own in ((params, optimizer), (twins, loaded)):
        own.step(closure_of(each, own))
    assert [twin.tolist() for twin in twins] == [param.tolist() for param in params]


def test_a_minimum_is_left_alone():
    param = backlight.zeros(2, requires_grad=True)
    optimizer = optim.LBFGS([param])

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
    assert optimizer.state[param] == {"func_evals": 1, "n_iter": 0}


def test_mistakes_have_pytorchs_words():
    one, two = started(backlight)
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [one]}, {"params": [two]}])
    optimizer = optim.LBFGS([one, two], line_search_fn="golden")
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure_of([one, two], optimizer))
