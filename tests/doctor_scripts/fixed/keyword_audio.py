import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def synth_clips(n, length=256):
    """Noisy tones of three pitches."""
    g = torch.Generator().manual_seed(n)
    label = torch.randint(0, 3, (n,), generator=g)
    freq = torch.tensor([4.0, 9.0, 17.0])[label]
    t = torch.linspace(0, 1, length)
    phase = 2 * math.pi * torch.rand(n, 1, generator=g)
    wave = torch.sin(2 * math.pi * freq[:, None] * t + phase)
    return (wave + 0.5 * torch.randn(n, length, generator=g)).unsqueeze(1), label


class KeywordNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 8, 15, stride=4, padding=7),
            nn.ReLU(),
            nn.Conv1d(8, 16, 9, stride=2, padding=4),
            nn.ReLU(),
        )
        self.norm = nn.BatchNorm1d(16)
        self.fc = nn.Linear(16, classes)

    def forward(self, wave):
        pooled = self.conv(wave).abs().mean(dim=-1)
        return self.fc(self.norm(pooled))


class Experiment:
    def __init__(self, batch_size=16, lr=5e-3, epochs=6):
        torch.manual_seed(0)
        train_x, train_y = synth_clips(65)
        test_x, test_y = synth_clips(40)
        self.train_loader = DataLoader(
            TensorDataset(train_x, train_y), batch_size=batch_size, shuffle=True, drop_last=True
        )
        self.test = (test_x, test_y)
        self.model = KeywordNet()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.epochs = epochs

    def train_one_epoch(self):
        self.model.train()
        losses = []
        for wave, label in self.train_loader:
            loss = F.cross_entropy(self.model(wave), label)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def test_accuracy(self):
        self.model.eval()
        with torch.inference_mode():
            x, y = self.test
            return (self.model(x).argmax(-1) == y).float().mean().item()

    def run(self):
        for epoch in range(self.epochs):
            loss = self.train_one_epoch()
            print(f"[{epoch}] loss={loss:.3f} acc={self.test_accuracy():.2f}")


if __name__ == "__main__":
    Experiment().run()
