"""The functional forms of optimizers take PyTorch's steps, and options, state and state dicts have PyTorch's order."""

import copy
import inspect

import pytest
import torch
import torch.optim._functional as theirs
from torch.optim.optimizer import required as theirs_required

import backlight
from backlight.optim import functional as ours
from backlight.optim.optimizer import required

MODULES = {"torch": torch, "backlight": backlight}
NAMES = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
FILLED = {"mus": 1.0, "etas": 0.1, "mu_products": 1.0, "step_sizes": 0.01}  # other lists begin with zeros
CHOSEN = {
    **{"lr": 0.1, "lr_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": True, "alpha": 0.9, "rho": 0.9},
    **{"eps": 1e-6, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99, "momentum_decay": 4e-3, "amsgrad": True},
    **{"maximize": False, "centered": True, "lambd": 1e-4, "t0": 1e6, "step_size_min": 1e-6, "step_size_max": 50},
    **{"etaminus": 0.5, "etaplus": 1.2},
}
FORMS = sorted(set(ours.__all__) - {"sparse_adam"})


def stepped(module, function, **more):
    """Return all lists after two steps of a functional form."""
    parameters = inspect.signature(function).parameters
    options = {name: CHOSEN[name] for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
    names = [name for name, one in parameters.items() if one.default is one.empty and name not in options]
    lists = {}
    for name in names:
        shape = () if name in ("mus", "etas", "mu_products", "state_steps") else (2,)
        lists[name] = [module.full(shape, FILLED.get(name, 0.0))]
    lists["params"] = [module.tensor([1.0, 2.0])]
    lists[names[1]] = [module.tensor([0.5, -0.25])]
    for _ in range(2):
        function(**lists, **{**options, **more})
    return {name: [one.tolist() for one in values] for name, values in lists.items()}


@pytest.mark.parametrize("name", FORMS)
def test_a_functional_form_takes_pytorchs_step(name):
    assert list(inspect.signature(getattr(ours, name)).parameters) == list(
        inspect.signature(getattr(theirs, name)).parameters
    )
    expected = stepped(torch, getattr(theirs, name))
    found = stepped(backlight, getattr(ours, name))
    for key, values in expected.items():
        if key not in ("grads", "d_p_list"):  # which PyTorch's rprop overwrites
            for one, other in zip(values, found[key], strict=True):
                assert one == pytest.approx(other, rel=1e-5)


def test_sgd_fills_missing_momentum_buffers():
    results = []
    for module, function in ((torch, theirs.sgd), (backlight, ours.sgd)):
        params, buffers = [module.tensor([1.0])], [None]
        options = {"weight_decay": 0.0, "momentum": 0.5, "lr": 0.1, "dampening": 0.0, "nesterov": False}
        function(params, [module.tensor([2.0])], buffers, maximize=True, **options)
        results.append((params[0].tolist(), buffers[0].tolist()))
    assert results[0] == results[1]


def test_functional_forms_refuse_what_pytorch_refuses():
    for module, function in ((torch, theirs.adam), (backlight, ours.adam)):
        lists = [[module.zeros(1)] for _ in range(4)]
        options = {"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-8}
        with pytest.raises(RuntimeError, match="API has changed, `state_steps` argument must contain a list of"):
            function(*lists, [], [0], **options, maximize=False)
        with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported"):
            function(*lists, [], [module.tensor(0.0)], capturable=True, **options, maximize=False)
        with pytest.raises(TypeError):
            function(*lists, [], [module.tensor(0.0)], **options)


def made(module, name, **options):
    param = module.nn.Parameter(module.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return param, getattr(module.optim, name)([param], **options)


@pytest.mark.parametrize("name", [*NAMES, "LBFGS", "Adafactor", "Muon"])
def test_options_and_state_are_in_pytorchs_order(name):
    orders = []
    for module in (torch, backlight):
        param, optimizer = made(module, name)

        def closure(optimizer=optimizer, param=param):
            optimizer.zero_grad()
            loss = (param**2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        saved = optimizer.state_dict()
        orders.append(
            (list(optimizer.defaults.items()), list(saved["state"].get(0, {})), list(saved["param_groups"][0]))
        )
    assert orders[0] == orders[1]


@pytest.mark.parametrize("name", NAMES)
def test_old_state_dicts_are_completed_in_pytorchs_order(name):
    found = []
    for module in (torch, backlight):
        param, optimizer = made(module, name)
        param.grad = module.ones(2, 2)
        optimizer.step()
        saved = copy.deepcopy(optimizer.state_dict())
        group = saved["param_groups"][0]
        for option in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"):
            group.pop(option, None)
        for entries in saved["state"].values():
            entries.update({key: entries[key].item() for key in {"step", "eta", "mu", "mu_product"} & entries.keys()})
        optimizer.load_state_dict(saved)
        state = {key: (type(value).__name__, str(value.dtype)) for key, value in optimizer.state[param].items()}
        optimizer.step()
        found.append((list(optimizer.param_groups[0]), state, param.tolist()))
    ours_state = {key: (kind, f"torch.{dtype.rpartition('.')[2]}") for key, (kind, dtype) in found[1][1].items()}
    assert (found[0][0], found[0][1]) == (found[1][0], ours_state)
    for one, other in zip(found[0][2], found[1][2], strict=True):
        assert one == pytest.approx(other, rel=1e-5)


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_loading_a_state_dict_shares_tensors_of_the_right_dtype(module):
    param, optimizer = made(module, "NAdam")
    param.grad = module.ones(2, 2)
    optimizer.step()
    same, double = module.optim.NAdam([param]), module.nn.Parameter(param.detach().double())
    same.load_state_dict(optimizer.state_dict())
    assert same.state[param]["exp_avg"] is optimizer.state[param]["exp_avg"]
    other = module.optim.NAdam([double])
    other.load_state_dict(optimizer.state_dict())
    kinds = {key: value.dtype for key, value in other.state[double].items()}
    assert kinds == {"step": module.float32} | dict.fromkeys(["mu_product", "exp_avg", "exp_avg_sq"], module.float64)


def test_the_default_of_required_options_says_so():
    assert repr(required) == repr(theirs_required)


def test_schedulers_save_their_state_in_pytorchs_order():
    saved = []
    for module in (torch, backlight):
        schedules = module.optim.lr_scheduler
        _, optimizer = made(module, "SGD")
        made_of = [
            schedules.LambdaLR(optimizer, lambda step: 0.5),
            schedules.MultiplicativeLR(optimizer, lambda step: 0.5),
            schedules.ReduceLROnPlateau(optimizer),
        ]
        saved.append([list(one.state_dict()) for one in made_of])
    assert saved[0] == saved[1]
