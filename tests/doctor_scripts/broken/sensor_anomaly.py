import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self, n=120, length=24):
        t = torch.linspace(0, 6.28, length)
        phase = torch.rand(n, 1) * 6.28
        self.labels = torch.randint(0, 2, (n,))
        freq = 1.0 + self.labels.float().unsqueeze(1)
        self.signals = torch.sin(freq * t + phase) + 0.1 * torch.randn(n, length)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.signals[i].unsqueeze(0), self.labels[i]


class SignalClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 5, padding=2), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def embed(self, x):
        return self.encoder(x).mean(dim=-1)

    def forward(self, x):
        features = self.embed(x).detach()  # here
        return self.head(features)


def run_epoch(model, loader, criterion, optimizer):
    loss_sum = hits = count = 0
    for signal, label in loader:
        optimizer.zero_grad()
        logits = model(signal)
        loss = criterion(logits, label)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(label)
        hits += (logits.argmax(-1) == label).sum().item()
        count += len(label)
    return loss_sum / count, hits / count


def main():
    torch.manual_seed(0)
    loader = DataLoader(Readings(), batch_size=20, shuffle=True)
    model = SignalClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        loss, acc = run_epoch(model, loader, nn.CrossEntropyLoss(), optimizer)
        print(f"epoch {epoch}: loss {loss:.3f} acc {acc:.2f}")


if __name__ == "__main__":
    main()
