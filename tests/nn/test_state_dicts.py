"""Weights go both ways between PyTorch and backlight, and the networks then give the same outputs and gradients."""

import pickle

import numpy as np
import pytest
import torch

import backlight


def mlp(nn):
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3))


def cnn(nn):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, padding=1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )


def lstm(nn):
    return nn.LSTM(8, 5, num_layers=2, bidirectional=True, batch_first=True)


def encoder(nn):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


NETWORKS = {mlp: (2, 4, 8), cnn: (3, 2, 4, 4), lstm: (2, 4, 8), encoder: (2, 4, 8)}


def outputs_and_gradients(module, network, batch):
    """Return the output and the gradient of its mean square for the input and for each parameter."""
    x = module.tensor(batch.tolist(), dtype=module.float32, requires_grad=True)
    out = network(x)
    out = out[0] if isinstance(out, tuple) else out
    (out * out).mean().backward()
    gradients = {name: parameter.grad for name, parameter in network.named_parameters()}
    return {"output": out.detach(), "input": x.grad, **gradients}


@pytest.mark.parametrize("direction", ["from PyTorch", "to PyTorch"])
@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
def test_a_state_dict_carries_a_network_over(build, direction, tmp_path):
    torch.manual_seed(0)
    backlight.manual_seed(1)
    ours, theirs = build(backlight.nn), build(torch.nn)
    path = tmp_path / "weights.pt"
    if direction == "from PyTorch":
        torch.save(theirs.state_dict(), path)
        ours.load_state_dict(backlight.load(path))
    else:
        backlight.save(ours.state_dict(), path)
        theirs.load_state_dict(torch.load(path, weights_only=True))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    batch = np.random.default_rng(2).normal(size=NETWORKS[build])
    mine = outputs_and_gradients(backlight, ours, batch)
    other = outputs_and_gradients(torch, theirs, batch)
    for name, value in other.items():
        np.testing.assert_allclose(mine[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def _old_spectral_norm(engine):
    """Return an old spectral norm's version in its state, and the weight that a state without v gives."""
    layer = engine.nn.utils.spectral_norm(engine.nn.Linear(2, 2))
    orig, u = engine.tensor([[2.0, 1.0], [0.5, 3.0]]), engine.tensor([0.6, 0.8])
    state = {"bias": engine.zeros(2), "weight_orig": orig, "weight_u": u, "weight": orig / 3}
    version = layer.state_dict()._metadata[""]["spectral_norm"]
    layer.load_state_dict(state)
    return version, layer.eval()(engine.ones(1, 2)).tolist()


def test_old_spectral_norm_states_load_as_in_pytorch():
    (version, out), (their_version, their_out) = map(_old_spectral_norm, (backlight, torch))
    assert version == their_version
    assert np.allclose(out, their_out, atol=1e-5)


def test_a_handle_of_a_hook_is_pickled_with_its_hooks():
    layer = backlight.nn.ReLU()
    handle = layer.register_forward_hook(print)
    hooks, again = pickle.loads(pickle.dumps((layer._forward_hooks, handle)))
    again.remove()
    assert not hooks
    assert layer._forward_hooks
