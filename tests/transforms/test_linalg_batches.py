"""Linear algebra under vmap: many results, and many gradients, at once equal one after the other."""

import numpy as np
import pytest
from case import flat

import backlight
from cases import factorisations, linalg

CASES = [case for case in [*linalg.CASES, *factorisations.CASES] if case.differentiable]


@pytest.mark.parametrize("create_graph", [False, True], ids=["arrays", "graph"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_in_a_batch_equal_single_ones(case, create_graph):
    leaves = case.tensors(backlight, requires_grad=True)
    outputs = [one for one in flat(case.call(backlight, *leaves)) if one.requires_grad]
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    rng = np.random.default_rng(0)
    weights = [backlight.tensor(rng.normal(size=(3, *one.shape))) for one in outputs]

    def gradients(given, **options):
        return backlight.autograd.grad(outputs, leaves, given, retain_graph=True, allow_unused=True, **options)

    together = gradients(weights, is_grads_batched=True, create_graph=create_graph)
    for number in range(3):
        for one, many in zip(gradients([weight[number] for weight in weights]), together):
            assert (one is None) == (many is None)
            if one is not None:
                np.testing.assert_allclose(many[number].detach().numpy(), one.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("case", [*linalg.CASES, *factorisations.CASES], ids=lambda case: case.name)
def test_vmap_equals_a_loop(case):
    elements = [case.tensors(backlight, arrays=case.arrays(seed)) for seed in range(3)]
    stacked = [backlight.stack(parts) for parts in zip(*elements)]
    together = flat(backlight.vmap(lambda *given: tuple(flat(case.call(backlight, *given))))(*stacked))
    for number, given in enumerate(elements):
        for one, many in zip(flat(case.call(backlight, *given)), together, strict=True):
            if one.numel():
                np.testing.assert_allclose(many[number].numpy(), one.numpy(), rtol=1e-8, atol=1e-9)
