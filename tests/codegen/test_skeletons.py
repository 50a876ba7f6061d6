"""Modules moved to the meta device keep shapes and dtypes, and no memory, as PyTorch's."""

import copy

import numpy as np
import pytest
import torch

import backlight

ENGINES = {"torch": torch, "backlight": backlight}
BOTH = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


def model_of(engine):
    return engine.nn.Sequential(engine.nn.Linear(3, 4), engine.nn.BatchNorm1d(4), engine.nn.Linear(4, 2))


@BOTH
def test_shapes_and_dtypes_stay(engine):
    model = model_of(engine).to("meta")
    first = model[0].weight
    assert first.device == engine.device("meta") and first.is_meta and isinstance(first, engine.nn.Parameter)
    assert tuple(first.shape) == (4, 3) and first.size(0) == 4 and first.ndim == 2 and first.numel() == 12
    assert first.requires_grad and first.dtype is engine.float32 and first.is_floating_point()
    assert [tuple(one.shape) for one in model.buffers()] == [(4,), (4,), ()]
    assert model.to("meta", engine.float64)[0].weight.dtype is engine.float64
    assert model[1].num_batches_tracked.dtype is engine.int64
    assert copy.deepcopy(model)[0].weight.is_meta
    assert "device='meta', size=(4, 3)" in repr(first)


def test_models_are_run_together_through_a_skeleton():
    found = {}
    for name, engine in ENGINES.items():
        engine.manual_seed(0)
        models = [engine.nn.Linear(3, 2, dtype=engine.float64) for _ in range(4)]
        params, buffers = engine.func.stack_module_state(models)
        skeleton = copy.deepcopy(models[0]).to("meta")

        def run(params, buffers, x, skeleton=skeleton, engine=engine):
            return engine.func.functional_call(skeleton, (params, buffers), (x,))

        x = engine.randn(5, 3, dtype=engine.float64)
        found[name] = engine.vmap(run, in_dims=(0, 0, None))(params, buffers, x)
        assert skeleton.weight.is_meta
    ours, theirs = (found[name].detach().numpy() for name in ("backlight", "torch"))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@BOTH
def test_memory_comes_back(engine):
    model = model_of(engine)
    state = model.state_dict()
    model.to("meta")
    with pytest.raises(NotImplementedError, match=r"Cannot copy out of meta tensor; no data! Please use torch.nn.Modu"):
        model.to("cpu")
    model.to_empty(device="cpu")
    model.load_state_dict(state)
    assert model.eval()(engine.ones(1, 3)).shape == (1, 2)
    model.to("meta").load_state_dict(state, assign=True)
    assert model(engine.ones(1, 3)).shape == (1, 2)


@BOTH
def test_tied_parameters_part_as_in_pytorch(engine):
    model = engine.nn.Sequential(engine.nn.Linear(3, 3), engine.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model.to("meta")
    assert len([*model.parameters()]) == 4


def test_what_needs_values_says_what_to_do():
    model = backlight.nn.Linear(3, 2).to("meta")
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        model(backlight.ones(1, 3))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data! This one has the shape"):
        model.weight.tolist()
