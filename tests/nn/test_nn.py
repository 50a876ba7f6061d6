"""Modules register, walk, print, save and load as PyTorch's do; layers start with its values and compute the same."""

import copy
import pickle
import re
from collections import OrderedDict

import numpy as np
import pytest
import torch

import backlight
from backlight import nn


def two_layers(t):
    """Return a small model of either side, with a buffer, a shared module and a name that holds None."""

    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = t.nn.Linear(3, 4)
            self.again = self.first
            self.rest = t.nn.Sequential(t.nn.LayerNorm(4), t.nn.Linear(4, 2, bias=False))
            self.register_buffer("scale", t.ones(2))
            self.register_buffer("hidden", t.zeros(1), persistent=False)
            self.nothing = None
            self.register_parameter("missing", None)

        def forward(self, x):
            return self.rest(self.first(x)) * self.scale

    t.manual_seed(7)
    return Model()


def assert_close(ours, theirs, tolerance=1e-6):
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance, strict=True
    )


# --- registering ------------------------------------------------------------------------------------------------------


def test_what_is_assigned_is_found_where_pytorch_keeps_it():
    ours, theirs = two_layers(backlight), two_layers(torch)
    for listed in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [name for name, _ in getattr(ours, listed)()] == [name for name, _ in getattr(theirs, listed)()]
    assert [name for name, _ in ours.named_parameters(recurse=False)] == []
    assert [name for name, _ in ours.named_parameters("top", remove_duplicate=False)] == [
        name for name, _ in theirs.named_parameters("top", remove_duplicate=False)
    ]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)


def test_a_name_moves_between_registries_with_what_is_assigned():
    module = nn.Module()
    module.part = 1
    module.part = nn.Parameter(backlight.ones(1))
    assert "part" not in vars(module)
    module.part = None
    assert dict(module.named_parameters()) == {}
    del module.part
    module.part = nn.Linear(1, 1)
    module.part = nn.Parameter(backlight.ones(1))
    assert (list(module._parameters), list(module._modules)) == (["part"], [])
    del module.part
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'part'"):
        _ = module.part


def test_modules_in_a_plain_list_are_not_seen():
    module = nn.Module()
    module.layers = [nn.Linear(1, 1)]
    assert list(module.parameters()) == []


ASSIGNMENTS = {
    "no parameter": lambda t, m: setattr(m, "weight", t.ones(2, 3)),
    "no module": lambda t, m: setattr(t.nn.Sequential(m), "0", 3),
    "no buffer": lambda t, m: (m.register_buffer("b", t.ones(1)), setattr(m, "b", 1)),
    "dot in a parameter": lambda t, m: m.register_parameter("a.b", None),
    "empty buffer name": lambda t, m: m.register_buffer("", None),
    "taken": lambda t, m: m.register_buffer("weight", None),
    "taken by a method": lambda t, m: m.add_module("forward", t.nn.ReLU()),
    "dot in a module": lambda t, m: m.add_module("a.b", t.nn.ReLU()),
    "number as parameter": lambda t, m: m.register_parameter("p", 1),
    "tensor as parameter": lambda t, m: m.register_parameter("p", t.ones(1)),
    "number as name": lambda t, m: m.register_buffer(1, None),
    "number as module": lambda t, m: m.add_module("m", 1),
    "missing attribute": lambda t, m: m.weights,
    "missing submodule": lambda t, m: t.nn.Sequential(m).get_submodule("0.inner"),
    "submodule is a parameter": lambda t, m: m.get_submodule("weight"),
    "missing parameter": lambda t, m: m.get_parameter("w"),
    "mode no bool": lambda t, m: m.train("yes"),
    "integer dtype": lambda t, m: m.to(t.int64),
    "no forward": lambda t, m: t.nn.Module()(1),
}


@pytest.mark.parametrize("mistake", ASSIGNMENTS)
def test_mistakes_have_pytorchs_words(mistake):
    said = []
    for t in (torch, backlight):
        with pytest.raises(Exception) as caught:
            ASSIGNMENTS[mistake](t, t.nn.Linear(3, 2))
        said.append(caught.value)
    theirs, ours = said
    assert isinstance(ours, next(kind for kind in type(theirs).__mro__ if kind.__module__ == "builtins"))
    assert str(ours.args[0]).startswith(re.split(r", got|$", str(theirs.args[0]))[0])


def test_assigning_before_init_says_what_to_do():
    class Model(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Model()


def test_a_non_leaf_cannot_be_a_parameter():
    module, weight = nn.Module(), nn.Parameter(backlight.ones(1))
    weight.__class__ = nn.Parameter
    product = weight * 2
    product.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'w'"):
        module.w = product


# --- walking and converting -------------------------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    model = two_layers(backlight)
    assert model.training
    assert not any(module.training for module in model.eval().modules())
    assert all(module.training for module in model.train().modules())


def test_apply_goes_from_the_leaves_up():
    names = []
    nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())).apply(lambda module: names.append(module._get_name()))
    assert names == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_to_converts_floats_in_place_and_keeps_the_parameters():
    model = two_layers(backlight)
    model.register_buffer("count", backlight.zeros(1, dtype=backlight.int64))
    weight = model.first.weight
    weight.grad = backlight.ones(4, 3)
    assert model.to(backlight.float64) is model
    assert model.first.weight is weight
    assert (weight.dtype, weight.grad.dtype) == (backlight.float64, backlight.float64)
    assert (model.scale.dtype, model.count.dtype) == (backlight.float64, backlight.int64)
    assert model.half().first.weight.dtype is backlight.float16
    assert model.to("cpu") is model
    with pytest.raises(RuntimeError, match="Torch not compiled with CUDA enabled"):
        model.to("cuda")


def test_freezing_and_clearing_gradients():
    model = two_layers(backlight)
    model(backlight.ones(1, 3)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert all(parameter.grad.abs().sum().item() == 0 for parameter in model.parameters())
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())
    model.requires_grad_(False)
    assert not model(backlight.ones(1, 3)).requires_grad


# --- saving and loading -----------------------------------------------------------------------------------------------


def test_pytorchs_weights_load_from_arrays_and_give_its_output():
    torch.manual_seed(11)
    theirs, ours = two_layers(torch).double(), two_layers(backlight).double()
    state = {name: tensor.numpy() + 1 for name, tensor in theirs.state_dict().items()}
    theirs.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    x = np.random.default_rng(0).normal(size=(5, 3))
    assert_close(ours(backlight.tensor(x)), theirs(torch.tensor(x)), 1e-12)


def test_state_dict_shares_memory_and_has_no_history():
    layer = nn.Linear(2, 2)
    state = layer.state_dict()
    with backlight.no_grad():
        layer.weight.fill_(5)
    assert state["weight"].tolist() == [[5.0, 5.0], [5.0, 5.0]]
    assert not state["weight"].requires_grad
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight
    assert list(layer.state_dict(prefix="top.")) == ["top.weight", "top.bias"]


def test_a_state_that_does_not_match_is_told_in_pytorchs_words():
    for_each = []
    for t in (torch, backlight):
        model = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Linear(3, 1))
        state = model.state_dict()
        state["0.weight"] = t.ones(3, 5)
        del state["1.bias"]
        state["2.weight"] = state["1.weights"] = t.ones(1)
        with pytest.raises(RuntimeError) as caught:
            model.load_state_dict(state)
        for_each.append(str(caught.value))
    assert for_each[0] == for_each[1]


def test_without_strict_the_names_that_differ_are_returned():
    layer = nn.Linear(2, 2)
    found = layer.load_state_dict({"weight": np.zeros((2, 2)), "more": np.zeros(1)}, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["more"])
    assert layer.weight.abs().sum().item() == 0
    assert repr(found) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['more'])"


def test_assign_takes_the_tensors_themselves():
    layer = nn.Linear(2, 2)
    weight = backlight.zeros(2, 2, dtype=backlight.float64)
    layer.load_state_dict({"weight": weight, "bias": np.zeros(2)}, assign=True)
    weight.fill_(3)
    assert layer.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.requires_grad


def test_loading_counts_as_a_write():
    layer = nn.Linear(1, 1)
    out = layer(backlight.ones(1, 1, requires_grad=True)).sum()
    layer.load_state_dict(copy.deepcopy(layer.state_dict()))
    with pytest.raises(RuntimeError, match="written by load_state_dict"):
        out.backward()


def test_models_can_be_copied_and_pickled():
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    model.register_forward_hook(print)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin[0].weight is not model[0].weight
        assert twin[0].weight.tolist() == model[0].weight.tolist()
        assert isinstance(twin[0].weight, nn.Parameter)
        assert twin[0].weight.requires_grad


# --- hooks ------------------------------------------------------------------------------------------------------------


def hooked(t):
    """Return what hooks of every kind saw and changed in one call and its backward."""
    seen = []
    layer = t.nn.Linear(2, 2, bias=False)
    with t.no_grad():
        layer.weight.copy_(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    layer.register_forward_pre_hook(lambda module, args: seen.append(("pre", args[0].tolist())), prepend=True)
    layer.register_forward_hook(lambda module, args, output: output + 1)
    layer.register_forward_hook(
        lambda module, args, kwargs, output: seen.append(("after", args[0].tolist(), kwargs, output.tolist())),
        with_kwargs=True,
    )
    layer.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 10,))
    layer.register_full_backward_hook(
        lambda module, ins, outs: seen.append(("backward", ins[0].tolist(), outs[0].tolist()))
    )
    layer.register_full_backward_hook(lambda module, ins, outs: (ins[0] * 100,))
    x = t.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    return seen, x.grad.tolist(), layer.weight.grad.tolist()


def test_hooks_see_and_change_what_they_do_in_pytorch():
    assert hooked(backlight) == hooked(torch)


def test_a_removed_hook_is_not_called():
    layer, calls = nn.Linear(1, 1), []
    with layer.register_forward_hook(lambda *args: calls.append(1)):
        layer(backlight.ones(1))
    layer(backlight.ones(1))
    assert calls == [1]


def test_backward_hooks_fire_without_inputs_that_require_grad():
    layer, seen = nn.Linear(1, 1), []
    layer.register_full_backward_hook(lambda module, ins, outs: seen.append((ins, outs[0].tolist())))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(backlight.ones(1, 1)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_always_called_hooks_run_after_an_error():
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, calls = Failing(), []
    module.register_forward_hook(lambda *args: calls.append("always"), always_call=True)
    module.register_forward_hook(lambda *args: calls.append("never"))
    with pytest.raises(ValueError, match="no"):
        module(1)
    assert calls == ["always"]


# --- containers -------------------------------------------------------------------------------------------------------


def containers(t):
    """Return the printed form of containers after every way to change them."""
    said = []
    chain = t.nn.Sequential(OrderedDict(first=t.nn.Linear(1, 2), second=t.nn.ReLU()))
    said += [repr(chain), repr(chain[1:]), repr(chain[-1])]
    chain = t.nn.Sequential(t.nn.Linear(1, 2), t.nn.ReLU(), t.nn.Linear(2, 3))
    chain.append(t.nn.Tanh()).insert(1, t.nn.Identity())
    del chain[0]
    chain[0] = t.nn.Sigmoid()
    said += [repr(chain), len(chain), repr(chain.pop(1)), repr(chain + t.nn.Sequential(t.nn.Tanh())), repr(chain * 2)]
    chain += t.nn.Sequential(t.nn.ReLU())
    said.append(repr(chain.extend([t.nn.ReLU()])))
    several = t.nn.ModuleList([t.nn.Linear(2, 2) for _ in range(3)] + [t.nn.ReLU()])
    several.insert(0, t.nn.ReLU())
    said += [repr(several), repr(several[1:3]), repr(several + [t.nn.Tanh()]), repr(t.nn.ModuleList())]
    del several[0]
    several += [t.nn.Tanh()]
    several.pop(0)
    said += [repr(several), [name for name, _ in several.named_children()], repr(several[-1])]
    named = t.nn.ModuleDict({"a": t.nn.ReLU(), "b": t.nn.Linear(1, 1)})
    named["c"] = t.nn.Tanh()
    named.update([("d", t.nn.ReLU())])
    said += [repr(named), list(named), "a" in named, repr(named.pop("a")), len(named)]
    values = t.nn.ParameterList([t.nn.Parameter(t.ones(2)), t.ones(2, 3), "text"])
    values.append(t.ones(1))
    said += [repr(values), len(values), [name for name, _ in values.named_parameters()], repr(values[1:3])]
    by_name = t.nn.ParameterDict({"w": t.ones(2), "v": t.zeros(1)})
    by_name["u"] = t.ones(3)
    said += [repr(by_name), list(by_name.keys()), list(by_name.state_dict()), repr(by_name.pop("v")), len(by_name)]
    return said


def test_containers_change_and_print_as_in_pytorch():
    assert containers(backlight) == containers(torch)


# --- layers -----------------------------------------------------------------------------------------------------------


LAYERS = {
    "linear": (lambda t: t.nn.Linear(4, 3), (2, 4)),
    "linear without bias": (lambda t: t.nn.Linear(4, 3, bias=False), (4,)),
    "identity": (lambda t: t.nn.Identity(1, key=2), (2, 4)),
    "layer norm": (lambda t: t.nn.LayerNorm(4), (2, 4)),
    "layer norm over two dims": (lambda t: t.nn.LayerNorm((3, 4), bias=False), (2, 3, 4)),
    "layer norm without weight": (lambda t: t.nn.LayerNorm(4, eps=0.1, elementwise_affine=False), (2, 4)),
    "flatten": (lambda t: t.nn.Flatten(), (2, 3, 4)),
    "unflatten": (lambda t: t.nn.Unflatten(1, (2, -1)), (2, 6)),
    "relu": (lambda t: t.nn.ReLU(), (2, 4)),
    "relu6": (lambda t: t.nn.ReLU6(), (2, 4)),
    "leaky relu": (lambda t: t.nn.LeakyReLU(0.2), (2, 4)),
    "elu": (lambda t: t.nn.ELU(0.5), (2, 4)),
    "selu": (lambda t: t.nn.SELU(), (2, 4)),
    "celu": (lambda t: t.nn.CELU(0.7), (2, 4)),
    "gelu": (lambda t: t.nn.GELU(), (2, 4)),
    "gelu by tanh": (lambda t: t.nn.GELU(approximate="tanh"), (2, 4)),
    "silu": (lambda t: t.nn.SiLU(), (2, 4)),
    "mish": (lambda t: t.nn.Mish(), (2, 4)),
    "sigmoid": (lambda t: t.nn.Sigmoid(), (2, 4)),
    "log sigmoid": (lambda t: t.nn.LogSigmoid(), (2, 4)),
    "tanh": (lambda t: t.nn.Tanh(), (2, 4)),
    "softplus": (lambda t: t.nn.Softplus(2.0, 1.0), (2, 4)),
    "softsign": (lambda t: t.nn.Softsign(), (2, 4)),
    "hardtanh": (lambda t: t.nn.Hardtanh(-0.5, 0.5), (2, 4)),
    "softmax": (lambda t: t.nn.Softmax(dim=1), (2, 4)),
    "log softmax": (lambda t: t.nn.LogSoftmax(dim=-1), (2, 4)),
    "dropout": (lambda t: t.nn.Dropout(0.3), (4, 8)),
    "dropout, evaluated": (lambda t: t.nn.Dropout(0.3).eval(), (4, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_starts_prints_and_computes_as_in_pytorch(name):
    make, shape = LAYERS[name]
    values = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    found = []
    for t in (backlight, torch):
        t.manual_seed(5)
        layer = make(t)
        x = t.tensor(values, requires_grad=True)
        out = layer(x)
        (out * out).sum().backward()
        found.append((repr(layer), list(layer.state_dict()), out, x.grad, list(layer.parameters())))
    (text, keys, out, grad, own), (their_text, their_keys, their_out, their_grad, theirs) = found
    assert (text, keys) == (their_text, their_keys)
    assert_close(out, their_out)
    assert_close(grad, their_grad, 1e-5)
    for mine, other in zip(own, theirs, strict=True):
        assert mine.tolist() == other.tolist()
        assert_close(mine.grad, other.grad, 1e-5)


@pytest.mark.parametrize("name", ["ReLU", "LeakyReLU", "SiLU", "Hardtanh"])
def test_in_place_layers_write_into_their_input(name):
    for t in (backlight, torch):
        layer = getattr(t.nn, name)(inplace=True)
        x = t.tensor([-2.0, 2.0])
        assert layer(x) is x
        assert "inplace=True" in repr(layer)


EMBEDDINGS = [{}, {"padding_idx": -1}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}]


@pytest.mark.parametrize("options", EMBEDDINGS)
def test_embedding_is_pytorchs(options):
    found = []
    for t in (backlight, torch):
        t.manual_seed(5)
        table = t.nn.Embedding(5, 3, **options)
        out = table(t.tensor([[1, 4], [4, 0]]))
        (out * out).sum().backward()
        found.append((repr(table), out.tolist(), table.weight.grad.tolist()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-6)


def test_embedding_over_given_rows_is_frozen_unless_told_otherwise():
    rows = backlight.arange(6.0).reshape(3, 2)
    table = nn.Embedding.from_pretrained(rows)
    assert table(backlight.tensor([2])).tolist() == [[4.0, 5.0]]
    assert not table.weight.requires_grad
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad


LOSSES = {
    "MSELoss": [{}, {"reduction": "sum"}, {"size_average": False}],
    "L1Loss": [{}, {"reduce": False}],
    "SmoothL1Loss": [{"beta": 0.5}],
    "HuberLoss": [{"delta": 0.5}],
    "BCELoss": [{}],
    "BCEWithLogitsLoss": [{}, {"pos_weight": [1.0, 2.0, 3.0]}],
    "KLDivLoss": [{"reduction": "batchmean"}, {"reduction": "sum", "log_target": True}],
}


@pytest.mark.filterwarnings("ignore:size_average and reduce args")
@pytest.mark.parametrize(("name", "options"), [(name, each) for name, several in LOSSES.items() for each in several])
def test_loss_is_pytorchs(name, options):
    rng = np.random.default_rng(4)
    values, target = rng.uniform(0.1, 0.9, (4, 3)), rng.uniform(0.1, 0.9, (4, 3))
    found = []
    for t in (backlight, torch):
        given = {key: t.tensor(value) if isinstance(value, list) else value for key, value in options.items()}
        loss, x = getattr(t.nn, name)(**given), t.tensor(values, requires_grad=True)
        out = loss(x, t.tensor(target))
        out.sum().backward()
        found.append((repr(loss), list(loss.state_dict()), out, x.grad))
    assert found[0][:2] == found[1][:2]
    assert_close(found[0][2], found[1][2], 1e-9)
    assert_close(found[0][3], found[1][3], 1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"weight": [1.0, 2.0, 3.0]}, {"ignore_index": 1, "reduction": "sum"}, {"label_smoothing": 0.1}]
)
@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
def test_class_loss_is_pytorchs(name, options):
    if name == "NLLLoss":
        options = {key: value for key, value in options.items() if key != "label_smoothing"}
    values = np.random.default_rng(4).normal(size=(4, 3)).astype(np.float32)
    found = []
    for t in (backlight, torch):
        given = {key: t.tensor(value) if isinstance(value, list) else value for key, value in options.items()}
        loss, x = getattr(t.nn, name)(**given), t.tensor(values, requires_grad=True)
        out = loss(x, t.tensor([0, 1, 2, 1]))
        out.backward()
        found.append((repr(loss), list(loss.state_dict()), out, x.grad))
    assert found[0][:2] == found[1][:2]
    assert_close(found[0][2], found[1][2])
    assert_close(found[0][3], found[1][3])


# --- parameters and their first values --------------------------------------------------------------------------------


def test_a_parameter_shares_its_memory_and_prints_as_in_pytorch():
    data = backlight.ones(2)
    parameter = nn.Parameter(data)
    data.add_(1)
    assert repr(parameter) == repr(torch.nn.Parameter(torch.ones(2) + 1))
    assert type(parameter * 2) is backlight.Tensor
    assert nn.Parameter().shape == (0,)
    assert not nn.Parameter(backlight.ones(1), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        nn.Parameter(backlight.ones(1, dtype=backlight.int64))


FILLS = {
    "uniform": lambda t, w: t.nn.init.uniform_(w, -2, 3),
    "normal": lambda t, w: t.nn.init.normal_(w, 1, 2),
    "constant": lambda t, w: t.nn.init.constant_(w, 0.5),
    "ones": lambda t, w: t.nn.init.ones_(w),
    "zeros": lambda t, w: t.nn.init.zeros_(w),
    "eye": lambda t, w: t.nn.init.eye_(w),
    "xavier uniform": lambda t, w: t.nn.init.xavier_uniform_(w, gain=t.nn.init.calculate_gain("relu")),
    "xavier normal": lambda t, w: t.nn.init.xavier_normal_(w),
    "kaiming uniform": lambda t, w: t.nn.init.kaiming_uniform_(w, nonlinearity="relu"),
    "kaiming normal": lambda t, w: t.nn.init.kaiming_normal_(w, a=0.1, mode="fan_out"),
    "own generator": lambda t, w: t.nn.init.normal_(w, generator=t.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("name", FILLS)
def test_fill_gives_pytorchs_numbers(name):
    found = []
    for t in (backlight, torch):
        t.manual_seed(9)
        weight = t.nn.Parameter(t.empty(5, 7))
        assert FILLS[name](t, weight) is weight
        found.append(weight)
    assert_close(*found)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_rows_or_columns_are_orthonormal(shape):
    matrix = nn.init.orthogonal_(nn.Parameter(backlight.empty(*shape)), gain=2).detach().numpy()
    matrix = matrix.reshape(shape[0], -1) / 2
    product = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-6)


def test_truncated_normal_stays_within_its_bounds():
    values = nn.init.trunc_normal_(nn.Parameter(backlight.empty(1000)), std=2.0, a=-1.0, b=0.5).detach().numpy()
    assert values.min() >= -1.0
    assert values.max() <= 0.5
    assert abs(values.mean()) < 0.5


INIT_MISTAKES = {
    "fan of a vector": lambda t: t.nn.init.xavier_uniform_(t.empty(3)),
    "eye of a vector": lambda t: t.nn.init.eye_(t.empty(3)),
    "orthogonal vector": lambda t: t.nn.init.orthogonal_(t.empty(3)),
    "unknown nonlinearity": lambda t: t.nn.init.calculate_gain("sine"),
    "slope no number": lambda t: t.nn.init.calculate_gain("leaky_relu", True),
    "unknown mode": lambda t: t.nn.init.kaiming_uniform_(t.empty(2, 2), mode="fan"),
    "dropout no probability": lambda t: t.nn.Dropout(1.5),
}


@pytest.mark.parametrize("mistake", INIT_MISTAKES)
def test_mistakes_in_first_values_have_pytorchs_words(mistake):
    with pytest.raises(ValueError) as theirs:
        INIT_MISTAKES[mistake](torch)
    with pytest.raises(ValueError) as ours:
        INIT_MISTAKES[mistake](backlight)
    assert str(ours.value).startswith(str(theirs.value))
