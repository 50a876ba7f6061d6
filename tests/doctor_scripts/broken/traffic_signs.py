import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class SignNet(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(8 * 4 * 4, n_classes)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def signs(n=96):
    y = torch.randint(0, 4, (n,))
    prototypes = torch.randn(4, 3, 8, 8)
    return TensorDataset(prototypes[y] + 0.8 * torch.randn(n, 3, 8, 8), y)


def train(model, device, train_loader, optimizer, scheduler, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        scheduler.step()  # here
        if batch_idx % 4 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)}] Loss: {loss.item():.6f}")


def main():
    torch.manual_seed(1)
    device = torch.device("cpu")
    train_loader = DataLoader(signs(), batch_size=8, shuffle=True)
    model = SignNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.1)  # here
    for epoch in range(1, 5):
        train(model, device, train_loader, optimizer, scheduler, epoch)


if __name__ == "__main__":
    main()
