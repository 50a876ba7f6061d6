import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = math.inf
        self.bad = 0
        self.best_state = None

    def update(self, value, model):
        if value < self.best:
            self.best = value
            self.bad = 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def noisy_sine(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 6 * torch.rand(n, 1, generator=g) - 3
    y = torch.sin(2 * x) + 0.35 * torch.randn(n, 1, generator=g)
    return x, y


class Trainer:
    def __init__(self, model, lr, patience):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()
        self.stopper = EarlyStopping(patience)

    def fit(self, train_loader, val, max_epochs):
        for epoch in range(max_epochs):
            self.model.train()
            for x, y in train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            val_loss = self.evaluate(*val)
            if epoch % 25 == 0:
                print(f"epoch {epoch:3d} train {loss.item():.4f} val {val_loss:.4f}")
            if self.stopper.update(val_loss, self.model):
                print("stopping at epoch", epoch)
                break
        self.model.load_state_dict(self.stopper.best_state)

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return self.loss_fn(self.model(x), y).item()


def main():
    torch.manual_seed(2)
    train = DataLoader(TensorDataset(*noisy_sine(24, 1)), batch_size=8, shuffle=True)
    val = noisy_sine(200, 2)
    model = nn.Sequential(nn.Linear(1, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    trainer = Trainer(model, lr=4e-3, patience=60)
    trainer.fit(train, val, max_epochs=250)
    print(f"best val {trainer.stopper.best:.4f}  restored model val {trainer.evaluate(*val):.4f}")


if __name__ == "__main__":
    main()
