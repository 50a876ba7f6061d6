import copy

import torch
import torch.nn as nn


class ChurnModel(nn.Module):
    def __init__(self, n_features=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None
        self.bad_epochs = 0

    def update(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = copy.deepcopy(model.state_dict())
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def validation_loss(model, x, y, criterion):
    model.eval()
    with torch.no_grad():
        return criterion(model(x), y).item()


def main():
    torch.manual_seed(1)
    x = torch.randn(120, 10)
    y = (x[:, 0] - x[:, 1] + torch.randn(120) > 0).float()
    x_train, y_train, x_valid, y_valid = x[:40], y[:40], x[40:], y[40:]
    model = ChurnModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    stopper = EarlyStopping(patience=15)
    for epoch in range(60):
        model.train()
        loss = criterion(model(x_train), y_train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if stopper.update(validation_loss(model, x_valid, y_valid, criterion), model):
            print("stopped at epoch", epoch)
            break
    model.load_state_dict(stopper.best_state)
    print(f"best {stopper.best_loss:.4f} restored {validation_loss(model, x_valid, y_valid, criterion):.4f}")


if __name__ == "__main__":
    main()
