import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 24), nn.BatchNorm1d(24), nn.ReLU()
        )
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.backbone(x))

    def train(self, mode=True):
        """Keep the statistics of the frozen backbone as they are."""
        super().train(mode)
        if not any(p.requires_grad for p in self.backbone.parameters()):
            self.backbone.eval()
        return self


def set_trainable(module, trainable):
    for p in module.parameters():
        p.requires_grad_(trainable)


def make_batch(n=48):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 12)
    x[torch.arange(n), y] += 2.0
    return x, y


def main():
    torch.manual_seed(0)
    model = Classifier()
    set_trainable(model.backbone, False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for epoch in range(6):
        if epoch == 3:
            set_trainable(model.backbone, True)
            optimizer.add_param_group({"params": model.backbone.parameters(), "lr": 1e-3})
        model.train()
        for _ in range(4):
            x, y = make_batch()
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x, y = make_batch()
            print(f"epoch {epoch} accuracy {(model(x).argmax(1) == y).float().mean():.2f}")


if __name__ == "__main__":
    main()
