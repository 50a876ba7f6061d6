"""Optimizers take PyTorch's steps, print as PyTorch's do, keep and load state, and refuse what cannot be optimised."""

import copy

import numpy as np
import pytest
import torch

import backlight
from backlight import optim
from backlight.errors import GraphError

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True, "betas": (0.5, 0.6), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.3}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr": 0.1, "eps": 1e-2, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.5, "weight_decay": 0.1, "eps": 1e-3}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "maximize": True}),
    ("RMSprop", {"centered": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-2, "weight_decay": 0.1}),
    ("Adadelta", {"maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.6), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adamax", {"maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "betas": (0.5, 0.6), "eps": 1e-3, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.6), "eps": 1e-3, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 10, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2), "maximize": True}),
]


def pair(name: str, options: dict, values: list[np.ndarray], dtype: str = "float64"):
    """Return one optimizer of each side over parameters of the same values."""
    made = []
    for module in (backlight, torch):
        params = [module.tensor(value, dtype=getattr(module, dtype), requires_grad=True) for value in values]
        made.append((params, getattr(module.optim, name)(params, **options)))
    return made


def feed(params, module, gradients) -> None:
    for param, gradient in zip(params, gradients):
        param.grad = None if gradient is None else module.tensor(gradient, dtype=param.dtype)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_fifty_steps_are_pytorchs(name, options):
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(3, 4)), rng.normal(size=5), rng.normal(size=())]
    (ours, step_ours), (theirs, step_theirs) = pair(name, options, values)
    for _ in range(50):
        gradients = [rng.normal(size=value.shape) for value in values]
        feed(ours, backlight, gradients)
        feed(theirs, torch, gradients)
        step_ours.step()
        step_theirs.step()
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-12, atol=1e-12)
    assert repr(step_ours) == repr(step_theirs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), [OPTIONS[4], OPTIONS[11]])
def test_steps_keep_the_dtype_and_stay_near_pytorchs(name, options, dtype):
    rng = np.random.default_rng(1)
    values, gradients = [rng.normal(size=(3, 4))], [rng.uniform(0.5, 1.5, size=(3, 4))]
    (ours, step_ours), (theirs, step_theirs) = pair(name, options, values, dtype)
    for _ in range(3):
        feed(ours, backlight, gradients)
        feed(theirs, torch, gradients)
        step_ours.step()
        step_theirs.step()
    assert str(ours[0].dtype) == f"torch.{dtype}"
    tolerance = {"float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    mine, other = ours[0].detach().numpy().astype(np.float64), theirs[0].detach().double().numpy()
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def test_a_parameter_without_gradient_is_left_alone():
    (ours, descent), _ = pair("SGD", {"lr": 1.0, "weight_decay": 1.0}, [np.ones(2), np.ones(2)])
    feed(ours, backlight, [None, np.ones(2)])
    descent.step()
    assert ours[0].tolist() == [1.0, 1.0]
    assert ours[1].tolist() == [1.0 - 1.0 * (1.0 + 1.0 * 1.0)] * 2


def test_each_group_has_options_of_its_own():
    first, second = (backlight.ones(1, requires_grad=True) for _ in range(2))
    descent = optim.SGD([{"params": [first]}, {"params": second, "lr": 1.0}], lr=0.5)
    (first + second).sum().backward()
    descent.step()
    assert (first.item(), second.item()) == (1 - 0.5, 1 - 1.0)


def test_zero_grad_drops_gradients_or_fills_them_with_zeros():
    param = backlight.ones(2, requires_grad=True)
    descent = optim.SGD([param], lr=0.1)
    param.sum().backward()
    descent.zero_grad(set_to_none=False)
    assert param.grad.tolist() == [0.0, 0.0]
    descent.zero_grad()
    assert param.grad is None


def test_step_returns_the_loss_of_its_closure_which_records():
    param = backlight.ones(2, requires_grad=True)
    descent = optim.SGD([param], lr=0.5)

    def closure():
        descent.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with backlight.no_grad():
        assert descent.step(closure).item() == 2.0
    assert param.tolist() == [1 - 0.5 * 2 * 1] * 2


def test_a_step_between_forward_and_backward_is_found_and_both_lines_are_named():
    weight = backlight.ones(2, requires_grad=True)
    descent = optim.SGD([weight], lr=0.1)
    out = (weight * weight).sum()
    out.backward(retain_graph=True)
    descent.step()
    with pytest.raises(GraphError, match="modified by an inplace operation") as caught:
        out.backward()
    assert "out = (weight * weight).sum()" in str(caught.value)
    assert "written by SGD.step" in str(caught.value)
    assert "descent.step()" in str(caught.value)


def test_the_gradient_is_not_changed_by_a_step():
    (ours, descent), _ = pair("AdamW", {"weight_decay": 0.5}, [np.ones(3)])
    feed(ours, backlight, [np.array([1.0, 2.0, 3.0])])
    descent.step()
    assert ours[0].grad.tolist() == [1.0, 2.0, 3.0]


def test_hooks_run_before_and_after_a_step_until_removed():
    seen = []
    param = backlight.ones(1, requires_grad=True)
    descent = optim.SGD([param], lr=0.5)
    before = descent.register_step_pre_hook(lambda optimizer, args, kwargs: seen.append(("before", param.item())))
    descent.register_step_post_hook(lambda optimizer, args, kwargs: seen.append(("after", param.item())))
    param.sum().backward()
    descent.step()
    before.remove()
    descent.step()
    assert seen == [("before", 1.0), ("after", 0.5), ("after", 0.0)]


def test_an_optimizer_of_the_users_own_needs_a_step_only():
    class SignDescent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    with backlight.no_grad():
                        param -= group["lr"] * param.grad.sign()

    param = backlight.tensor([2.0, -2.0], requires_grad=True)
    descent = SignDescent([param], lr=0.5)
    (param * param).sum().backward()
    descent.step()
    assert param.tolist() == [1.5, -1.5]


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_a_loaded_optimizer_goes_on_where_the_saved_one_was(name, options):
    rng = np.random.default_rng(2)
    (ours, descent), _ = pair(name, options, [rng.normal(size=3)])
    feed(ours, backlight, [rng.normal(size=3)])
    descent.step()
    twin = [ours[0].detach().clone().requires_grad_()]
    loaded = getattr(optim, name)(twin, lr=99.0)
    loaded.load_state_dict(copy.deepcopy(descent.state_dict()))
    gradient = rng.normal(size=3)
    for params, optimizer in ((ours, descent), (twin, loaded)):
        feed(params, backlight, [gradient])
        optimizer.step()
    rtol = 1e-6 if name in ("NAdam", "ASGD") else 0  # loading casts their numbers to the dtype of the parameters
    np.testing.assert_allclose(twin[0].tolist(), ours[0].tolist(), rtol=rtol)


FULL = [case for case in OPTIONS if "weight_decay" in case[1] or case[1].get("momentum") or case[0] == "Rprop"]


@pytest.mark.parametrize(("name", "options"), [OPTIONS[10], *FULL])
def test_state_dicts_have_pytorchs_entries(name, options):
    (ours, step_ours), (theirs, step_theirs) = pair(name, options, [np.ones(2), np.zeros(3)])
    feed(ours, backlight, [np.ones(2), np.ones(3)])
    feed(theirs, torch, [np.ones(2), np.ones(3)])
    step_ours.step()
    step_theirs.step()
    mine, other = step_ours.state_dict(), step_theirs.state_dict()
    assert mine["param_groups"] == other["param_groups"]
    assert {key: {name: repr(value) for name, value in state.items()} for key, state in mine["state"].items()} == {
        key: {name: repr(value) for name, value in state.items()} for key, state in other["state"].items()
    }


def test_state_of_other_groups_is_refused():
    one = optim.SGD([backlight.ones(1, requires_grad=True)], lr=0.1)
    two = optim.SGD([backlight.ones(1, requires_grad=True), backlight.ones(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match="parameter group that doesn't match the size of optimizer's group"):
        one.load_state_dict(two.state_dict())
    two.add_param_group({"params": backlight.ones(1, requires_grad=True)})
    with pytest.raises(ValueError, match="loaded state dict has a different number of parameter groups"):
        one.load_state_dict(two.state_dict())


# --- mistakes, in PyTorch's words -------------------------------------------------------------------------------------


def leaf(module):
    return module.ones(2, requires_grad=True)


MISTAKES = {
    "no parameters": lambda t: t.optim.SGD([], lr=0.1),
    "one tensor": lambda t: t.optim.SGD(leaf(t), lr=0.1),
    "a non-leaf": lambda t: t.optim.SGD([leaf(t) * 2], lr=0.1),
    "no tensors": lambda t: t.optim.SGD([1], lr=0.1),
    "a set": lambda t: t.optim.SGD([{"params": {leaf(t)}}], lr=0.1),
    "negative lr": lambda t: t.optim.SGD([leaf(t)], lr=-0.1),
    "negative momentum": lambda t: t.optim.SGD([leaf(t)], lr=0.1, momentum=-1),
    "negative decay": lambda t: t.optim.Adam([leaf(t)], weight_decay=-1),
    "negative eps": lambda t: t.optim.Adam([leaf(t)], eps=-1),
    "beta out of range": lambda t: t.optim.AdamW([leaf(t)], betas=(0.9, 1.0)),
    "negative rate decay": lambda t: t.optim.Adagrad([leaf(t)], lr_decay=-1),
    "negative accumulator": lambda t: t.optim.Adagrad([leaf(t)], initial_accumulator_value=-1),
    "negative alpha": lambda t: t.optim.RMSprop([leaf(t)], alpha=-1),
    "rho out of range": lambda t: t.optim.Adadelta([leaf(t)], rho=1.5),
    "beta of Adamax": lambda t: t.optim.Adamax([leaf(t)], betas=(1.0, 0.9)),
    "negative momentum decay": lambda t: t.optim.NAdam([leaf(t)], momentum_decay=-1),
    "beta of RAdam": lambda t: t.optim.RAdam([leaf(t)], betas=(0.9, -1)),
    "etas out of range": lambda t: t.optim.Rprop([leaf(t)], etas=(1.5, 1.2)),
    "nesterov alone": lambda t: t.optim.SGD([leaf(t)], lr=0.1, nesterov=True),
    "lr of two elements": lambda t: t.optim.SGD([leaf(t)], lr=t.ones(2)),
    "some names missing": lambda t: t.optim.SGD([("a", leaf(t)), leaf(t)], lr=0.1),
    "group no dict": lambda t: t.optim.SGD([leaf(t)], lr=0.1).add_param_group([leaf(t)]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    with pytest.raises((ValueError, TypeError)) as theirs:
        MISTAKES[mistake](torch)
    with pytest.raises(type(theirs.value)) as ours:
        MISTAKES[mistake](backlight)
    assert str(ours.value).startswith(str(theirs.value))


def test_a_parameter_cannot_be_in_two_groups():
    param = leaf(backlight)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [param]}, {"params": [param]}], lr=0.1)


def test_a_parameter_twice_in_a_group_warns_at_the_users_line():
    param = leaf(backlight)
    with pytest.warns(UserWarning, match="duplicate parameters") as caught:
        optim.SGD([param, param], lr=0.1)
    assert caught[0].filename == __file__


def test_what_a_step_cannot_do_is_said():
    with pytest.raises(NotImplementedError, match="must have a method differentiable_updater"):
        optim.Optimizer([leaf(backlight)], {"differentiable": True}).step()
    with pytest.raises(NotImplementedError, match="must have a method updater"):
        optim.Optimizer([leaf(backlight)], {}).step()
