"""Pruning of parameters gives PyTorch's masks, parameters, state and errors, whichever module it is asked of."""

import numpy as np
import pytest
import torch
from case import as_array
from torch.nn.utils import prune as torch_prune

import backlight
from backlight.nn.utils import prune

PRUNES = {"backlight": (backlight, prune), "torch": (torch, torch_prune)}


def layer(module, seed: int = 0):
    """Return a layer with the same weights in both, which the seed draws."""
    module.manual_seed(seed)
    return module.nn.Conv2d(3, 4, 2)


STEPS = {
    "identity": lambda t, p, m: p.identity(m, "weight"),
    "random elements": lambda t, p, m: p.random_unstructured(m, "weight", 0.3),
    "so many random elements": lambda t, p, m: p.random_unstructured(m, "bias", 2),
    "least elements": lambda t, p, m: p.l1_unstructured(m, name="weight", amount=0.4),
    "none": lambda t, p, m: p.l1_unstructured(m, "weight", 0),
    "least scores": lambda t, p, m: p.l1_unstructured(
        m, "bias", amount=2, importance_scores=t.tensor([3.0, 1.0, 2.0, 4.0])
    ),
    "random channels": lambda t, p, m: p.random_structured(m, "weight", amount=2, dim=1),
    "least channels": lambda t, p, m: p.ln_structured(m, name="weight", amount=0.5, n=2, dim=0),
    "channels from behind": lambda t, p, m: p.ln_structured(m, "weight", 1, n=float("inf"), dim=-1),
    "a mask": lambda t, p, m: p.custom_from_mask(m, "bias", mask=t.tensor([0, 1, 1, 0])),
    "twice": lambda t, p, m: p.ln_structured(p.l1_unstructured(m, "weight", 0.4), "weight", 0.5, n=1, dim=0),
    "thrice": lambda t, p, m: p.random_unstructured(
        p.random_structured(p.custom_from_mask(m, "weight", t.ones(4, 3, 2, 2)), "weight", 1, 0), "weight", 5
    ),
    "and made ordinary": lambda t, p, m: p.remove(p.l1_unstructured(m, "weight", 0.4), "weight"),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_pruned_layer_has_pytorchs_state_and_gradients(name):
    found = []
    for module, tools in PRUNES.values():
        one = layer(module)
        assert STEPS[name](module, tools, one) is one
        out = one(module.ones(1, 3, 3, 3))
        out.square().sum().backward()
        state = {key: as_array(value) for key, value in one.state_dict().items()}
        grads = {key: as_array(value.grad) for key, value in one.named_parameters()}
        found.append((state, grads, {"out": as_array(out.detach())}, tools.is_pruned(module.nn.Sequential(one))))
    (ours, theirs) = found
    assert ours[3] == theirs[3]
    for mine, other in zip(ours[:3], theirs[:3]):
        assert list(mine) == list(other)
        for key, value in mine.items():
            np.testing.assert_allclose(value, other[key], 1e-5, 1e-6)


def test_elements_of_several_layers_are_chosen_among_all():
    found = []
    for module, tools in PRUNES.values():
        layers = [layer(module, seed) for seed in range(3)]
        tools.l1_unstructured(layers[1], "weight", 0.5)
        pairs = [(one, "weight") for one in layers]
        tools.global_unstructured(pairs, tools.L1Unstructured, {pairs[0]: module.full((4, 3, 2, 2), 0.01)}, amount=0.4)
        found.append([as_array(one.weight_mask) for one in layers])
    for mine, other in zip(*found):
        np.testing.assert_array_equal(mine, other)
    assert not found[0][0].any()


def test_a_tensor_is_pruned_without_a_module():
    found = []
    for module, tools in PRUNES.values():
        found.append(as_array(tools.L1Unstructured(amount=2).prune(module.tensor([3.0, -1.0, 2.0, 0.5]))))
    np.testing.assert_array_equal(*found)


def test_a_method_of_the_users_own_prunes():
    found = []
    for module, tools in PRUNES.values():

        class EveryOther(tools.BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        one = layer(module)
        EveryOther.apply(one, "bias")
        EveryOther.apply(one, "bias")
        found.append([as_array(one.bias_mask), len(tools.PruningContainer(*[EveryOther.apply(one, "weight")]))])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1] == 1


ERRORS = {
    "an amount that is no number": lambda t, p: p.L1Unstructured("a"),
    "a negative amount": lambda t, p: p.RandomUnstructured(-1),
    "a share above 1": lambda t, p: p.LnStructured(1.5, 2),
    "more than there are": lambda t, p: p.l1_unstructured(layer(t), "bias", 9),
    "channels of a vector": lambda t, p: p.ln_structured(layer(t), "bias", 1, 2, 0),
    "a dim that is not there": lambda t, p: p.random_structured(layer(t), "weight", 1, 9),
    "what is not pruned made ordinary": lambda t, p: p.remove(t.nn.Linear(2, 2), "weight"),
    "scores of another shape": lambda t, p: p.l1_unstructured(layer(t), "bias", 1, t.ones(3)),
    "a mask of another shape": lambda t, p: p.custom_from_mask(layer(t), "bias", t.ones(3)),
    "no pairs": lambda t, p: p.global_unstructured(3, p.L1Unstructured),
    "scores that are no dict": lambda t, p: p.global_unstructured([(layer(t), "bias")], p.L1Unstructured, 3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_pruning_that_cannot_be_is_refused_in_pytorchs_words(name):
    with pytest.raises(Exception) as theirs:
        ERRORS[name](torch, torch_prune)
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](backlight, prune)
    assert (
        str(ours.value).split("Parameter containing")[0].startswith(str(theirs.value).split("Parameter containing")[0])
    )


def test_a_failed_pruning_leaves_the_parameter_as_it_was():
    one = layer(backlight)
    with pytest.raises(ValueError, match="should be smaller"):
        prune.l1_unstructured(one, "weight", 1000)
    assert sorted(name for name, _ in one.named_parameters()) == ["bias", "weight"]
    assert not prune.is_pruned(one)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)])
def test_the_gradients_of_convolutions_stand_by_themselves(dims, stride, padding, dilation, groups):
    found = []
    for module in (backlight, torch):
        module.manual_seed(0)
        x = module.randn(2, 4, *(9,) * dims, dtype=module.float64)
        weight = module.randn(6, 4 // groups, *(2,) * dims, dtype=module.float64)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        grad = getattr(module.nn.functional, f"conv{dims}d")(x, weight, **options)
        for_input, for_weight = (getattr(module.nn.grad, f"conv{dims}d_{name}") for name in ("input", "weight"))
        found.append([for_input(x.shape, weight, grad, **options), for_weight(x, weight.shape, grad, **options)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(as_array(ours), as_array(theirs), 1e-9, 1e-9)
