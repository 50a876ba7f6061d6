"""Seeded alike, a model begins with PyTorch's numbers and stays with them while it trains, dropout included."""

import pytest
import torch

import backlight

STEPS = 20


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def transformer(torch):
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(11, 16)
            self.layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.2, batch_first=True)
            self.out = torch.nn.Linear(16, 3)

        def forward(self, x):
            return self.out(self.layer(self.embed((x * 5).long() % 11)).mean(1))

    return Classifier()


def pre_norm(torch):
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, activation="gelu", norm_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = torch.nn.Linear(8, 3)

        def forward(self, x):
            return self.out(self.encoder(x.unsqueeze(0)).squeeze(0))

    return Classifier()


def lstm(torch):
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(2, 6, 2, batch_first=True, dropout=0.25, bidirectional=True)
            self.out = torch.nn.Linear(12, 3)

        def forward(self, x):
            return self.out(self.lstm(x.reshape(-1, 4, 2))[0][:, -1])

    return Classifier()


def gru(torch):
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = torch.nn.GRU(2, 6, batch_first=True)
            self.out = torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.out(self.gru(x.reshape(-1, 4, 2))[0].mean(1))

    return Classifier()


def cnn(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 4)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout2d(0.25),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


def sgd(torch, parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)


def adamw(torch, parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


def numbers(model) -> list[float]:
    return [value for tensor in model.state_dict().values() for value in tensor.double().reshape(-1).tolist()]


def trained(torch, build, optimizer):
    """Return the numbers of a model before it was trained, its losses, and its numbers after it was."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(1234)
        model = build(torch)
        start = numbers(model)
        optimizer = optimizer(torch, model.parameters())
        x, y, losses = torch.randn(12, 8), torch.randint(3, (12,)), []
        for _ in range(STEPS):
            order = torch.randperm(12)[:8]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[order]), y[order])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return start, losses, numbers(model)
    finally:
        torch.set_default_dtype(default)


@pytest.mark.parametrize("optimizer", [sgd, adamw])
@pytest.mark.parametrize("build", [mlp, transformer, pre_norm, lstm, gru, cnn])
def test_twenty_steps_from_a_seed_give_pytorchs_numbers(build, optimizer):
    start, losses, end = trained(backlight, build, optimizer)
    their_start, their_losses, their_end = trained(torch, build, optimizer)
    assert start == their_start  # to the last bit
    assert losses == pytest.approx(their_losses, abs=1e-6, rel=0)
    assert end == pytest.approx(their_end, abs=1e-6, rel=0)
    assert max(abs(one - other) for one, other in zip(start, end)) > 1e-2  # it did train
