import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, criterion, lr):
        self.model = model
        self.criterion = criterion
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.history = []

    def train_step(self, x, y):
        self.model.train()
        pred = self.model(x)
        loss = self.criterion(pred, y)
        loss.backward()  # here
        self.optimizer.step()  # here
        return loss.item()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        return sum(self.criterion(self.model(x), y).item() for x, y in loader) / len(loader)

    def fit(self, train_loader, valid_loader, epochs):
        for epoch in range(epochs):
            losses = [self.train_step(x, y) for x, y in train_loader]
            self.history.append((sum(losses) / len(losses), self.validate(valid_loader)))
            print("epoch %d train %.4f valid %.4f" % (epoch, *self.history[-1]))


def make_loaders():
    x = torch.randn(144, 11)
    w = torch.randn(11, 1) * 0.3
    y = x @ w + 0.1 * torch.randn(144, 1)
    train = DataLoader(TensorDataset(x[:112], y[:112]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(x[112:], y[112:]), batch_size=32)
    return train, valid


def main():
    torch.manual_seed(5)
    train_loader, valid_loader = make_loaders()
    model = nn.Sequential(nn.Linear(11, 24), nn.Tanh(), nn.Linear(24, 1))
    trainer = Trainer(model, nn.MSELoss(), lr=0.05)
    trainer.fit(train_loader, valid_loader, epochs=6)


if __name__ == "__main__":
    main()
